"""What ``jax.random`` has and NumPy has no name for."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _errors
from .._draw import (
    Draws,
    as_arrays,
    default_dtype,
    device_param,
    host_reals,
    program,
    result_dtype,
    result_shape,
    step,
)
from .._typing import Array, DTypeLike, OutSharding, RealLike, Shape, Size
from . import _bits, _choice, _noise
from .continuous import standard_normal_noise
from .permutations import axis_of
from .simple import static_int

# From as many draws of one row on, a table of the weights costs less than n words each.
_DRAWS_BY_TABLE = 4


class JaxLike(Draws):
    """The methods of a generator that have their names from ``jax.random``."""

    def categorical(
        self,
        logits: RealLike,
        axis: int = -1,
        size: Size = None,
        *,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw indices with probabilities in proportion to the exponential of logits.

        .. math:: P(i) = e^{l_i} / \sum_j e^{l_j}.

        Another index of the same law than ``jax.random.categorical`` draws. With
        probabilities instead of logits, see `choice`.

        Args:
            logits: real numbers, one a category along ``axis``; ``-inf`` is a
                category that is never drawn. The other axes are the batch.
            axis: the axis of the categories.
            size: result shape; ``None`` gives the shape of the batch, which must
                broadcast to any other.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            Indices in JAX's default integer dtype. A nan or an infinite logit that
            is traced or on the device counts as ``-inf``; with nothing else in a row
            its index is 0.

        Raises:
            ValueError: if there are no categories, or, known on the host, a logit is
                nan or ``+inf``, or a row has none above ``-inf``.
            numpy.exceptions.AxisError: if ``logits`` has no such axis.

        Examples:
            >>> rng = stateful_rng(0)
            >>> logits = jnp.array([[0.0, -jnp.inf], [-jnp.inf, 0.0]])
            >>> rng.categorical(logits)
            Array([0, 1], dtype=int32)
            >>> rng.categorical(jnp.zeros(10), size=(2, 3)).shape
            (2, 3)

        References:
            Yellott, "The relationship between Luce's choice axiom, Thurstone's theory
            of comparative judgment, and the double exponential distribution" (1977),
            as the race of exponentials; the alias method for many draws of one row.
        """
        who = "rng.categorical"
        values = _logits(who, logits)
        axis = axis_of(who, axis, values.ndim)
        if not values.shape[axis]:
            _errors.value_error(who, "logits must have a category", logits)
        if not isinstance(values, jax.Array):
            _check_logits(who, values, axis)
        batch = values.shape[:axis] + values.shape[axis + 1 :]
        shape = result_shape(who, size, batch)
        drawn: Array = step(
            self,
            who,
            program(_categorical, shape, axis),
            values,
            out_sharding=out_sharding,
        )
        return drawn

    def orthogonal(
        self,
        n: int,
        size: Size = None,
        m: int | None = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw matrices uniform on the orthogonal group (by Haar's measure).

        Args:
            n: the number of rows, at least 0; known before tracing.
            size: the shape of the batch; ``None`` gives one matrix.
            m: the number of columns, ``n`` by default. Where it is another number,
                the columns, or the rows if these are fewer, are orthonormal.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``(*size, n, m)``.

        Raises:
            ValueError: if ``n`` or ``m`` is negative.
            TypeError: if one is not an int.

        Examples:
            >>> rng = stateful_rng(0)
            >>> q = rng.orthogonal(3)
            >>> bool(jnp.allclose(q @ q.T, jnp.eye(3), atol=1e-5))
            True

        References:
            Mezzadri, "How to generate random matrices from the classical compact
            groups" (2007).
        """
        who = "rng.orthogonal"
        rows = static_int(who, "n", n)
        columns = rows if m is None else static_int(who, "m", m)
        if rows < 0 or columns < 0:
            got = f"n={rows}, m={columns}"
            raise ValueError(_errors.message(who, "n and m must be >= 0", got))
        shape = result_shape(who, size, ())
        found = result_dtype(who, dtype, integer=False)
        matrices = program(_orthogonal, shape, rows, columns, found)
        drawn: Array = step(self, who, matrices, out_sharding=out_sharding)
        return drawn


# --- Arguments ---------------------------------------------------------------------


def _logits(who: str, logits: Any) -> np.ndarray | Array:
    array = as_arrays(who, "logits", logits)
    if isinstance(array, jax.Array):
        return device_param(who, "logits", array)
    return host_reals(who, "logits", logits).astype(np.float64)


def _check_logits(who: str, logits: np.ndarray, axis: int) -> None:
    if not (logits < np.inf).all():
        _errors.value_error(who, "logits must be below inf and not nan", logits)
    if (logits.max(axis) == -np.inf).any():
        must = "every row of logits must have an entry above -inf"
        _errors.value_error(who, must, logits)


# --- Samplers ----------------------------------------------------------------------


def _categorical(key: Array, shape: Shape, axis: int, logits: Array) -> Array:
    floats = jnp.issubdtype(logits.dtype, jnp.floating)
    wide = default_dtype(float) if not floats else logits.dtype
    dtype = np.dtype(np.float64 if wide == np.float64 else np.float32)
    logits = jnp.moveaxis(logits.astype(dtype), axis, -1)
    least = np.asarray(-np.inf, dtype)
    logits = jnp.where(logits < np.inf, logits, least)
    greatest = jnp.max(logits, axis=-1, keepdims=True)
    below = logits - jnp.where(greatest > least, greatest, np.asarray(0, dtype))
    if logits.ndim == 1 and math.prod(shape) >= _DRAWS_BY_TABLE:
        return _choice.weighted(key, shape, jnp.exp(below))
    # The first of exponential clocks with the rates e**logit.
    full = (*shape, logits.shape[-1])
    (word,) = _bits.words(key, full, 1, width=8 * dtype.itemsize)
    clocks = _noise.exponential(word) * jnp.broadcast_to(jnp.exp(-below), full)
    return jnp.argmin(clocks, axis=-1).astype(default_dtype(int))


def _orthogonal(
    key: Array, shape: Shape, rows: int, columns: int, dtype: np.dtype
) -> Array:
    compute = np.dtype(np.float64 if dtype == np.float64 else np.float32)
    tall = (*shape, max(rows, columns), min(rows, columns))
    q, r = jnp.linalg.qr(standard_normal_noise(key, tall, compute))
    # The factor with a positive diagonal of r is the unique one, and so uniform.
    diagonal = jnp.diagonal(r, axis1=-2, axis2=-1)
    one = np.asarray(1, compute)
    q = q * jnp.where(diagonal < 0, -one, one)[..., None, :]
    return (q if rows >= columns else jnp.swapaxes(q, -1, -2)).astype(dtype)

"""Random words, uniform floats and integers: what all other laws stand on."""

import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import _errors
from .._draw import Draws, Known, law, real
from .._typing import Array, DTypeLike, RealLike, Shape, Size
from . import _bits


class Simple(Draws):
    """The methods of a generator that give random words, floats and integers."""

    def random(
        self, size: Size = None, dtype: DTypeLike = float, out: None = None
    ) -> Array:
        """Draw floats uniform on [0, 1).

        Bit for bit ``jax.random.uniform(rng.key(), size, dtype)``: 23 random bits in
        float32, 52 in float64, 10 in float16, 7 in bfloat16 (NumPy has 24 and 53).
        The result is never 1.

        Args:
            size: result shape; ``None`` gives a 0-d array.
            dtype: float16, bfloat16, float32 or float64; ``float`` is float32, or
                float64 under ``jax_enable_x64``.
            out: only for NumPy's signature; must be ``None``.

        Returns:
            An array of shape ``size`` and the asked dtype.

        Raises:
            TypeError: if the dtype is not a float, or ``size`` not ints.
            ValueError: if ``size`` is negative.
            NotImplementedError: if ``out`` is given: JAX arrays do not change.

        Examples:
            >>> rng = stateful_rng(1701)
            >>> rng.random(3)
            Array([0.09609699, 0.26730824, 0.5619041 ], dtype=float32)
        """
        refuse_out("rng.random", out)
        return self._draw(_random, size, dtype)

    def uniform(
        self,
        low: RealLike = 0.0,
        high: RealLike = 1.0,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
    ) -> Array:
        """Draw floats uniform on [low, high).

        The density is 1 / (high - low). Bit for bit ``jax.random.uniform``, except
        where that rounds up to ``high`` itself (once in 1e6 draws of
        ``uniform(100, 101)`` in float32, one in four in bfloat16): there the result
        is the largest number below ``high``. Differentiable in ``low`` and ``high``.

        Args:
            low: lower end, included; any real number.
            high: upper end, excluded unless equal to ``low``; ``high - low`` must be
                finite and not negative.
            size: result shape; ``None`` gives the shape of the parameters.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.

        Returns:
            An array of shape ``size``. ``nan`` where a traced or device value breaks
            the domain.

        Raises:
            ValueError: if ``high < low``, known on the host.
            OverflowError: if ``high - low`` is not finite, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> x = rng.uniform(-1.0, 1.0, size=(2, 3))
            >>> x.shape, bool((x >= -1).all() and (x < 1).all())
            ((2, 3), True)
        """
        return self._draw(_uniform, size, dtype, low, high)


def refuse_out(who: str, out: object) -> None:
    """Refuses NumPy's ``out=``: a JAX array cannot be written to."""
    if out is not None:
        raise NotImplementedError(
            _errors.message(
                who,
                "out must be None, since a JAX array cannot be written to",
                _errors.describe(out),
                f"Write x = {who}(...).",
            )
        )


@law(result="native")
def _random(key: Array, shape: Shape, dtype: np.dtype) -> Array:
    return _bits.unit(key, shape, dtype)


def _ordered(who: str, low: Known, high: Known) -> None:
    if low is None or high is None:
        return
    width = high - low
    if isinstance(width, float):  # np.all of a float takes as long as the dispatch
        finite, backwards = math.isfinite(width), width < 0
    else:
        finite, backwards = np.isfinite(width).all(), (width < 0).any()
    if finite and not backwards:
        return
    got = f"low={_errors.describe(low)}, high={_errors.describe(high)}"
    if not finite:
        raise OverflowError(_errors.message(who, "high - low must be finite", got))
    must, fix = "low must be <= high", f"Write {who}(high, low)."
    raise ValueError(_errors.message(who, must, got, fix))


@law(real("low"), real("high"), result="native", check=_ordered)
def _uniform(
    key: Array, shape: Shape, dtype: np.dtype, low: Array, high: Array
) -> Array:
    # The sum and the maximum are jax.random.uniform's, for the same bits.
    x = _bits.unit(key, shape, dtype) * (high - low) + low
    x = lax.max(jnp.broadcast_to(low, shape), x)
    x = jnp.where(x >= high, jnp.nextafter(high, low), x)
    return jnp.where(low <= high, x, jnp.nan)

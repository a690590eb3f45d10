"""Continuous laws on the line."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from .._draw import Draws, law, nonnegative, real
from .._typing import Array, DTypeLike, RealLike, Shape, Size
from . import _bits


class Continuous(Draws):
    """The methods of a generator that draw real numbers."""

    def normal(
        self,
        loc: RealLike = 0.0,
        scale: RealLike = 1.0,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
    ) -> Array:
        r"""Draw from the normal (Gaussian) distribution.

        The density is

        .. math:: p(x) = \frac{1}{\sigma\sqrt{2\pi}} e^{-(x-\mu)^2 / (2\sigma^2)}.

        The noise is that of ``jax.random.normal(rng.key(), size, dtype)`` to a few
        units in the last place. Differentiable in ``loc`` and ``scale``.

        Args:
            loc: the mean :math:`\mu`; any real number.
            scale: the standard deviation :math:`\sigma`; >= 0.
            size: result shape; ``None`` gives the shape of the parameters.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.

        Returns:
            An array of shape ``size``. ``nan`` where a traced or device ``scale`` is
            negative.

        Raises:
            ValueError: if ``scale`` is negative or ``-0.0``, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.normal(10.0, [1.0, 2.0], size=(4, 2)).shape
            (4, 2)

        References:
            Inversion; Giles, "Approximating the erfinv function" (2012).
        """
        return self._draw(_normal, size, dtype, loc, scale)


def standard_normal_noise(key: Array, shape: Shape, dtype: np.dtype) -> Array:
    """Returns jax.random.normal's noise: the inverse of the law at its uniforms."""
    low = np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype), dtype=dtype)
    u = _bits.unit(key, shape, dtype) * (np.asarray(1, dtype) - low) + low
    u = lax.max(low, u)
    return np.asarray(np.sqrt(2), dtype) * lax.erf_inv(u)


@law(real("loc"), nonnegative("scale"), result="native")
def _normal(
    key: Array, shape: Shape, dtype: np.dtype, loc: Array, scale: Array
) -> Array:
    noise = standard_normal_noise(key, shape, dtype)
    return loc + jnp.where(scale >= 0, scale, jnp.nan) * noise

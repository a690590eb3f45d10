"""The noncentral chi-square and F laws."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._draw import Draws, law, nonnegative, positive
from .._typing import Array, DTypeLike, OutSharding, RealLike, Shape, Size
from . import _noise
from ._noise import fit, words
from .discrete import poisson
from .gamma import gamma_factors, mean_one_factors


class Noncentral(Draws):
    """The methods of a generator that draw from the noncentral laws."""

    def noncentral_chisquare(
        self,
        df: RealLike,
        nonc: RealLike,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the noncentral chi-square distribution.

        The law of :math:`\sum_i (Z_i + \mu_i)^2` over :math:`\nu` normals with
        :math:`\lambda = \sum_i \mu_i^2`. The density, for :math:`x > 0`, is

        .. math:: p(x) = \frac{1}{2} e^{-(x+\lambda)/2}
            \left(\frac{x}{\lambda}\right)^{\nu/4 - 1/2}
            I_{\nu/2-1}\left(\sqrt{\lambda x}\right).

        Differentiable in ``df`` and ``nonc``.

        Args:
            df: the degrees of freedom :math:`\nu`; > 0, not only integers.
            nonc: the noncentrality :math:`\lambda`; >= 0.
            size: result shape; ``None`` gives the shape of the parameters.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``. ``nan`` where a traced or device parameter
            breaks its domain; inf, where NumPy has finite numbers, for infinite
            ``nonc``.

        Raises:
            ValueError: if ``df`` is not positive, or ``nonc`` negative or ``-0.0``,
                known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.noncentral_chisquare(3.0, [0.0, 20.0]).shape
            (2,)

        References:
            Johnson, Kotz and Balakrishnan, "Continuous univariate distributions",
            volume 2 (1995), chapter 29: a squared normal and a central chi-square;
            a Poisson mixture of these below one degree of freedom.
        """
        return self._draw(
            _noncentral_chisquare, size, dtype, df, nonc, out_sharding=out_sharding
        )

    def noncentral_f(
        self,
        dfnum: RealLike,
        dfden: RealLike,
        nonc: RealLike,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the noncentral F distribution.

        The law of :math:`(X_m / m) / (X_n / n)` with a noncentral chi-square above
        and an independent central one below. Its density is a Poisson mixture of
        those of beta primes:

        .. math:: p(x) = \sum_k \frac{e^{-\lambda/2}(\lambda/2)^k}{k!\,
            B(m/2 + k, n/2)} \left(\frac{m}{n}\right)^{m/2+k} x^{m/2+k-1}
            \left(1 + \frac{m x}{n}\right)^{-(m+n)/2-k}.

        Differentiable in all three.

        Args:
            dfnum: the degrees of freedom :math:`m` of the numerator; > 0.
            dfden: those of the denominator, :math:`n`; > 0.
            nonc: the noncentrality :math:`\lambda` of the numerator; >= 0.
            size: result shape; ``None`` gives the shape of the parameters.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``. ``nan`` where a traced or device parameter
            breaks its domain.

        Raises:
            ValueError: if ``dfnum`` or ``dfden`` is not positive, or ``nonc`` negative
                or ``-0.0``, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.noncentral_f(3.0, 20.0, 1.5, size=4).shape
            (4,)

        References:
            As `noncentral_chisquare`.
        """
        return self._draw(
            _noncentral_f, size, dtype, dfnum, dfden, nonc, out_sharding=out_sharding
        )


def _factors(
    key: Array, shape: Shape, dtype: np.dtype, df: Array, nonc: Array
) -> tuple[Array, Array]:
    """Returns ``w`` and ``b`` such that ``w * exp(b)`` is noncentral chi-square."""
    df, nonc = fit(shape, df), fit(shape, nonc)
    legal = (df > 0) & (nonc >= 0)
    # Chi-square of df - 1 and one squared normal, or chi-square of df + 2 K with a
    # Poisson count K. Beyond 2**25 (2**54 in float64) the laws of df < 1 and of df = 1
    # lie closer together than two floats, and the count would not fit.
    mixed = (df < 1) & (nonc <= 4 / np.finfo(dtype).eps) & legal
    mean = lax.stop_gradient(jnp.where(mixed, nonc / 2, 0))
    count = lax.cond(
        jnp.any(mixed),
        lambda: poisson(jax.random.fold_in(key, 0), shape, mean).astype(dtype),
        lambda: jnp.zeros(shape, dtype),
    )
    half = jnp.where(mixed, df / 2 + count, jnp.maximum(df - 1, 0) / 2)
    half = jnp.where(legal, half, np.nan)
    v, b = gamma_factors(jax.random.fold_in(key, 1), shape, dtype, half)
    (word,) = words(jax.random.fold_in(key, 2), shape, dtype, 1)
    # 1 where it is not taken: the root's derivative is infinite at 0.
    root = jnp.where(nonc > 0, jnp.sqrt(jnp.where(nonc > 0, nonc, 1)), 0)
    whole = 2 * v * jnp.exp(b) + (_noise.normal(word) + root) ** 2
    moved = _moved(2 * v, b, *(jnp.broadcast_to(p, shape) for p in (df, nonc)))
    return jnp.where(mixed, moved, whole), jnp.where(mixed, b, 0)


@jax.custom_jvp
def _moved(v: Array, b: Array, df: Array, nonc: Array) -> Array:
    """Returns ``v``, with the derivative in ``nonc`` that the Poisson count hides."""
    return v


@_moved.defjvp
def _moved_jvp(
    primals: tuple[Array, ...], tangents: tuple[Array, ...]
) -> tuple[Array, Array]:
    # x = v exp(b) moves by -dF/dnonc / p, which is p(x; df + 2) / p(x; df): a quotient
    # of Bessel functions, sqrt(x / nonc) I(df / 2) / I(df / 2 - 1) at sqrt(x nonc).
    v, b, df, nonc = primals
    order, square = df / 2, v * jnp.exp(b) * nonc
    # Gauss's continued fraction of the quotient over its argument, enough for all
    # arguments up to 40; then the asymptotic series.
    near = jnp.minimum(square, 1600)
    fraction = 2 * (order + 60)
    for j in range(59, -1, -1):
        fraction = 2 * (order + j) + near / fraction
    s = jnp.sqrt(jnp.maximum(square, 1600))
    far = 1 - (order - 0.5) / s + (order - 0.5) * (order - 1.5) / (2 * s * s)
    # The quotient over the argument, times x; and v of that, without exp(b).
    slope = v * jnp.where(square < 1600, 1 / fraction, far / s)
    return v, tangents[0] + slope * tangents[3]


@law(positive("df"), nonnegative("nonc"))
def _noncentral_chisquare(
    key: Array, shape: Shape, dtype: np.dtype, df: Array, nonc: Array
) -> Array:
    w, b = _factors(key, shape, dtype, df, nonc)
    return w * jnp.exp(b)


@law(positive("dfnum"), positive("dfden"), nonnegative("nonc"))
def _noncentral_f(
    key: Array, shape: Shape, dtype: np.dtype, m: Array, n: Array, nonc: Array
) -> Array:
    above, top = _factors(jax.random.fold_in(key, 0), shape, dtype, m, nonc)
    below, bottom = mean_one_factors(jax.random.fold_in(key, 1), shape, dtype, n)
    return above / (fit(shape, m) * below) * jnp.exp(top - bottom)

"""Continuous laws on the line that need no rejection."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import log_ndtr

from .. import _errors
from .._draw import Draws, Known, law, nonnegative, positive, real
from .._typing import Array, DTypeLike, OutSharding, RealLike, Shape, Size
from . import _bits, _noise
from ._noise import fit, words
from .simple import refuse_out, refuse_overflow


class Continuous(Draws):
    """The methods of a generator that draw real numbers."""

    def exponential(
        self,
        scale: RealLike = 1.0,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the exponential distribution.

        The density, for :math:`x > 0`, is

        .. math:: p(x) = \frac{1}{\beta} e^{-x/\beta}.

        Small and large draws keep all their digits; in float32 they lie between
        1.2e-10 and 22.9 times the scale (``jax.random.exponential`` ends at 15.9).
        Differentiable in ``scale``.

        Args:
            scale: the mean :math:`\beta`, not the rate; >= 0, and 0 gives 0.
            size: result shape; ``None`` gives that of ``scale``.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``. ``nan`` where a traced or device ``scale`` is
            negative.

        Raises:
            ValueError: if ``scale`` is negative or ``-0.0``, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.exponential([1.0, 10.0], size=(4, 2)).shape
            (4, 2)

        References:
            Inversion.
        """
        return self._draw(_exponential, size, dtype, scale, out_sharding=out_sharding)

    def standard_exponential(
        self,
        size: Size = None,
        dtype: DTypeLike = float,
        method: str = "zig",
        out: None = None,
        *,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the exponential distribution of mean 1.

        The density, for :math:`x > 0`, is :math:`p(x) = e^{-x}`.

        Args:
            size: result shape; ``None`` gives a 0-d array.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            method: ``"zig"`` or ``"inv"``, for NumPy's signature: both give the same
                numbers, by inversion.
            out: only for NumPy's signature; must be ``None``.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``, of positive numbers.

        Raises:
            ValueError: if ``method`` is another one.
            NotImplementedError: if ``out`` is given: JAX arrays do not change.

        Examples:
            >>> rng = stateful_rng(0)
            >>> bool((rng.standard_exponential(1000) > 0).all())
            True

        References:
            Inversion.
        """
        refuse_out("rng.standard_exponential", out)
        if method not in ("zig", "inv"):
            must = "method must be 'zig' or 'inv'"
            _errors.value_error("rng.standard_exponential", must, method)
        return self._draw(_standard_exponential, size, dtype, out_sharding=out_sharding)

    def normal(
        self,
        loc: RealLike = 0.0,
        scale: RealLike = 1.0,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the normal (Gaussian) distribution.

        The density is

        .. math:: p(x) = \frac{1}{\sigma\sqrt{2\pi}} e^{-(x-\mu)^2 / (2\sigma^2)}.

        The noise is that of ``jax.random.normal(rng.key(), size, dtype)`` to 4 units
        in the last place. Differentiable in ``loc`` and ``scale``.

        Args:
            loc: the mean :math:`\mu`; any real number.
            scale: the standard deviation :math:`\sigma`; >= 0.
            size: result shape; ``None`` gives the shape of the parameters.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

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
        return self._draw(_normal, size, dtype, loc, scale, out_sharding=out_sharding)

    def standard_normal(
        self,
        size: Size = None,
        dtype: DTypeLike = float,
        out: None = None,
        *,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the normal distribution of mean 0 and standard deviation 1.

        The density is :math:`p(x) = e^{-x^2/2} / \sqrt{2\pi}`. The draws are those of
        ``jax.random.normal(rng.key(), size, dtype)`` to 4 units in the last place.

        Args:
            size: result shape; ``None`` gives a 0-d array.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out: only for NumPy's signature; must be ``None``.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``.

        Raises:
            NotImplementedError: if ``out`` is given: JAX arrays do not change.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.standard_normal((2, 3)).shape
            (2, 3)

        References:
            As `normal`.
        """
        refuse_out("rng.standard_normal", out)
        return self._draw(_standard_normal, size, dtype, out_sharding=out_sharding)

    def lognormal(
        self,
        mean: RealLike = 0.0,
        sigma: RealLike = 1.0,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the log-normal distribution.

        The law of :math:`e^X` with a normal :math:`X`. The density, for
        :math:`x > 0`, is

        .. math:: p(x) = \frac{1}{\sigma x\sqrt{2\pi}}
            e^{-(\log x-\mu)^2 / (2\sigma^2)}.

        Differentiable in ``mean`` and ``sigma``.

        Args:
            mean: the mean :math:`\mu` of the logarithm; any real number.
            sigma: its standard deviation :math:`\sigma`; >= 0.
            size: result shape; ``None`` gives the shape of the parameters.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``. ``nan`` where a traced or device ``sigma`` is
            negative.

        Raises:
            ValueError: if ``sigma`` is negative or ``-0.0``, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.lognormal(0.0, 0.5, size=3).shape
            (3,)

        References:
            The exponential of a normal by inversion.
        """
        return self._draw(
            _lognormal, size, dtype, mean, sigma, out_sharding=out_sharding
        )

    def laplace(
        self,
        loc: RealLike = 0.0,
        scale: RealLike = 1.0,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the Laplace (double exponential) distribution.

        The density is

        .. math:: p(x) = \frac{1}{2b} e^{-|x-\mu| / b}.

        Differentiable in ``loc`` and ``scale``.

        Args:
            loc: the centre :math:`\mu`; any real number.
            scale: the mean distance :math:`b` from it; >= 0.
            size: result shape; ``None`` gives the shape of the parameters.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``. ``nan`` where a traced or device ``scale`` is
            negative.

        Raises:
            ValueError: if ``scale`` is negative or ``-0.0``, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.laplace(0.0, [1.0, 2.0]).shape
            (2,)

        References:
            An exponential with a random sign.
        """
        return self._draw(_laplace, size, dtype, loc, scale, out_sharding=out_sharding)

    def logistic(
        self,
        loc: RealLike = 0.0,
        scale: RealLike = 1.0,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the logistic distribution.

        The density is

        .. math:: p(x) = \frac{e^{-(x-\mu)/s}}{s\,(1 + e^{-(x-\mu)/s})^2}.

        Differentiable in ``loc`` and ``scale``.

        Args:
            loc: the mean :math:`\mu`; any real number.
            scale: :math:`s`; >= 0.
            size: result shape; ``None`` gives the shape of the parameters.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``. ``nan`` where a traced or device ``scale`` is
            negative.

        Raises:
            ValueError: if ``scale`` is negative or ``-0.0``, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.logistic(size=(2, 2)).shape
            (2, 2)

        References:
            Inversion: log(u / (1 - u)), both to full precision near 0.
        """
        return self._draw(_logistic, size, dtype, loc, scale, out_sharding=out_sharding)

    def gumbel(
        self,
        loc: RealLike = 0.0,
        scale: RealLike = 1.0,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the Gumbel distribution (of maxima).

        The density, with :math:`z = (x - \mu) / \beta`, is

        .. math:: p(x) = \frac{1}{\beta} e^{-z - e^{-z}}.

        Differentiable in ``loc`` and ``scale``.

        Args:
            loc: the mode :math:`\mu`; any real number.
            scale: :math:`\beta`; >= 0.
            size: result shape; ``None`` gives the shape of the parameters.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``. ``nan`` where a traced or device ``scale`` is
            negative.

        Raises:
            ValueError: if ``scale`` is negative or ``-0.0``, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.gumbel(0.0, 2.0, size=3).shape
            (3,)

        References:
            -log of an exponential.
        """
        return self._draw(_gumbel, size, dtype, loc, scale, out_sharding=out_sharding)

    def pareto(
        self,
        a: RealLike,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the Pareto II (Lomax) distribution, which starts at 0.

        The density, for :math:`x > 0`, is

        .. math:: p(x) = \frac{a}{(1 + x)^{a+1}}.

        As in NumPy; add 1 for the classical Pareto law, which is that of
        ``jax.random.pareto``. Differentiable in ``a``.

        Args:
            a: the exponent; > 0.
            size: result shape; ``None`` gives that of ``a``.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``. ``nan`` where a traced or device ``a`` is
            not positive.

        Raises:
            ValueError: if ``a`` is not positive, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> 1 + rng.pareto(3.0, size=2) > 1
            Array([ True,  True], dtype=bool)

        References:
            Inversion: expm1 of an exponential.
        """
        return self._draw(_pareto, size, dtype, a, out_sharding=out_sharding)

    def power(
        self,
        a: RealLike,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the power distribution on [0, 1].

        The density is

        .. math:: p(x) = a x^{a-1}.

        Differentiable in ``a``.

        Args:
            a: the exponent; > 0.
            size: result shape; ``None`` gives that of ``a``.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``. ``nan`` where a traced or device ``a`` is
            not positive.

        Raises:
            ValueError: if ``a`` is not positive, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.power(5.0, size=3).shape
            (3,)

        References:
            Inversion: exp of minus an exponential.
        """
        return self._draw(_power, size, dtype, a, out_sharding=out_sharding)

    def rayleigh(
        self,
        scale: RealLike = 1.0,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the Rayleigh distribution.

        The density, for :math:`x > 0`, is

        .. math:: p(x) = \frac{x}{\sigma^2} e^{-x^2 / (2\sigma^2)}.

        Differentiable in ``scale``.

        Args:
            scale: the mode :math:`\sigma`; >= 0.
            size: result shape; ``None`` gives that of ``scale``.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``. ``nan`` where a traced or device ``scale`` is
            negative.

        Raises:
            ValueError: if ``scale`` is negative or ``-0.0``, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.rayleigh(2.0, size=3).shape
            (3,)

        References:
            The root of an exponential.
        """
        return self._draw(_rayleigh, size, dtype, scale, out_sharding=out_sharding)

    def standard_cauchy(
        self,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the Cauchy distribution of centre 0 and half-width 1.

        The density is

        .. math:: p(x) = \frac{1}{\pi (1 + x^2)}.

        In float32 the draws reach 2.7e9.

        Args:
            size: result shape; ``None`` gives a 0-d array.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.standard_cauchy((2, 2)).shape
            (2, 2)

        References:
            Inversion, by the tangent of angles up to 45 degrees.
        """
        return self._draw(_standard_cauchy, size, dtype, out_sharding=out_sharding)

    def triangular(
        self,
        left: RealLike,
        mode: RealLike,
        right: RealLike,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the triangular distribution.

        The density rises linearly from 0 at ``left`` to :math:`2 / (r - l)` at
        ``mode`` and falls linearly to 0 at ``right``:

        .. math:: p(x) = \begin{cases}
            \frac{2(x-l)}{(r-l)(m-l)} & l \le x \le m \\
            \frac{2(r-x)}{(r-l)(r-m)} & m \le x \le r
            \end{cases}

        Differentiable in all three.

        Args:
            left: the lower end; < ``right``.
            mode: the peak; between the ends, or one of them.
            right: the upper end. Both must be finite in float32, or in float64 where
                that is the dtype.
            size: result shape; ``None`` gives the shape of the parameters.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``. ``nan`` where a traced or device value breaks
            the order.

        Raises:
            ValueError: if not left <= mode <= right and left < right, known on the
                host.
            OverflowError: if an end is not finite in the dtype, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.triangular(0.0, 1.0, [2.0, 4.0]).shape
            (2,)

        References:
            Inversion.
        """
        return self._draw(
            _triangular, size, dtype, left, mode, right, out_sharding=out_sharding
        )

    def wald(
        self,
        mean: RealLike,
        scale: RealLike,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the Wald (inverse Gaussian) distribution.

        The density, for :math:`x > 0`, is

        .. math:: p(x) = \sqrt{\frac{\lambda}{2\pi x^3}}
            \exp\left(-\frac{\lambda (x-\mu)^2}{2\mu^2 x}\right).

        Differentiable in ``mean`` and ``scale``, by implicit reparameterisation.

        Args:
            mean: the mean :math:`\mu`; > 0, and infinity gives the limit, Lévy's law.
            scale: :math:`\lambda`; > 0.
            size: result shape; ``None`` gives the shape of the parameters.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``, of positive numbers. ``nan`` where a traced or
            device parameter is not positive.

        Raises:
            ValueError: if a parameter is not positive, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> bool((rng.wald(1e4, 1.0, size=1000) > 0).all())
            True

        References:
            Michael, Schucany and Haas, "Generating random variates using
            transformations with multiple roots" (1976), with the roots as mean / r and
            mean * r: the difference that is in print cancels for a large mean.
        """
        return self._draw(_wald, size, dtype, mean, scale, out_sharding=out_sharding)

    def weibull(
        self,
        a: RealLike,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the Weibull distribution of scale 1.

        The density, for :math:`x > 0`, is

        .. math:: p(x) = a x^{a-1} e^{-x^a}.

        Differentiable in ``a``.

        Args:
            a: the shape; >= 0, and 0 gives 0.
            size: result shape; ``None`` gives that of ``a``.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``. ``nan`` where a traced or device ``a`` is
            negative.

        Raises:
            ValueError: if ``a`` is negative or ``-0.0``, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.weibull([1.0, 2.0], size=(3, 2)).shape
            (3, 2)

        References:
            Inversion: a power of an exponential.
        """
        return self._draw(_weibull, size, dtype, a, out_sharding=out_sharding)


# --- Laws of one word, by inversion ------------------------------------------------


def _located(shape: Shape, loc: Array, scale: Array, noise: Array) -> Array:
    scale = jnp.where(scale >= 0, scale, np.nan)
    return fit(shape, loc) + fit(shape, scale) * noise


def _exponentials(key: Array, shape: Shape, dtype: np.dtype) -> Array:
    (word,) = words(key, shape, dtype, 1)
    return _noise.exponential(word)


@law()
def _standard_exponential(key: Array, shape: Shape, dtype: np.dtype) -> Array:
    return _exponentials(key, shape, dtype)


@law(nonnegative("scale"))
def _exponential(key: Array, shape: Shape, dtype: np.dtype, scale: Array) -> Array:
    scale = jnp.where(scale >= 0, scale, np.nan)
    return fit(shape, scale) * _exponentials(key, shape, dtype)


def standard_normal_noise(key: Array, shape: Shape, dtype: np.dtype) -> Array:
    """Returns jax.random.normal's noise: the inverse of the law at its uniforms."""
    low = np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype), dtype=dtype)
    u = _bits.unit(key, shape, dtype) * (np.asarray(1, dtype) - low) + low
    u = lax.max(low, u)
    return _noise.erf_inv(u) * np.asarray(np.sqrt(2), dtype)


@law(result="native")
def _standard_normal(key: Array, shape: Shape, dtype: np.dtype) -> Array:
    return standard_normal_noise(key, shape, dtype)


@law(real("loc"), nonnegative("scale"), result="native")
def _normal(
    key: Array, shape: Shape, dtype: np.dtype, loc: Array, scale: Array
) -> Array:
    return _located(shape, loc, scale, standard_normal_noise(key, shape, dtype))


@law(real("mean"), nonnegative("sigma"))
def _lognormal(
    key: Array, shape: Shape, dtype: np.dtype, mean: Array, sigma: Array
) -> Array:
    (word,) = words(key, shape, dtype, 1)
    return jnp.exp(_located(shape, mean, sigma, _noise.normal(word)))


@law(real("loc"), nonnegative("scale"))
def _laplace(
    key: Array, shape: Shape, dtype: np.dtype, loc: Array, scale: Array
) -> Array:
    size, sign = words(key, shape, dtype, 2)
    noise = _noise.with_sign(_noise.exponential(size), sign)
    return _located(shape, loc, scale, noise)


@law(real("loc"), nonnegative("scale"))
def _logistic(
    key: Array, shape: Shape, dtype: np.dtype, loc: Array, scale: Array
) -> Array:
    (word,) = words(key, shape, dtype, 1)
    noise = jnp.log(_bits.open_unit(word) / _bits.open_unit(~word))
    return _located(shape, loc, scale, noise)


@law(real("loc"), nonnegative("scale"))
def _gumbel(
    key: Array, shape: Shape, dtype: np.dtype, loc: Array, scale: Array
) -> Array:
    noise = -jnp.log(_exponentials(key, shape, dtype))
    return _located(shape, loc, scale, noise)


@law(positive("a"))
def _pareto(key: Array, shape: Shape, dtype: np.dtype, a: Array) -> Array:
    a = jnp.where(a > 0, a, np.nan)
    return jnp.expm1(_exponentials(key, shape, dtype) / fit(shape, a))


@law(positive("a"))
def _power(key: Array, shape: Shape, dtype: np.dtype, a: Array) -> Array:
    a = jnp.where(a > 0, a, np.nan)
    return jnp.exp(-_exponentials(key, shape, dtype) / fit(shape, a))


@law(nonnegative("scale"))
def _rayleigh(key: Array, shape: Shape, dtype: np.dtype, scale: Array) -> Array:
    scale = jnp.where(scale >= 0, scale, np.nan)
    return fit(shape, scale) * jnp.sqrt(2 * _exponentials(key, shape, dtype))


@law(nonnegative("a"))
def _weibull(key: Array, shape: Shape, dtype: np.dtype, a: Array) -> Array:
    a = fit(shape, a)
    power = 1 / jnp.where(a > 0, a, 1)
    drawn = jnp.exp(power * jnp.log(_exponentials(key, shape, dtype)))
    return jnp.where(a > 0, drawn, jnp.where(a == 0, 0, np.nan))


@law()
def _standard_cauchy(key: Array, shape: Shape, dtype: np.dtype) -> Array:
    (word,) = words(key, shape, dtype, 1)
    return _noise.cauchy(word)


def _peaked(who: str, dtype: np.dtype, left: Known, mode: Known, right: Known) -> None:
    for low, high, strict, must in (
        (left, mode, False, "left must be <= mode"),
        (mode, right, False, "mode must be <= right"),
        (left, right, True, "left must be < right"),
    ):
        if low is None or high is None:
            continue
        wrong = low >= high if strict else low > high
        if wrong if isinstance(wrong, bool) else wrong.any():
            got = _errors.named(left=left, mode=mode, right=right)
            raise ValueError(_errors.message(who, must, got))
    for name, end in (("left", left), ("right", right)):
        if end is None or (isinstance(end, float) and abs(end) < 1e38):
            continue
        compute = np.dtype(np.float64 if dtype == np.float64 else np.float32)
        end = np.where(np.isnan(end), 0, end)  # nan passes and gives nan
        refuse_overflow(who, compute, name, **{name: end})


@law(real("left"), real("mode"), real("right"), check=_peaked)
def _triangular(
    key: Array, shape: Shape, dtype: np.dtype, left: Array, mode: Array, right: Array
) -> Array:
    left, mode, right = fit(shape, left), fit(shape, mode), fit(shape, right)
    legal = (left <= mode) & (mode <= right) & (left < right)
    # Ends far apart are drawn at half their size: their distance may not be finite.
    double = jnp.where(jnp.isfinite(right - left), 1, 2).astype(dtype)
    left, mode, right = left / double, mode / double, right / double
    width = jnp.where(legal, right - left, np.nan)
    rising, falling = (mode - left) / width, (right - mode) / width
    (word,) = words(key, shape, dtype, 1)
    u, rest = _bits.open_unit(word), _bits.open_unit(~word)
    rises = u <= rising
    # 1 where the branch is not taken: the root's derivative is infinite at 0.
    up = jnp.sqrt(jnp.where(rises, u * rising, 1))
    down = jnp.sqrt(jnp.where(rises, 1, rest * falling))
    return double * jnp.where(rises, left + width * up, right - width * down)


# --- Wald -----------------------------------------------------------------------------


@law(positive("mean"), positive("scale"))
def _wald(
    key: Array, shape: Shape, dtype: np.dtype, mean: Array, scale: Array
) -> Array:
    mean = fit(shape, jnp.where(mean > 0, mean, np.nan))
    scale = fit(shape, jnp.where(scale > 0, scale, np.nan))
    return _inverse_gaussian(key, mean, scale, shape, dtype)


@functools.partial(jax.custom_jvp, nondiff_argnums=(3, 4))
def _inverse_gaussian(
    key: Array, mean: Array, scale: Array, shape: Shape, dtype: np.dtype
) -> Array:
    """Picks one of the roots mean / r and mean * r of z**2 = scale (x - mean)**2 / ….

    With y = mean z**2 / (2 scale), r is 1 + y + sqrt(y (2 + y)). The lesser root is
    taken with probability r / (1 + r).
    """
    first, second = words(key, shape, dtype, 2)
    square = _noise.normal(first) ** 2
    y = square / (2 * scale) * mean
    r = 1 + y + jnp.sqrt(y) * jnp.sqrt(2 + y)
    # Written so that y may overflow, as it does for an infinite mean.
    far = 2 * scale / square / (1 / y + 1 + jnp.sqrt(1 + 2 / y))
    lesser = jnp.where(y < 1, mean / r, far)
    x = jnp.where(_bits.open_unit(second) * (1 + 1 / r) <= 1, lesser, mean * r)
    return jnp.maximum(x, np.finfo(dtype).tiny)


@_inverse_gaussian.defjvp
def _inverse_gaussian_jvp(
    shape: Shape, dtype: np.dtype, primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[Array, Array]:
    # -dF/dmean / p has a closed form, and x is homogeneous in (mean, scale).
    key, mean, scale = primals
    # Held, or XLA follows each use of x back to the words, for minutes.
    x = lax.optimization_barrier(_inverse_gaussian(key, mean, scale, shape, dtype))
    root = jnp.sqrt(scale / x)
    by_mean = 2 * scale / (root * mean) * (x / mean) * _mills(root * (x / mean + 1))
    by_scale = (x - mean * by_mean) / scale
    return x, by_mean * tangents[1] + by_scale * tangents[2]


def _mills(b: Array) -> Array:
    """Returns (1 - Phi(b)) / phi(b) of the normal law, for b > 0."""
    near = jnp.minimum(b, 4)
    ratio = jnp.exp(log_ndtr(-near) + near * near / 2) * math.sqrt(2 * math.pi)
    far = jnp.maximum(b, 4)
    fraction = far
    for j in range(30, 0, -1):
        fraction = far + j / fraction
    return jnp.where(b < 4, ratio, 1 / fraction)

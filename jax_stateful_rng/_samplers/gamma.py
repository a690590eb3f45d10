"""The gamma law and those made of gammas: beta, chi-square, F, Student's t."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import digamma

from .._draw import Draws, law, nonnegative, positive
from .._typing import Array, DTypeLike, OutSharding, RealLike, Shape, Size
from . import _bits, _bulk, _noise
from ._noise import fit, words
from .simple import refuse_out


class GammaFamily(Draws):
    """The methods of a generator that draw gammas and what is made of them."""

    def standard_gamma(
        self,
        shape: RealLike,
        size: Size = None,
        dtype: DTypeLike = float,
        out: None = None,
        *,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the gamma distribution of scale 1.

        The density, for :math:`x > 0`, is

        .. math:: p(x) = \frac{x^{k-1} e^{-x}}{\Gamma(k)}.

        Differentiable in ``shape``, see `gamma`.

        Args:
            shape: the shape :math:`k`; >= 0, and 0 gives 0.
            size: result shape; ``None`` gives that of ``shape``.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out: only for NumPy's signature; must be ``None``.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``. ``nan`` where a traced or device ``shape`` is
            negative.

        Raises:
            ValueError: if ``shape`` is negative or ``-0.0``, known on the host.
            NotImplementedError: if ``out`` is given: JAX arrays do not change.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.standard_gamma([0.5, 2.0], size=(3, 2)).shape
            (3, 2)

        References:
            As `gamma`.
        """
        refuse_out("rng.standard_gamma", out)
        return self._draw(
            _standard_gamma, size, dtype, shape, out_sharding=out_sharding
        )

    def gamma(
        self,
        shape: RealLike,
        scale: RealLike = 1.0,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the gamma distribution.

        The density, for :math:`x > 0`, is

        .. math:: p(x) = \frac{x^{k-1} e^{-x/\theta}}{\theta^k \Gamma(k)}.

        Differentiable in ``shape``, by implicit reparameterisation, and in ``scale``.

        Args:
            shape: the shape :math:`k`; >= 0, and 0 gives 0.
            scale: the scale :math:`\theta`; >= 0, and 0 gives 0.
            size: result shape; ``None`` gives the shape of the parameters.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``. ``nan`` where a traced or device parameter is
            negative. Draws below the least normal number (1.2e-38 in float32) are 0,
            which most of ``gamma(1e-3)`` are.

        Raises:
            ValueError: if a parameter is negative or ``-0.0``, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.gamma(2.5, [1.0, 10.0], size=(4, 2)).shape
            (4, 2)
            >>> mean = lambda k: stateful_rng(0).gamma(k, size=1000).mean()
            >>> round(float(jax.grad(mean)(2.5)), 1)
            1.0

        References:
            Marsaglia and Tsang, "A simple method for generating gamma variables"
            (2000). Figurnov, Mohamed and Mnih, "Implicit reparameterization
            gradients" (2018).
        """
        return self._draw(_gamma, size, dtype, shape, scale, out_sharding=out_sharding)

    def beta(
        self,
        a: RealLike,
        b: RealLike,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the beta distribution.

        The density, for :math:`0 < x < 1`, is

        .. math:: p(x) = \frac{\Gamma(a+b)}{\Gamma(a)\Gamma(b)} x^{a-1}(1-x)^{b-1}.

        Differentiable in ``a`` and ``b``.

        Args:
            a: alpha; > 0.
            b: beta; > 0.
            size: result shape; ``None`` gives the shape of the parameters.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``, of numbers in [0, 1]: of tiny parameters the
            nearest floats, 0 and 1, in their right proportion. ``nan`` where a traced
            or device parameter is not positive.

        Raises:
            ValueError: if a parameter is not positive, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> x = rng.beta(1e-4, 1e-4, size=1000)
            >>> bool(((x < 1e-6) | (x > 1 - 1e-6)).mean() > 0.99)
            True

        References:
            :math:`G_a / (G_a + G_b)` with gammas kept as logarithms where they are
            tiny.
        """
        if isinstance(a, float) and isinstance(b, float) and 0 < min(a, b) < _TINY:
            a, b = _lifted(a, b)
        return self._draw(_beta, size, dtype, a, b, out_sharding=out_sharding)

    def chisquare(
        self,
        df: RealLike,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the chi-square distribution.

        The density, for :math:`x > 0`, is

        .. math:: p(x) = \frac{x^{\nu/2-1} e^{-x/2}}{2^{\nu/2}\Gamma(\nu/2)}.

        Differentiable in ``df``.

        Args:
            df: the degrees of freedom :math:`\nu`; > 0, not only integers.
            size: result shape; ``None`` gives that of ``df``.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``. ``nan`` where a traced or device ``df`` is not
            positive.

        Raises:
            ValueError: if ``df`` is not positive, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.chisquare([1.0, 5.0]).shape
            (2,)

        References:
            Twice a gamma of shape :math:`\nu/2`.
        """
        return self._draw(_chisquare, size, dtype, df, out_sharding=out_sharding)

    def f(
        self,
        dfnum: RealLike,
        dfden: RealLike,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the F distribution.

        The law of :math:`(X_m / m) / (X_n / n)` with independent chi-squares. Its
        density, for :math:`x > 0`, is

        .. math:: p(x) = \frac{(m/n)^{m/2}}{B(m/2, n/2)}
            x^{m/2-1} \left(1 + \frac{m x}{n}\right)^{-(m+n)/2}.

        Differentiable in ``dfnum`` and ``dfden``.

        Args:
            dfnum: the degrees of freedom :math:`m` of the numerator; > 0.
            dfden: those of the denominator, :math:`n`; > 0.
            size: result shape; ``None`` gives the shape of the parameters.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``; infinite degrees of freedom give the limit,
            where NumPy has ``nan``. ``nan`` where a traced or device parameter is not
            positive.

        Raises:
            ValueError: if a parameter is not positive, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.f(3.0, 10.0, size=5).shape
            (5,)

        References:
            A quotient of gammas, in which the logarithms are subtracted where they
            are tiny.
        """
        return self._draw(_f, size, dtype, dfnum, dfden, out_sharding=out_sharding)

    def standard_t(
        self,
        df: RealLike,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from Student's t distribution.

        The density is

        .. math:: p(x) = \frac{\Gamma((\nu+1)/2)}{\sqrt{\pi\nu}\,\Gamma(\nu/2)}
            \left(1 + \frac{x^2}{\nu}\right)^{-(\nu+1)/2}.

        Differentiable in ``df``.

        Args:
            df: the degrees of freedom :math:`\nu`; > 0, not only integers.
            size: result shape; ``None`` gives that of ``df``.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``; infinite ``df`` gives a normal, where NumPy
            has ``nan``. ``nan`` where a traced or device ``df`` is not positive.

        Raises:
            ValueError: if ``df`` is not positive, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.standard_t(3.0, size=5).shape
            (5,)

        References:
            A normal over the root of a gamma of shape and rate :math:`\nu/2`.
        """
        return self._draw(_standard_t, size, dtype, df, out_sharding=out_sharding)


# --- The gamma law in two factors --------------------------------------------------


def gamma_factors(
    key: Array, shape: Shape, dtype: np.dtype, a: Array
) -> tuple[Array, Array]:
    """Returns ``v`` and ``b`` such that ``v * exp(b)`` is a gamma of shape ``a``.

    ``exp(b)`` holds what can underflow: 0 where ``a >= 1``, and down to -1e38 as
    ``a`` falls to 0. ``v`` is a positive number of moderate size. Quotients of gammas
    are right for tiny shapes if ``b`` is subtracted before it goes into ``exp``.

    The derivative in ``a`` is the implicit one, and it is all in ``b``: what is
    computed from ``v`` and ``b`` has the right gradient.

    Args:
        key: a key of which nothing else is taken.
        shape: the shape of the results.
        dtype: float32 or float64.
        a: shapes, 0 or more, that broadcast to ``shape``; nan gives nan, and so does
            a negative one; inf gives ``v`` inf.
    """
    a = fit(shape, a)
    legal = (a >= 0) & (a < np.inf)
    v, b = _factors(key, jnp.where(legal, a, 1), shape, dtype)
    return jnp.where(legal, v, jnp.where(a == np.inf, np.inf, np.nan)), b


@functools.partial(jax.custom_jvp, nondiff_argnums=(2, 3))
def _factors(
    key: Array, a: Array, shape: Shape, dtype: np.dtype
) -> tuple[Array, Array]:
    below_one = a < 1
    third = dtype.type(1 / 3)
    d = jnp.where(below_one, a + 1, a) - third
    t = _bulk.reject(
        jax.random.fold_in(key, 0),
        shape,
        (d,),
        _propose,
        derive=lambda d: (d, third * lax.rsqrt(d)),
        refused=-2,
        otherwise=0,
        dtype=dtype,
        width=dtype.itemsize * 8,
        spare=0.06,
    )
    # Least normal shape whose boost is finite for every word.
    least = dtype.type(2.0**-118 if dtype == np.float32 else 2.0**-1000)

    def boost() -> Array:
        (word,) = words(jax.random.fold_in(key, 1), shape, dtype, 1)
        logarithm = -_noise.exponential(word) / jnp.maximum(a, least)
        return jnp.where(below_one, logarithm, 0)

    b = lax.cond(jnp.any(below_one), boost, lambda: jnp.zeros(shape, dtype))
    return d * (1 + t) ** 3, b


@_factors.defjvp
def _factors_jvp(
    shape: Shape, dtype: np.dtype, primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    key, a = primals
    v, b = _factors(key, a, shape, dtype)
    a = jnp.broadcast_to(a, shape)
    x = v * jnp.exp(b)
    # P(a, x) is x**a / gamma(a + 1) * (1 + O(x)), which gives the derivative of log x
    # for draws too small for random_gamma_grad, down to those that underflow.
    tiny = x < np.finfo(dtype).eps
    series = (digamma(a + 1) - jnp.log(v) - b) / a
    safe = jnp.where(tiny, 1, x)
    implicit = lax.random_gamma_grad(a, safe) / safe
    slope = jnp.where(tiny, series, implicit) * jnp.broadcast_to(tangents[1], shape)
    return (v, b), (jnp.zeros_like(v), slope)


def _propose(bits: list[Array], d: Array, c: Array) -> Array:
    """Marsaglia and Tsang's proposal t = c x, for a gamma of d (1 + t)**3.

    Accepted if log u <= x**2 / 2 + d - d (1 + t)**3 + 3 d log(1 + t), which is
    3 d (log(1 + t) - t + t**2 / 2 - t**3 / 3): a series where that cancels.
    """
    real = d.dtype.type
    t = c * _noise.normal(bits[0])
    series = real(1 / 12)
    for j in range(11, 3, -1):
        series = real(1 / j) - t * series
    near = jnp.abs(t) < real(0.25 if d.dtype == jnp.float32 else 0.05)
    far = (
        jnp.log(jnp.maximum(1 + t, real(1e-30)))
        - t
        + t * t * (real(0.5) - t * real(1 / 3))
    )
    exponent = jnp.where(near, -((t * t) ** 2) * series, far)
    accepted = (t > -1) & (jnp.log(_bits.open_unit(bits[1])) <= 3 * d * exponent)
    return jnp.where(accepted, t, real(-2))


# --- The laws ------------------------------------------------------------------------


@law(nonnegative("shape"))
def _standard_gamma(key: Array, shape: Shape, dtype: np.dtype, a: Array) -> Array:
    v, b = gamma_factors(key, shape, dtype, a)
    return v * jnp.exp(b)


@law(nonnegative("shape"), nonnegative("scale"))
def _gamma(key: Array, shape: Shape, dtype: np.dtype, a: Array, scale: Array) -> Array:
    scale = fit(shape, scale)
    standard = _standard_gamma.sampler(key, shape, dtype, a)
    return jnp.where(scale >= 0, scale, np.nan) * standard


_TINY = 1e-36


def _lifted(a: float, b: float) -> tuple[float, float]:
    """Returns parameters of a law like beta(a, b) that float32 can hold.

    A float32 below 1.2e-38 is 0. Of parameters below 2**-60 only the proportion
    matters, and one that is a 2**-60th of the other is as good as less.
    """
    lift = max(1.0, 2.0**-60 / max(a, b))
    return max(a * lift, _TINY), max(b * lift, _TINY)


@law(positive("a"), positive("b"))
def _beta(key: Array, shape: Shape, dtype: np.dtype, a: Array, b: Array) -> Array:
    a, b = fit(shape, a), fit(shape, b)
    legal = (a > 0) & (b > 0)
    # Of parameters this small only the proportion matters; lifted, so that neither
    # logarithm overflows.
    lift = jnp.where(jnp.maximum(a, b) < 2.0**-60, dtype.type(2.0**60), 1)
    va, ba = gamma_factors(jax.random.fold_in(key, 0), shape, dtype, a * lift)
    vb, bb = gamma_factors(jax.random.fold_in(key, 1), shape, dtype, b * lift)
    largest = lax.stop_gradient(jnp.maximum(ba, bb))
    x, y = va * jnp.exp(ba - largest), vb * jnp.exp(bb - largest)
    # The lesser share, since the other has few digits to tell how near to 1 it is.
    lesser = jnp.minimum(x, y) / (x + y)
    lesser = jnp.where((x == np.inf) ^ (y == np.inf), 0, lesser)
    return jnp.where(legal, jnp.where(y < x, 1 - lesser, lesser), np.nan)


@law(positive("df"))
def _chisquare(key: Array, shape: Shape, dtype: np.dtype, df: Array) -> Array:
    half = jnp.where(df > 0, df / 2, np.nan)
    return 2 * _standard_gamma.sampler(key, shape, dtype, half)


def mean_one_factors(
    key: Array, shape: Shape, dtype: np.dtype, df: Array
) -> tuple[Array, Array]:
    """Returns ``v`` and ``b`` such that ``v * exp(b)`` is a chi-square over its df.

    Infinite ``df`` gives 1, and what is not positive nan.
    """
    half = fit(shape, jnp.where(df > 0, df / 2, np.nan))
    finite = jnp.where(half == np.inf, 1, half)
    v, b = gamma_factors(key, shape, dtype, finite)
    return jnp.where(half == np.inf, 1, v / finite), jnp.where(half == np.inf, 0, b)


@law(positive("dfnum"), positive("dfden"))
def _f(key: Array, shape: Shape, dtype: np.dtype, m: Array, n: Array) -> Array:
    vm, bm = mean_one_factors(jax.random.fold_in(key, 0), shape, dtype, m)
    vn, bn = mean_one_factors(jax.random.fold_in(key, 1), shape, dtype, n)
    return vm / vn * jnp.exp(bm - bn)


@law(positive("df"))
def _standard_t(key: Array, shape: Shape, dtype: np.dtype, df: Array) -> Array:
    v, b = mean_one_factors(jax.random.fold_in(key, 0), shape, dtype, df)
    (word,) = words(jax.random.fold_in(key, 1), shape, dtype, 1)
    return _noise.normal(word) * lax.rsqrt(v) * jnp.exp(dtype.type(-0.5) * b)

"""Laws of counts."""

import math
from collections.abc import Sequence
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from .. import _errors
from .._draw import Draws, Known, count, default_dtype, interval, law
from .._typing import Array, DTypeLike, OutSharding, RealLike, Shape, Size
from . import _bits, _counts, _noise
from ._bulk import reject
from ._counts import INVALID, around_mean, either, integer_of, largest_of, saturated
from ._noise import fit, words
from .gamma import gamma_factors


class Discrete(Draws):
    """The methods of a generator that draw counts."""

    def binomial(
        self,
        n: RealLike,
        p: RealLike,
        size: Size = None,
        *,
        dtype: DTypeLike = int,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the binomial distribution: successes in ``n`` trials.

        The mass function is

        .. math:: P(k) = \binom{n}{k} p^k (1-p)^{n-k}, \quad k = 0, \dots, n.

        Exact in float32 up to ``n = 2**31 - 1`` (``jax.random.binomial`` is not from
        ``n = 1e7`` on).

        Args:
            n: number of trials; an integer >= 0, floats are truncated. Must fit
                JAX's default integer, int32 or under x64 int64.
            p: probability of success; in [0, 1].
            size: result shape; ``None`` gives the shape of the parameters.
            dtype: an integer dtype; ``int`` is int32, or int64 under x64. Where the
                result does not fit a smaller one, it is the largest value.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``. -1 where a traced or device value breaks the
            domain.

        Raises:
            ValueError: if ``n`` or ``p`` breaks its domain, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.binomial(10, [0.0, 0.5, 1.0], size=(4, 3)).shape
            (4, 3)

        References:
            Mean below 10: inversion. Above: transformed rejection, BTRS of Hörmann,
            "The generation of binomial random variates" (1993).
        """
        return self._draw(_binomial, size, dtype, n, p, out_sharding=out_sharding)

    def geometric(
        self,
        p: RealLike,
        size: Size = None,
        *,
        dtype: DTypeLike = int,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the geometric distribution: trials until the first success.

        The mass function is

        .. math:: P(k) = (1-p)^{k-1} p, \quad k = 1, 2, \dots

        Args:
            p: probability of success in one trial; in (0, 1].
            size: result shape; ``None`` gives the shape of the parameters.
            dtype: an integer dtype; ``int`` is int32, or int64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``. What is too large for the dtype becomes its
            largest value, as in NumPy. -1 where a traced or device ``p`` is outside
            (0, 1].

        Raises:
            ValueError: if ``p`` is outside (0, 1], known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> x = rng.geometric(0.2, size=1000)
            >>> bool((x >= 1).all())
            True

        References:
            Inversion; Devroye, "Non-Uniform Random Variate Generation" (1986),
            section X.2. With a small ``p`` the number is drawn in two digits, since a
            float32 has not all integers above ``2**24``.
        """
        return self._draw(_geometric, size, dtype, p, out_sharding=out_sharding)

    def hypergeometric(
        self,
        ngood: RealLike,
        nbad: RealLike,
        nsample: RealLike,
        size: Size = None,
        *,
        dtype: DTypeLike = int,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the hypergeometric distribution: the good ones in a sample.

        Of ``ngood + nbad`` items, ``nsample`` are taken without replacement. The mass
        function is, with :math:`g`, :math:`b`, :math:`s` for the three,

        .. math:: P(k) = \binom{g}{k}\binom{b}{s-k} \Big/ \binom{g+b}{s}.

        Args:
            ngood: number of good items; an integer >= 0, floats are truncated.
            nbad: number of bad items; an integer >= 0. ``ngood + nbad`` must fit
                JAX's default integer: below ``2**31``, or ``2**63`` under x64.
                (NumPy wants each below 1e9.)
            nsample: size of the sample; an integer from 0 to ``ngood + nbad``.
            size: result shape; ``None`` gives the shape of the parameters.
            dtype: an integer dtype; ``int`` is int32, or int64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``. -1 where traced or device values break the
            domain.

        Raises:
            ValueError: if the parameters break the domain, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> x = rng.hypergeometric(5, 5, [0, 10])
            >>> x.tolist()
            [0, 5]

        References:
            Mean below 10: inversion. Above: transformed rejection with the hat of
            BTRS (see `binomial`), raised a little.
        """
        return self._draw(
            _hypergeometric,
            size,
            dtype,
            ngood,
            nbad,
            nsample,
            out_sharding=out_sharding,
        )

    def logseries(
        self,
        p: RealLike,
        size: Size = None,
        *,
        dtype: DTypeLike = int,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the logarithmic series distribution.

        The mass function is

        .. math:: P(k) = \frac{-p^k}{k \log(1-p)}, \quad k = 1, 2, \dots

        Args:
            p: the parameter; in [0, 1). A ``p`` that rounds to 1 in JAX's default
                float is taken as the largest number below 1.
            size: result shape; ``None`` gives the shape of the parameters.
            dtype: an integer dtype; ``int`` is int32, or int64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``. What is too large for the dtype becomes its
            largest value. -1 where a traced or device ``p`` is outside [0, 1].

        Raises:
            ValueError: if ``p`` is outside [0, 1), known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.logseries(0.0, size=3).tolist()
            [1, 1, 1]

        References:
            A geometric law whose probability of failure is :math:`1 - (1-p)^U` with
            :math:`U` uniform; Kemp, "Efficient generation of logarithmically
            distributed pseudo-random variables" (1981).
        """
        return self._draw(_logseries, size, dtype, p, out_sharding=out_sharding)

    def negative_binomial(
        self,
        n: RealLike,
        p: RealLike,
        size: Size = None,
        *,
        dtype: DTypeLike = int,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the negative binomial distribution: failures before success ``n``.

        The mass function is

        .. math::

            P(k) = \frac{\Gamma(k+n)}{k!\,\Gamma(n)} p^n (1-p)^k,
            \quad k = 0, 1, \dots

        Args:
            n: number of successes; any real number > 0.
            p: probability of success; in (0, 1]. The mean with its reserve,
                ``(1 - p) / p * (n + 10 * sqrt(n))``, must be a legal ``lam`` of
                `poisson`.
            size: result shape; ``None`` gives the shape of the parameters.
            dtype: an integer dtype; ``int`` is int32, or int64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``. What is too large for the dtype becomes its
            largest value. -1 where a traced or device value breaks the domain.

        Raises:
            ValueError: if ``n`` or ``p`` breaks its domain, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.negative_binomial(2.5, [0.1, 1.0]).shape
            (2,)

        References:
            A Poisson law whose mean follows the gamma law of shape ``n`` and scale
            ``(1 - p) / p``; Devroye, "Non-Uniform Random Variate Generation" (1986),
            section X.4.
        """
        return self._draw(
            _negative_binomial, size, dtype, n, p, out_sharding=out_sharding
        )

    def poisson(
        self,
        lam: RealLike = 1.0,
        size: Size = None,
        *,
        dtype: DTypeLike = int,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the Poisson distribution.

        The mass function is

        .. math:: P(k) = \lambda^k e^{-\lambda} / k!, \quad k = 0, 1, \dots

        Exact in float32 up to the largest legal ``lam`` (``jax.random.poisson`` is
        not from 1e6 on).

        Args:
            lam: the mean :math:`\lambda`; >= 0, and at least ten standard deviations
                below the largest default integer: ``2**31 - 1``, or ``2**63 - 1``
                under x64.
            size: result shape; ``None`` gives the shape of the parameters.
            dtype: an integer dtype; ``int`` is int32, or int64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``. What is too large for the dtype becomes its
            largest value, as does every draw where a traced or device ``lam`` is too
            large. -1 where it is negative or nan.

        Raises:
            ValueError: if ``lam`` is negative, nan or too large, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> x = rng.poisson([0.0, 4.0, 1e9], size=(2, 3))
            >>> x[:, 0].tolist()
            [0, 0]

        References:
            Below 10: inversion. Above: transformed rejection; Hörmann, "The
            transformed rejection method for generating Poisson random variables"
            (1993), with the hat of his BTRS (see `binomial`), which covers the law.
        """
        return self._draw(_poisson, size, dtype, lam, out_sharding=out_sharding)

    def zipf(
        self,
        a: RealLike,
        size: Size = None,
        *,
        dtype: DTypeLike = int,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the Zipf (zeta) distribution.

        The mass function is

        .. math:: P(k) = k^{-a} / \zeta(a), \quad k = 1, 2, \dots

        In float32 the draws above about 1e6 lie on a grid that is coarser than the
        integers: they carry 24 bits.

        Args:
            a: the exponent; > 1. The law has a mean only where it is > 2.
            size: result shape; ``None`` gives the shape of the parameters.
            dtype: an integer dtype; ``int`` is int32, or int64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``. What is too large for the dtype becomes its
            largest value (NumPy draws anew where int64 overflows); nearly all draws
            do where ``a`` is close to 1. -1 where a traced or device ``a`` is below
            1 or nan.

        Raises:
            ValueError: if ``a <= 1`` or nan, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.zipf(1e4, size=3).tolist()
            [1, 1, 1]

        References:
            Rejection from a Pareto law; Devroye, "Non-Uniform Random Variate
            Generation" (1986), page 551.
        """
        return self._draw(_zipf, size, dtype, a, out_sharding=out_sharding)


_Description: TypeAlias = tuple[Array, Array, Array, Sequence[Array]]


# --- Waiting times -----------------------------------------------------------------


@law(interval("p", "(0", "1]"), result="integer")
def _geometric(key: Array, shape: Shape, dtype: np.dtype, p: Array) -> Array:
    p = fit(shape, p)
    legal = (p > 0) & (p <= 1)
    rate = -jnp.log1p(-jnp.where(legal, p, 1))
    trials = _counts.first_success(words(key, shape, p.dtype, 2), rate)
    return saturated(jnp.where(legal, trials, INVALID), dtype)


@law(interval("p", "[0", "1)"), result="integer")
def _logseries(key: Array, shape: Shape, dtype: np.dtype, p: Array) -> Array:
    p = fit(shape, p)
    legal = (p >= 0) & (p <= 1)
    p = jnp.minimum(jnp.where(legal, p, 0), 1 - np.finfo(p.dtype).epsneg)
    *pair, word = words(key, shape, p.dtype, 3)
    power = jnp.log1p(-p) * _bits.open_unit(word)
    rate = -jnp.where(  # minus the logarithm of 1 - (1 - p)**u
        power < -math.log(2),
        jnp.log1p(-jnp.exp(power)),
        jnp.log(-jnp.expm1(power)),
    )
    trials = _counts.first_success(pair, rate)
    return saturated(jnp.where(legal, trials, INVALID), dtype)


# --- Poisson -----------------------------------------------------------------------


def _poisson_limit() -> float:
    largest = float(largest_of(default_dtype(int)))
    return largest - 10 * math.sqrt(largest)


def _wider() -> str:
    """Returns the fix where counts do not fit, if there is a wider integer."""
    return "" if default_dtype(int) == np.int64 else _errors.WIDER_INTS


def _poisson_fits(who: str, dtype: np.dtype, lam: Known) -> None:
    if lam is None:
        return
    limit = _poisson_limit()
    if lam > limit if isinstance(lam, float) else np.any(lam > limit):
        must = f"lam must be at most {limit:.10g}, for the counts to fit"
        _errors.value_error(who, must, lam, _wider())


@law(interval("lam", "[0", "inf)"), result="integer", check=_poisson_fits)
def _poisson(key: Array, shape: Shape, dtype: np.dtype, lam: Array) -> Array:
    return saturated(poisson(key, shape, lam), dtype)


def poisson(key: Array, shape: Shape, lam: Array) -> Array:
    """Draws Poisson counts, as wide as the float dtype of ``lam``.

    -1 where ``lam`` is illegal, the largest integer where it is too large.
    """
    lam = fit(shape, lam)
    integer = integer_of(lam)
    legal = lam >= 0
    largest = float(largest_of(integer))
    fits = lam <= largest - 10 * math.sqrt(largest)
    large = legal & fits & (lam >= 10)
    counts = either(
        large,
        shape,
        integer,
        lambda: _poisson_large(key, shape, jnp.where(large, lam, 10)),
        lambda: _poisson_small(key, shape, jnp.where(legal & ~large, lam, 0)),
    )
    counts = jnp.where(fits, counts, np.asarray(largest_of(integer), integer))
    return jnp.where(legal, counts, INVALID)


def _poisson_small(key: Array, shape: Shape, lam: Array) -> Array:
    lam = jnp.minimum(lam, 10)  # whatever stands in the lanes that are large
    masses = [jnp.exp(-lam)]
    for k in range(1, _counts.terms_below_ten(lam.dtype)):
        masses.append(masses[-1] * (lam * (1 / k)))
    return _counts.inverted(words(key, shape, lam.dtype, 2)[0], masses)


def _poisson_large(key: Array, shape: Shape, lam: Array) -> Array:
    def describe(lam: Array) -> _Description:
        whole = jnp.floor(lam)
        cells = whole.astype(integer_of(lam)), lam
        return lam, jnp.zeros_like(lam), lam - whole, cells

    return around_mean(key, shape, (lam,), describe, lam.dtype)


def _negative_binomial_fits(who: str, dtype: np.dtype, n: Known, p: Known) -> None:
    if n is None or p is None:
        return
    with np.errstate(over="ignore"):
        reserve = (1 - np.asarray(p)) / p * (n + 10 * np.sqrt(n))
    if (reserve > _poisson_limit()).any():
        raise ValueError(
            _errors.message(
                who,
                "n must not be too large nor p too small: (1 - p) / p * "
                f"(n + 10 * sqrt(n)) must be at most {_poisson_limit():.10g}",
                _errors.named(n=n, p=p),
                _wider(),
            )
        )


@law(
    interval("n", "(0", "inf)"),
    interval("p", "(0", "1]"),
    result="integer",
    check=_negative_binomial_fits,
)
def _negative_binomial(
    key: Array, shape: Shape, dtype: np.dtype, n: Array, p: Array
) -> Array:
    n, p = fit(shape, n), fit(shape, p)
    legal = (n > 0) & (p > 0) & (p <= 1)
    n, p = jnp.where(legal, n, 1), jnp.where(legal, p, 1)
    v, b = gamma_factors(jax.random.fold_in(key, 0), shape, p.dtype, n)
    lam = jnp.where(p < 1, v * jnp.exp(b) * ((1 - p) / p), 0)
    counts = poisson(jax.random.fold_in(key, 1), shape, lam)
    return saturated(jnp.where(legal, counts, INVALID), dtype)


# --- Binomial ----------------------------------------------------------------------


@law(count("n"), interval("p", "[0", "1]"), result="integer")
def _binomial(key: Array, shape: Shape, dtype: np.dtype, n: Array, p: Array) -> Array:
    return saturated(binomial(key, shape, n, p), dtype)


def binomial(key: Array, shape: Shape, n: Array, p: Array) -> Array:
    """Draws binomial counts of the dtype of ``n``; -1 where a parameter is illegal."""
    n, p = fit(shape, n), fit(shape, p)
    legal = (n >= 0) & (p >= 0) & (p <= 1)
    n, p = jnp.where(legal, n, 0), jnp.where(legal, p, 0)
    flipped = p > 0.5
    rarer = jnp.where(flipped, 1 - p, p)
    large = n.astype(p.dtype) * rarer >= 10
    counts = either(
        large,
        shape,
        n.dtype,
        # Where the other method draws: parameters at which this one is at home.
        lambda: _binomial_large(
            key, shape, jnp.where(large, n, 40), jnp.where(large, rarer, 0.5)
        ),
        lambda: _binomial_small(
            key, shape, jnp.where(large, 0, n), jnp.where(large, 0, rarer)
        ),
    )
    counts = jnp.where(flipped, n - counts, counts)
    return jnp.where(legal, counts, INVALID)


def _binomial_small(key: Array, shape: Shape, n: Array, p: Array) -> Array:
    trials, odds = n.astype(p.dtype), p / (1 - p)
    masses = [jnp.exp(trials * jnp.log1p(-p))]
    for k in range(_counts.terms_below_ten(p.dtype) - 1):
        factor = jnp.maximum(trials - k, 0) * (odds * (1 / (k + 1)))
        masses.append(masses[-1] * factor)
    return _counts.inverted(words(key, shape, p.dtype, 2)[0], masses)


def _binomial_large(key: Array, shape: Shape, n: Array, p: Array) -> Array:
    def describe(n: Array, p: Array) -> _Description:
        whole, fraction = _counts.expectation(n, p)
        mean = whole.astype(p.dtype) + fraction
        cells = whole, mean, n - whole, n.astype(p.dtype) - mean
        return mean * (1 - p), p, fraction, cells

    return around_mean(key, shape, (n, p), describe, p.dtype)


# --- Hypergeometric ----------------------------------------------------------------


def _sample_fits(
    who: str, dtype: np.dtype, ngood: Known, nbad: Known, nsample: Known
) -> None:
    if ngood is None or nbad is None:
        return
    largest = largest_of(default_dtype(int))
    if np.any(ngood > largest - nbad):
        must, got = f"ngood + nbad must be at most {largest}", {}
    elif nsample is not None and np.any(nsample > ngood + nbad):
        must, got = "nsample must be at most ngood + nbad", {"nsample": nsample}
    else:
        return
    text = _errors.named(ngood=ngood, nbad=nbad, **got)
    raise ValueError(_errors.message(who, must, text, "" if got else _wider()))


@law(
    count("ngood"),
    count("nbad"),
    count("nsample"),
    result="integer",
    check=_sample_fits,
)
def _hypergeometric(
    key: Array, shape: Shape, dtype: np.dtype, ngood: Array, nbad: Array, nsample: Array
) -> Array:
    return saturated(hypergeometric(key, shape, ngood, nbad, nsample), dtype)


def hypergeometric(
    key: Array, shape: Shape, good: Array, bad: Array, sample: Array
) -> Array:
    """Draws hypergeometric counts; -1 where the parameters are illegal."""
    good, bad, sample = (fit(shape, x) for x in (good, bad, sample))
    whole = good + bad  # wraps below 0 where it does not fit
    legal = (good >= 0) & (bad >= 0) & (sample >= 0) & (whole >= 0) & (sample <= whole)
    good, bad, sample, whole = (
        jnp.where(legal, x, 0) for x in (good, bad, sample, whole)
    )
    # Of the rarer kind in the smaller part: neither is more than half of the whole.
    rarer, part = jnp.minimum(good, bad), jnp.minimum(sample, whole - sample)
    real = default_dtype(float)
    large = rarer.astype(real) * (part / jnp.maximum(whole, 1)).astype(real) >= 10
    counts = either(
        large,
        shape,
        whole.dtype,
        lambda: _hypergeometric_large(
            key,
            shape,
            *(
                jnp.where(large, x, y)
                for x, y in ((rarer, 40), (part, 40), (whole, 80))
            ),
        ),
        lambda: _hypergeometric_small(
            key, shape, *(jnp.where(large, 0, x) for x in (rarer, part, whole))
        ),
    )
    counts = jnp.where(good > bad, part - counts, counts)
    counts = jnp.where(sample > part, good - counts, counts)
    return jnp.where(legal, counts, INVALID)


def _table(rarer: Array, part: Array, whole: Array) -> tuple[Array, Sequence[Array]]:
    """Returns the fraction of the mean, and base and mean of the four cells."""
    real = default_dtype(float)
    base, fraction = _counts.share(rarer, part, jnp.maximum(whole, 1), real)
    mean = base.astype(real) + fraction
    common = whole - rarer - part
    return fraction, (
        *(base, mean),
        *(part - base, part.astype(real) - mean),
        *(rarer - base, rarer.astype(real) - mean),
        *(common + base, common.astype(real) + mean),
    )


def _hypergeometric_small(
    key: Array, shape: Shape, rarer: Array, part: Array, whole: Array
) -> Array:
    real = default_dtype(float)
    fraction, cells = _table(rarer, part, whole)
    # The mass of 0: the margins' factors over those of the whole and the cells.
    size = whole.astype(real)
    exponent, scale = -_counts.stirling(size), 1 / _counts.root(size)
    sides = (rarer, whole - rarer, part, whole - part)
    for base, mean, side, sign in zip(
        cells[::2], cells[1::2], sides, _counts.SIGNS, strict=True
    ):
        _, term, root = _counts.cell(base, mean, sign, -cells[0], fraction)
        margin = side.astype(real)
        exponent = exponent + _counts.stirling(margin) - term
        scale = scale * (_counts.root(margin) / root)
    masses = [jnp.exp(exponent) * scale]
    common = whole - rarer - part
    for k in range(_counts.terms_below_ten(real) - 1):
        factor = jnp.maximum(rarer - k, 0).astype(real) / (common + k + 1).astype(real)
        factor = factor * (jnp.maximum(part - k, 0).astype(real) * (1 / (k + 1)))
        masses.append(masses[-1] * factor)
    return _counts.inverted(words(key, shape, real, 2)[0], masses)


def _hypergeometric_large(
    key: Array, shape: Shape, rarer: Array, part: Array, whole: Array
) -> Array:
    real = default_dtype(float)

    def describe(rarer: Array, part: Array, whole: Array) -> _Description:
        fraction, cells = _table(rarer, part, whole)
        size = whole.astype(real)
        variance = (
            cells[1]
            * ((whole - rarer).astype(real) / size)
            * ((whole - part).astype(real) / (size - 1))
        )
        skew = jnp.minimum(rarer, part).astype(real) / size
        return variance, skew, fraction, cells

    return around_mean(key, shape, (rarer, part, whole), describe, real)


# --- Zipf --------------------------------------------------------------------------


@law(interval("a", "(1", "inf]"), result="integer")
def _zipf(key: Array, shape: Shape, dtype: np.dtype, a: Array) -> Array:
    real, integer = a.dtype, integer_of(a)
    a = fit(shape, a)
    # On the device 1 is legal: an a that is just above it may round to it.
    legal = a >= 1
    # At an excess of 100 no word gives more than 1; at tiny ones nothing fits.
    excess = jnp.clip(jnp.where(legal, a - 1, 1), 1e-12, 100)
    largest = np.asarray(largest_of(integer), integer)

    def derive(excess: Array) -> Sequence[Array]:
        return excess, jnp.expm1(excess * math.log(2))

    def propose(pair: Sequence[Array], excess: Array, at_one: Array) -> Array:
        x = jnp.exp(_noise.exponential(pair[0]) / excess)
        fits = x < float(largest)
        x = jnp.floor(jnp.where(fits, x, float(largest)))
        above_one = jnp.expm1(excess * jnp.log1p(1 / x))
        ratio = _bits.open_unit(pair[1]) * x * (above_one / at_one)
        accepted = ratio <= (1 + above_one) / (1 + at_one)
        value = jnp.where(fits, x, 0).astype(integer)
        return jnp.where(accepted, jnp.where(fits, value, largest), INVALID)

    counts = reject(
        key,
        shape,
        (excess,),
        propose,
        refused=INVALID,
        otherwise=1,
        dtype=integer,
        derive=derive,
        width=8 * real.itemsize,
        spare=0.35,
    )
    return saturated(jnp.where(legal, counts, INVALID), dtype)

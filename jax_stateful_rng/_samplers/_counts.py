"""What the laws of counts share: masses to full precision, inversion, waiting times.

The masses of the Poisson, binomial and hypergeometric laws are products of the same
cells. By Stirling's formula a count ``x`` with expectation ``m`` has

    x! / (m^x e^-m) = sqrt(2 pi x) exp(deviance(x, m) + stirling(x)),

where both terms of the exponent are small near ``x = m`` (Loader, "Fast and accurate
computation of binomial probabilities", 2000). Differences of log-gammas, which are
large and nearly equal, have no digits left in float32 from means of 1e6 on.
"""

from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
from jax import lax

from .._typing import Array, Shape
from . import _bits, _noise
from ._bits import wide_product
from ._bulk import reject

INVALID = -1
"""What a traced illegal parameter gives in an integer law."""


def integer_of(x: Array) -> np.dtype:
    """Returns the integer dtype as wide as the float array ``x``."""
    return np.dtype(f"int{x.dtype.itemsize * 8}")


def largest_of(dtype: np.dtype) -> int:
    """Returns the largest integer of a dtype."""
    return int(np.iinfo(dtype).max)


def saturated(count: Array, dtype: np.dtype) -> Array:
    """Casts to an integer dtype; what is too large becomes its largest value."""
    if largest_of(dtype) < largest_of(count.dtype):
        count = jnp.minimum(count, largest_of(dtype))
    cast: Array = count.astype(dtype)
    return cast


def either(
    which: Array,
    shape: Shape,
    dtype: np.dtype,
    yes: Callable[[], Array],
    no: Callable[[], Array],
) -> Array:
    """Returns ``where(which, yes(), no())`` and runs only what some element needs."""
    if which.size == 1:
        found: Array = lax.cond(which.reshape(()), yes, no)
        return found

    def zeros() -> Array:
        return jnp.zeros(shape, dtype)

    one = lax.cond(jnp.any(which), yes, zeros)
    other = lax.cond(jnp.all(which), zeros, no)
    return jnp.where(which, one, other)


# --- Masses ------------------------------------------------------------------------

# Of stirling(x) * x in powers of 1 / x**2, fitted to the integers from 1 on: minimax
# by iterated least squares against 50 digits.
_STIRLING_32 = (  # off by at most 8e-9
    0.08333319676618961,
    -0.0027710431222367033,
    0.0007076269207739998,
    -0.00020832163529123742,
)
_STIRLING_64 = (  # off by at most 2e-17
    0.08333333333333304,
    -0.0027777777774678426,
    0.0007936506984146513,
    -0.0005952250571985416,
    0.000840809359822454,
    -0.0018786728993329543,
    0.005452445271367453,
    -0.014831592946762428,
    0.02478564089943452,
    -0.014061144086283088,
)


def stirling(x: Array) -> Array:
    """Returns ``log(x!) - (x log x - x + log(2 pi x) / 2)``, for integers; 0 at 0."""
    coefficients = _STIRLING_32 if x.dtype == np.float32 else _STIRLING_64
    inverse = 1 / jnp.maximum(x, 1)
    square = inverse * inverse
    total = jnp.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * square + coefficient
    return jnp.where(x > 0, total * inverse, 0)


def deviance(x: Array, mean: Array, delta: Array) -> Array:
    """Returns ``x log(x / mean) - (x - mean)``; ``mean`` where ``x`` is 0.

    Args:
        x: a count.
        mean: its expectation, > 0.
        delta: ``x - mean``, which the caller knows without cancellation.
    """
    ratio = delta / jnp.maximum(x + mean, float(np.finfo(x.dtype).tiny))
    square = ratio * ratio
    terms = 4 if x.dtype == np.float32 else 10
    series = jnp.full_like(x, 1 / (2 * terms + 1))
    for term in range(terms - 1, 0, -1):
        series = series * square + 1 / (2 * term + 1)
    near = delta * ratio + 2 * x * ratio * square * series
    far = x * jnp.log(jnp.maximum(x, 1) / mean) - delta
    return jnp.where(jnp.abs(ratio) < 0.15, near, far)


def root(x: Array) -> Array:
    """Returns ``sqrt(2 pi x)``, the factor of Stirling's formula; 1 at 0."""
    return jnp.sqrt(jnp.where(x > 0, 2 * np.pi * x, 1))


def cell(
    base: Array, mean: Array, sign: int, offset: Array, fraction: Array
) -> tuple[Array, Array, Array]:
    """Returns a count that moves with the draw, and the two parts of its factor.

    Args:
        base: the count where the draw is the whole part of its mean.
        mean: the expectation of the count.
        sign: 1 if the count grows with the draw, -1 if it falls.
        offset: of the draw from the whole part of its mean, an integer.
        fraction: the rest of the mean of the draw.

    Returns:
        The count, the exponent of its factor, and the root.
    """
    real = mean.dtype
    count = base + sign * offset
    x = count.astype(real)
    delta = sign * (offset.astype(real) - fraction)
    return count, deviance(x, mean, delta) + stirling(x), root(x)


# --- Exact products of counts ------------------------------------------------------


def share(a: Array, b: Array, whole: Array, dtype: np.dtype) -> tuple[Array, Array]:
    """Returns the whole part of ``a b / whole`` and its fraction.

    Exact but for the rounding of the fraction: the product is computed in two words.

    Args:
        a: a count.
        b: a count; ``a b / whole`` must fit the dtype of the counts.
        whole: a count >= 1, at most the largest integer.
        dtype: of the fraction, a float.
    """
    signed = whole.dtype
    unsigned = np.dtype(f"uint{signed.itemsize * 8}")
    bits = signed.itemsize * 8
    real = [x.astype(dtype) for x in (a, b, whole)]
    quotient = jnp.floor(real[0] * (real[1] / real[2])).astype(signed)
    quotient = jnp.clip(quotient, 0, a)
    words = [x.astype(unsigned) for x in (a, b, whole, quotient)]
    high, low = wide_product(words[0], words[1])
    taken_high, taken_low = wide_product(words[2], words[3])
    borrow = (low < taken_low).astype(unsigned)
    over = lax.bitcast_convert_type(high - taken_high - borrow, signed)
    rest = over.astype(dtype) * 2.0**bits + (low - taken_low).astype(dtype)
    step = jnp.round(rest / real[2]).astype(signed)
    # What is left now fits one word, so that wrapped arithmetic is exact.
    left = lax.bitcast_convert_type(low - taken_low, signed) - step * whole
    below = left < 0
    fraction = jnp.where(below, left + whole, left).astype(dtype) / real[2]
    return quotient + step - below.astype(signed), fraction


def expectation(n: Array, p: Array) -> tuple[Array, Array]:
    """Returns the whole part of ``n p`` and its fraction, of 0 <= p <= 1/2.

    Exact but for the rounding of the fraction: the product of ``n`` and the mantissa
    of ``p`` is computed in two words.
    """
    bits = n.dtype.itemsize * 8
    unsigned = np.dtype(f"uint{bits}")
    mantissa, power = jnp.frexp(p)
    # Of a p for which this shift is too short, the high word is all fraction.
    shift = jnp.minimum(-power, bits - 1).astype(unsigned)
    fixed = (mantissa * 2.0**bits).astype(unsigned)
    high, low = wide_product(n.astype(unsigned), fixed)
    below = high & ((np.ones((), unsigned) << shift) - np.ones((), unsigned))
    unit = jnp.ldexp(jnp.ones_like(p), power)
    fraction = (below.astype(p.dtype) + low.astype(p.dtype) * 2.0**-bits) * unit
    return (high >> shift).astype(n.dtype), fraction


# --- Inversion ---------------------------------------------------------------------


def terms_below_ten(dtype: np.dtype) -> int:
    """Returns how many masses `inverted` needs of a law whose mean is below 10.

    Beyond them a Poisson law of mean 10, whose tail bounds those of the binomial and
    the hypergeometric, has less than the least uniform number, 2**-33 or 2**-65.
    """
    return 37 if dtype == np.float32 else 52


def inverted(word: Array, masses: Sequence[Array]) -> Array:
    """Draws a count by inversion of its upper tail.

    Args:
        word: a random word an element, as wide as the float dtype of the masses.
        masses: the masses of 0, 1, 2, ...; nearly all of them.
    """
    uniform = _bits.open_unit(word)
    count = jnp.zeros(uniform.shape, uniform.dtype)
    tail = masses[-1]
    for mass in masses[-2::-1]:  # small terms first, to add up without loss
        count = count + jnp.where(uniform <= tail, 1, 0).astype(count.dtype)
        tail = tail + mass
    return count.astype(integer_of(uniform))


# --- Transformed rejection ---------------------------------------------------------


SIGNS = (1, -1, -1, 1)
"""How the cells of a two by two table move: the one that is drawn comes first."""


def around_mean(
    key: Array,
    shape: Shape,
    params: Sequence[Array],
    describe: Callable[..., tuple[Array, Array, Array, Sequence[Array]]],
    real: np.dtype,
) -> Array:
    """Draws counts of a mean of 10 or more, by Hörmann's transformed rejection.

    The hat is that of his BTRS, with the shape of the inverse distribution function
    of a normal law. It covers the Poisson law too, as the limit of the binomial, and
    the hypergeometric law, with the term ``3 / b**2`` added: over 10,000 parameters
    of the three, the mass reaches at most 0.997 of it. (PTRS, the hat published for
    the Poisson law, is exceeded by 0.6% for means of 10 to 20.) Masses stand in units
    of ``1 / sqrt(2 pi variance)``, which makes the mode superfluous; the squeezes are
    so where every mass is computed anyway.

    Args:
        key: a key of which nothing else is taken.
        shape: of the result.
        params: arrays that broadcast to ``shape``.
        describe: ``(*params) -> (variance, skew, fraction, cells)``: skew is the
            probability of the binomial law, or what is closest to it; fraction that
            of the mean; cells are pairs of `cell`'s base and mean, in the order of
            `SIGNS`, in one flat sequence.
        real: float32 or float64.
    """
    integer = np.dtype(f"int{real.itemsize * 8}")
    largest = 0.4 * largest_of(integer)

    def derive(*params: Array) -> Sequence[Array]:
        variance, skew, fraction, cells = describe(*params)
        deviation = jnp.sqrt(variance)
        b = 1.15 + 2.53 * deviation
        a = -0.0873 + 0.0248 * b + 0.01 * skew
        height = (2.83 + (5.1 + 3 / b) / b) * deviation
        for mean in cells[1::2]:
            height = height / root(mean)
        return a, b, height, fraction, *cells

    def propose(
        words: Sequence[Array],
        a: Array,
        b: Array,
        height: Array,
        fraction: Array,
        *cells: Array,
    ) -> Array:
        u, v = _bits.signed_unit(words[0]), _bits.open_unit(words[1])
        us = jnp.maximum(0.5 - jnp.abs(u), float(np.finfo(real).eps) / 4)
        # From the whole part of the mean: a float has the offset to the last digit.
        offset = jnp.floor((2 * a / us + b) * u + fraction + 0.5)
        inside = jnp.abs(offset) < largest
        offset = jnp.where(inside, offset, 0).astype(integer)
        ratio = v * height / (a / (us * us) + b)
        exponent = jnp.zeros_like(v)
        counts = []
        for base, mean, sign in zip(cells[::2], cells[1::2], SIGNS, strict=False):
            count, term, factor = cell(base, mean, sign, offset, fraction)
            inside &= count >= 0
            ratio, exponent = ratio * factor, exponent - term
            counts.append(count)
        return jnp.where(inside & (jnp.log(ratio) <= exponent), counts[0], INVALID)

    return reject(
        key,
        shape,
        params,
        propose,
        refused=INVALID,
        otherwise=0,
        dtype=integer,
        derive=derive,
        width=8 * real.itemsize,
        spare=0.27,
    )


# --- Waiting times -----------------------------------------------------------------


def first_success(words: Sequence[Array], rate: Array) -> Array:
    """Draws the number of trials until the first success, one or more.

    It is 1 + floor(E / rate) of a standard exponential E. A float cannot hold a large
    quotient to the last digit, so the number is drawn in two digits of a base near
    1 / (2 rate), which the lack of memory makes independent: the high one is again a
    waiting time, the low one a truncated exponential.

    Args:
        words: two random words an element.
        rate: minus the logarithm of the probability of failure, >= 0.
    """
    real, integer = rate.dtype, integer_of(rate)
    bits = integer.itemsize * 8
    rate = jnp.minimum(rate, 64)  # where no word gives more than one trial
    digit = jnp.clip(-jnp.frexp(rate)[1] - 1, 0, bits // 2 - 1).astype(integer)
    base = np.ones((), integer) << digit
    block = rate * base.astype(real)
    high = _noise.exponential(words[0]) * (1 / block)
    low = _bits.open_unit(words[1]) * jnp.expm1(-block)
    low = -_log1p(low) * (1 / rate)
    low = jnp.clip(low, 0, (base - 1).astype(real)).astype(integer)
    # The high digit's bound is the largest integer divided by the base, rounded down.
    largest = np.asarray(largest_of(integer), integer)
    fits = high < (largest >> digit).astype(real)
    high = jnp.where(fits, high, 0).astype(integer)
    return jnp.where(fits, high * base + low + 1, largest)


def _log1p(x: Array) -> Array:
    return _noise.log1p_half(x) if x.dtype == np.float32 else jnp.log1p(x)

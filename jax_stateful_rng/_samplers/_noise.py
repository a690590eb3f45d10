"""Standard laws of one random word: inversion to full precision at both ends.

A word of 32 bits gives a float32, one of 64 bits a float64. Unlike a uniform float, a
word resolves the distance from 1 as finely as that from 0, so that small exponentials
and small normals keep all their digits, and tails reach as far as the bits allow.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import ndtri

from .._typing import Array, Shape
from . import _bits
from ._bits import half_units, open_unit

_F32 = np.float32

# fmt: off
# Minimax polynomials, fitted by iteratively reweighted least squares on Chebyshev
# points. log1p(f) / f for -1/2 <= f <= 0, to 2.3e-8:
_LOG1P = np.array(
    [1.00000002, -0.499992855, 0.333700512, -0.242806669, 0.269600529,
     0.203487639, 1.25755010, 1.69566634, 1.44103584],
    _F32,
)
# z / erf(z / sqrt 2) in q = -log(1 - erf(z / sqrt 2)**2), the form of Giles: of
# q - 5/2 for q < 5, to 5.6e-9, and of sqrt(q) - 3 beyond, to 1.2e-7.
_CENTRE = np.array(
    [2.12331348, 0.348802038, -0.00590771705, -0.00177164454, 3.08785674e-4,
     -7.01924412e-6, -4.89700574e-6, 6.59267098e-7, 3.28560664e-8, -1.24325906e-8],
    _F32,
)
_TAIL = np.array(
    [4.00643465, 1.41658361, 0.0133400711, -0.0108181111, 0.00816060212,
     -0.0050551885, 0.00182555519, -2.65764475e-5, -2.25082181e-4, 5.4611462e-5],
    _F32,
)
# The same without the factor sqrt 2, as published: what XLA's erf_inv computes.
_GILES_CENTRE = np.array(
    [1.50140941, 0.246640727, -0.00417768164, -0.00125372503, 2.1858087e-4,
     -4.39150654e-6, -3.5233877e-6, 3.43273939e-7, 2.81022636e-8],
    _F32,
)
_GILES_TAIL = np.array(
    [2.83297682, 1.00167406, 0.00943887047, -0.0076224613, 0.00573950773,
     -0.00367342844, 0.00134934322, 1.00950558e-4, -2.00214257e-4],
    _F32,
)
# fmt: on


def words(key: Array, shape: Shape, dtype: np.dtype, number: int) -> list[Array]:
    """Returns random words as wide as ``dtype``, for the standard laws."""
    return _bits.words(key, shape, number, width=dtype.itemsize * 8)


def fit(shape: Shape, param: Array) -> Array:
    """Broadcasts to ``shape`` what is no scalar.

    Not left to the sums and products: jax_numpy_rank_promotion may forbid it.
    """
    return param if param.ndim == 0 else jnp.broadcast_to(param, shape)


def exponential(word: Array) -> Array:
    """Returns a standard exponential: -log of the word as a number in (0, 1).

    Between 2**-33 and 22.9 for 32 bits, 2**-65 and 45.1 for 64; never 0.
    """
    near_one = word >> np.asarray(word.dtype.itemsize * 8 - 1, word.dtype) != 0
    u, rest = open_unit(word), open_unit(~word)
    if word.dtype == jnp.uint64:
        return jnp.where(near_one, -jnp.log1p(-rest), -jnp.log(u))
    # One polynomial for both halves.
    power, f = _power_and_rest(u)
    power, f = jnp.where(near_one, 0, power), jnp.where(near_one, -rest, f)
    return -_log(power, f)


def _power_and_rest(u: Array) -> tuple[Array, Array]:
    """Returns an int and f in [-1/2, 0] with ``u = 2**power * (1 + f)``; u normal."""
    pattern = lax.bitcast_convert_type(u, jnp.int32)
    half = lax.bitcast_convert_type(pattern & 0x7FFFFF | 0x3F000000, _F32)
    return (pattern >> 23) - 126, half - _F32(1)


def _log(power: Array, f: Array) -> Array:
    """Returns the logarithm of ``2**power * (1 + f)``, at two thirds of XLA's cost."""
    return power.astype(_F32) * _F32(math.log(2)) + log1p_half(f)


def log1p_half(f: Array) -> Array:
    """Returns ``log1p(f)`` of float32 numbers -1/2 <= f <= 0."""
    return f * _polynomial(_LOG1P, f)


def normal(word: Array) -> Array:
    """Returns a standard normal, up to 6.3 for 32 bits, 9.1 for 64."""
    v, x = half_units(word)  # |z| is exceeded with probability v
    if word.dtype == jnp.uint64:
        magnitude = -ndtri(v / 2)
    else:
        q = -_log(*_power_and_rest(v * (_F32(1) + x)))
        magnitude = _in_two_pieces(_CENTRE, _TAIL, q) * x
    return with_sign(magnitude, word)


def cauchy(word: Array) -> Array:
    """Returns a standard Cauchy variate, up to 2.7e9 for 32 bits; never 0."""
    v, rest = half_units(word)  # |x| is exceeded with probability v
    tangent = jnp.tan(jnp.minimum(v, rest) * v.dtype.type(math.pi / 2))
    return with_sign(jnp.where(v < rest, 1 / tangent, tangent), word)


def with_sign(magnitude: Array, word: Array) -> Array:
    """Returns the magnitude, negative where the lowest bit of the word is set."""
    top = np.asarray(word.dtype.itemsize * 8 - 1, word.dtype)
    pattern = lax.bitcast_convert_type(magnitude, word.dtype) ^ (word << top)
    return lax.bitcast_convert_type(pattern, magnitude.dtype)


def erf_inv(x: Array) -> Array:
    """Returns ``lax.erf_inv(x)``, in float32 to 3 units in the last place.

    For -1 < x < 1; float32 gives nan elsewhere. Costs seven tenths of it on the CPU.
    ``log1p`` is not needed: q enters by its absolute error, and that is XLA's own.
    """
    if x.dtype != jnp.float32:
        return lax.erf_inv(x)
    # The minimum does nothing but keep 1 - x * x from becoming one rounding, which
    # XLA's has not: that is 90 units in the tail.
    q = -_log(*_power_and_rest(_F32(1) - lax.min(x * x, jnp.ones_like(x))))
    z = _in_two_pieces(_GILES_CENTRE, _GILES_TAIL, q) * x
    # Never taken, but a sum over normals is ten times as fast: XLA for the CPU draws
    # products and sums into its reduction, with each coefficient as an array of its
    # own, but not a choice.
    return jnp.where(lax.abs(x) < 1, z, np.nan)


def _in_two_pieces(centre: np.ndarray, tail: np.ndarray, q: Array) -> Array:
    central = q < _F32(5)
    t = jnp.where(central, q - _F32(2.5), jnp.sqrt(q) - _F32(3))
    coefficients = [jnp.where(central, a, b) for a, b in zip(centre, tail, strict=True)]
    return _polynomial(coefficients, t)


def _polynomial(coefficients: Sequence[Any] | np.ndarray, x: Array) -> Array:
    *lower, value = coefficients
    for coefficient in reversed(lower):
        value = value * x + coefficient
    found: Array = value
    return found

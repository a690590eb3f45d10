"""Random words: the one source of randomness of all samplers.

For threefry2x32 keys the 20 rounds stand unrolled in plain ``jax.numpy``, after
Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
The bits are those of ``jax.random.bits``, whose rolled loop does not fuse with its
consumers on the CPU and costs 5 to 9 times as much. Other impls, and the
non-partitionable mode, go through ``jax.random.bits``.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._typing import Array, Shape

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)
_UINTS = {8: jnp.uint8, 16: jnp.uint16, 32: jnp.uint32, 64: jnp.uint64}


def threefry2x32(k0: Array, k1: Array, x0: Array, x1: Array) -> tuple[Array, Array]:
    """Returns the two words of the threefry2x32 blocks of counters ``(x0, x1)``."""
    keys = (k0, k1, k0 ^ k1 ^ _PARITY)
    x0, x1 = x0 + keys[0], x1 + keys[1]
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            rotated = (x1 << np.uint32(distance)) | (x1 >> np.uint32(32 - distance))
            x1 = rotated ^ x0
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + (keys[(group + 2) % 3] + np.uint32(group + 1))
    return x0, x1


def is_threefry(key: Array) -> bool:
    """Whether the unrolled form gives the very bits of ``jax.random.bits``."""
    config: Any = jax.config  # its flags are attributes that no annotation names
    partitionable: bool = config.jax_threefry_partitionable
    return partitionable and str(jax.random.key_impl(key)) == "threefry2x32"


def flat_index(shape: Shape) -> Array:
    """Returns the row-major index of every element as uint32.

    A sum over broadcast iotas and not a reshape, so that sharded results need no
    communication.
    """
    index = jnp.zeros(shape, jnp.uint32)
    stride = 1
    for axis in reversed(range(len(shape))):
        index += lax.broadcasted_iota(jnp.uint32, shape, axis) * np.uint32(stride)
        stride *= shape[axis]
    return index


def blocks(key: Array, shape: Shape, high: Array | int = 0) -> tuple[Array, Array]:
    """Returns both words of one threefry block an element.

    Args:
        key: a threefry2x32 key.
        shape: at most 2**32 elements.
        high: the high counter word: ``jax.random.bits`` uses 0 below 2**32 elements.
    """
    data = jax.random.key_data(key)
    index = flat_index(shape)
    high = jnp.broadcast_to(jnp.asarray(high, jnp.uint32), shape)
    return threefry2x32(data[0], data[1], high, index)


def bits(key: Array, shape: Shape, width: int = 32) -> Array:
    """Returns exactly ``jax.random.bits`` of ``width`` 8, 16, 32 or 64 bits."""
    dtype = _UINTS[width]
    if not is_threefry(key) or math.prod(shape) > 2**32:
        return jax.random.bits(key, shape, dtype)
    first, second = blocks(key, shape)
    if width == 64:
        return (first.astype(dtype) << np.uint64(32)) | second.astype(dtype)
    return (first ^ second).astype(dtype)


def words(
    key: Array, shape: Shape, number: int, turn: Array | int = 0, *, width: int = 32
) -> list[Array]:
    """Returns ``number`` independent arrays of random words, for samplers to consume.

    Both words of every threefry block are used, and no array is materialised: the
    results fuse into what consumes them. Do not take words of one key with different
    ``number`` or ``width``, nor fold or split a key whose words are taken: they would
    overlap.

    Args:
        key: a typed key of any impl.
        shape: the shape of each array.
        number: how many arrays.
        turn: which set of words, below 2**32 / ``number``; may be traced.
        width: 32 or, under x64, 64 bits a word.
    """
    if width == 64:
        halves = words(key, shape, 2 * number, turn)
        return [
            (halves[i].astype(jnp.uint64) << np.uint64(32))
            | halves[i + 1].astype(jnp.uint64)
            for i in range(0, 2 * number, 2)
        ]
    if not is_threefry(key) or math.prod(shape) > 2**32:
        stacked = jax.random.bits(
            jax.random.fold_in(key, turn), (number, *shape), jnp.uint32
        )
        return [stacked[i] for i in range(number)]
    found: list[Array] = []
    per_turn = -(-number // 2)
    first = jnp.asarray(turn, jnp.uint32) * np.uint32(per_turn)
    for block in range(per_turn):
        found += blocks(key, shape, first + np.uint32(block))
    return found[:number]


def wide_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Returns the high and the low word of the product of two unsigned arrays.

    Not by ``lax.mulhi``, which JAX does not compile for several devices.

    Args:
        a: uint32 or, under x64, uint64.
        b: of the same shape and dtype.
    """
    if a.dtype == np.uint32:
        with jax.enable_x64(True):
            product = a.astype(jnp.uint64) * b.astype(jnp.uint64)
            high = product >> np.uint64(32)
            return high.astype(jnp.uint32), product.astype(jnp.uint32)
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    left = (a >> half, a & mask)
    right = (b >> half, b & mask)
    middle = left[0] * right[1] + (left[1] * right[1] >> half)
    other = left[1] * right[0] + (middle & mask)
    return left[0] * right[0] + (middle >> half) + (other >> half), a * b


def open_unit(word: Array) -> Array:
    """Returns floats in (0, 1], to full relative precision near 0.

    The least is half a step of the word, 2**-33 of 32 bits and 2**-65 of 64.
    """
    bits, dtype = _float_of(word)
    unit: Array = (word.astype(dtype) + dtype.type(0.5)) * dtype.type(2.0**-bits)
    return unit


def signed_unit(word: Array) -> Array:
    """Returns floats in [-1/2, 1/2], never 0, to full relative precision near 0."""
    bits, dtype = _float_of(word)
    signed = lax.bitcast_convert_type(word, f"int{bits}")
    unit: Array = (signed.astype(dtype) + dtype.type(0.5)) * dtype.type(2.0**-bits)
    return unit


def half_units(word: Array) -> tuple[Array, Array]:
    """Returns ``v`` and ``1 - v``, both in (0, 1] to full relative precision near 0.

    All bits of the word but the lowest, which is left as a sign.
    """
    bits, dtype = _float_of(word)
    # Signed, since the CPU converts only signed integers in one step.
    high = lax.bitcast_convert_type(word >> 1, f"int{bits}")
    rest = high ^ np.asarray(2 ** (bits - 1) - 1, high.dtype)
    half, step = dtype.type(0.5), dtype.type(2.0 ** (1 - bits))
    return (high.astype(dtype) + half) * step, (rest.astype(dtype) + half) * step


def _float_of(word: Array) -> tuple[int, np.dtype]:
    bits = word.dtype.itemsize * 8
    return bits, np.dtype(f"float{bits}")


def unit(key: Array, shape: Shape, dtype: np.dtype) -> Array:
    """Returns floats in [0, 1) with every mantissa bit of [1, 2) random.

    Bit for bit ``jax.random.uniform(key, shape, dtype)``: 23 bits in float32, 52 in
    float64, 10 in float16, 7 in bfloat16.
    """
    info = jnp.finfo(dtype)  # type: ignore[no-untyped-call]
    width = 8 if info.nmant < 8 else info.bits
    as_int = _UINTS[info.bits]
    random = bits(key, shape, width).astype(as_int)
    mantissa = random >> np.asarray(width - info.nmant, as_int)
    one = np.asarray(1, dtype).view(as_int)
    return lax.bitcast_convert_type(mantissa | one, dtype) - np.asarray(1, dtype)

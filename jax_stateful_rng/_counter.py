"""The 64-bit counter of a generator, on public JAX and without 64-bit types.

A counter is ``uint32[..., 2]``, the words (high, low). Draw number ``n`` of a
generator uses the key

    key_at(base, (hi, lo)) = fold_in(mix(base, hi), lo),      mix(base, 0) = base

so that the first 2**32 keys are exactly ``jax.random.fold_in(base, n)``, and the
stream goes on after them: the period is 2**64.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ._samplers import _bits
from ._typing import Array, Shape

# Odd, so that hi -> hi * _GOLDEN is a bijection modulo 2**32 that maps 0 to 0.
_GOLDEN = np.uint32(0x9E3779B9)

KIND = "no_grad_no_remat"
"""The kind of Ref that keeps its writes out of gradients and rematerialisation.

With a plain Ref, ``jax.grad(jax.checkpoint(f))`` draws a second time on the
backward pass and silently takes the gradient at other noise than the value.
"""


def words(count: int) -> np.ndarray:
    """Returns the (high, low) words of ``count`` modulo 2**64."""
    count %= 2**64
    return np.array([count >> 32, count & 0xFFFFFFFF], np.uint32)


def zeros(shape: Shape = ()) -> np.ndarray:
    """Returns counters at draw 0 for a batch of ``shape`` generators."""
    return np.zeros((*shape, 2), np.uint32)


def mix(base_key: Array, high: Array) -> Array:
    """Returns the base key of the 2**32 draws whose high word is ``high``.

    The even words of the key data are XORed with ``high * 0x9E3779B9``: no branch
    and no second hash. Word by word, since a masked XOR of the whole array doubles
    the cost of a scan on the CPU.
    """
    data = jax.random.key_data(base_key)
    shift = high * _GOLDEN
    mixed = [
        data[..., i] ^ shift if i % 2 == 0 else data[..., i]
        for i in range(data.shape[-1])
    ]
    impl = jax.random.key_impl(base_key)
    key: Array = jax.random.wrap_key_data(jnp.stack(mixed, axis=-1), impl=impl)
    return key


def key_at(base_key: Array, counter: Array) -> Array:
    """Returns the key of draw number ``counter``.

    For threefry2x32 the block stands unrolled here: ``fold_in`` of the mixed key packs
    and unpacks its words on the way, which doubles the time to compile many draws, and
    its rolled loop makes a scan of scalar draws 10 times slower on the CPU.
    """
    # Without the barriers the partitioner of JAX 0.12 does not end on some programs,
    # nor do some of threefry4x32's on JAX 0.10.
    if not _bits.is_threefry(base_key):
        folded = jax.random.fold_in(mix(base_key, counter[0]), counter[1])
        held: Array = lax.optimization_barrier(folded)
        return held
    data = jax.random.key_data(base_key)
    first = data[0] ^ (counter[0] * _GOLDEN)  # as mix does
    words = _bits.threefry2x32(first, data[1], jnp.uint32(0), counter[1])
    impl = jax.random.key_impl(base_key)
    packed = lax.optimization_barrier(jnp.stack(words))
    key: Array = jax.random.wrap_key_data(packed, impl=impl)
    return key


def advance(counter: Array) -> Array:
    """Returns ``counter + 1``.

    One addition of 64 bits, which needs 64-bit types only here. XLA adds up a chain
    of them, so that of many draws in one function the last does not wait for, nor
    compute again, the carries of all before it: those made the time to compile grow
    with the square of the number of draws. Nothing here moves the batch axis under
    ``vmap``, as slices and stacks do on jax 0.10: a Ref does not take a value whose
    batch axis has moved.
    """
    axis = counter.ndim - 1
    with jax.enable_x64(True):
        count = lax.bitcast_convert_type(lax.rev(counter, (axis,)), np.uint64)
        count = lax.add(count, lax.full_like(count, 1))
        return lax.rev(lax.bitcast_convert_type(count, np.uint32), (axis,))

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
    """Returns the key of draw number ``counter``."""
    return jax.random.fold_in(mix(base_key, counter[0]), counter[1])


def advance(counter: Array) -> Array:
    """Returns ``counter + 1``.

    Written without slices, stacks or constant vectors: on jax 0.10 each of these
    moves the batch axis under ``vmap``, and a Ref does not take a value whose batch
    axis has moved. The running sum gives the places [0, 1] of (high, low); XLA folds
    it away.
    """
    axis = counter.ndim - 1
    low = lax.cumsum(counter * np.uint32(0) + np.uint32(1), axis) - np.uint32(1)
    carry = (lax.rev(counter, (axis,)) == np.uint32(0xFFFFFFFF)).astype(np.uint32)
    return counter + low + (np.uint32(1) - low) * carry

"""Streams by name: keys that depend on a name and not on an order."""

import hashlib
import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _errors
from ._typing import Array

# XORed into the (even, odd) words of the base key before a child's name or number is
# folded in. The counter changes even words only, so that no child is one of the
# generator's own counted keys: without it, the child "layer149540", whose word is
# 2332, would be draw 2332. Arbitrary constants; names and numbers have their own.
_NAME_TAG = np.array([0x6A09E667, 0xBB67AE85], np.uint32)
_NUMBER_TAG = np.array([0x3C6EF372, 0xA54FF53A], np.uint32)


def name_word(name: str, who: str) -> int:
    """Returns the 32-bit word of a name: its BLAKE2b digest of four bytes."""
    if not isinstance(name, str):
        _errors.type_error(who, "a stream's name must be a str", name)
    if not name:
        _errors.value_error(who, "a stream's name must not be empty", name)
    digest = hashlib.blake2b(name.encode("utf-8"), digest_size=4).digest()
    return int.from_bytes(digest, "big")


def child_key(base_key: Array, data: Any, who: str) -> Array:
    """Returns the base key of the child that ``data`` names.

    Args:
        base_key: a single typed key.
        data: a name, or an int from 0 to 2**32 - 1, traced or not.
        who: the call, for errors.
    """
    if isinstance(data, str):
        tag, word = _NAME_TAG, np.uint32(name_word(data, who))
    else:
        tag, word = _NUMBER_TAG, _number_word(data, who)
    words = jax.random.key_data(base_key)
    tags = np.resize(tag, words.shape[-1])
    tagged = jax.random.wrap_key_data(words ^ tags, impl=jax.random.key_impl(base_key))
    return jax.random.fold_in(tagged, word)


def _number_word(data: Any, who: str) -> Any:
    must = "data must be a name or an int from 0 to 2**32 - 1"
    if isinstance(data, jax.Array):
        if not jnp.issubdtype(data.dtype, jnp.integer) or data.ndim:
            _errors.type_error(who, must, data)
        return data.astype(jnp.uint32)
    if isinstance(data, (bool, np.bool_)):
        _errors.type_error(who, must, data)
    try:
        number = operator.index(data)
    except TypeError:
        _errors.type_error(who, must, data)
    if not 0 <= number < 2**32:
        _errors.value_error(who, must, data)
    return np.uint32(number)

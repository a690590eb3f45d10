"""Streams by name: keys that depend on a name and not on an order.

The functions that meet generators import them when called, since the generator takes
its children's keys from here.
"""

import hashlib
import operator
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _errors, _seeding
from ._state import PRNGState
from ._typing import Array

if TYPE_CHECKING:
    from ._generator import StatefulPRNG
    from .flax import Rngs

# Added to the (even, odd) words of the base key before a child's name or number is
# folded in. The counter changes even words only, so that no child is one of the
# generator's own counted keys: without it, the child "layer149540", whose word is
# 2332, would be draw 2332. A sum and not an XOR, which in unsafe_rbg, where fold_in is
# one too, would undo itself: there the child "a" of the child "a" would be the
# generator itself. Arbitrary constants; names and numbers have their own.
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
    tagged = jax.random.wrap_key_data(words + tags, impl=jax.random.key_impl(base_key))
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


# --- Functional keys ---------------------------------------------------------------


def fold_in_name(key: Array, name: str) -> Array:
    """Return the key that ``name`` gives in ``key``.

    The BLAKE2b digest of the name's UTF-8 bytes, of four bytes and read big-endian,
    is folded in: the same key in every process and on every machine, whatever the
    other names are. Two names can have one digest; the odds are 1.2e-6 among 100
    names.

    Args:
        key: a single key, typed or raw (a jax uint32 array of the default impl's key
            shape).
        name: a non-empty string; it is not normalised.

    Returns:
        A key of the same kind.

    Raises:
        TypeError: if ``key`` is not a single key, or ``name`` no string.
        ValueError: if the name is empty.

    Examples:
        >>> dropout = fold_in_name(jax.random.key(0), "dropout")
        >>> jax.random.key_data(dropout)
        Array([2482015863, 2646594687], dtype=uint32)
    """
    who = "fold_in_name"
    if not _is_single_key(key):
        _errors.type_error(who, f"key must be {_SINGLE_KEY}", key)
    return jax.random.fold_in(key, np.uint32(name_word(name, who)))


def split_key(key: Array, num: int) -> Array:
    """Return ``num`` keys: ``jax.random.split`` that refuses to make none.

    Args:
        key: a single key, typed or raw.
        num: how many, at least 1.

    Returns:
        Keys of shape ``(num,)`` and the same kind.

    Raises:
        TypeError: if ``key`` is not a single key, or ``num`` no int.
        ValueError: if ``num`` is below 1.

    Examples:
        >>> split_key(jax.random.key(0), 3).shape
        (3,)
    """
    who, must = "split_key", "num must be an int >= 1"
    if not _is_single_key(key):
        _errors.type_error(who, f"key must be {_SINGLE_KEY}", key)
    if isinstance(num, (bool, np.bool_)):
        _errors.type_error(who, must, num)
    try:
        n = operator.index(num)
    except TypeError:
        _errors.type_error(who, must, num)
    if n < 1:
        _errors.value_error(who, must, n)
    return jax.random.split(key, n)


_SINGLE_KEY = "a single key, typed or a raw jax uint32 array"


def _is_single_key(value: Any) -> bool:
    if not isinstance(value, jax.Array):
        return False
    if _seeding.is_key(value):
        return value.ndim == 0
    return value.dtype == np.uint32 and value.shape == (_seeding.key_words(),)


# --- A key from its owner ------------------------------------------------------------


class MissingRngStreamError(ValueError):
    """The owner of a key holds none of the streams that a call accepts.

    Attributes:
        context: what needed the key.
        streams: the names it accepts, the preferred one first.
    """

    def __init__(self, context: str, streams: Iterable[str]) -> None:
        self.context: str = context
        self.streams: tuple[str, ...] = tuple(streams)
        names = " or ".join(map(repr, self.streams))
        super().__init__(
            f"{context} needs a stream named {names}, and there is none. Give it one: "
            f"named_streams(seed, {self.streams[:1]!r})."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles both arguments, not the text alone as exceptions do."""
        return type(self), (self.context, self.streams)


def key_from(
    rng: "StatefulPRNG | Mapping[str, StatefulPRNG] | Rngs | Array",
    *,
    streams: Sequence[str],
    context: str = "key_from",
) -> Array:
    """Return a key from its explicit owner, never from a default seed.

    Args:
        rng: the owner, one of

            - a `StatefulPRNG`: its next key;
            - a mapping of named generators, as `named_streams` returns, or a
              ``flax.nnx.Rngs``: the next key of the first of ``streams`` that it
              holds. The others do not move, and an ``nnx.Rngs`` does not fall back
              to its stream ``default`` unless that is among ``streams``;
            - a single key, typed or a raw jax uint32 array: returned as it is.
        streams: names, the preferred one first.
        context: what needs the key, for errors: ``"sampling"``.

    Raises:
        TypeError: if ``rng`` is none of these: ``None``, an int, a batch of keys.
        MissingRngStreamError: if it holds none of ``streams``.

    Examples:
        >>> rngs = named_streams(42, ["params", "sample"])
        >>> key = key_from(rngs, streams=("sample", "default"), context="sampling")
        >>> rngs["sample"]
        StatefulPRNG(impl='threefry2x32', count=1)
        >>> key_from(key, streams=("sample",)) is key
        True
    """
    from ._generator import StatefulPRNG

    names = _names_of(streams, context)
    if isinstance(rng, StatefulPRNG):
        return rng.key()
    held = rng if isinstance(rng, Mapping) else _streams_of(rng)
    if held is not None:
        for name in names:
            if name in held:
                return _next_key(held[name], name, context)
        raise MissingRngStreamError(context, names)
    if isinstance(rng, jax.Array) and _is_single_key(rng):
        return rng
    must = (
        "rng must be a StatefulPRNG, a mapping of named generators, an nnx.Rngs, or "
        + _SINGLE_KEY
    )
    _errors.type_error(context, must, rng, "Write stateful_rng(seed).")


def _streams_of(rng: Any) -> dict[str, Any] | None:
    """Returns the streams of an ``nnx.Rngs``, or ``None`` for anything else."""
    if "flax.nnx" not in sys.modules:
        return None  # nobody has made one, and flax may be missing
    from . import flax

    return flax.streams_of(rng) if isinstance(rng, flax.Rngs) else None


def _next_key(stream: Any, name: str, context: str) -> Array:
    from ._generator import StatefulPRNG

    if isinstance(stream, StatefulPRNG):
        return stream.key()
    if callable(stream):
        key: Array = stream()
        return key
    must = f"the stream {name!r} must be a StatefulPRNG or an nnx.RngStream"
    _errors.type_error(context, must, stream, "Write stateful_rng(seed).")


# --- Streams of a seed --------------------------------------------------------------


def named_streams(seed: Any, names: Iterable[str]) -> "dict[str, StatefulPRNG]":
    """Return a generator for every name, each from the seed and its name only.

    Adding, removing or reordering names moves no other stream. The generator ``x``
    draws the very keys of ``rngs_from_seed(seed, …).x``.

    Args:
        seed: an int, a sequence of ints, a ``np.random.SeedSequence`` or a single
            key, as for `stateful_rng`. A key must not be used for anything else.
        names: distinct, non-empty names; at least one.

    Returns:
        A dict of `StatefulPRNG` in the order of ``names``; their base keys are
        ``fold_in_name(stateful_rng(seed).base_key, name)``.

    Raises:
        TypeError: if ``names`` is a string or holds what is none, or the seed is
            ``None``, a bool, a float, a generator.
        ValueError: if there is no name, a name is empty or repeated, two names have
            one digest, or the seed is negative.

    Examples:
        >>> rngs = named_streams(42, ["params", "dropout"])
        >>> a = rngs["dropout"].normal()
        >>> b = named_streams(42, ["dropout"])["dropout"].normal()
        >>> bool(a == b)
        True
    """
    from ._generator import stateful_rng

    keys = _stream_keys(seed, names, "named_streams")
    return {name: stateful_rng(key) for name, key in keys.items()}


def rngs_from_seed(seed: Any, streams: Sequence[str] = ("default",)) -> "Rngs":
    """Return a ``flax.nnx.Rngs`` whose streams depend on the seed and their names only.

    Adding, removing or reordering names moves no other stream; ``nnx.Rngs(seed)``
    gives all its names one stream instead. Needs flax.

    Args:
        seed: as in `named_streams`.
        streams: distinct, non-empty names; at least one. ``default`` serves the names
            that are missing, as always in ``nnx.Rngs``.

    Returns:
        An ``nnx.Rngs`` at draw 0, with the base keys of `named_streams`.

    Raises:
        TypeError: as in `named_streams`.
        ValueError: as in `named_streams`.

    Examples:
        >>> rngs = rngs_from_seed(42, ("params", "dropout"))
        >>> key = rngs.dropout()
        >>> bool(key == named_streams(42, ["dropout"])["dropout"].key())
        True
    """
    keys = _stream_keys(seed, streams, "rngs_from_seed")
    from .flax import Rngs

    return Rngs(keys)


def _stream_keys(seed: Any, names: Iterable[str], who: str) -> dict[str, Array]:
    """Returns the base key of every named stream of a seed."""
    from ._generator import StatefulPRNG

    owner: dict[int, str] = {}
    for name in _names_of(names, who):
        word = name_word(name, who)
        if word in owner:
            must = "the names of streams must be distinct, and their digests too"
            got = (owner[word], name)
            _errors.value_error(who, must, got, "Leave one out, or rename it.")
        owner[word] = name
    if seed is None or isinstance(seed, (PRNGState, StatefulPRNG)):
        must = "seed must be an int, a sequence of ints or a key"
        fix = (
            "A generator gives a key, rng.key(), or a child by name, rng.fold_in(name)."
        )
        _errors.type_error(who, must, seed, "" if seed is None else fix)
    base = _seeding.base_key(seed, None, who)
    return {name: fold_in_name(base, name) for name in owner.values()}


def _names_of(names: Iterable[str], who: str) -> tuple[str, ...]:
    """Returns the names of streams as a tuple of at least one."""
    must = "names of streams must be a sequence of str"
    if isinstance(names, (str, bytes)):
        _errors.type_error(who, must, names, f"Write ({names!r},).")
    if not isinstance(names, Iterable):
        _errors.type_error(who, must, names)
    listed = tuple(names)
    if not listed:
        _errors.value_error(who, "streams must have at least one name", listed)
    return listed

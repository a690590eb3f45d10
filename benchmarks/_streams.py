"""Endless streams of random words, in the ways in which a program comes by them.

A stream puts next to each other what a fault would make alike: the words of
neighbouring seeds, of neighbouring counts, of siblings. Draws are mapped over
generators by ``lax.map``, under which every impl keeps them apart.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jax_stateful_rng import PRNGState, StatefulPRNG, stateful_rng

IMPLS = ("threefry2x32", "threefry4x32", "philox4x32", "rbg", "unsafe_rbg")
"""Those that a generator takes without a warning."""

BLOCK = 2**18
"""How many words a block has."""

Blocks = Iterator[np.ndarray]

ODD = 0x9E3779B97F4A7C15
"""Times this, consecutive numbers lie apart: they differ in half of their bits."""


def _at(rng: StatefulPRNG, counts: Any) -> PRNGState:
    """Returns the states of ``rng`` at an array of counts below 2**64."""
    counts = np.asarray(counts, np.uint64)
    words = np.stack([counts >> np.uint64(32), counts & np.uint64(2**32 - 1)], axis=-1)
    keys = jnp.broadcast_to(rng.base_key, counts.shape)
    return PRNGState(keys, jnp.asarray(words, jnp.uint32))


def _at_draw_0(keys: jax.Array) -> PRNGState:
    return PRNGState(keys, jnp.zeros((*keys.shape, 2), jnp.uint32))


def _children(rng: StatefulPRNG, number: int) -> PRNGState:
    """Returns the states of the children that ``rng.spawn`` would give."""
    return _at_draw_0(jax.random.split(rng.key(), number))


def _grandchildren(rng: StatefulPRNG) -> PRNGState:
    children = [stateful_rng(state) for state in _children(rng, 32)]
    return _stacked(_children(child, 32) for child in children)


def _named(rng: StatefulPRNG) -> PRNGState:
    names = (f"layer{i}" for i in range(256))
    return _stacked(_at_draw_0(rng.fold_in(name).base_key[None]) for name in names)


def _stacked(states: Iterator[PRNGState]) -> PRNGState:
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *states)


def _draws(states: PRNGState) -> Blocks:
    """Yields a word of each generator in turn, again and again."""
    length = BLOCK // len(states)

    def draw(state: PRNGState) -> tuple[PRNGState, jax.Array]:
        rng = stateful_rng(state)
        words = lax.scan(lambda _, __: (None, rng.bits()), None, length=length)[1]
        return rng.state(), words

    run = jax.jit(lambda states: lax.map(draw, states))
    while True:
        states, words = run(states)
        yield np.asarray(words).T.ravel()


def _next_key(state: PRNGState) -> tuple[PRNGState, jax.Array]:
    """Returns two words of the next key: in rbg the other two repeat these."""
    rng = stateful_rng(state)
    words = jax.random.key_data(rng.key())[:2]
    return rng.state(), words


def _firsts(
    make: Callable[[Any], StatefulPRNG], of: Callable[[np.ndarray], Any]
) -> Any:
    """Yields the first word of generator after generator.

    Args:
        make: makes a generator of a traced value.
        of: the values that stand for the numbers from 0 on.
    """
    run = jax.jit(lambda values: lax.map(lambda value: make(value).bits(), values))
    for block in itertools.count():
        yield np.asarray(run(of(np.arange(block * BLOCK, (block + 1) * BLOCK))))


def _number(numbers: np.ndarray) -> np.ndarray:
    return numbers.astype(np.uint32)


def _one_bit_apart(numbers: np.ndarray, bits: int) -> np.ndarray:
    """Returns pairs of numbers of 64 bits that differ in one of the lowest."""
    pairs = (numbers // 2).astype(np.uint64)
    bit = np.uint64(1) << (pairs % np.uint64(bits))
    return pairs * np.uint64(ODD) ^ np.where(numbers % 2, bit, np.uint64(0))


def _long_draws(seed: int, impl: str) -> Blocks:
    rng = stateful_rng(seed, impl=impl)
    while True:
        yield np.asarray(rng.bits(size=BLOCK))


def _short_draws(seed: int, impl: str) -> Blocks:
    return _draws(_at(stateful_rng(seed, impl=impl), [0]))


def _keys(seed: int, impl: str) -> Blocks:
    state = stateful_rng(seed, impl=impl).state()
    half = BLOCK // 2  # of the words
    run = jax.jit(lambda s: lax.scan(lambda s, _: _next_key(s), s, length=half))
    while True:
        state, words = run(state)
        yield np.asarray(words).ravel()


def _seeds(seed: int, impl: str) -> Blocks:
    def make(number: Any) -> StatefulPRNG:
        return stateful_rng(number, impl=impl)

    return _firsts(make, lambda numbers: _number(seed + numbers))


def _seeds_one_bit_apart(seed: int, impl: str) -> Blocks:
    def make(number: Any) -> StatefulPRNG:
        return stateful_rng(number, impl=impl)

    def of(numbers: np.ndarray) -> np.ndarray:
        return _number(np.uint64(seed) + _one_bit_apart(numbers, 32))

    return _firsts(make, of)


def _counts_one_bit_apart(seed: int, impl: str) -> Blocks:
    rng = stateful_rng(seed, impl=impl)
    return _firsts(stateful_rng, lambda numbers: _at(rng, _one_bit_apart(numbers, 64)))


def _high_counts(seed: int, impl: str) -> Blocks:
    rng = stateful_rng(seed, impl=impl)
    return _firsts(stateful_rng, lambda numbers: _at(rng, numbers * 2**32))


def _past_the_low_word(seed: int, impl: str) -> Blocks:
    """Yields the draws from 0 on and those from 2**32 on, in turn."""
    rng = stateful_rng(seed, impl=impl)

    def after_one(state: PRNGState) -> PRNGState:
        rng = stateful_rng(state)
        rng.bits()
        return rng.state()

    late = jax.jit(after_one)(_at(rng, 2**32 - 1))
    return _draws(
        _stacked(iter([_at(rng, [0]), jax.tree.map(lambda x: x[None], late)]))
    )


def _siblings(seed: int, impl: str) -> Blocks:
    return _draws(_children(stateful_rng(seed, impl=impl), 1024))


def _cousins(seed: int, impl: str) -> Blocks:
    return _draws(_grandchildren(stateful_rng(seed, impl=impl)))


def _names(seed: int, impl: str) -> Blocks:
    return _draws(_named(stateful_rng(seed, impl=impl)))


def _numbers(seed: int, impl: str) -> Blocks:
    return _firsts(stateful_rng(seed, impl=impl).fold_in, _number)


STREAMS: Mapping[str, Callable[[int, str], Blocks]] = {
    "long draws": _long_draws,
    "short draws": _short_draws,
    "keys": _keys,
    "seeds": _seeds,
    "seeds a bit apart": _seeds_one_bit_apart,
    "counts a bit apart": _counts_one_bit_apart,
    "counts k · 2³²": _high_counts,
    "counts past 2³²": _past_the_low_word,
    "children": _siblings,
    "grandchildren": _cousins,
    "named children": _names,
    "numbered children": _numbers,
}
"""Functions of a seed and an impl.

Long draws take one key a block, short draws one a word; "keys" are the words of the
keys themselves. "Seeds" are first words of seed after seed, or of pairs of seeds that
differ in one bit; "counts" words of one generator at pairs of counts that differ in one
of 64 bits, at multiples of 2**32, and from 0 and from 2**32 on in turn. The children
draw in turn: 1024 of one generator, 32 of each of 32, and 256 with names; those by
number give one word each.
"""


def streams_of(impl: str) -> Sequence[str]:
    """Returns the streams of an impl about which the package does not warn."""
    by_fold_in = ("named children", "numbered children")
    return [s for s in STREAMS if impl != "unsafe_rbg" or s not in by_fold_in]


def keys(seed: int, impl: str) -> np.ndarray:
    """Returns keys that a program may draw with, all at different places.

    They are of draws from 0 on, around 2**32 and at multiples of it, of other seeds,
    and of children of every kind, 64 of each.

    Returns:
        ``uint32[n, w]``: their first two words, or the one that there is.
    """
    rng = stateful_rng(seed, impl=impl)
    other = np.arange(seed + 1, seed + 257, dtype=np.uint32)
    seeds = jax.vmap(lambda number: jax.random.key(number, impl=impl))(other)
    by_name = "named children" in streams_of(impl)
    states = [
        _at(rng, 64 * np.arange(2048)),
        _at(rng, 2**32 - 2**13 - 32 + 64 * np.arange(256)),  # one goes over 2**32
        _at(rng, 2**32 * np.arange(2, 258)),
        _at_draw_0(seeds),
        _children(stateful_rng(_at(rng, 2**48)), 1024),
        _grandchildren(stateful_rng(_at(rng, 2**48 + 1))),
        *([_named(rng)] if by_name else []),
    ]

    def draw(state: PRNGState) -> jax.Array:
        return lax.scan(lambda state, _: _next_key(state), state, length=64)[1]

    found = jax.jit(lambda states: lax.map(draw, states))(_stacked(iter(states)))
    return np.asarray(found).reshape(-1, found.shape[-1])

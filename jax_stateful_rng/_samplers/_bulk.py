"""Rejection for whole arrays: the loop that all rejection samplers share.

A proposal for every element at once fuses into one pass over the array, where a loop
an element (a key and a ``while_loop`` each, as in ``jax.random``) costs tens of times
as much on the CPU. The few elements that are refused are packed into a pool, a small
array, and redrawn there. The result is exact: every element takes the first proposal
that is accepted among independent ones.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax.numpy as jnp
import numpy as np
from jax import lax

from .._typing import Array, Shape
from . import _bits

Propose: TypeAlias = Callable[..., Array]
"""``(words, *derived) -> Array``: accepted values, and ``refused`` elsewhere."""

_SMALL = 4096
_ROUNDS = 1024
"""A bound on the rounds, so that the loop ends whatever its parameters are. A law
whose proposals are accepted with probability 0.3 reaches it once in 1e158 draws."""

_LANES = 32


def reject(
    key: Array,
    shape: Shape,
    params: Sequence[Array],
    propose: Propose,
    *,
    refused: float | int,
    otherwise: float | int,
    dtype: np.dtype,
    derive: Callable[..., Sequence[Array]] = lambda *params: params,
    number: int = 2,
    width: int = 32,
    spare: float,
) -> Array:
    """Returns the first accepted proposal of every element.

    Give it legal parameters only (put a legal value in place of an illegal one, and
    ``nan`` into the result afterwards): what is never accepted runs through all the
    rounds that there are. Whatever is given, it ends.

    Not differentiable: reverse mode cannot go through the loop, and forward mode would
    leave out that the acceptance depends on the parameters. A real law gives its
    implicit derivative by a ``custom_jvp`` around the call.

    Args:
        key: a key of which nothing else is taken.
        shape: the result's shape.
        params: what the law depends on: arrays that broadcast to ``shape``. Scalars
            stay scalars, and what ``derive`` makes of them is computed once.
        propose: ``(words, *derived) -> Array`` of ``dtype``: elementwise, pure. One
            array only: XLA on the CPU computes the whole chain anew for each output.
        refused: the value that means "not accepted"; not nan.
        otherwise: what an element gets that no round accepted; not ``refused``.
        dtype: of the proposals.
        derive: ``(*params) -> derived``: what ``propose`` needs, elementwise.
        number: how many random words an element needs in one round.
        width: their bits, 32 or 64.
        spare: an upper estimate of the share of proposals that are refused; only
            the speed depends on it.
    """
    size = math.prod(shape)
    # Whole words of lanes: the pool's index counts refusals in masks of 32 bits.
    padded = size if size <= _SMALL else _whole(size)
    flat = [_flatten(lax.stop_gradient(p), shape, size, padded) for p in params]
    engine = _Engine(key, propose, derive, refused, otherwise, dtype, number, width)
    start = jnp.full(padded, refused, dtype)
    _, value = engine.solve(jnp.uint32(0), flat, start, spare, _pools(spare))
    return value[:size].reshape(shape)


def _pools(spare: float) -> int:
    # Every pool is one more compiled copy of the proposal.
    return 1 if spare < 0.15 else 2


def _whole(size: int) -> int:
    return -(-size // _LANES) * _LANES


def _flatten(param: Array, shape: Shape, size: int, padded: int) -> Array:
    if param.size == 1:
        return param.reshape(())
    flat = jnp.broadcast_to(param, shape).reshape(size)
    return jnp.pad(flat, (0, padded - size), mode="edge") if padded > size else flat


class _Engine:
    """One call of `reject`: what stays the same in the full array and in the pool."""

    def __init__(
        self,
        key: Array,
        propose: Propose,
        derive: Callable[..., Sequence[Array]],
        refused: float | int,
        otherwise: float | int,
        dtype: np.dtype,
        number: int,
        width: int,
    ) -> None:
        self.key = key
        self.propose = propose
        self.derive = derive
        self.refused = np.asarray(refused, dtype)
        self.otherwise = np.asarray(otherwise, dtype)
        self.number = number
        self.width = width

    def solve(
        self,
        turn: Array,
        params: list[Array],
        value: Array,
        spare: float,
        pools: int,
    ) -> tuple[Array, Array]:
        """Resolves every refused element; returns the next turn and the values."""
        size = value.size
        if not pools or size <= _SMALL:
            turn, value = self.rounds(turn, params, value, 0)
            return turn, jnp.where(value == self.refused, self.otherwise, value)
        expected = size * spare
        capacity = min(_whole(int(expected + 8 * math.sqrt(expected)) + 32), size)
        turn, value = self.rounds(turn, params, value, capacity)
        index = _Index(value == self.refused)
        taken = [p if p.ndim == 0 else p[index.elements(capacity)] for p in params]
        start = jnp.where(
            lax.iota(jnp.int32, capacity) < index.total,
            self.refused,
            self.otherwise,
        )
        turn, redrawn = self.solve(turn, taken, start, spare, pools - 1)
        rank = index.rank()
        found = redrawn.at[jnp.minimum(rank, capacity - 1)].get(
            mode="promise_in_bounds"
        )
        found = jnp.where(rank < capacity, found, self.otherwise)
        return turn, jnp.where(index.marked, found.reshape(size), value)

    def rounds(
        self, turn: Array, params: list[Array], value: Array, enough: int
    ) -> tuple[Array, Array]:
        """Proposes for all elements until at most ``enough`` are refused.

        A loop even where one round is enough: it keeps XLA on the CPU from fusing
        the proposals into each of their consumers, that is, computing them anew.
        """
        scalar = all(param.ndim == 0 for param in params)
        derived = self.derive(*params) if scalar else ()

        def go_on(state: tuple[Array, Array]) -> Array:
            turn, value = state
            left = jnp.sum((value == self.refused).astype(jnp.int32))
            return (left > enough) & (turn < _ROUNDS)

        def body(state: tuple[Array, Array]) -> tuple[Array, Array]:
            turn, value = state
            ready = derived if scalar else self.derive(*_in_loop(params, turn))
            words = _bits.words(
                self.key, value.shape, self.number, turn, width=self.width
            )
            proposed = self.propose(words, *ready)
            value = jnp.where(value == self.refused, proposed, value)
            return turn + np.uint32(1), value

        turn, value = lax.while_loop(go_on, body, (turn, value))
        return turn, value


def _in_loop(params: list[Array], turn: Array) -> list[Any]:
    # A dependence on the turn that is none: without it XLA hoists every derived array
    # out of the loop and reads it from memory instead of fusing it.
    never = turn == np.uint32(0xFFFFFFFF)
    return [
        p if p.ndim == 0 else jnp.where(never, np.ones((), p.dtype), p) for p in params
    ]


class _Index:
    """The marked elements of an array, counted in a word of 32 bits a column.

    Element ``i`` of ``size`` is bit ``i // (size / 32)`` of word ``i % (size / 32)``.
    A cumulative sum over words is 32 times shorter than one over elements.
    """

    def __init__(self, marked: Array) -> None:
        self.marked = marked
        self.columns = marked.size // _LANES
        self.lane = lax.broadcasted_iota(jnp.uint32, (_LANES, 1), 0)
        table = marked.reshape(_LANES, self.columns)
        bit = jnp.where(table, np.uint32(1) << self.lane, np.uint32(0))
        self.word = jnp.sum(bit, 0, dtype=jnp.uint32)
        count = lax.population_count(self.word).astype(jnp.int32)
        self.through = jnp.cumsum(count)
        self.before = self.through - count
        self.total = self.through[-1]

    def rank(self) -> Array:
        """Returns, for a marked element, how many marked ones come before it."""
        below = self.word[None] & ((np.uint32(1) << self.lane) - np.uint32(1))
        return self.before[None] + lax.population_count(below).astype(jnp.int32)

    def elements(self, capacity: int) -> Array:
        """Returns the index of the marked element of every rank below ``capacity``.

        Beyond the last: any index.
        """
        slot = lax.iota(jnp.int32, capacity)
        column = jnp.searchsorted(
            self.through, slot, side="right", method="scan_unrolled"
        )
        column = jnp.minimum(column.astype(jnp.int32), self.columns - 1)
        nth = (slot - self.before[column]).astype(jnp.uint32)
        row = _nth_set_bit(self.word[column], nth).astype(jnp.int32)
        size = _LANES * self.columns
        return jnp.minimum(row * self.columns + column, size - 1)


def _nth_set_bit(word: Array, nth: Array) -> Array:
    """Returns the place of the ``nth`` set bit, counted from 0, by bisection."""
    place = jnp.zeros_like(word)
    for step in (16, 8, 4, 2, 1):
        low = (word >> place) & np.uint32((1 << step) - 1)
        count = lax.population_count(low)
        beyond = nth >= count
        nth = jnp.where(beyond, nth - count, nth)
        place = jnp.where(beyond, place + np.uint32(step), place)
    return place

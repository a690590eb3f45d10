"""Draws one by one from Python, as in a notebook: the cost of a call."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jax_stateful_rng import stateful_rng

from ._peers import FLAX, FOLD_IN, LIMIT, NUMPY, SPLIT, UPSTREAM, module_of
from ._timing import OURS, Effort, Row, run_time

Shape = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Case:
    """One thing that a user draws, as each peer writes it.

    Attributes:
        name: as we call it.
        rng: on a generator with NumPy's methods, of us and of upstream.
        key: from a key, with ``jax.random``.
        nnx: on an ``nnx.Rngs``.
        numpy: on a ``numpy.random.Generator``, or ``None``.
        shapes: the shapes to draw.
    """

    name: str
    rng: Callable[[Any, Shape], Any]
    key: Callable[[jax.Array, Shape], Any]
    nnx: Callable[[Any, Shape], Any]
    numpy: Callable[[np.random.Generator, Shape], Any] | None
    shapes: tuple[Shape, ...] = ((), (10,))


def _base_key(rng: Any) -> Any:
    # What split returns holds a Ref, which cannot be waited for.
    return jax.tree.leaves(rng)[0]


CASES = (
    Case(
        "key",
        lambda rng, shape: rng.key(),
        lambda key, shape: key,
        lambda rngs, shape: rngs(),
        None,
        ((),),
    ),
    Case(
        "random",
        lambda rng, shape: rng.random(shape),
        lambda key, shape: jax.random.uniform(key, shape),
        lambda rngs, shape: rngs.uniform(shape),
        lambda gen, shape: gen.random(shape),
    ),
    Case(
        "uniform",
        lambda rng, shape: rng.uniform(size=shape),
        lambda key, shape: jax.random.uniform(key, shape),
        lambda rngs, shape: rngs.uniform(shape),
        lambda gen, shape: gen.uniform(size=shape),
    ),
    Case(
        "normal",
        lambda rng, shape: rng.normal(size=shape),
        lambda key, shape: jax.random.normal(key, shape),
        lambda rngs, shape: rngs.normal(shape),
        lambda gen, shape: gen.normal(size=shape),
    ),
    Case(
        "integers",
        lambda rng, shape: rng.integers(0, 100, size=shape),
        lambda key, shape: jax.random.randint(key, shape, 0, 100),
        lambda rngs, shape: rngs.randint(shape, 0, 100),
        lambda gen, shape: gen.integers(0, 100, size=shape),
    ),
    Case(
        "split(8)",
        lambda rng, shape: _base_key(rng.split(8)),
        lambda key, shape: jax.random.split(key, 8),
        lambda rngs, shape: _base_key(rngs.split(8)),
        lambda gen, shape: gen.spawn(8),
        ((),),
    ),
)


def split_and_draw(draw: Callable[[jax.Array], Any]) -> Callable[[], Any]:
    """Returns the call that a user of ``jax.random`` writes most often."""
    key = jax.random.key(0)

    def call() -> Any:
        nonlocal key
        key, sub = jax.random.split(key)
        return draw(sub)

    return call


def fold_in_and_draw(draw: Callable[[jax.Array], Any]) -> Callable[[], Any]:
    """Returns the same with a count in place of a new key."""
    key = jax.random.key(0)
    count = 0

    def call() -> Any:
        nonlocal count
        sub = jax.random.fold_in(key, count)
        count += 1
        return draw(sub)

    return call


def _calls(case: Case, shape: Shape) -> dict[str, Callable[[], Any]]:
    ours, x = stateful_rng(0), jnp.zeros(shape)
    limit = jax.jit(lambda x: x + 1)
    calls: dict[str, Callable[[], Any]] = {
        OURS: lambda: case.rng(ours, shape),
        SPLIT: split_and_draw(lambda key: case.key(key, shape)),
        FOLD_IN: fold_in_and_draw(lambda key: case.key(key, shape)),
        LIMIT: lambda: limit(x),
    }
    upstream, nnx, numpy = module_of(UPSTREAM), module_of(FLAX), case.numpy
    if upstream is not None:
        theirs = upstream.stateful_rng(0)
        calls[UPSTREAM] = lambda: case.rng(theirs, shape)
    if nnx is not None:
        rngs = nnx.Rngs(0)
        calls[FLAX] = lambda: case.nnx(rngs, shape)
    if numpy is not None:
        gen = np.random.default_rng(0)
        calls[NUMPY] = lambda: numpy(gen, shape)
    return calls


def rows(effort: Effort, *, quick: bool) -> Iterator[Row]:
    """Yields the rows of the eager table: the time of a call, dispatch included."""
    for case in CASES[:1] + CASES[-1:] if quick else CASES:
        for shape in case.shapes:
            size = str(shape[0]) if shape else "scalar"
            samples = run_time(_calls(case, shape), effort, dispatch=True)
            yield samples.row("eager", case.name, size, "run")

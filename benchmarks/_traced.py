"""Draws inside jitted functions: what they cost to trace, to compile and to run."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jax_stateful_rng import stateful_rng

from ._peers import FLAX, FOLD_IN, SPLIT, UPSTREAM, module_of
from ._timing import OURS, Effort, Row, run_time, stages

CAPTURED = "captured"

Function = tuple[Callable[..., Any], tuple[Any, ...]]
"""A pure function of its arguments and captured generators, with arguments."""


def _scan_rng(rng: Any, length: int) -> Any:
    return lax.scan(lambda carry, _: (carry, rng.uniform()), None, length=length)[1]


def _scan_split(key: jax.Array, length: int) -> tuple[jax.Array, jax.Array]:
    def body(key: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        key, sub = jax.random.split(key)
        return key, jax.random.uniform(sub)

    return lax.scan(body, key, length=length)


def _scan_fold_in(
    key: jax.Array, count: jax.Array, length: int
) -> tuple[jax.Array, jax.Array]:
    def body(count: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
        return count + 1, jax.random.uniform(jax.random.fold_in(key, count))

    return lax.scan(body, count, length=length)


def _many_rng(rng: Any, draws: int) -> Any:
    return sum((rng.uniform() for _ in range(draws)), jnp.zeros(()))


def _many_split(key: jax.Array, draws: int) -> tuple[jax.Array, jax.Array]:
    total = jnp.zeros(())
    for _ in range(draws):
        key, sub = jax.random.split(key)
        total += jax.random.uniform(sub)
    return key, total


def _many_fold_in(
    key: jax.Array, count: jax.Array, draws: int
) -> tuple[jax.Array, jax.Array]:
    total = jnp.zeros(())
    for i in range(draws):
        total += jax.random.uniform(jax.random.fold_in(key, count + i))
    return count + draws, total


def _children_rng(rng: Any, lanes: int) -> Any:
    return jax.vmap(lambda child: child.uniform())(rng.split(lanes))


def _children_split(key: jax.Array, lanes: int) -> tuple[jax.Array, jax.Array]:
    key, sub = jax.random.split(key)
    return key, jax.vmap(jax.random.uniform)(jax.random.split(sub, lanes))


def _children_fold_in(
    key: jax.Array, count: jax.Array, lanes: int
) -> tuple[jax.Array, jax.Array]:
    children = jax.random.split(jax.random.fold_in(key, count), lanes)
    return count + 1, jax.vmap(jax.random.uniform)(children)


def _nnx(nnx: Any) -> dict[str, Callable[[Any, Any, int], Any]]:
    """Returns the cases for flax in its fastest form: pure functions of its state."""

    def scan(graph: Any, state: Any, length: int) -> Any:
        def body(state: Any, _: None) -> Any:
            rngs = nnx.merge(graph, state)
            return nnx.state(rngs), rngs.uniform()

        return lax.scan(body, state, length=length)

    def many(graph: Any, state: Any, draws: int) -> Any:
        rngs = nnx.merge(graph, state)
        total = sum((rngs.uniform() for _ in range(draws)), jnp.zeros(()))
        return nnx.state(rngs), total

    def children(graph: Any, state: Any, lanes: int) -> Any:
        rngs = nnx.merge(graph, state)
        inner, states = nnx.split(rngs.split(lanes))
        drawn = jax.vmap(lambda state: nnx.merge(inner, state).uniform())(states)
        return nnx.state(rngs), drawn

    return {"scan": scan, "many": many, "children": children}


_FORMS = {
    "scan": (_scan_rng, _scan_split, _scan_fold_in),
    "many": (_many_rng, _many_split, _many_fold_in),
    "children": (_children_rng, _children_split, _children_fold_in),
}


def functions(form: str, size: int) -> dict[str, Function]:
    """Returns one function a peer, each with its state going in and coming out."""
    with_rng, with_split, with_fold_in = _FORMS[form]
    key, count = jax.random.key(0), jnp.zeros((), jnp.uint32)
    ours, captured = stateful_rng(0), stateful_rng(0)
    found: dict[str, Function] = {
        OURS: (lambda rng: with_rng(rng, size), (ours,)),
        f"{OURS}, {CAPTURED}": (lambda: with_rng(captured, size), ()),
        SPLIT: (lambda key: with_split(key, size), (key,)),
        FOLD_IN: (lambda key, count: with_fold_in(key, count, size), (key, count)),
    }
    upstream, nnx = module_of(UPSTREAM), module_of(FLAX)
    if upstream is not None:
        theirs = upstream.stateful_rng(0)  # as an argument it cannot be lowered
        found[UPSTREAM] = (lambda: with_rng(theirs, size), ())
    if nnx is not None:
        graph, state = nnx.split(nnx.Rngs(0))
        with_nnx = _nnx(nnx)[form]
        found[FLAX] = (lambda state: with_nnx(graph, state, size), (state,))
    return found


def _call(function: Callable[..., Any], args: tuple[Any, ...]) -> Callable[[], Any]:
    jitted = jax.jit(function)
    return lambda: jitted(*args)


def rows(effort: Effort, *, quick: bool) -> Iterator[Row]:
    """Yields the rows of the table of jitted functions."""
    cases = (
        ("scan", "scan of scalar draws", 100 if quick else 100_000),
        ("many", "draws in one function", 2 if quick else 100),
        ("children", "vmap over children", 10 if quick else 10_000),
    )
    for form, case, size in cases:
        found = functions(form, size)
        for what, samples in stages(found, effort).items():
            yield samples.row("traced", case, str(size), what)
        calls = {peer: _call(*function) for peer, function in found.items()}
        samples = run_time(calls, effort, dispatch=False)
        yield samples.row("traced", case, str(size), "run")

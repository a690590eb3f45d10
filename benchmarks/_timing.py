"""Timing on a noisy machine: short slices in interleaved rounds, minima, medians."""

import dataclasses
import gc
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.extend.core
import numpy as np

OURS = "jax_stateful_rng"

Calls = Mapping[str, Callable[[], Any]]
"""What is compared: the name of each peer and a call that does its work once."""


@dataclasses.dataclass(frozen=True)
class Effort:
    """How much work goes into one row.

    Attributes:
        rounds: interleaved rounds, as far as the budget allows.
        slice: seconds of calls of one peer in one round.
        budget: seconds after which no further round starts.
        compiles: how often everything is compiled from scratch.
    """

    rounds: int
    slice: float
    budget: float
    compiles: int


# A slice is shorter than what a scheduler gives a process: some are not interrupted.
FULL = Effort(rounds=100, slice=1e-3, budget=3.0, compiles=2)
QUICK = Effort(rounds=3, slice=5e-4, budget=0.05, compiles=1)


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of a table: what each peer takes for the same work.

    Attributes:
        mode: ``"eager"``, ``"traced"`` or ``"bulk"``.
        case: what is done.
        size: of the result: ``"scalar"`` or the number of elements.
        what: ``"run"``, ``"first call"``, ``"trace"``, ``"compile"``, ``"equations"``.
        minimum: by peer; seconds, or a count.
        median: by peer.
        cpu: by peer, the least processor time of a call, all threads together;
            empty where it was not taken.
    """

    mode: str
    case: str
    size: str
    what: str
    minimum: dict[str, float]
    median: dict[str, float]
    cpu: dict[str, float]

    @property
    def ratios(self) -> dict[str, float]:
        """By peer, its minimum over ours: how many times faster we are."""
        ours = self.minimum.get(OURS, math.nan)
        return {
            peer: value / ours for peer, value in self.minimum.items() if peer != OURS
        }

    def to_dict(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "ratios": self.ratios}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "Row":
        return cls(**{f.name: saved[f.name] for f in dataclasses.fields(cls)})


class Samples:
    """The samples of one row, peer by peer."""

    def __init__(self) -> None:
        self.wall: dict[str, list[float]] = {}
        self.cpu: dict[str, list[float]] = {}

    def add(self, peer: str, wall: float, cpu: float | None = None) -> None:
        self.wall.setdefault(peer, []).append(float(wall))
        if cpu is not None:
            self.cpu.setdefault(peer, []).append(float(cpu))

    def row(self, mode: str, case: str, size: str, what: str) -> Row:
        return Row(
            mode,
            case,
            size,
            what,
            {peer: min(found) for peer, found in self.wall.items()},
            {peer: statistics.median(found) for peer, found in self.wall.items()},
            {peer: min(found) for peer, found in self.cpu.items()},
        )


def run_time(calls: Calls, effort: Effort, *, dispatch: bool) -> Samples:
    """Times the calls in interleaved rounds.

    Args:
        calls: already compiled, or compiled by the first call.
        effort: how long.
        dispatch: whether the calls of a slice may overlap, as in a Python loop that
            draws: only the last result is waited for, inside the timed slice. Else
            every single result is waited for.
    """
    counts = {}
    for peer, call in calls.items():
        for _ in range(3):  # the first two compile, and fill JAX's caches
            start = time.perf_counter()
            jax.block_until_ready(call())
        took = time.perf_counter() - start
        counts[peer] = max(1, min(5000, round(effort.slice / took)))
    samples = Samples()
    order = list(calls)
    collecting = gc.isenabled()
    gc.disable()
    try:
        end = time.perf_counter() + effort.budget
        for done in range(effort.rounds):
            if done and time.perf_counter() > end:
                break
            for peer in order:
                wall, cpu = _slice(calls[peer], counts[peer], dispatch)
                samples.add(peer, wall / counts[peer], cpu / counts[peer])
            order.append(order.pop(0))  # nobody always follows the same neighbour
            gc.collect()
    finally:
        if collecting:
            gc.enable()
    return samples


def _slice(call: Callable[[], Any], count: int, dispatch: bool) -> tuple[float, float]:
    result = None
    cpu, wall = time.process_time(), time.perf_counter()
    if dispatch:
        for _ in range(count):
            result = call()
        jax.block_until_ready(result)
    else:
        for _ in range(count):
            jax.block_until_ready(call())
    return time.perf_counter() - wall, time.process_time() - cpu


def first_call(calls: Calls, effort: Effort) -> Samples:
    """Times the first call, with all that JAX has cached thrown away before it."""
    samples = Samples()
    for _ in range(effort.compiles):
        for peer, call in calls.items():
            jax.clear_caches()
            samples.add(peer, *_slice(call, 1, dispatch=False))
    return samples


def stages(
    functions: Mapping[str, tuple[Callable[..., Any], tuple[Any, ...]]],
    effort: Effort,
) -> dict[str, Samples]:
    """Takes apart what ``jit`` does before the first run, for functions and arguments.

    Returns:
        Samples of the trace, the compilation (lowering included), both together, and
        the equations of the jaxpr, those of inner jaxprs included. All that JAX has
        cached is thrown away before each trace.
    """
    names = ("trace", "compile", "trace + compile", "equations")
    found = {name: Samples() for name in names}
    for _ in range(effort.compiles):
        for peer, (function, args) in functions.items():
            jax.clear_caches()
            start = _now()
            traced = jax.jit(function).trace(*args)
            middle = _now()
            traced.lower().compile()
            end = _now()
            found["trace"].add(peer, *(middle - start))
            found["compile"].add(peer, *(end - middle))
            found["trace + compile"].add(peer, *(end - start))
            count = sum(1 for _ in _equations(traced.jaxpr.jaxpr))
            found["equations"].add(peer, count)
    return found


def _now() -> np.ndarray:
    return np.array([time.perf_counter(), time.process_time()])


def _equations(jaxpr: jax.extend.core.Jaxpr) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple) else (value,):
                if isinstance(inner, jax.extend.core.ClosedJaxpr):
                    yield from _equations(inner.jaxpr)
                elif isinstance(inner, jax.extend.core.Jaxpr):
                    yield from _equations(inner)

"""Several processes of one run: a check that they keep step."""

import hashlib
from collections.abc import Hashable, Sequence
from typing import TypeVar

import jax
import numpy as np
from jax.experimental import multihost_utils

from . import _errors
from ._state import PRNGState, host_words

_T = TypeVar("_T", bound=Hashable)


def check_in_sync(who: str, state: PRNGState) -> None:
    """Raises in all processes where they do not hold one state; all must call it."""
    if isinstance(state.base_key, jax.core.Tracer) or isinstance(
        state.counter, jax.core.Tracer
    ):
        must = "processes are compared outside traced code"
        _errors.type_error(who, must, state.counter, "Call it between two steps.")
    if state.shape:
        must, fix = "one generator is compared, and no batch", "Call it before split."
        _errors.value_error(who, must, state, fix)
    if jax.process_count() == 1:
        return
    # Of one length for every impl: gathering arrays of unlike shapes would not end.
    stream = str(jax.random.key_impl(state.base_key)).encode()
    stream += host_words(state.base_key).tobytes()
    digest = np.frombuffer(hashlib.blake2b(stream, digest_size=8).digest(), np.uint32)
    row = np.concatenate([digest, np.asarray(state.counter)])
    rows = np.asarray(multihost_utils.process_allgather(row))
    streams = _groups([row[:2].tobytes() for row in rows])
    if len(streams) > 1:
        raise RuntimeError(
            _errors.message(
                who,
                "all processes must hold a generator of the same stream",
                " and another ".join(f"one in {some}" for some in streams.values()),
                "Give all of them one seed, or place the generator: "
                "stateful_rng(seed, sharding=NamedSharding(mesh, P())), which checks.",
            )
        )
    counts = _groups([(int(row[2]) << 32) + int(row[3]) for row in rows])
    if len(counts) > 1:
        raise RuntimeError(
            _errors.message(
                who,
                "all processes must have drawn as often",
                ", ".join(f"count {n} in {some}" for n, some in counts.items()),
                "Look for a draw that only some of them make, as under "
                "`if jax.process_index() == 0`, and give it a generator of its own: "
                "rng.fold_in('logging').",
            )
        )


def _groups(values: Sequence[_T]) -> dict[_T, str]:
    """Maps each value to the processes that hold it, in words."""
    found: dict[_T, list[int]] = {}
    for process, value in enumerate(values):
        found.setdefault(value, []).append(process)
    return {value: _names(processes) for value, processes in found.items()}


def _names(processes: list[int]) -> str:
    text = ", ".join(map(str, processes[:8]))
    more = len(processes) - 8
    plural = "es" if len(processes) > 1 else ""
    return f"process{plural} {text}" + (f" and {more} more" if more > 0 else "")

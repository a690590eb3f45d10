"""The only module that touches private parts of JAX.

Each use stands behind a guard. Where the private part is gone or has changed, the
functions here answer in a way that makes the callers take the public path: slower,
with the same numbers. ``tests/test_internals.py`` fails when a guard closes on a
JAX that we support.
"""

import functools
import threading
from collections.abc import Iterator
from typing import Any

import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np

from ._counter import KIND
from ._typing import Array

try:
    from jax._src.core import trace_ctx as _trace_ctx
except ImportError:  # the public path is slower and sees fewer mistakes
    _trace_ctx = None  # type: ignore[assignment]
try:
    from jax._src import config as _config
except ImportError:
    _config = None  # type: ignore[assignment]
try:
    from jax._src.array import ArrayImpl as _ArrayImpl
except ImportError:
    _ArrayImpl = None  # type: ignore[assignment, misc]


# --- Where are we? -------------------------------------------------------------


def _state_at_top_level() -> Any:
    """Takes the trace state of a fresh thread: nothing is ever traced there."""
    found: list[Any] = []
    thread = threading.Thread(
        target=lambda: found.append(jax.extend.core.get_opaque_trace_state())
    )
    thread.start()
    thread.join()
    return found[0]


_TOP_LEVEL = _state_at_top_level()


def at_top_level() -> bool:
    """Whether no JAX transformation is tracing the caller. Public API only."""
    return bool(jax.extend.core.get_opaque_trace_state() == _TOP_LEVEL)


def layers_between(*homes: Any) -> Iterator[str]:
    """Names the transformations between the caller and the arrays' own trace.

    Yields, from the inside outwards, ``"vmap"``, ``"shard_map"``, or what JAX says
    that it traces a function for (``"while_cond"``, ``"custom_vjp fwd"``, …), and
    stops at the trace to which one of ``homes`` belongs. Yields nothing where the
    names cannot be read; the checks that stand on them are then silent.

    Args:
        *homes: arrays or Refs, traced or not.
    """
    own = [getattr(home, "_trace", None) for home in homes]
    trace = getattr(_trace_ctx, "trace", None)
    while trace is not None and not any(trace is home for home in own):
        kind = type(trace).__name__
        if kind == "BatchTrace":
            yield "vmap"
        elif kind == "ShardMapTrace":
            yield "shard_map"
        else:
            debug = getattr(getattr(trace, "frame", None), "debug_info", None)
            name = getattr(debug, "traced_for", None)
            if isinstance(name, str):
                yield name
        trace = getattr(trace, "parent_trace", None)


def folds_constants() -> bool:
    """Whether the caller is inside ``jax.ensure_compile_time_eval()``."""
    flag = getattr(_config, "eager_constant_folding", None)
    return bool(getattr(flag, "value", False))


def new_remat() -> bool:
    """Whether JAX's ``jax_remat3``, an experimental ``checkpoint``, is switched on."""
    return bool(getattr(jax.config, "jax_remat3", False))


# --- The buffer of a Ref -------------------------------------------------------
# A Ref as an argument drops ``jit`` off its fast dispatch (190 µs against 14). So
# the eager path takes the buffer out, runs a pure jitted function, and puts the new
# buffer in, under the generator's lock.
#
# What a Ref holds must be committed to its device (JAX 0.12 insists), but then every
# draw would be committed too, and fail beside sharded arrays, which jax.random's
# draws do not. So the buffer is passed on in an uncommitted wrapper.


def take_buffer(ref: jax.Ref, placed: bool) -> Array:
    """Returns the array that a concrete Ref holds, without a copy.

    Only while `fast_path` holds, and under the generator's lock: a jitted function
    that has the Ref as input donates this buffer.

    Args:
        ref: the counter.
        placed: whether the user placed the generator; else the array comes
            uncommitted.
    """
    held: Array = ref._refs._buf
    return held if placed else rewrapped(held, committed=False)


def put_buffer(ref: jax.Ref, new: Array) -> None:
    """Makes ``new`` the content of a concrete Ref; the caller must own the array."""
    ref._refs._buf = new if new.committed else rewrapped(new, committed=True)


def rewrapped(array: Array, *, committed: bool) -> Array:
    """Returns the same buffers, committed to their devices or free to be moved."""
    wrapper: Array = _ArrayImpl(
        array.aval, array.sharding, array._arrays, committed, _skip_checks=True
    )
    return wrapper


@functools.cache
def fast_path() -> bool:
    """Whether the buffer of a Ref can be reached and behaves as expected.

    Tried on a throw-away Ref at the first draw, not at import, since it starts the
    JAX backend.
    """
    ref = jax.new_ref(np.zeros(2, np.uint32), kind=KIND)
    try:
        old = take_buffer(ref, placed=False)
        put_buffer(ref, old + np.array([1, 2], np.uint32))
        return not old.committed and ref[...].tolist() == [1, 2]
    except (AttributeError, TypeError, RuntimeError, ValueError):
        return False

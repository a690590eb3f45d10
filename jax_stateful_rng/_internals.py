"""The only module that touches private parts of JAX.

Each use stands behind a guard. Where the private part is gone or has changed, the
functions here answer in a way that makes the callers take the public path: slower,
with the same numbers. ``tests/test_internals.py`` fails when a guard closes on a
JAX that we support.
"""

import concurrent.futures
import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.extend.core
import numpy as np

from ._counter import KIND
from ._typing import Array

try:
    from jax._src.core import ArrayRefImpl as _ArrayRefImpl
except ImportError:
    _ArrayRefImpl = object  # type: ignore[assignment, misc]
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


def _untraced(function: Callable[[], Any]) -> Any:
    """Calls ``function`` in a fresh thread, where nothing is ever traced."""
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


_TOP_LEVEL = _untraced(jax.extend.core.get_opaque_trace_state)


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


def new_counter(counter: Array | np.ndarray) -> jax.Ref:
    """Returns a Ref of the generator's kind that holds ``counter``.

    Under automatic differentiation alone the Ref is made outside of it, where it
    belongs, since JAX 0.12 cannot make one under an eager ``jax.jvp``.
    """
    only_ad = (
        _trace_ctx is not None
        and not at_top_level()
        and not isinstance(counter, jax.core.Tracer)
        and not any(True for _ in layers_between())
    )
    if not only_ad:
        return jax.new_ref(counter, kind=KIND)
    ref: jax.Ref = _untraced(lambda: jax.new_ref(counter, kind=KIND))
    return ref


def folds_constants() -> bool:
    """Whether the caller is inside ``jax.ensure_compile_time_eval()``."""
    flag = getattr(_config, "eager_constant_folding", None)
    return bool(getattr(flag, "value", False))


def new_remat() -> bool:
    """Whether JAX's ``jax_remat3``, an experimental ``checkpoint``, is switched on."""
    return bool(getattr(jax.config, "jax_remat3", False))


# --- The buffer of a Ref -------------------------------------------------------
# A Ref as an argument drops ``jit`` off its fast dispatch (190 µs against 14). So
# the eager path takes the counter's buffer out, runs a pure jitted function, and
# puts the new buffer in, under the generator's lock.
#
# JAX wants what a Ref holds to be committed to its device, but then every draw would
# be committed too, and fail beside sharded arrays, as jax.random's draws do not. So
# between eager draws the Ref holds the buffer uncommitted, and commits it at the
# moment when JAX itself asks for it.


def rewrapped(array: Array, *, committed: bool) -> Array:
    """Returns the same buffers, committed to their devices or free to be moved."""
    wrapper: Array = _ArrayImpl(
        array.aval,
        array.sharding,
        array._arrays,  # type: ignore[attr-defined]
        committed,
        _skip_checks=True,
    )
    return wrapper


class _LazyHolder(_ArrayRefImpl):
    """What stands in a Ref for JAX's own holder: ``_buf`` is committed when read.

    Reading ``_buf`` also gives the buffer up: JAX may donate it, or change the array
    in place, so from then on only the array that JAX was given counts.
    """

    def __init__(self, aval: Any, buffer: Array) -> None:
        self._aval = aval
        self._held: Array = buffer
        self.free: Array | None = None

    @property
    def _buf(self) -> Array:
        if self.free is not None:
            self._held = rewrapped(self.free, committed=True)
            self.free = None
        return self._held

    @_buf.setter
    def _buf(self, buffer: Array) -> None:
        self._held = buffer
        self.free = None


def take_buffer(ref: jax.Ref, placed: bool) -> Array:
    """Returns the array that a concrete Ref holds, without a copy.

    Only while `fast_path` holds, and under the generator's lock: a jitted function
    that has the Ref as input donates this buffer.

    Args:
        ref: the counter.
        placed: whether the user placed the generator; else the array comes
            uncommitted.
    """
    holder = ref._refs
    if type(holder) is not _LazyHolder:
        holder = ref._refs = _LazyHolder(holder._aval, holder._buf)
    if placed:
        return holder._buf
    free = holder.free
    return rewrapped(holder._buf, committed=False) if free is None else free


def put_buffer(ref: jax.Ref, new: Array) -> None:
    """Makes ``new`` the content of a Ref just taken from; the caller must own it."""
    if new.committed:
        ref._refs._buf = new
    else:
        ref._refs.free = new


@functools.cache
def fast_path() -> bool:
    """Whether the buffer of a Ref can be reached and behaves as expected.

    Tried on a throw-away Ref at the first draw, not at import, since it starts the
    JAX backend.
    """
    if _ArrayImpl is None or _LazyHolder.__base__ is object:
        return False
    ref = jax.new_ref(np.zeros(2, np.uint32), kind=KIND)
    one = np.array([0, 1], np.uint32)

    @jax.jit
    def inside() -> None:
        ref[...] = ref[...] + one

    try:
        for _ in range(2):
            old = take_buffer(ref, placed=False)
            put_buffer(ref, old + one)
            inside()
        return not old.committed and ref[...].tolist() == [0, 4]
    except (AttributeError, TypeError, RuntimeError, ValueError):
        return False

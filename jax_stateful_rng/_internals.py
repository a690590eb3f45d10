"""The only module that touches private parts of JAX.

Each use stands behind a guard. Where the private part is gone or has changed, the
functions here answer in a way that makes the callers take the public path: slower,
with the same numbers. ``test_the_fast_path_is_there`` fails when a guard closes on
a JAX that we support.
"""

import concurrent.futures
import functools
import threading
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
    top = at_top_level()
    only_ad = (
        _trace_ctx is not None
        and not top
        and not isinstance(counter, jax.core.Tracer)
        and not any(True for _ in layers_between())
    )
    if only_ad:
        ref: jax.Ref = _untraced(lambda: jax.new_ref(counter, kind=KIND))
    else:
        ref = jax.new_ref(counter, kind=KIND)
    if top and fast_path():
        _holder(ref)  # now, while no other thread can have read it
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
    in place, so from then on only the array that JAX was given counts. JAX does not
    say when it is done with it. It is, when the thread that read goes on to draw; of
    another thread nothing is known, and the buffer is not taken out any more.

    JAX reads and writes without the generator's lock where the user does not hold it
    either. So each method is one step under a lock of the holder's own, which is
    never held while JAX runs anything.

    Attributes:
        free: the buffer, uncommitted, unless JAX has read it.
        read: whether JAX has read since the buffer was last taken.
        reader: the thread in which it did, ``None`` before the first time.
        shared: whether it did in more threads than the one that draws.
    """

    def __init__(self, aval: Any, buffer: Array) -> None:
        self._aval = aval
        self._held: Array = buffer
        self._step = threading.Lock()
        self.free: Array | None = None
        self.read = False
        self.reader: int | None = None
        self.shared = False

    @property
    def _buf(self) -> Array:
        with self._step:
            thread = threading.get_ident()
            self.read = True
            self.shared = self.shared or self.reader not in (None, thread)
            self.reader = thread
            if self.free is not None:
                self._held = rewrapped(self.free, committed=True)
                self.free = None
            return self._held

    @_buf.setter
    def _buf(self, buffer: Array) -> None:
        with self._step:
            self._set(buffer)

    def _set(self, buffer: Array) -> None:
        if buffer.committed:
            self._held, self.free = buffer, None
        else:
            self.free = buffer

    def take(self, placed: bool) -> Array | None:
        """Returns the buffer, or ``None`` if it is in use elsewhere or lost."""
        with self._step:
            self.read = False
            if self.free is not None:
                return self.free
            if self.shared or self.reader not in (None, threading.get_ident()):
                self.shared = True
                return None
            if self._held.is_deleted():  # given to a call that failed
                return None
            return self._held if placed else rewrapped(self._held, committed=False)

    def put(self, buffer: Array) -> bool:
        """Puts back what follows on the buffer taken; ``False`` if JAX read since."""
        with self._step:
            if self.read:  # what JAX makes of the old buffer counts, not ours
                self.shared = True
                return False
            self._set(buffer)
            return True


def _holder(ref: jax.Ref) -> _LazyHolder:
    holder = ref._refs
    if type(holder) is not _LazyHolder:
        holder = ref._refs = _LazyHolder(holder._aval, holder._buf)
    return holder


def take_buffer(ref: jax.Ref, placed: bool) -> Array | None:
    """Returns the array that a concrete Ref holds, without a copy.

    Only while `fast_path` holds, and under the generator's lock: a jitted function
    that has the Ref as input donates this buffer.

    Args:
        ref: the counter.
        placed: whether the user placed the generator; else the array comes
            uncommitted.

    Returns:
        The array, or ``None`` where a jitted function of another thread may be
        working on it, or has failed and lost it: then only a jitted function with the
        Ref as argument is safe, and says what is wrong.
    """
    return _holder(ref).take(placed)


def put_buffer(ref: jax.Ref, new: Array) -> bool:
    """Makes ``new`` the content of a Ref just taken from; the caller must own it.

    Returns:
        Whether it did. If not, JAX has read the Ref in between, and the draw that was
        made must not be used.
    """
    return _holder(ref).put(new)


def reset_buffer(ref: jax.Ref, new: Array) -> None:
    """Makes ``new`` the content of a Ref whatever has become of it before."""
    ref._refs = _LazyHolder(ref._refs._aval, new)
    ref._refs._buf = new


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
            if old is None or not put_buffer(ref, old + one):
                return False
            inside()
            if old.committed:
                return False
        return bool(ref[...].tolist() == [0, 4])
    except (AttributeError, TypeError, RuntimeError, ValueError):
        return False

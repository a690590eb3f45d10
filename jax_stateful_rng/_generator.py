"""The generator and its constructor."""

import copy as _copy
import dataclasses
from typing import Any, NoReturn, final

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec, Sharding

from . import (
    _advice,
    _counter,
    _draw,
    _errors,
    _internals,
    _processes,
    _seeding,
    _sharding,
)
from ._draw import program, step
from ._samplers.circular import Circular
from ._samplers.continuous import Continuous
from ._samplers.discrete import Discrete
from ._samplers.gamma import GammaFamily
from ._samplers.jaxlike import JaxLike
from ._samplers.multivariate import Multivariate
from ._samplers.noncentral import Noncentral
from ._samplers.permutations import Permutations
from ._samplers.simple import Simple, static_int
from ._state import PRNGState, describe, host_words
from ._streams import child_key
from ._typing import Array, Impl, Shape, Size


@final
@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class StatefulPRNG(
    Simple,
    Continuous,
    GammaFamily,
    Noncentral,
    Circular,
    Discrete,
    Multivariate,
    Permutations,
    JaxLike,
):
    """A stateful random generator with NumPy's methods that works under JAX.

    Make one with `stateful_rng`. Every draw reads the state, calls a pure sampler
    with the next key, and writes the state on; under a transformation these become
    part of the traced function. A generator is a pytree: pass it to jitted functions,
    or close over it. It cannot be *returned* from one: return ``rng.state()``.

    Two generators are equal only if they are the same object.

    Attributes:
        base_key: the typed key of the whole stream. Do not use it for anything else:
            ``jax.random.split(rng.base_key)`` gives the generator's own first keys.
        counter: a Ref of ``uint32[..., 2]`` with the number of draws so far, as
            words (high, low); made by ``jax.new_ref(…, kind="no_grad_no_remat")``.

    Examples:
        >>> rng = stateful_rng(0)
        >>> rng.normal(size=3).shape
        (3,)
        >>> a, b = rng.random(), rng.random()
        >>> bool(a != b)
        True
    """

    base_key: Array
    counter: jax.Ref

    def __post_init__(self) -> None:
        """Refuses fields that would go wrong silently.

        Lets pass whatever JAX puts in their place when it rebuilds a pytree
        (``None``, ``ShapeDtypeStruct``, axis numbers, float0 tangents).
        """
        key, counter = self.base_key, self.counter
        known = isinstance(key, (jax.Array, np.ndarray))
        if known and not (_seeding.is_key(key) or key.dtype == jax.dtypes.float0):
            _errors.type_error(
                "StatefulPRNG",
                "base_key must be a typed key",
                key,
                "Write stateful_rng(key), or jax.random.wrap_key_data(key).",
            )
        if isinstance(counter, jax.Ref):
            shape = key.shape if _seeding.is_key(key) else counter.shape[:-1]
            if counter.dtype != jax.dtypes.float0 and (
                counter.dtype != np.uint32
                or counter.shape != (*shape, 2)
                or not _draw.has_kind(counter)
            ):
                _errors.type_error(
                    "StatefulPRNG",
                    f"counter must be a Ref of uint32{[*shape, 2]} of kind "
                    f"{_counter.KIND!r} (any other kind gives gradients at other "
                    "noise than the value under jax.checkpoint)",
                    jax.typeof(counter),
                    "Let stateful_rng(seed) make it.",
                )
        elif isinstance(counter, (jax.Array, np.ndarray)) and (
            counter.dtype != jax.dtypes.float0
        ):
            _errors.type_error(
                "StatefulPRNG",
                "counter must be a Ref",
                counter,
                "Write stateful_rng(PRNGState(base_key, counter)). What maps over a "
                "generator as over an array, as jax.lax.map and scan do, takes its "
                "states: jax.lax.map(f, rng.split(n).state()).",
            )

    # --- The way out: keys, children, state ------------------------------------

    def key(self, shape: Size = ()) -> Array:
        """Return the next key, an ordinary JAX key.

        Consumes one count, whatever the shape. The n-th key (from 0) is
        ``jax.random.fold_in(rng.base_key, n)`` for the first 2**32.

        Args:
            shape: ``()`` for one key; otherwise the result is
                ``jax.random.split(key, shape)``.

        Returns:
            A typed key array of that shape and the generator's impl.

        Raises:
            ValueError: if the generator is batched.

        Examples:
            >>> rng = stateful_rng(0)
            >>> jax.random.normal(rng.key(), (2,)).shape
            (2,)
            >>> rng.key(3).shape
            (3,)
        """
        return self._keys("rng.key", _draw.parse_size("rng.key", shape, "shape") or ())

    def _keys(self, who: str, shape: Shape) -> Array:
        keys: Array = step(self, who, program(_keys, shape))
        return keys

    def split(
        self, num: Size, *, sharding: Sharding | PartitionSpec | None = None
    ) -> "StatefulPRNG":
        """Return one batched generator, to map over with ``vmap`` or ``shard_map``.

        Consumes one count, whatever ``num``. Child ``i`` has the base key
        ``jax.random.split(key, num)[i]`` with ``key`` the one that `key` would have
        returned.

        Args:
            num: the number of children, or the shape of the batch.
            sharding: where the children live, by their leading axes:
                ``NamedSharding(mesh, P("d"))``, or ``P("d")`` under
                ``jax.set_mesh(mesh)``. It only places them: child ``i`` is the same
                child on any mesh.

        Returns:
            A generator of batch shape ``num``. It does not draw by itself.

        Warns:
            UserWarning: with impl ``rbg`` or ``unsafe_rbg``, whose lanes are not
                independent under ``vmap`` (a property of JAX's).

        Raises:
            TypeError: if ``num`` is not ints, or ``sharding`` is none.
            ValueError: if the generator is batched already, or the sharding does not
                fit ``num``.

        Examples:
            >>> rng = stateful_rng(0)
            >>> jax.vmap(lambda rng: rng.normal())(rng.split(4)).shape
            (4,)
        """
        shape = _draw.parse_size("rng.split", num, "num")
        if shape is None:
            _errors.type_error("rng.split", "num must be an int or a shape", num)
        _advice.on_split(self.base_key)
        if sharding is None:
            return _fresh(self._keys("rng.split", shape))
        _sharding.check("rng.split", "sharding", sharding, shape)
        if _sharding.spread(sharding):
            _advice.on_several_devices("rng.split", self.base_key)
        key = _sharding.on_mesh_of(sharding, self._keys("rng.split", ()))
        keys = _sharding.placed(_keys, sharding, shape)(key)
        if not isinstance(keys, jax.core.Tracer):
            return _fresh(keys)
        zeros = jnp.asarray(_counter.zeros(shape))
        return _from_state(PRNGState(keys, _sharding.constrain(zeros, sharding)))

    def spawn(self, n_children: int) -> "list[StatefulPRNG]":
        """Return a list of independent generators, as NumPy's ``spawn``.

        Consumes one count, whatever ``n_children``. The children are those of
        `split`, each by itself.

        Args:
            n_children: how many, at least 0.

        Raises:
            TypeError: if ``n_children`` is not an int.
            ValueError: if it is negative, or the generator batched.

        Examples:
            >>> rng = stateful_rng(0)
            >>> a, b = rng.spawn(2)
            >>> bool(a.random() != b.random())
            True
        """
        who = "rng.spawn"
        n = static_int(who, "n_children", n_children)
        if n < 0:
            _errors.value_error(who, "n_children must not be negative", n)
        if n <= _AT_ONCE:
            keys = step(self, who, program(_separate_keys, n))
        else:
            keys = _rows(self._keys(who, (n,)))
        return [_fresh(key) for key in keys]

    def fold_in(self, data: Any) -> "StatefulPRNG":
        """Return the child that ``data`` names, wherever this generator has got to.

        The child depends on ``base_key`` and ``data`` only, consumes no count, and
        its keys lie apart from every key that this generator draws. The same
        ``data`` gives the same child again, at its beginning.

        Args:
            data: a non-empty name, or an int from 0 to 2**32 - 1, which may be
                traced.

        Returns:
            A new generator at draw 0.

        Raises:
            TypeError: if ``data`` is neither a name nor an int.
            ValueError: if the name is empty, the int out of range, or the generator
                batched.

        Examples:
            >>> rng = stateful_rng(0)
            >>> dropout = rng.fold_in("dropout")
            >>> layer = rng.fold_in(3)
            >>> bool(layer.random() == stateful_rng(0).fold_in(3).random())
            True
        """
        who = "rng.fold_in"
        if self.base_key.ndim:
            _errors.batched_generator(who, self.base_key.shape)
        _advice.on_named_child(self.base_key)
        return _fresh(child_key(self.base_key, data, who))

    def state(self) -> PRNGState:
        """Return the state as a value: a pytree of two plain arrays.

        Does not advance. The value is a copy: later draws do not change it. Works on
        batched generators and inside traced functions.

        Raises:
            RuntimeError: if a jitted function of another thread has the counter, or
                has failed and lost it.

        Examples:
            >>> rng = stateful_rng(0)
            >>> step = jax.jit(lambda rng: (rng.normal(), rng.state()))
            >>> x, state = step(rng)
            >>> state
            PRNGState(impl='threefry2x32', count=1)
        """
        counter = self.counter
        if isinstance(counter, jax.core.Tracer):
            return PRNGState(self.base_key, counter[...])
        with self.lock:
            try:
                value = counter[...]
            except RuntimeError as error:
                _errors.counter_in_use("rng.state", error)
        if isinstance(value, jax.core.Tracer):
            return PRNGState(self.base_key, value)
        return PRNGState(self.base_key, _draw.unplaced(self.base_key, value))

    def set_state(self, state: PRNGState) -> None:
        """Move this generator to the place of ``state``.

        Args:
            state: a state of this very stream: its base key must be this
                generator's, since compiled functions hold that key as a constant.

        Raises:
            TypeError: if ``state`` is no `PRNGState`.
            ValueError: if it belongs to another stream or batch shape, or if it is
                traced and so cannot be compared: use ``stateful_rng(state)``.

        Examples:
            >>> rng = stateful_rng(0)
            >>> state = rng.state()
            >>> a = rng.normal()
            >>> rng.set_state(state)
            >>> bool(a == rng.normal())
            True
        """
        who = "rng.set_state"
        if not isinstance(state, PRNGState):
            fix = "Take one with rng.state(), or PRNGState.from_dict(saved)."
            _errors.type_error(who, "state must be a PRNGState", state, fix)
        must = "state must belong to this generator's stream (the same base key)"
        fix = "Make a generator of it: rng = stateful_rng(state)."
        if not _same_key(state.base_key, self.base_key):
            if isinstance(state.base_key, jax.core.Tracer):
                must = (
                    "a state that came into traced code as an argument cannot be "
                    "compared with the generator's stream"
                )
            _errors.value_error(who, must, state, fix)
        if state.counter.shape != self.counter.shape:
            _errors.value_error(who, "state must have a matching shape", state, fix)
        counter = jnp.asarray(state.counter)
        concrete = (
            not isinstance(counter, jax.core.Tracer) and _internals.at_top_level()
        )
        with self.lock:
            if concrete and counter.is_fully_addressable and _internals.fast_path():
                # Not through JAX's Ref, whose buffer may be lost in a failed call.
                fresh: Any = np.array(counter)
                fresh = _sharding.beside(self.base_key, fresh)
                _internals.reset_buffer(self.counter, jnp.asarray(fresh))
            else:
                here = self.counter[...]
                self.counter[...] = _sharding.where(here, counter)

    def assert_in_sync(self) -> None:
        """Check that all processes of the run hold this generator at one place.

        All processes must call it, outside traced code. Does not advance, and does
        nothing in a run of one process. A process that has drawn once more than the
        others neither hangs nor raises by itself: the parts of the next array then
        come from different draws.

        Raises:
            RuntimeError: in all processes alike, if they hold different streams or
                have drawn a different number of times; it names them.
            TypeError: in traced code.
            ValueError: if the generator is batched.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.assert_in_sync()
        """
        _processes.check_in_sync("rng.assert_in_sync", self.state())

    def numpy_generator(self) -> np.random.Generator:
        """Return a NumPy generator seeded from the stream.

        For what wants a real ``numpy.random.Generator``, as scipy's ``rng=`` does.
        Consumes one count; the NumPy generator is independent of the draws that
        follow. The same place of the same stream gives the same generator.

        Returns:
            A ``numpy.random.Generator`` on ``PCG64``, seeded with the words of the key
            that `key` would have returned.

        Raises:
            TypeError: in traced code, where its numbers would become constants of
                the compiled function.
            ValueError: if the generator is batched.

        Examples:
            >>> rng = stateful_rng(0)
            >>> gen = rng.numpy_generator()
            >>> sorted(gen.permutation(4).tolist())
            [0, 1, 2, 3]
        """
        who = "rng.numpy_generator"
        if isinstance(self.counter, jax.core.Tracer) or not _internals.at_top_level():
            must = "a NumPy generator cannot be made in traced code"
            fix = "Make it outside, or draw with the methods of rng."
            raise TypeError(_errors.message(who, must, fix=fix))
        words = host_words(self._keys(who, ()))
        return np.random.Generator(np.random.PCG64(words.tolist()))

    def __getitem__(self, index: Any) -> NoReturn:
        """Refuses: a child taken out twice would be two generators on one stream."""
        raise TypeError(
            _errors.message(
                "StatefulPRNG",
                "a generator is not indexed or iterated over",
                fix="For separate children write a, b = rng.spawn(2); for one out of a "
                "batch, stateful_rng(children.state()[i]).",
            )
        )

    # --- Being a Python object ---------------------------------------------------

    def __repr__(self) -> str:
        """Says the impl and how many draws were made."""
        lost = "count lost: a draw failed, rng.set_state(state) restores it"
        return describe("StatefulPRNG", self.base_key, self.counter, lost)

    def __copy__(self) -> "StatefulPRNG":
        """Returns an independent generator at the same place of the same stream."""
        return _from_state(self.state())

    def __deepcopy__(self, memo: dict[int, Any]) -> "StatefulPRNG":
        """Returns an independent generator at the same place of the same stream."""
        clone: StatefulPRNG = memo.setdefault(id(self), _copy.copy(self))
        return clone

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the state, since a Ref pickled as it is breaks at first use."""
        return stateful_rng, (self.state(),)


def _keys(key: Array, shape: Shape) -> Array:
    return jax.random.split(key, shape) if shape else key


_AT_ONCE = 16  # results of one program: each costs 13 ms when it is compiled


def _separate_keys(key: Array, n: int) -> tuple[Array, ...]:
    # Not split and indexed outside: that is one dispatch a child.
    return tuple(jax.random.split(key, n))


def _rows(keys: Array) -> list[Array]:
    """Returns the keys of an array of more than ``_AT_ONCE``, by few dispatches."""
    rows: list[Array] = []
    for start in range(0, len(keys), _AT_ONCE):
        first = min(start, len(keys) - _AT_ONCE)
        rows += _rows_from(keys, first)[start - first :]
    return rows


@jax.jit
def _rows_from(keys: Array, first: int) -> tuple[Array, ...]:
    return tuple(jax.lax.dynamic_slice_in_dim(keys, first, _AT_ONCE))


def _same_key(a: Array, b: Array) -> bool:
    if a is b:
        return True
    if isinstance(a, jax.core.Tracer) or isinstance(b, jax.core.Tracer):
        return False
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return np.array_equal(host_words(a), host_words(b))


def _from_state(state: PRNGState) -> StatefulPRNG:
    key, counter = state.base_key, state.counter
    return StatefulPRNG(key, _internals.new_counter(_sharding.beside(key, counter)))


def _fresh(base_key: Array) -> StatefulPRNG:
    return _from_state(_at_draw_0(base_key))


def _at_draw_0(base_key: Array) -> PRNGState:
    counter: Any = _counter.zeros(base_key.shape)
    return PRNGState(base_key, counter)


def stateful_rng(
    seed: Any = None,
    *,
    impl: Impl = None,
    sharding: Sharding | PartitionSpec | None = None,
) -> StatefulPRNG:
    """Return a stateful random generator.

    Args:
        seed: one of

            - ``None``: 64 bits of fresh entropy from the operating system; not
              inside traced code. In a run of several processes only with a
              ``sharding``: they then agree on the entropy of process 0.
            - a non-negative int of any size. Below 2**32 the base key is
              ``jax.random.key(seed)``; below 2**64 the key that ``jax.random.key``
              gives under x64, whether x64 is on or not; above, the words of
              ``np.random.SeedSequence(seed)``.
            - a sequence or NumPy array of non-negative ints, or a
              ``np.random.SeedSequence``: entropy for NumPy's seed sequence.
            - a typed key, or a *jax* uint32 array of the impl's key shape: it becomes
              the base key itself. Do not use that key for anything else
              (``jax.random.split(key)`` would be the generator's own first keys).
            - a traced integer: ``jax.random.key(seed)``.
            - a `PRNGState`: a new generator at that place.
            - a `StatefulPRNG`: returned as it is, as NumPy's ``default_rng`` does.
        impl: the PRNG implementation, as in ``jax.random.key``; ``None`` is JAX's
            default.
        sharding: where the generator lives, on several devices or in several
            processes: ``NamedSharding(mesh, P())``, or ``P()`` under
            ``jax.set_mesh(mesh)``, for one generator replicated on the mesh. ``None``
            leaves it uncommitted: eager draws then go where other arrays are, as those
            of ``jax.random`` do. The numbers are the same.

    Returns:
        A `StatefulPRNG`.

    Raises:
        TypeError: if the seed or the sharding is of no such kind, or the seed
            ``None`` in traced code.
        ValueError: if it is negative, of a wrong shape, or of another impl than asked.

    Examples:
        >>> rng = stateful_rng(1701)
        >>> rng.random(3)
        Array([0.09609699, 0.26730824, 0.5619041 ], dtype=float32)
    """
    who = "stateful_rng"
    if sharding is not None:
        shape = seed.shape if isinstance(seed, PRNGState) else ()
        _sharding.check(who, "sharding", sharding, shape)
    if isinstance(seed, (StatefulPRNG, PRNGState)):
        if impl is not None:
            _seeding.check_impl(seed.base_key, impl, who)
        if isinstance(seed, StatefulPRNG):
            if sharding is not None:
                must = "a generator given as seed is returned as it is, where it lives"
                fix = "Write stateful_rng(rng.state(), sharding=sharding)."
                _errors.value_error(who, must, sharding, fix)
            return seed
        state = seed
    else:
        state = _at_draw_0(_seeding.base_key(seed, impl, who, sharding))
    _advice.on_new_generator(state.base_key)
    if sharding is not None:
        if _sharding.spread(sharding):
            _advice.on_several_devices(who, state.base_key)
        state = _sharding.placed_state(state, sharding)
    elif isinstance(seed, PRNGState):
        state = _sharding.freed_state(state)
    return _from_state(state)


default_rng = stateful_rng
"""`stateful_rng` under NumPy's name."""

"""The pure value of a generator: carry it, slice it, save it, hand it back."""

import copy
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _errors
from ._seeding import is_key, key_words
from ._typing import Array, Shape

_VERSION = 1
_FIELDS = ("version", "impl", "base_key", "counter")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class PRNGState:
    """The state of a generator, or of a batch of them, as a pytree of two arrays.

    Unlike the generator it can be returned from ``jax.jit``, carried through
    ``jax.lax.scan``, sliced, stacked, donated, sharded and saved. `to_dict` gives
    plain arrays for tools that do not know typed keys.

    ``counter`` has one axis more than ``base_key``, at the end. So count batch axes
    from the front where you map over the leaves (``jax.tree.map`` with ``jnp.stack``
    or ``jnp.concatenate``), and choose between batches of states under ``jax.vmap``:
    ``jax.vmap(lambda done, a, b: jax.tree.map(partial(jnp.where, done), a, b))``.

    Attributes:
        base_key: typed keys of shape ``shape``.
        counter: ``uint32[*shape, 2]``, the words (high, low) of the number of draws
            so far.

    Examples:
        >>> rng = stateful_rng(0)
        >>> state = rng.state()
        >>> a = rng.normal()
        >>> again = stateful_rng(state)
        >>> bool(again.normal() == a)
        True
        >>> states = rng.split(4).state()
        >>> states.shape, len(states), states[1:3].shape
        ((4,), 4, (2,))
    """

    base_key: Array
    counter: Array

    def __post_init__(self) -> None:
        """Refuses arrays that are no state; lets JAX's placeholders pass."""
        key, counter = self.base_key, self.counter
        # First what is nearly always so: JAX comes here whenever it returns a state.
        if (
            is_key(key)
            and isinstance(counter, jax.Array)
            and counter.dtype == np.uint32
            and counter.shape == (*key.shape, 2)
        ):
            return
        arrays, empty = (jax.Array, np.ndarray), jax.dtypes.float0
        if isinstance(key, arrays) and not is_key(key) and key.dtype != empty:
            must = "base_key must be typed keys"
            fix = "Wrap raw words: jax.random.wrap_key_data(data)."
            _errors.type_error("PRNGState", must, key, fix)
        if isinstance(counter, arrays) and counter.dtype != empty:
            if counter.dtype != np.uint32:
                _errors.type_error("PRNGState", "counter must be uint32", counter)
            if is_key(key) and counter.shape != (*key.shape, 2):
                must = (
                    f"counter must have the shape of base_key and 2, {(*key.shape, 2)}"
                )
                fix = "Count batch axes from the front: axis=0, not axis=-1."
                _errors.value_error("PRNGState", must, counter, fix)

    @property
    def shape(self) -> Shape:
        """The batch shape: ``()`` for a single generator."""
        shape: Shape = self.base_key.shape
        return shape

    def __len__(self) -> int:
        """The length of the leading batch axis."""
        if not self.shape:
            raise TypeError("PRNGState: the state of a single generator has no len().")
        return self.shape[0]

    def __getitem__(self, index: Any) -> "PRNGState":
        """Returns the states at ``index`` of the batch axes."""
        # The counter has one axis more, which no index reaches.
        return PRNGState(self.base_key[index], self._counter_at(index))

    def _counter_at(self, index: Any) -> Array:
        entries = index if isinstance(index, tuple) else (index,)
        if any(entry is Ellipsis for entry in entries):
            entries = (*entries, slice(None))
        # A NumPy counter takes no traced index.
        return jnp.asarray(self.counter)[entries]

    def __iter__(self) -> Iterator["PRNGState"]:
        """Iterates over the leading batch axis."""
        return (self[i] for i in range(len(self)))

    def to_dict(self) -> dict[str, Any]:
        """Return the state as NumPy arrays, a name and a version number.

        For whatever saves plain arrays: ``np.savez(file, **state.to_dict())``,
        ``flax.serialization.to_bytes``, a database. safetensors keeps strings apart,
        as metadata. Orbax takes the state itself.

        Returns:
            ``{"version": 1, "impl": str, "base_key": uint32[*shape, words],
            "counter": uint32[*shape, 2]}``, independent of the state's buffers.

        Raises:
            TypeError: if the state is traced: return it from the traced function.

        Examples:
            >>> saved = stateful_rng(7).state().to_dict()
            >>> saved["version"], saved["impl"], saved["base_key"]
            (1, 'threefry2x32', array([0, 7], dtype=uint32))
        """
        for leaf in (self.base_key, self.counter):
            if isinstance(leaf, jax.core.Tracer):
                must = "a traced state has no values yet"
                fix = "Return the state from the traced function, and save it outside."
                _errors.type_error("PRNGState.to_dict", must, leaf, fix)
        return {
            "version": _VERSION,
            "impl": str(jax.random.key_impl(self.base_key)),
            "base_key": host_words(self.base_key),
            "counter": np.array(self.counter),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> "PRNGState":
        """Return the state that `to_dict` saved.

        Args:
            saved: the four entries of `to_dict`. Text and number may come as 0-d
                arrays, as ``np.load`` gives them, and the number as text; entries of
                other names are left alone.

        Returns:
            A `PRNGState` of JAX arrays.

        Raises:
            TypeError: if ``saved`` is no mapping, or an array is not uint32.
            ValueError: if an entry is missing, of another version, an impl that JAX
                does not know, or a shape that does not fit.

        Examples:
            >>> rng = stateful_rng(7)
            >>> saved = rng.state().to_dict()
            >>> again = stateful_rng(PRNGState.from_dict(saved))
            >>> bool(again.random() == rng.random())
            True
        """
        who = "PRNGState.from_dict"
        if not isinstance(saved, Mapping):
            fix = "Write PRNGState.from_dict(state.to_dict())."
            _errors.type_error(who, "saved must be a mapping", saved, fix)
        for name in _FIELDS:
            if name not in saved:
                must = f"saved must have the entries {', '.join(_FIELDS)}"
                _errors.value_error(who, must, sorted(map(str, saved)))
        if str(saved["version"]) != str(_VERSION):
            must = f"this version of the library reads version {_VERSION} of a state"
            fix = "Read it with the jax_stateful_rng that wrote it."
            _errors.value_error(who, must, str(saved["version"]), fix)
        impl = str(saved["impl"])
        try:
            words = key_words(impl)
        except ValueError:
            must = "impl must name a PRNG implementation that JAX knows"
            _errors.value_error(who, must, impl)
        base_key = _words_of(saved["base_key"], "base_key", words)
        counter = _words_of(saved["counter"], "counter", 2)
        return cls(jax.random.wrap_key_data(base_key, impl=impl), counter)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles plain arrays: a pickled typed key names private parts of JAX."""
        return PRNGState.from_dict, (self.to_dict(),)

    def __copy__(self) -> "PRNGState":
        """Returns a state that shares the arrays, traced or not."""
        return PRNGState(self.base_key, self.counter)

    def __deepcopy__(self, memo: dict[int, Any]) -> "PRNGState":
        """Returns a state with buffers of its own, placed as these are."""
        return PRNGState(
            copy.deepcopy(self.base_key, memo), copy.deepcopy(self.counter, memo)
        )

    def __repr__(self) -> str:
        """Says the impl, the batch shape and, for a single state, the count."""
        return describe("PRNGState", self.base_key, self.counter)


def host_words(keys: Array) -> np.ndarray:
    """Returns a copy of the raw words of concrete keys, inside traced code too."""
    with jax.ensure_compile_time_eval():
        return np.array(jax.random.key_data(keys))


def _words_of(value: Any, name: str, words: int) -> Array:
    """Returns saved uint32 words as a JAX array, or raises."""
    who = "PRNGState.from_dict"
    if not isinstance(value, (jax.Array, np.ndarray)) or value.dtype != np.uint32:
        fix = f"Write np.asarray({name}, np.uint32)."
        _errors.type_error(who, f"{name} must be a uint32 array", value, fix)
    if value.shape[-1:] != (words,):
        must = f"the last axis of {name} must have {words} words"
        _errors.value_error(who, must, value)
    return jnp.array(value)


def describe(name: str, base_key: Any, counter: Any, lost: str = "count lost") -> str:
    """Returns the short form of a state or a generator, traced ones included.

    Args:
        name: of the class.
        base_key: the field.
        counter: the field.
        lost: what to say of a counter whose buffer is no more.
    """
    if not is_key(base_key):
        return f"{name}({type(base_key).__name__}, {type(counter).__name__})"
    parts = [f"impl={str(jax.random.key_impl(base_key))!r}"]
    if base_key.shape:
        parts.append(f"shape={base_key.shape}")
    try:
        traced = isinstance(counter, jax.core.Tracer)
        words = counter[...] if isinstance(counter, jax.Ref) and not traced else counter
        if isinstance(words, jax.core.Tracer):
            parts.append("traced")
        elif isinstance(words, (jax.Array, np.ndarray)) and not base_key.shape:
            high, low = np.asarray(words).tolist()
            parts.append(f"count={(high << 32) + low}")
    except (RuntimeError, TypeError):  # from a buffer that is gone, or not here
        here = base_key.is_fully_addressable
        parts.append(lost if here else "in other processes")
    return f"{name}({', '.join(parts)})"

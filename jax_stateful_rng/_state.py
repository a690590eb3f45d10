"""The pure value of a generator: carry it, slice it, save it, hand it back."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _errors
from ._seeding import is_key
from ._typing import Array, Shape


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, eq=False)
class PRNGState:
    """The state of a generator, or of a batch of them, as a pytree of two arrays.

    Unlike the generator it can be returned from ``jax.jit``, carried through
    ``jax.lax.scan``, sliced, stacked, donated, sharded and saved.

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
        if isinstance(key, (jax.Array, np.ndarray)) and not (
            is_key(key) or key.dtype == jax.dtypes.float0
        ):
            must = "base_key must be typed keys"
            fix = "Wrap raw words: jax.random.wrap_key_data(data)."
            _errors.type_error("PRNGState", must, key, fix)
        if isinstance(counter, (jax.Array, np.ndarray)) and counter.dtype not in (
            np.uint32,
            jax.dtypes.float0,
        ):
            _errors.type_error("PRNGState", "counter must be uint32", counter)

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
        return self.counter[entries]

    def __iter__(self) -> Iterator["PRNGState"]:
        """Iterates over the leading batch axis."""
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        """Says the impl, the batch shape and, for a single state, the count."""
        return describe("PRNGState", self.base_key, self.counter)


def describe(name: str, base_key: Any, counter: Any) -> str:
    """Returns the short form of a state or a generator, traced ones included."""
    if not is_key(base_key):
        return f"{name}({type(base_key).__name__}, {type(counter).__name__})"
    parts = [f"impl={str(jax.random.key_impl(base_key))!r}"]
    if base_key.shape:
        parts.append(f"shape={base_key.shape}")
    value = _value(counter)
    if value is None:
        parts.append("traced")
    elif value.ndim == 1:
        parts.append(f"count={(int(value[0]) << 32) + int(value[1])}")
    return f"{name}({', '.join(parts)})"


def _value(counter: Any) -> np.ndarray | None:
    """Returns the words of a counter where they can be known."""
    if isinstance(counter, jax.core.Tracer):
        return None
    try:
        words = counter[...]
        return None if isinstance(words, jax.core.Tracer) else np.asarray(words)
    except (RuntimeError, TypeError, ValueError):
        return None  # deleted, or spread over processes: a repr must not raise


def zero_state(base_key: Array) -> PRNGState:
    """Returns the state at draw 0 of every key in ``base_key``."""
    return PRNGState(base_key, jnp.zeros((*base_key.shape, 2), np.uint32))

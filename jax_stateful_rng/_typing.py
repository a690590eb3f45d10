"""Names for the types that the public signatures share."""

from collections.abc import Sequence
from typing import Any, Literal, Protocol, SupportsIndex, TypeAlias

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from jax.typing import ArrayLike as ArrayLike
from jax.typing import DTypeLike as DTypeLike

Array: TypeAlias = jax.Array
"""A JAX array, concrete or traced."""

Shape: TypeAlias = tuple[int, ...]
"""A full static shape."""

Size: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | np.ndarray | None
"""NumPy's ``size`` argument: an int, a sequence of ints, or ``None``."""

OutSharding: TypeAlias = NamedSharding | PartitionSpec | None
"""Where a result is to lie; a spec counts in the mesh of ``jax.set_mesh``."""

Impl: TypeAlias = Any
"""What ``jax.random.key(impl=...)`` takes: a name or a PRNG spec."""

RealLike: TypeAlias = ArrayLike | Sequence[Any]
"""A parameter of a law: a number, a NumPy or JAX array, or nested lists."""

SVDMethod: TypeAlias = Literal["svd", "eigh", "cholesky"]
"""How ``multivariate_normal`` factors a covariance."""


class Lock(Protocol):
    """A re-entrant lock, as ``threading.RLock()`` makes it."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Takes the lock."""
        ...

    def release(self) -> None:
        """Gives it back."""
        ...

    def __enter__(self) -> bool: ...

    def __exit__(self, *args: Any) -> None: ...

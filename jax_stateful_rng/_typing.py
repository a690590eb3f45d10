"""Names for the types that the public signatures share."""

from collections.abc import Sequence
from typing import Any, Literal, SupportsIndex, TypeAlias

import jax
import numpy as np
from jax.typing import ArrayLike as ArrayLike
from jax.typing import DTypeLike as DTypeLike

Array: TypeAlias = jax.Array
"""A JAX array, concrete or traced."""

Shape: TypeAlias = tuple[int, ...]
"""A full static shape."""

Size: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | np.ndarray | None
"""NumPy's ``size`` argument: an int, a sequence of ints, or ``None``."""

Impl: TypeAlias = Any
"""What ``jax.random.key(impl=...)`` takes: a name or a PRNG spec."""

RealLike: TypeAlias = ArrayLike | Sequence[Any]
"""A parameter of a law: a number, a NumPy or JAX array, or nested lists."""

SVDMethod: TypeAlias = Literal["svd", "eigh", "cholesky"]
"""How ``multivariate_normal`` factors a covariance."""

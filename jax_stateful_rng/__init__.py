"""A stateful random generator for JAX, with NumPy's methods."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._generator import StatefulPRNG as StatefulPRNG
    from ._generator import default_rng as default_rng
    from ._generator import stateful_rng as stateful_rng
    from ._state import PRNGState as PRNGState
    from ._streams import MissingRngStreamError as MissingRngStreamError
    from ._streams import fold_in_name as fold_in_name
    from ._streams import key_from as key_from
    from ._streams import named_streams as named_streams
    from ._streams import rngs_from_seed as rngs_from_seed
    from ._streams import split_key as split_key

__version__ = "0.1.0"

__all__ = [
    "MissingRngStreamError",
    "PRNGState",
    "StatefulPRNG",
    "default_rng",
    "fold_in_name",
    "key_from",
    "named_streams",
    "rngs_from_seed",
    "split_key",
    "stateful_rng",
]


def __getattr__(name: str) -> object:
    """Imports the public names at first use: `pytest_plugin` must not import JAX."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import _generator, _state, _streams

    for module in (_generator, _state, _streams):
        globals().update({n: vars(module)[n] for n in __all__ if n in vars(module)})
    return globals()[name]

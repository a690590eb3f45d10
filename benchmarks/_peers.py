"""Who is compared with us, and which of them are missing here."""

import importlib
import importlib.util
from types import ModuleType

UPSTREAM = "jax.experimental.random"
FLAX = "flax.nnx.Rngs"
NUMPY = "NumPy"
SPLIT = "split and draw"
FOLD_IN = "fold_in and draw"
LIMIT = "jitted x + 1"

_MODULES = {UPSTREAM: "jax.experimental.random", FLAX: "flax.nnx"}


def module_of(peer: str) -> ModuleType | None:
    """Returns the module of a peer that may be missing, or ``None``."""
    name = _MODULES[peer]
    package = name.rpartition(".")[0]
    if importlib.util.find_spec(package.partition(".")[0]) is None:
        return None
    if importlib.util.find_spec(name) is None:
        return None
    return importlib.import_module(name)


def missing() -> list[str]:
    """Returns the peers that are skipped."""
    return [
        f"{peer} (no module {name})"
        for peer, name in _MODULES.items()
        if module_of(peer) is None
    ]

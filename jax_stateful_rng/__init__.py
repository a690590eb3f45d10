"""A stateful random generator for JAX, with NumPy's methods."""

from ._generator import StatefulPRNG as StatefulPRNG
from ._generator import default_rng as default_rng
from ._generator import stateful_rng as stateful_rng
from ._state import PRNGState as PRNGState

__version__ = "0.1.0"

__all__ = ["PRNGState", "StatefulPRNG", "default_rng", "stateful_rng"]

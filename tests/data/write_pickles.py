"""Writes what test_saving.py reads under every JAX: python tests/data/write_pickles.py.

The file is named after the JAX that writes it. Run it again only when the saved form
of a state changes, and keep the old files: they must still load.
"""

import pickle
from pathlib import Path

import jax

from jax_stateful_rng import PRNGState, stateful_rng


def examples():
    """States and generators of several kinds, each advanced by a draw or more."""
    rng = stateful_rng(7)
    for _ in range(3):
        rng.random()
    batch = stateful_rng(8).split((2, 3))
    jax.vmap(jax.vmap(lambda rng: rng.random()))(batch)
    far = PRNGState(jax.random.key(9), jax.numpy.array([5, 6], jax.numpy.uint32))
    rbg = stateful_rng(10, impl="rbg")
    rbg.random()
    return {
        "generator": rng,
        "batch": batch.state(),
        "far": far,
        "rbg": rbg.state(),
    }


if __name__ == "__main__":
    name = f"states_jax_{jax.__version__}.pickle"
    (Path(__file__).parent / name).write_bytes(pickle.dumps(examples(), protocol=4))

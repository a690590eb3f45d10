"""Trains with dropout and saves as it goes: the process that test_saving.py kills.

    python resume_worker.py FILE STEPS [PAUSE]

Goes on from FILE where that is there. At step PAUSE it says so and waits to be killed.
"""

import os
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jax_stateful_rng import PRNGState, stateful_rng

EVERY = 5


def start():
    """New weights, and the generator from which all else is drawn."""
    rng = stateful_rng(2024)
    return 0, rng.normal(size=(6, 8)), rng.normal(size=8), rng


def save(path, step, hidden, out, rng):
    """Writes beside the old file and swaps, so that a kill leaves one or the other."""
    new = path.with_suffix(".new.npz")
    np.savez(new, step=step, hidden=hidden, out=out, **rng.state().to_dict())
    os.replace(new, path)


def load(path):
    with np.load(path) as saved:
        rng = stateful_rng(PRNGState.from_dict(saved))
        step, hidden, out = (saved[name] for name in ("step", "hidden", "out"))
        return int(step), jnp.asarray(hidden), jnp.asarray(out), rng


@jax.jit
def update(hidden, out, rng):
    """One step of gradient descent on new data, with dropout."""
    x = rng.normal(size=(16, 6))

    def loss(hidden, out):
        features = jnp.tanh(x @ hidden)
        keep = rng.random(features.shape) < 0.8
        return ((jnp.where(keep, features / 0.8, 0) @ out - x.sum(1)) ** 2).mean()

    grads = jax.grad(loss, argnums=(0, 1))(hidden, out)
    return hidden - 0.05 * grads[0], out - 0.05 * grads[1]


def main(path, steps, pause=None):
    step, hidden, out, rng = load(path) if path.exists() else start()
    print("from", step, flush=True)
    while step < steps:
        hidden, out = update(hidden, out, rng)
        step += 1
        if step % EVERY == 0:
            save(path, step, hidden, out, rng)
        if step == pause:
            print("paused", flush=True)
            time.sleep(600)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))

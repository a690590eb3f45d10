"""One of several processes that share a mesh: what test_processes.py starts.

    python process_worker.py TASK FOLDER PORT NUMBER OF

TASK is ``run`` or ``resume``. Leaves what it drew in FOLDER/TASK-NUMBER.npz.
"""

import importlib.util
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from jax_stateful_rng import PRNGState, stateful_rng

P = PartitionSpec
SEED, STEPS = 2024, 4
HAS_ORBAX = importlib.util.find_spec("orbax") is not None


def mesh_of(devices):
    return jax.make_mesh(
        (len(devices),), ("d",), axis_types=(AxisType.Auto,), devices=devices
    )


def whole(array):
    """An array of the mesh, on this host."""
    return np.asarray(multihost_utils.process_allgather(array, tiled=True))


def draws(mesh):
    """Draws of one generator and of its children, eager and jitted."""
    spread = NamedSharding(mesh, P("d"))
    rng = stateful_rng(SEED, sharding=NamedSharding(mesh, P()))
    jitted = jax.jit(lambda rng: rng.normal(size=(8, 3)), out_shardings=spread)
    children = rng.split(8, sharding=spread)
    lanes = jax.jit(jax.vmap(lambda rng: rng.random(3)))
    x = jax.jit(lambda: jnp.arange(8.0), out_shardings=spread)()
    return {
        "eager": whole(rng.random(3)),
        "integers": whole(rng.integers(0, 1000, size=8)),
        "jitted": whole(jitted(rng)),
        "beside": whole(rng.random(8) + x),
        "children": whole(lanes(children)),
        "mapped": whole(
            jax.jit(
                jax.shard_map(
                    jax.vmap(lambda rng: rng.random(3)),
                    mesh=mesh,
                    in_specs=P("d"),
                    out_specs=P("d"),
                )
            )(children)
        ),
        "local": np.asarray(stateful_rng(SEED).random(3)),
        "counter": np.asarray(rng.state().counter),
    }


class Training:
    """Data-parallel training with dropout, on a mesh of any size."""

    def __init__(self, mesh, state=None, weights=None):
        self.everywhere = NamedSharding(mesh, P())
        self.spread = NamedSharding(mesh, P("d"))
        self.rng = stateful_rng(
            SEED if state is None else state, sharding=self.everywhere
        )
        if weights is None:
            weights = self.rng.normal(size=6)
        self.weights = jax.device_put(np.asarray(weights), self.everywhere)

        @jax.jit
        def update(weights, rng):
            x = rng.normal(size=(16, 6))
            x = jax.lax.with_sharding_constraint(x, self.spread)
            keep = rng.random((16, 6)) < 0.8

            def loss(weights):
                return ((jnp.where(keep, x / 0.8, 0) @ weights - x.sum(1)) ** 2).mean()

            value, slope = jax.value_and_grad(loss)(weights)
            return value, weights - 0.05 * slope

        self.update = update

    def run(self, steps):
        losses = []
        for _ in range(steps):
            loss, self.weights = self.update(self.weights, self.rng)
            losses.append(float(loss))
        return losses

    def save(self, folder):
        if jax.process_index() == 0:
            saved = self.rng.state().to_dict()
            np.savez(folder / "saved.npz", weights=np.asarray(self.weights), **saved)
        if HAS_ORBAX:
            import orbax.checkpoint

            with orbax.checkpoint.StandardCheckpointer() as checkpointer:
                checkpointer.save(
                    folder / "orbax", {"rng": self.rng.state(), "w": self.weights}
                )
        multihost_utils.sync_global_devices("saved")


def resumed(mesh, folder):
    """Two trainings that go on where the saved one stopped."""
    with np.load(folder / "saved.npz") as saved:
        yield "plain", Training(mesh, PRNGState.from_dict(saved), saved["weights"])
    if HAS_ORBAX:
        import orbax.checkpoint

        everywhere = NamedSharding(mesh, P())
        place = lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=everywhere)
        target = jax.eval_shape(
            lambda: {"rng": stateful_rng(0).state(), "w": jnp.zeros(6)}
        )
        with orbax.checkpoint.StandardCheckpointer() as checkpointer:
            found = checkpointer.restore(folder / "orbax", jax.tree.map(place, target))
        yield "orbax", Training(mesh, found["rng"], found["w"])


def resume(mesh, folder):
    """The losses of both after the checkpoint."""
    return {name: training.run(STEPS) for name, training in resumed(mesh, folder)}


def messages(mesh):
    """What goes wrong in several processes, by the errors that tell of it."""
    found = {}
    try:
        stateful_rng()
    except ValueError as error:
        found["unseeded"] = str(error)
    rng = stateful_rng(0, sharding=NamedSharding(mesh, P()))
    rng.assert_in_sync()
    rng.random()
    rng.assert_in_sync()
    if jax.process_index() == 1:
        rng.random()
    try:
        rng.assert_in_sync()
    except RuntimeError as error:
        found["once more"] = str(error)
    try:
        stateful_rng(jax.process_index()).assert_in_sync()
    except RuntimeError as error:
        found["other stream"] = str(error)
    try:
        stateful_rng(jax.process_index(), sharding=NamedSharding(mesh, P()))
    except (AssertionError, ValueError) as error:
        found["other seed"] = str(error)
    return found


def run(mesh, folder):
    agreed = stateful_rng(sharding=NamedSharding(mesh, P()))
    agreed.assert_in_sync()
    training = Training(mesh)
    result = {"agreed": jax.random.key_data(agreed.base_key), **draws(mesh)}
    result["losses"] = training.run(STEPS)
    training.save(folder)
    result["later losses"] = training.run(STEPS)
    training.rng.assert_in_sync()
    return result | messages(mesh)


def main(task, folder, port, number, of):
    jax.distributed.initialize(
        f"127.0.0.1:{port}", int(of), int(number), initialization_timeout=60
    )
    result = {"run": run, "resume": resume}[task](mesh_of(jax.devices()), Path(folder))
    np.savez(Path(folder) / f"{task}-{number}.npz", **result)
    jax.distributed.shutdown()


if __name__ == "__main__":
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    main(*sys.argv[1:])

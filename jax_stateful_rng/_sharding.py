"""Placement: where a generator, its split children and its draws live.

Placement never changes a number: child ``i`` and draw ``n`` are the same on any mesh.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec, Sharding

from . import _errors, _internals
from ._state import PRNGState
from ._typing import Array, Shape


def check(who: str, name: str, sharding: Any, shape: Shape) -> None:
    """Refuses what is no sharding, or does not fit an array of ``shape``.

    Args:
        who: the call, for errors.
        name: of the argument.
        sharding: a sharding, or a spec in the mesh of ``jax.set_mesh``.
        shape: of what is to be placed.
    """
    fix = "Write NamedSharding(mesh, P('d'))."
    if isinstance(sharding, PartitionSpec):
        mesh = jax.sharding.get_abstract_mesh()
        if mesh.empty:
            must = f"{name} may be a PartitionSpec only under jax.set_mesh(mesh)"
            _errors.value_error(who, must, sharding, fix)
        sharding = NamedSharding(mesh, sharding)
    if not isinstance(sharding, Sharding):
        must = f"{name} must be a sharding or a PartitionSpec"
        _errors.type_error(who, must, sharding, fix)
    try:
        sharding.shard_shape(shape)
    except (IndexError, ValueError) as error:  # too many axes, or odd
        must = f"{name} must fit the shape {shape}"
        raise ValueError(_errors.message(who, must, str(sharding))) from error


def spread(sharding: Sharding | PartitionSpec) -> bool:
    """Whether a sharding spans more than one device."""
    if isinstance(sharding, PartitionSpec):
        return bool(jax.sharding.get_abstract_mesh().size > 1)
    return len(sharding.device_set) > 1


def placed_state(state: PRNGState, sharding: Sharding | PartitionSpec) -> PRNGState:
    """Returns the state with both arrays on ``sharding``.

    Concrete arrays go through the host, so that ``jax.device_put`` checks across
    processes that all hold the same values; typed keys are wrapped after that.
    """
    if isinstance(state.base_key, jax.core.Tracer):
        return PRNGState(
            constrain(state.base_key, sharding), constrain(state.counter, sharding)
        )
    data = np.asarray(jax.random.key_data(state.base_key))
    key = jax.random.wrap_key_data(
        jax.device_put(data, sharding), impl=jax.random.key_impl(state.base_key)
    )
    return PRNGState(key, jax.device_put(np.asarray(state.counter), sharding))


def beside(base_key: Array, counter: Array) -> Array:
    """Returns the counter where the base key lives, if the user placed that."""
    if isinstance(base_key, jax.core.Tracer) or not base_key.committed:
        return counter
    if isinstance(counter, jax.Array) and (
        isinstance(counter, jax.core.Tracer)
        or counter.sharding.device_set == base_key.sharding.device_set
    ):
        return counter
    # The spec of the keys' batch axes fits the counters, which have one axis more.
    placed: Array = jax.device_put(np.asarray(counter), base_key.sharding)
    return placed


def where(here: Array, new: Array) -> Array:
    """Returns ``new`` on the devices of ``here``, if both are concrete."""
    if isinstance(here, jax.core.Tracer) or isinstance(new, jax.core.Tracer):
        return new
    if new.sharding.device_set == here.sharding.device_set:
        return new
    moved: Array = jax.device_put(np.asarray(new), here.sharding)
    return moved


def on_mesh_of(sharding: Sharding | PartitionSpec, key: Array) -> Array:
    """Returns a single key ready to be split over ``sharding``."""
    if isinstance(key, jax.core.Tracer) or not isinstance(sharding, NamedSharding):
        return key
    there = key.committed and key.sharding.device_set == sharding.device_set
    if there or not key.is_fully_addressable:
        return key
    everywhere = NamedSharding(sharding.mesh, PartitionSpec())
    # Words and not the typed key, which device_put does not take to other processes.
    words = jax.device_put(np.asarray(jax.random.key_data(key)), everywhere)
    moved: Array = jax.random.wrap_key_data(words, impl=jax.random.key_impl(key))
    return moved


def freed_state(state: PRNGState) -> PRNGState:
    """Returns a state that sits on the default device alone as one placed nowhere.

    Whatever a jitted function returns is committed to its device if a generator was
    among the arguments; that is no wish of the user's.
    """
    key = state.base_key
    if (
        isinstance(key, jax.core.Tracer)
        or not key.committed
        or key.sharding.device_set != {jax.local_devices()[0]}
        or not _internals.fast_path()
    ):
        return state
    words = _internals.rewrapped(jax.random.key_data(key), committed=False)
    free: Array = jax.random.wrap_key_data(words, impl=jax.random.key_impl(key))
    return PRNGState(free, state.counter)


def constrain(array: Array, sharding: Sharding | PartitionSpec) -> Array:
    """Returns a traced array that lies on ``sharding``, on an Auto or Explicit mesh."""
    mesh = (
        sharding.mesh
        if isinstance(sharding, NamedSharding)
        else jax.sharding.get_abstract_mesh()
    )
    explicit = any(kind == AxisType.Explicit for kind in mesh.axis_types)
    place: Any = jax.reshard if explicit else jax.lax.with_sharding_constraint
    placed: Array = place(array, sharding)
    return placed


@functools.lru_cache(maxsize=4096)
def placed(
    sampler: Callable[..., Any], sharding: Sharding | PartitionSpec, *static: Any
) -> Callable[..., Any]:
    """Returns the jitted ``(key, *params) -> sampler(key, *static, *params)``.

    Every array of the result lies on ``sharding``, each shard made where it lives.
    """

    def run(key: Array, *params: Any) -> Any:
        result = sampler(key, *static, *params)
        return jax.tree.map(lambda x: constrain(x, sharding), result)

    return jax.jit(run)

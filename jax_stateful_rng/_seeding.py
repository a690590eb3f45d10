"""From a seed of any kind to a base key."""

import operator
import secrets
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import PartitionSpec, Sharding

from . import _errors, _internals
from ._typing import Array, Impl

_KINDS = (
    "seed must be None, a non-negative int, a sequence of non-negative ints, a "
    "np.random.SeedSequence, a key, a PRNGState or a StatefulPRNG"
)


def is_key(value: Any) -> bool:
    """Whether ``value`` is a JAX array of typed keys."""
    # As jnp.issubdtype(value.dtype, jax.dtypes.prng_key), in a third of the time.
    return isinstance(value, jax.Array) and value.dtype.type is jax.dtypes.prng_key


def key_words(impl: Impl = None) -> int:
    """Returns how many uint32 words the key data of an impl have."""
    spec = jax.eval_shape(lambda: jax.random.key_data(jax.random.key(0, impl=impl)))
    return int(spec.shape[-1])


def base_key(
    seed: Any,
    impl: Impl,
    who: str,
    sharding: Sharding | PartitionSpec | None = None,
) -> Array:
    """Returns the scalar typed key of a seed.

    Args:
        seed: any of the seeds of `stateful_rng`, except a state or a generator.
        impl: the PRNG implementation, or ``None`` for JAX's default.
        who: the call, for errors.
        sharding: where the generator is to live: of an unseeded one, it says which
            processes must agree.
    """
    if seed is None:
        if not _internals.at_top_level():
            _errors.seed_in_trace(who)
        return _of_int(_fresh_entropy(who, sharding), impl)
    if isinstance(seed, (bool, np.bool_)):
        _errors.type_error(who, _KINDS, seed, _fix(seed, who))
    if is_key(seed):
        return _of_key(seed, impl, who)
    if isinstance(seed, jax.Array):
        return _of_jax_array(seed, impl, who)
    if isinstance(seed, np.random.SeedSequence):
        return _of_sequence(seed, impl)
    if isinstance(seed, (np.ndarray, list, tuple, range)) and np.ndim(seed) > 0:
        return _of_sequence(np.random.SeedSequence(_entropy(seed, who)), impl)
    if isinstance(seed, np.ndarray) and seed.dtype.kind in "iu":
        seed = seed.item()
    try:
        number = operator.index(seed)
    except TypeError:
        _errors.type_error(who, _KINDS, seed, _fix(seed, who))
    if number < 0:
        fix = f"Write {who}(abs(seed)) or another non-negative number."
        _errors.value_error(who, "seed must not be negative", seed, fix)
    return _of_int(number, impl)


def _fix(seed: Any, who: str) -> str:
    """Returns what to write instead of a seed of no kind that there is."""
    numbers = (bool, float, np.number, np.bool_, np.ndarray, jax.Array)
    if isinstance(seed, numbers) and np.ndim(seed) == 0:
        return f"Write {who}(int(seed))."
    if isinstance(seed, str):
        return f"Write {who}(0).fold_in(name) for a stream with a name."
    if isinstance(seed, np.random.Generator):
        return f"Write {who}(int(seed.integers(2**63)))."
    if isinstance(seed, dict):
        return f"Write {who}(PRNGState.from_dict(saved)) for a state that was saved."
    return ""


def _fresh_entropy(who: str, sharding: Sharding | PartitionSpec | None) -> int:
    """Returns 64 bits of the operating system's entropy, the same in all processes.

    A generator placed on devices of all processes gets those of process 0: placing it
    takes all processes anyhow. One that is not placed raises where there are several,
    since to agree would hang where only some of them make it.
    """
    own = secrets.randbits(64)
    if jax.process_count() == 1:
        return own
    if isinstance(sharding, PartitionSpec):
        devices = set(jax.sharding.get_mesh().devices.flat)
    else:
        devices = sharding.device_set if sharding is not None else set()
    processes = {device.process_index for device in devices}
    if processes == {jax.process_index()}:
        return own
    if len(processes) != jax.process_count():
        _errors.unseeded_in_processes(who, jax.process_count())
    words = np.array([own >> 32, own & 0xFFFFFFFF], np.uint32)
    high, low = np.asarray(multihost_utils.broadcast_one_to_all(words)).tolist()
    return (int(high) << 32) + int(low)


def _of_int(number: int, impl: Impl) -> Array:
    if number < 2**32:
        return jax.random.key(np.uint32(number), impl=impl)
    if number < 2**64:
        # The key of this number does not depend on whether x64 is on.
        with jax.enable_x64(True):
            key: Array = jax.random.key(np.uint64(number), impl=impl)
            return key
    return _of_sequence(np.random.SeedSequence(number), impl)


def _of_sequence(sequence: np.random.SeedSequence, impl: Impl) -> Array:
    data = sequence.generate_state(key_words(impl), np.uint32)
    key: Array = jax.random.wrap_key_data(jnp.asarray(data), impl=impl)
    return key


def _entropy(seed: Any, who: str) -> list[int]:
    must = "a sequence seed must be one-dimensional, of non-negative ints"
    array = np.asarray(seed, object) if not isinstance(seed, np.ndarray) else seed
    if array.ndim != 1 or array.dtype.kind not in "iuO":
        _errors.type_error(who, must, seed)
    numbers = []
    for entry in array.tolist():
        if isinstance(entry, (bool, np.bool_)) or not hasattr(entry, "__index__"):
            _errors.type_error(who, must, seed)
        numbers.append(operator.index(entry))
        if numbers[-1] < 0:
            _errors.value_error(who, must, seed)
    return numbers


def _of_key(key: Array, impl: Impl, who: str) -> Array:
    if key.ndim:
        fix = "Give one of them, keys[0]; or make one generator and rng.split(n)."
        _errors.value_error(who, "a key given as seed must be a single key", key, fix)
    if impl is not None:
        check_impl(key, impl, who)
    return key


def check_impl(key: Array, impl: Impl, who: str) -> None:
    """Refuses a key of another impl than the one asked for."""
    if key.dtype != jax.eval_shape(lambda: jax.random.key(0, impl=impl)).dtype:
        must = f"the seed must be of the impl asked for, {impl!r}"
        _errors.value_error(who, must, key, "Leave impl out.")


def _of_jax_array(seed: Array, impl: Impl, who: str) -> Array:
    words = key_words(impl)
    if seed.dtype == jnp.uint32 and seed.shape == (words,):
        key: Array = jax.random.wrap_key_data(seed, impl=impl)
        return key
    if not jnp.issubdtype(seed.dtype, jnp.integer):
        _errors.type_error(who, _KINDS, seed, _fix(seed, who))
    if seed.ndim:
        must = f"a jax array given as seed must be an integer scalar or uint32[{words}]"
        fix = "Entropy goes in as a list or a NumPy array: list(map(int, seed))."
        _errors.value_error(who, must, seed, fix)
    if not isinstance(seed, jax.core.Tracer):
        return base_key(int(seed), impl, who)
    return jax.random.key(seed, impl=impl)

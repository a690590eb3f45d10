"""Warnings about PRNG implementations, each given once, with the reason."""

import functools
import warnings

import jax

from ._typing import Array


@functools.cache
def _once(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=4)


def on_new_generator(base_key: Array) -> None:
    """Warns of the impl that a long stream does not suit."""
    impl = str(jax.random.key_impl(base_key))
    if impl == "philox2x32":
        _once(
            "stateful_rng: keys of impl 'philox2x32' have 32 bits, so that two of "
            "20,000 draws are likely to get one key. Write "
            "stateful_rng(seed, impl='philox4x32')."
        )


def on_several_devices(who: str, base_key: Array) -> None:
    """Warns of impls that a mesh does not suit."""
    impl = str(jax.random.key_impl(base_key))
    if impl.startswith("philox"):
        _once(
            f"{who}: impl {impl!r} does not compile for several devices on some "
            "versions of JAX. Write stateful_rng(seed, impl='threefry2x32')."
        )


def on_split(base_key: Array) -> None:
    """Warns of impls whose children are not independent under ``vmap``."""
    impl = str(jax.random.key_impl(base_key))
    if impl in ("rbg", "unsafe_rbg"):
        _once(
            f"rng.split: with impl {impl!r} JAX makes the draws of all lanes of a vmap "
            "from the first lane's key, so that lane i does not equal child i alone, "
            "and under shard_map the values depend on the number of devices. Write "
            "stateful_rng(seed, impl='threefry2x32'), or use rng.spawn(n)."
        )


def on_named_child(base_key: Array) -> None:
    """Warns of the impl whose ``fold_in`` is no hash."""
    if str(jax.random.key_impl(base_key)) == "unsafe_rbg":
        _once(
            "rng.fold_in: with impl 'unsafe_rbg' a name changes a key by an exclusive "
            "or with bits of the name alone, so that the children of two generators "
            "differ by the same bits whatever the name is. Write "
            "stateful_rng(seed, impl='rbg')."
        )

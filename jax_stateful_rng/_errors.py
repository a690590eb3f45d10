"""Every message, by one template: who, what must hold, what was got, and the fix.

Checks raise before anything is drawn, so that a call that fails leaves the
generator where it was.
"""

from typing import Any, NoReturn

import jax
import numpy as np

X64 = "jax.config.update('jax_enable_x64', True)"
WIDER_INTS = f"Switch 64-bit types on: {X64}."
"""The fix where a number does not fit JAX's default integer."""


def describe(value: Any) -> str:
    """Says what a value is in a few words.

    Numbers of the host are shown, and up to eight in an array of it; of a JAX array,
    which may not be there yet, only shape and dtype.

    Args:
        value: anything.

    Returns:
        For example ``3.5``, ``a jax.Array float32[3,2]``, ``a traced int32[]``,
        ``a numpy int64[2] [-1, 4]`` or ``str 'a'``.
    """
    if isinstance(value, jax.core.Tracer):
        return f"a traced {value.aval.str_short(short_dtypes=False)}"
    if isinstance(value, jax.Array):
        return f"a jax.Array {_dtype_and_shape(value)}"
    if isinstance(value, np.ndarray):
        return _describe_host(value)
    if value is None or isinstance(value, (bool, int, float, complex, np.generic)):
        return f"{value!r}"
    if isinstance(value, type):
        return f"the type {value.__name__}"
    name, text = type(value).__name__, repr(value)
    if isinstance(value, (list, tuple)) and any(
        isinstance(entry, jax.Array) for entry in value
    ):
        text = "of " + ", ".join(map(describe, value))
    if len(text) > 80:
        text = text[:79] + "…"
    # What says itself what it is, as most classes do, needs no name before it.
    return text if text.startswith(("<", name)) else f"{name} {text}"


def _dtype_and_shape(array: Any) -> str:
    return f"{array.dtype}[{','.join(map(str, array.shape))}]"


def _describe_host(array: np.ndarray) -> str:
    numbers = array.dtype.kind in "biufc"
    if array.ndim == 0:
        if numbers:
            return str(array[()])
        return describe(array.item() if array.dtype.kind in "OSU" else array[()])
    text = f"a numpy {_dtype_and_shape(array)}"
    return f"{text} {array.tolist()}" if numbers and array.size <= 8 else text


def named(**values: Any) -> str:
    """Describes values by their names, without those that are ``None``."""
    return ", ".join(
        f"{name}={describe(value)}"
        for name, value in values.items()
        if value is not None
    )


def message(who: str, must: str, got: str = "", fix: str = "") -> str:
    """Builds the text of an error.

    Args:
        who: the call, as the user wrote it: ``rng.gamma``.
        must: what must hold.
        got: what was got instead.
        fix: code, or a sentence with code, that works.
    """
    text = f"{who}: {must}"
    if got:
        text += f"; got {got}"
    text += "."
    if fix:
        text += f" {fix}"
    return text


def type_error(who: str, must: str, got: Any, fix: str = "") -> NoReturn:
    """Raises a ``TypeError`` that describes ``got``."""
    # From None: where a check tried a conversion, its failure says nothing more.
    raise TypeError(message(who, must, describe(got), fix)) from None


def value_error(who: str, must: str, got: Any, fix: str = "") -> NoReturn:
    """Raises a ``ValueError`` that describes ``got``."""
    # From None: as above.
    raise ValueError(message(who, must, describe(got), fix)) from None


def linalg_error(who: str, must: str, got: Any, fix: str = "") -> NoReturn:
    """Raises a ``numpy.linalg.LinAlgError`` that describes ``got``."""
    # From None: as above.
    raise np.linalg.LinAlgError(message(who, must, describe(got), fix)) from None


# --- Transformations -----------------------------------------------------------


def batched_generator(who: str, shape: tuple[int, ...]) -> NoReturn:
    """Refuses a draw from what ``split`` returned."""
    raise ValueError(
        message(
            who,
            "a batched generator does not draw by itself",
            f"a generator split to shape {shape}",
            "Map over it: jax.vmap(lambda rng: rng.normal())(batch); take one out of "
            "it: rng = stateful_rng(batch.state()[0]); or make separate generators: "
            "a, b, c = rng.spawn(3).",
        )
    )


def unsplit_generator(who: str) -> NoReturn:
    """Refuses a draw under ``vmap`` that would be the same in every lane."""
    raise ValueError(
        message(
            who,
            "under jax.vmap every lane needs a generator of its own",
            "one generator for all lanes",
            "Split it: jax.vmap(f)(rng.split(n), x) with the generator as an "
            "argument of f; or draw before the vmap: noise = rng.normal(size=n). In "
            "jax.jacfwd and jax.hessian, which are vmaps, take key = rng.key() outside "
            "and draw with jax.random.normal(key). In jax.lax.map with batch_size, "
            "which is one too, map over states: jax.lax.map(lambda state: "
            "stateful_rng(state).normal(), rng.split(n).state(), batch_size=k).",
        )
    )


def in_shard_map(who: str) -> NoReturn:
    """Refuses a draw in ``shard_map`` from a generator of the outside."""
    raise ValueError(
        message(
            who,
            "inside jax.shard_map a generator must come in as an argument",
            "a generator closed over",
            "Split it and pass it in, under jit: jax.jit(jax.shard_map(f, mesh=mesh, "
            "in_specs=P('d'), ...))(rng.split(n)), and in f: "
            "jax.vmap(lambda rng: rng.normal())(rng).",
        )
    )


def in_while_condition(who: str) -> NoReturn:
    """Refuses a draw whose write JAX would drop."""
    raise ValueError(
        message(
            who,
            "the condition of jax.lax.while_loop must not draw, since JAX drops the "
            "counter's advance there",
            "a draw in cond_fun",
            "Draw in the body and carry the result: body = lambda c: (rng.uniform(), "
            "...); cond = lambda c: c[0] < 0.9.",
        )
    )


def in_custom_rule(who: str) -> NoReturn:
    """Refuses a draw in a custom rule from a generator of the outside."""
    raise ValueError(
        message(
            who,
            "a function with a custom derivative must get the generator as an "
            "argument, since in a differentiated scan JAX repeats the draws of one "
            "that is closed over",
            "a generator closed over",
            "Write f = jax.custom_vjp(lambda rng, x: ...) and call f(rng, x), or pass "
            "key = rng.key() and draw with jax.random.",
        )
    )


def in_new_remat(who: str, where: str) -> NoReturn:
    """Refuses a draw that jax_remat3 would repeat on the backward pass."""
    raise ValueError(
        message(
            who,
            "with jax_remat3 on, JAX may repeat on the backward pass what is drawn in "
            "the body of a while_loop or in a function with a custom derivative",
            f"a draw in {where}",
            "Take key = rng.key() outside and draw with jax.random, or switch "
            "jax_remat3 off.",
        )
    )


def remat_in_shard_map(who: str) -> NoReturn:
    """Refuses a draw that checkpoint would repeat, since JAX dropped the Ref's kind."""
    raise ValueError(
        message(
            who,
            "this version of JAX repeats on the backward pass what jax.checkpoint "
            "draws inside jax.shard_map",
            "a generator that came in as an argument",
            "Make one inside, before jax.checkpoint: rng = stateful_rng(state) with "
            "state = rng.state() as the argument of the shard_map; or use JAX 0.12.",
        )
    )


def counter_in_use(who: str, error: RuntimeError) -> NoReturn:
    """Says what to do where two threads wanted the counter at once, or it is lost."""
    raise RuntimeError(
        message(
            who,
            "the counter is in use by a jitted function of another thread, or was lost "
            "in one that failed",
            type(error).__name__,
            "Hold the lock round such calls: with rng.lock: y = f(x). A lost counter "
            "comes back with rng.set_state(state).",
        )
    ) from error


def constant_draw(who: str) -> NoReturn:
    """Refuses a draw that would be frozen into the compiled function."""
    raise ValueError(
        message(
            who,
            "inside a traced function a draw must be traced too",
            "a draw under jax.ensure_compile_time_eval(), which would become a "
            "constant of the compiled function",
            "Draw outside the with block, or outside the jitted function.",
        )
    )


def seed_in_trace(who: str) -> NoReturn:
    """Refuses fresh entropy in traced code: it would become a constant."""
    raise TypeError(
        message(
            who,
            "traced code needs an explicit seed, since fresh entropy would become a "
            "constant of the compiled function",
            "seed=None inside jax.jit, vmap, grad or scan",
            f"Make the generator outside, or pass a seed or a key: {who}(rng.key()).",
        )
    )


def unseeded_in_processes(who: str, number: int) -> NoReturn:
    """Refuses fresh entropy that would be another in every process."""
    raise ValueError(
        message(
            who,
            f"in a run of {number} processes an unseeded generator would differ from "
            "one process to the next",
            "seed=None",
            "Write stateful_rng(seed); or, in all of them, stateful_rng(sharding="
            "NamedSharding(mesh, P())), which takes the entropy of process 0; or, for "
            "a generator of this process alone, stateful_rng(secrets.randbits(64)).",
        )
    )

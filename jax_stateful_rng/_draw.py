"""The one driver of every draw.

A law is a pure sampler ``(key, shape, dtype, *params)`` with the domains of its
parameters (`Law`). `draw` decides, for every law, the shape, the dtype and the
checks of host values; `step` is the only code that moves a counter:

    read the state → pure program (base key, counter, *params) → write the state

At top level the program is one jitted call with the counter's buffer passed in and
out; under a trace the same jitted program stands between a get and a set. Both give
the same numbers, because both are that one program.
"""

import dataclasses
import functools
import math
import operator
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import NamedSharding, PartitionSpec

from . import _counter, _errors, _internals, _sharding
from ._typing import Array, DTypeLike, Lock, OutSharding, Shape, Size

# --- Parameters and their domains ------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Param:
    """One parameter of a law.

    Attributes:
        name: its name in the method's signature.
        must: what must hold of it, for the error: ``"must be > 0"``.
        bad: tells, for a float, whether it is outside the domain.
        bad_array: the same for a NumPy array, elementwise.
        integer: whether it is a count: floats are truncated as in NumPy.
        above_zero: whether 0 is illegal: what would be flushed to 0 is kept above it.
        period: of a law that is periodic in it: what is known on the host is reduced
            to less than one in float64, since the law's dtype may not resolve it.
        core: how many trailing axes belong to one draw (1 for ``pvals``).
    """

    name: str
    must: str
    bad: Callable[[Any], bool]
    bad_array: Callable[[np.ndarray], np.ndarray]
    integer: bool = False
    above_zero: bool = False
    period: float = 0.0
    core: int = 0


def _signed(x: float) -> bool:
    return x < 0 or (x == 0 and math.copysign(1.0, x) < 0)


def real(name: str, *, period: float = 0.0, core: int = 0) -> Param:
    """A parameter that may be any real number, ``inf`` and ``nan`` included."""
    return Param(
        name,
        "must be a real number",
        lambda x: False,
        lambda x: np.zeros(1, bool),
        period=period,
        core=core,
    )


def positive(name: str, *, core: int = 0) -> Param:
    """A parameter ``> 0``; ``nan`` passes and gives ``nan``."""
    return Param(
        name,
        "must be > 0",
        lambda x: x <= 0,
        lambda x: x <= 0,
        above_zero=True,
        core=core,
    )


def nonnegative(name: str, *, core: int = 0) -> Param:
    """A parameter ``>= 0`` by its sign bit, as in NumPy: ``-0.0`` is refused.

    ``nan`` passes and gives ``nan``.
    """
    return Param(
        name,
        "must be >= 0 (-0.0 counts as negative)",
        _signed,
        lambda x: np.signbit(x) & ~np.isnan(x),
        core=core,
    )


def interval(name: str, low: str, high: str, *, core: int = 0) -> Param:
    """A parameter in an interval, ``nan`` refused.

    Args:
        name: the parameter.
        low: its lower end with a bracket: ``"[0"`` or ``"(0"``.
        high: its upper end with a bracket: ``"1]"`` or ``"1)"``.
        core: trailing axes that belong to one draw.
    """
    above = operator.ge if low[0] == "[" else operator.gt
    below = operator.le if high[-1] == "]" else operator.lt
    a, b = float(low[1:]), float(high[:-1])
    return Param(
        name,
        f"must lie in {low}, {high}",
        lambda x: not (above(x, a) and below(x, b)),
        lambda x: ~(above(x, a) & below(x, b)),
        core=core,
    )


def count(name: str, *, core: int = 0) -> Param:
    """An integer parameter ``>= 0``."""
    return Param(
        name,
        "must be an integer >= 0",
        lambda x: x < 0,
        lambda x: x < 0,
        integer=True,
        core=core,
    )


Known: TypeAlias = float | np.ndarray | None
"""A parameter as a law's ``check`` gets it: its value, or ``None`` on the device."""


# --- Laws ------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Law:
    """A pure sampler and what the driver must know of it.

    Attributes:
        name: the method's name.
        sampler: ``(key, shape, dtype, *params) -> Array`` of that shape and dtype;
            ``shape`` is the batch shape, to which a law with ``core`` parameters
            adds its event axes. ``params`` are arrays, already cast.
        params: the domains, in the order of the arguments.
        result: ``"real"`` (params and sampler in float32 or float64, the result cast
            down where a 16-bit float was asked for), ``"native"`` (the sampler
            computes in the 16-bit dtype itself) or ``"integer"`` (real params in
            JAX's default float, the result in an integer dtype).
        check: looks at all parameters together: gets ``who``, the dtype of the
            result and one entry a parameter: a float or a NumPy array where the
            value is known, else ``None``.
    """

    name: str
    sampler: Callable[..., Array]
    params: tuple[Param, ...]
    result: str
    check: Callable[..., None] | None = None

    def sample(self, key: Array, shape: Shape, dtype: np.dtype, *params: Any) -> Array:
        """Runs the sampler in its compute dtype and casts the result."""
        if self.result == "integer":
            inner, compute = dtype, default_dtype(float)
        elif self.result == "native":
            inner = compute = dtype
        else:
            inner = compute = np.dtype(
                np.float64 if dtype == np.float64 else np.float32
            )
        cast = []
        for domain, param in zip(self.params, params, strict=True):
            kind = default_dtype(int) if domain.integer else compute
            if domain.integer and jnp.issubdtype(param.dtype, jnp.floating):
                param = jnp.where(jnp.isnan(param), -1, param)  # illegal, and not 0
            array = jnp.asarray(param, kind)
            missing = len(shape) + domain.core - array.ndim
            if array.ndim > domain.core and missing > 0:
                # jax_numpy_rank_promotion may forbid to leave this to the sampler
                array = array.reshape((1,) * missing + array.shape)
            cast.append(array)
        return self.sampler(key, shape, inner, *cast).astype(dtype)


def law(
    *params: Param, result: str = "real", check: Callable[..., None] | None = None
) -> Callable[[Callable[..., Array]], Law]:
    """Makes a `Law` of the pure sampler below it.

    The law's name is the sampler's without its leading underscore.
    """

    def decorate(sampler: Callable[..., Array]) -> Law:
        name = sampler.__name__.lstrip("_")
        return Law(name, sampler, params, result, check)

    return decorate


# --- Shape, dtype, host values -----------------------------------------------------


def parse_size(who: str, size: Size, name: str = "size") -> Shape | None:
    """Returns the tuple that NumPy's ``size`` stands for, or ``None``.

    Args:
        who: the call, for errors.
        size: the argument.
        name: its name in the method's signature.

    Raises:
        TypeError: if it is not an int or a sequence of ints (a float, a bool, a
            string, a traced value).
        ValueError: if an entry is negative, or there are more elements than memory
            has addresses.
    """
    if size is None:
        return None
    if type(size) is int:
        shape: Shape = (size,)
    else:
        shape = _parse_size_slow(who, size, name)
    for n in shape:
        if n < 0:
            _errors.value_error(who, f"{name} must not be negative", size)
        if n > 2**60:
            _refuse_large(who, size, name)
    return shape


def _refuse_large(who: str, size: Any, name: str) -> NoReturn:
    must = f"{name} must be of at most 2**60 elements, as many as memory can address"
    _errors.value_error(who, must, size)


def _parse_size_slow(who: str, size: Any, name: str) -> Shape:
    must = f"{name} must be an int or a sequence of ints, known before tracing"
    if isinstance(size, jax.core.Tracer):
        fix = f"Mark it static: jax.jit(f, static_argnames={name!r})."
        _errors.type_error(who, must, size, fix)
    if isinstance(size, (bool, np.bool_, str, bytes, dict, set, frozenset)):
        _errors.type_error(who, must, size)
    if isinstance(size, (float, np.floating)):
        _errors.type_error(who, must, size, f"Write {name}=int({size}).")
    try:
        entries = list(size)
    except TypeError:
        entries = [size]  # one number, or nothing that counts
    shape = []
    for entry in entries:
        if isinstance(entry, (bool, np.bool_)):
            _errors.type_error(who, must, size)
        try:
            shape.append(operator.index(entry))
        except TypeError:
            _errors.type_error(who, must, size)
    if math.prod(shape) > 2**60:
        _refuse_large(who, size, name)
    return tuple(shape)


def result_shape(who: str, size: Size, batch: Shape) -> Shape:
    """Returns the shape of a draw whose parameters broadcast to ``batch``.

    NumPy's rule: ``size`` may enlarge the parameters' shape, not the other way round.
    """
    shape = parse_size(who, size)
    if shape is None:
        return batch
    if batch and shape != batch:
        try:
            fits = np.broadcast_shapes(batch, shape) == shape
        except ValueError:
            fits = False
        if not fits:
            raise ValueError(
                _errors.message(
                    who,
                    "size must be what the parameters broadcast to, or larger",
                    f"size {shape} and parameters of shape {batch}",
                    f"Leave size out, or write size={batch}.",
                )
            )
    return shape


def default_dtype(kind: type) -> np.dtype:
    """Returns the dtype that ``float`` or ``int`` stands for: 64 bits under x64."""
    found: np.dtype = jax.dtypes.canonicalize_dtype(kind)
    return found


_FLOATS = {np.dtype(d) for d in (np.float32, np.float64, np.float16, jnp.bfloat16)}


def named_dtype(dtype: DTypeLike | None) -> np.dtype | None:
    """Returns the NumPy dtype that is meant, or ``None`` if there is none."""
    try:
        return np.dtype(jnp.dtype(dtype)) if dtype is not None else None
    except TypeError:
        return None


def is_integer(dtype: np.dtype) -> bool:
    """Whether a dtype is one of integers, signed or not."""
    return bool(np.issubdtype(dtype, np.integer))


def result_dtype(who: str, dtype: DTypeLike | None, integer: bool) -> np.dtype:
    """Returns the dtype of a draw.

    ``float`` and ``int`` are JAX's defaults. A 64-bit dtype without
    ``jax_enable_x64`` becomes the 32-bit one with JAX's own warning.

    Raises:
        TypeError: if it is not an integer dtype for an integer law, or not one of
            float16, bfloat16, float32, float64 for a real one.
    """
    if dtype is float and not integer:
        return default_dtype(float)
    if dtype is int and integer:
        return default_dtype(int)
    found = named_dtype(dtype)
    if found is None or not (is_integer(found) if integer else found in _FLOATS):
        kind = "float16, bfloat16, float32 or float64"
        kind = "an integer dtype" if integer else kind
        fix = ""
        if isinstance(dtype, int):
            fix = "A size of several axes is one argument, a tuple: size=(2, 3)."
        elif found is not None and (found.kind in "biuc" or found in _FLOATS):
            wanted = repr(found.name)
            if isinstance(dtype, type) and dtype.__module__ == "builtins":
                wanted = dtype.__name__
            fix = f"Cast the result: {who}(...).astype({wanted})."
        _errors.type_error(who, f"dtype must be {kind}", dtype, fix)
    if found.itemsize == 8 and jax.dtypes.canonicalize_dtype(found) != found:
        return np.dtype(jnp.zeros((), found).dtype)  # warns as JAX does
    return found


def as_arrays(who: str, name: str, value: Any) -> Array | np.ndarray:
    """Returns a JAX array where the value is one or holds some, else a NumPy array.

    So nothing that is on the device is synchronised. The entries may still be
    anything, strings and objects included.

    Raises:
        TypeError: if JAX arrays stand beside what is no number.
        ValueError: if rows are of unlike lengths.
    """
    if isinstance(value, jax.Array):
        return value
    must = f"{name} must be an array whose rows have one length"
    try:
        return jnp.asarray(value) if _holds_jax_array(value) else np.asarray(value)
    except ValueError:
        _errors.value_error(who, must, value)
    except TypeError:
        _errors.type_error(who, f"{must}, all of numbers", value)


def host_reals(who: str, name: str, value: Any) -> np.ndarray:
    """Returns a host value as an array of real numbers, in the dtype that it has.

    Raises:
        TypeError: if there is ``None``, a complex number, a date or an object.
        ValueError: if there is a string that is no number.
    """
    return _reals(who, name, value, np.asarray(as_arrays(who, name, value)))


def _reals(who: str, name: str, value: Any, array: np.ndarray) -> np.ndarray:
    must = f"{name} must be real numbers"
    if array.dtype.kind in "biuf":
        return array
    if array.dtype.kind in "mM":
        fix = "Divide a span of time by its unit: span / np.timedelta64(1, 's')."
        _errors.type_error(who, must, value, fix)
    if array.dtype.kind == "c" or any(entry is None for entry in array.flat):
        _errors.type_error(who, must, value)
    try:
        return np.asarray(array, float)
    except TypeError:
        _errors.type_error(who, must, value)
    except ValueError:
        _errors.value_error(who, must, value)


def _host_array(who: str, param: Param, value: Any, array: np.ndarray) -> np.ndarray:
    """Checks the array of a host value, and returns it in the dtype of the law."""
    array = _reals(who, param.name, value, array)
    if param.integer:
        return _host_integers(who, param, value, array)
    if array.dtype.kind != "f":
        array = array.astype(float)
    if param.bad_array(array).any():
        _errors.value_error(who, f"{param.name} {param.must}", value)
    if param.period:
        array = _within(array, param.period)
    return _above_zero(array) if param.above_zero else array


def _host_integers(who: str, param: Param, value: Any, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            _errors.value_error(who, f"{param.name} {param.must}", value)
        array = np.trunc(array)
    info = np.iinfo(default_dtype(int))
    if param.bad_array(array).any():
        _errors.value_error(who, f"{param.name} {param.must}", value)
    if array.size and not (info.min <= array.min() and array.max() <= info.max):
        fix = "" if info.bits == 64 else _errors.WIDER_INTS
        _errors.value_error(
            who, f"{param.name} must fit {default_dtype(int)}", value, fix
        )
    return array.astype(default_dtype(int))


def device_param(who: str, name: str, value: Array) -> Array:
    """Checks what can be checked of a JAX array: its dtype."""
    if not (
        jnp.issubdtype(value.dtype, jnp.floating)
        or jnp.issubdtype(value.dtype, jnp.integer)
        or value.dtype == jnp.bool_
    ):
        _errors.type_error(who, f"{name} must be real numbers", value)
    return value


def bind(who: str, law: Law, values: Sequence[Any]) -> tuple[list[Any], Shape]:
    """Checks the parameters and returns them with the shape they broadcast to.

    Host values are checked against their domains; JAX arrays, concrete or traced,
    are never synchronised for a check.
    """
    params: list[Any] = []
    shapes: dict[str, Shape] = {}
    for domain, value in zip(law.params, values, strict=True):
        kind = type(value)
        if (kind is float or kind is int) and not domain.integer and not domain.core:
            value = float(value)  # one compiled program for 1 and 1.0
            if domain.bad(value):
                _errors.value_error(who, f"{domain.name} {domain.must}", value)
            if domain.above_zero and value < 1e-30:  # rarely a closer look
                value = float(_above_zero(np.asarray(value)))
            if domain.period and abs(value) >= domain.period:
                value = float(_within(np.asarray(value), domain.period))
            params.append(value)
            continue
        array = as_arrays(who, domain.name, value)
        if isinstance(array, jax.Array):
            value = device_param(who, domain.name, array)
        else:
            value = _host_array(who, domain, value, array)
        if value.ndim < domain.core:
            must = f"{domain.name} must have {domain.core} or more axes"
            _errors.value_error(who, must, value)
        if value.ndim > domain.core:
            shapes[domain.name] = value.shape[: value.ndim - domain.core]
        params.append(value)
    return params, broadcast(who, shapes) if shapes else ()


def _above_zero(array: np.ndarray) -> np.ndarray:
    """Keeps positive numbers that JAX's default float would flush to 0 above it."""
    least = 64 * np.finfo(default_dtype(float)).tiny  # a law may take its half
    return np.where((array > 0) & (array < least), least, array)


def _within(array: np.ndarray, period: float) -> np.ndarray:
    """Takes whole periods off, exactly; ``nan`` of an infinite number."""
    with np.errstate(invalid="ignore"):
        rest: np.ndarray = np.fmod(array.astype(float), period)
        return rest


def _holds_jax_array(value: Any) -> bool:
    """Whether a list or tuple holds a JAX array, so that NumPy would synchronise it."""
    return isinstance(value, (list, tuple)) and any(
        isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(value)
    )


def broadcast(who: str, shapes: Mapping[str, Shape]) -> Shape:
    """Returns what the parameters' shapes broadcast to, or raises a ``ValueError``."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        got = " and ".join(f"{name} of {shape}" for name, shape in shapes.items())
        must = "the parameters' shapes must broadcast"
        raise ValueError(_errors.message(who, must, got)) from None


# --- The step ----------------------------------------------------------------------


class Draws:
    """What a family of laws needs of its generator: the state and the driver.

    Attributes:
        base_key: a typed key.
        counter: a Ref of ``uint32[..., 2]``, the words (high, low).
    """

    base_key: Array
    counter: jax.Ref

    @functools.cached_property
    def lock(self) -> Lock:
        """The lock under which the generator's own eager draws run.

        Every generator object that shares one counter shares one lock. Hold it round
        a call of your own jitted function that captures the generator, when several
        threads draw: JAX gives the counter's buffer away for the time of the call, so
        that without the lock that call, or a draw of another thread, may raise.

        Examples:
            >>> rng = stateful_rng(0)
            >>> noisy = jax.jit(lambda x: x + rng.normal())
            >>> with rng.lock:
            ...     y = noisy(1.0)
        """
        return lock_of(self.counter)

    def _draw(
        self,
        law: Law,
        size: Size,
        dtype: DTypeLike | None,
        *values: Any,
        out_sharding: OutSharding = None,
    ) -> Array:
        """Draws from ``law``: checks, shape and dtype, then one `step`."""
        who = "rng." + law.name
        params, batch = bind(who, law, values)
        shape = result_shape(who, size, batch)
        found = result_dtype(who, dtype, law.result == "integer")
        if law.check is not None:
            known = [None if _on_device(param) else param for param in params]
            law.check(who, found, *known)
        result: Array = step(
            self,
            who,
            program(law.sample, shape, found),
            *params,
            out_sharding=out_sharding,
        )
        return result


_LOCKS: weakref.WeakKeyDictionary[Any, Lock] = weakref.WeakKeyDictionary()
_LOCKS_LOCK = threading.Lock()


def lock_of(counter: Any) -> Lock:
    """Returns the one lock of a counter; a traced one needs none and gets a new one."""
    if isinstance(counter, jax.core.Tracer):
        return threading.RLock()
    with _LOCKS_LOCK:
        return _LOCKS.setdefault(counter, threading.RLock())


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A pure function of the state, jitted in the two forms that `step` needs.

    Attributes:
        fused: ``(base_key, counter, *params) -> (result, counter + 1)``.
        sample: ``(key, *params) -> result``.
        on_ref: ``(base_key, Ref, *params) -> result``, the Ref moved on.
    """

    fused: Callable[..., Any]
    sample: Callable[..., Any]
    on_ref: Callable[..., Any]


@functools.lru_cache(maxsize=4096)
def program(sampler: Callable[..., Any], *static: Any) -> Program:
    """Returns the program that draws with ``sampler``; the same one every time.

    Args:
        sampler: ``(key, *static, *params) -> result``, any pytree.
        *static: hashable arguments: shape, dtype and the like.
    """

    def sample(key: Array, *params: Any) -> Any:
        result = sampler(key, *static, *params)
        # Made once, as a whole: XLA would put a fusion of its own into every use of
        # it, with all random words made anew, ten times in a sum over normals. Single
        # numbers are cheaper made where they are used, as in a scan.
        single = isinstance(result, jax.Array) and result.ndim == 0
        return result if single else lax.optimization_barrier(result)

    def fused(base_key: Array, counter: Array, *params: Any) -> Any:
        result = sample(_counter.key_at(base_key, counter), *params)
        return result, _counter.advance(counter)

    def on_ref(base_key: Array, counter: jax.Ref, *params: Any) -> Any:
        result, counter[...] = fused(base_key, counter[...], *params)
        return result

    return Program(jax.jit(fused), jax.jit(sample), jax.jit(on_ref))


def _key_itself(key: Array) -> Array:
    return key


def step(
    rng: Draws,
    who: str,
    program: Program,
    *params: Any,
    out_sharding: OutSharding = None,
) -> Any:
    """Runs one program at the generator's place and moves the generator on by one.

    Args:
        rng: the generator.
        who: the call, for errors.
        program: what `program` returns.
        *params: arrays and numbers.
        out_sharding: where the result is to lie.

    Raises:
        ValueError: if the generator is batched, or stands where JAX would repeat or
            share its draws, or if ``out_sharding`` does not fit the result; the
            counter has not moved then.
    """
    base_key, counter = rng.base_key, rng.counter
    if base_key.ndim:
        _errors.batched_generator(who, base_key.shape)
    if out_sharding is not None:
        return _placed_step(rng, who, program, params, out_sharding)
    if isinstance(counter, jax.core.Tracer):
        check_place(who, rng)
        result, new = program.fused(base_key, counter[...], *params)
        counter[...] = new
        return result
    if not _internals.at_top_level():
        check_place(who, rng)
    elif _internals.fast_path():
        return _fast_step(rng, who, program, params)
    with rng.lock:
        old = counter[...]
        if isinstance(old, jax.core.Tracer):
            result, new = program.fused(base_key, old, *params)
        else:
            # Two calls, so that params on other devices do not take the counter along.
            key, new = _key_program().fused(base_key, unplaced(base_key, old))
            result = program.sample(key, *params)
        counter[...] = new
    return result


def _fast_step(rng: Draws, who: str, program: Program, params: Sequence[Any]) -> Any:
    base_key, counter = rng.base_key, rng.counter
    for param in params:
        if _on_device(param) and param.committed:
            key = _fast_step(rng, who, _key_program(), ())
            return program.sample(key, *params)
    common = _common_scalars()
    params = [common.get(p, p) if type(p) is float else p for p in params]
    with rng.lock:
        old = _internals.take_buffer(counter, base_key.committed)
        if old is not None:
            result, new = program.fused(base_key, old, *params)
            if _internals.put_buffer(counter, new):
                return result
        # Another thread runs a jitted function that has the counter. In a function of
        # its own JAX sees to it that no two get one buffer.
        try:
            return program.on_ref(base_key, counter, *params)
        except RuntimeError as error:
            _errors.counter_in_use(who, error)


def _placed_step(
    rng: Draws,
    who: str,
    program: Program,
    params: Sequence[Any],
    out_sharding: NamedSharding | PartitionSpec,
) -> Any:
    any_key = jax.ShapeDtypeStruct((), rng.base_key.dtype)
    shape = jax.eval_shape(program.sample, any_key, *params).shape
    _sharding.check(who, "out_sharding", out_sharding, shape)
    key = _sharding.on_mesh_of(out_sharding, step(rng, who, _key_program()))
    return _sharding.placed(program.sample, out_sharding)(key, *params)


def _on_device(param: Any) -> bool:
    # A float is what most are, and no quick matter to jax.Array's own check.
    return type(param) is not float and isinstance(param, jax.Array)


@functools.cache
def _common_scalars() -> dict[float, Array]:
    """Returns device scalars for the usual defaults: 1 µs faster than a float each."""
    return {x: jnp.asarray(x) for x in (0.0, 1.0)}


def unplaced(base_key: Array, counter: Array) -> Array:
    """Frees a counter that sits on a device only because it was in a Ref."""
    if counter.committed and not base_key.committed and _internals.fast_path():
        return _internals.rewrapped(counter, committed=False)
    return counter


def _key_program() -> Program:
    return program(_key_itself)


def has_kind(counter: jax.Ref) -> bool:
    """Whether a counter is of the kind that gradients and checkpoint need.

    JAX 0.10 drops the kind on the way into ``shard_map``: such a counter passes, and
    `check_place` refuses to draw from it where the kind matters.
    """
    kind = jax.typeof(counter).kind
    return kind == _counter.KIND or (
        kind is None
        and isinstance(counter, jax.core.Tracer)
        and "shard_map" in _internals.layers_between()
    )


_CUSTOM_RULES = ("custom_vjp fun", "custom_vjp fwd", "custom_jvp fun", "custom_jvp jvp")


def check_place(who: str, rng: Draws) -> None:
    """Refuses a draw where JAX would silently repeat or share it."""
    if _internals.folds_constants():
        _errors.constant_draw(who)
    if _internals.new_remat():
        for layer in _internals.layers_between():
            # Refused outside checkpoint too: JAX does not tell of one further out.
            if layer == "while_body" or layer in _CUSTOM_RULES:
                _errors.in_new_remat(who, layer)
    kind_lost = jax.typeof(rng.counter).kind != _counter.KIND
    if kind_lost and "checkpoint / remat" in _internals.layers_between():
        _errors.remat_in_shard_map(who)
    for layer in _internals.layers_between(rng.counter, rng.base_key):
        if layer == "vmap":
            _errors.unsplit_generator(who)
        if layer == "shard_map":
            _errors.in_shard_map(who)
        if layer == "while_cond":
            _errors.in_while_condition(who)
        if layer in _CUSTOM_RULES:
            _errors.in_custom_rule(who)

"""Random words, uniform floats and integers: what all other laws stand on."""

import builtins
import functools
import operator
from typing import Any, SupportsIndex, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import _errors, _internals
from .._draw import (
    Draws,
    Known,
    as_arrays,
    bind,
    broadcast,
    default_dtype,
    interval,
    is_integer,
    law,
    named_dtype,
    program,
    real,
    result_dtype,
    result_shape,
    step,
)
from .._typing import Array, DTypeLike, OutSharding, RealLike, Shape, Size
from . import _bits


class Simple(Draws):
    """The methods of a generator that give random words, floats and integers."""

    def random(
        self,
        size: Size = None,
        dtype: DTypeLike = float,
        out: None = None,
        *,
        out_sharding: OutSharding = None,
    ) -> Array:
        """Draw floats uniform on [0, 1).

        Bit for bit ``jax.random.uniform(rng.key(), size, dtype)``: 23 random bits in
        float32, 52 in float64, 10 in float16, 7 in bfloat16 (NumPy has 24 and 53).
        The result is never 1.

        Args:
            size: result shape; ``None`` gives a 0-d array.
            dtype: float16, bfloat16, float32 or float64; ``float`` is float32, or
                float64 under ``jax_enable_x64``.
            out: only for NumPy's signature; must be ``None``.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size`` and the asked dtype.

        Raises:
            TypeError: if the dtype is not a float, or ``size`` not ints.
            ValueError: if ``size`` is negative.
            NotImplementedError: if ``out`` is given: JAX arrays do not change.

        Examples:
            >>> rng = stateful_rng(1701)
            >>> rng.random(3)
            Array([0.09609699, 0.26730824, 0.5619041 ], dtype=float32)
        """
        refuse_out("rng.random", out)
        return self._draw(_random, size, dtype, out_sharding=out_sharding)

    def uniform(
        self,
        low: RealLike = 0.0,
        high: RealLike = 1.0,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        """Draw floats uniform on [low, high).

        The density is 1 / (high - low). Bit for bit ``jax.random.uniform``, except
        where that rounds up to ``high`` itself (once in 1e6 draws of
        ``uniform(100, 101)`` in float32, one in four in bfloat16): there the result
        is the largest number below ``high``. Differentiable in ``low`` and ``high``.

        Args:
            low: lower end, included; any real number.
            high: upper end, excluded unless equal to ``low``; ``high - low`` must not
                be negative, and finite in the dtype, as both ends must.
            size: result shape; ``None`` gives the shape of the parameters.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``. ``nan`` where a traced or device value breaks
            the domain.

        Raises:
            ValueError: if ``high < low``, known on the host.
            OverflowError: if ``low``, ``high`` or ``high - low`` is not finite in the
                dtype (float16 ends at 65504), known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> x = rng.uniform(-1.0, 1.0, size=(2, 3))
            >>> x.shape, bool((x >= -1).all() and (x < 1).all())
            ((2, 3), True)
        """
        return self._draw(_uniform, size, dtype, low, high, out_sharding=out_sharding)

    def integers(
        self,
        low: RealLike,
        high: RealLike | None = None,
        size: Size = None,
        dtype: DTypeLike = int,
        endpoint: bool = False,
        *,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw integers uniform on [low, high), or [low, high] with ``endpoint``.

        Each of the :math:`s` integers of the range has the same probability to within
        one part in :math:`2^{64} / s` (:math:`2^{128} / s` for 64-bit dtypes):
        :math:`\lfloor s U \rfloor` of a uniform :math:`U` with 64 (128) random bits.
        ``jax.random.randint`` gives some integers of a wide range a probability 25%
        higher than others; so these are other numbers than its.

        Args:
            low: the least integer; with ``high=None`` the upper end, and the least
                integer is 0. Floats known on the host are truncated.
            high: the upper end, excluded unless ``endpoint``. It may lie one past
                the dtype: ``integers(0, 256, dtype="uint8")``.
            size: result shape; ``None`` gives the shape of the bounds.
            dtype: any integer dtype or ``bool``; ``int`` is int32, or int64 under
                ``jax_enable_x64``.
            endpoint: whether ``high`` itself may be drawn.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size`` and the asked dtype. Bounds on the device are
            clipped to the dtype; where then nothing lies between them the result is
            ``low``.

        Raises:
            ValueError: if the range is empty and ``size`` is not, or a bound lies
                outside the dtype, known on the host.
            TypeError: if the dtype is not an integer one, or a bound on the device
                is not of an integer dtype.

        Examples:
            >>> rng = stateful_rng(0)
            >>> die = rng.integers(1, 6, size=1000, endpoint=True)
            >>> int(die.min()), int(die.max())
            (1, 6)
            >>> rng.integers([10, 100], size=(3, 2)).shape
            (3, 2)

        References:
            Canon, "Improving random integer generation" (2022), after Lemire, "Fast
            random integer generation in an interval" (2019).
        """
        who = "rng.integers"
        found = _integer_dtype(who, dtype)
        single = high is None
        first = 0 if single else _bound(who, "low", low)
        last = _bound(who, "high", low if single else high)
        bounds = {"low": first, "high": last}
        arrays = {k: x.shape for k, x in bounds.items() if not isinstance(x, int)}
        shape = result_shape(who, size, broadcast(who, arrays) if arrays else ())
        closed = endpoint
        if 0 in shape:  # as in NumPy, the values do not matter then
            first = last = 0
        else:
            _check_bounds(who, first, last, found, endpoint, single)
        if not isinstance(last, jax.Array):
            last, closed = last if endpoint or 0 in shape else last - 1, True
        params = [_held(bound, found) for bound in (first, last)]
        drawn: Array = step(
            self,
            who,
            program(_integers, shape, found, closed),
            *params,
            out_sharding=out_sharding,
        )
        return drawn

    def bits(
        self,
        size: Size = None,
        *,
        dtype: DTypeLike | None = None,
        out_sharding: OutSharding = None,
    ) -> Array:
        """Draw unsigned integers with every bit random.

        Bit for bit ``jax.random.bits(rng.key(), size, dtype)``. NumPy has no such
        method; the nearest is ``integers`` over the whole range.

        Args:
            size: result shape; ``None`` gives a 0-d array.
            dtype: an unsigned integer dtype; ``None`` is uint32, or uint64 under
                ``jax_enable_x64``.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size`` and the asked dtype.

        Raises:
            TypeError: if the dtype is not an unsigned integer.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.bits(4, dtype="uint8").dtype
            dtype('uint8')
        """
        who = "rng.bits"
        shape = result_shape(who, size, ())
        if dtype is None:
            found = default_dtype(np.uint)
        else:
            found = result_dtype(who, dtype, integer=True)
            if found.kind != "u":
                _errors.type_error(who, "dtype must be an unsigned integer", dtype)
        drawn: Array = step(
            self,
            who,
            program(_bits.bits, shape, 8 * found.itemsize),
            out_sharding=out_sharding,
        )
        return drawn

    def bytes(self, length: SupportsIndex) -> builtins.bytes:
        """Draw random bytes, as a Python ``bytes`` object.

        The bytes of ``jax.random.bits(rng.key(), n)`` with the least first. Consumes
        one count, whatever the length.

        Args:
            length: how many; at least 0.

        Returns:
            A ``bytes`` object of that length.

        Raises:
            TypeError: if ``length`` is not an int, or the call is traced: draw
                ``rng.bits(length, dtype="uint8")`` there.
            ValueError: if ``length`` is negative (NumPy returns memory as it is).

        Examples:
            >>> rng = stateful_rng(0)
            >>> len(rng.bytes(10))
            10
        """
        who = "rng.bytes"
        refuse_trace(who, self, 'Write rng.bits(length, dtype="uint8").')
        number = static_int(who, "length", length)
        if number < 0:
            _errors.value_error(who, "length must be >= 0", number)
        words = step(self, who, program(_bits.bits, (-(-number // 4),), 32))
        return np.asarray(words).astype("<u4").tobytes()[:number]

    def bernoulli(
        self, p: RealLike = 0.5, size: Size = None, *, out_sharding: OutSharding = None
    ) -> Array:
        """Draw booleans that are true with probability ``p``.

        Decided by 64 random bits, where ``jax.random.bernoulli`` takes 23: exact for
        every float32 above 2**-40, and to within 2**-64 for all others.

        Args:
            p: the probability of ``True``; 0 <= p <= 1.
            size: result shape; ``None`` gives the shape of ``p``.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            A bool array of shape ``size``. A traced or device ``p`` that is negative
            or nan gives ``False``, one above 1 gives ``True``.

        Raises:
            ValueError: if ``p`` is outside [0, 1] or nan, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> keep = rng.bernoulli(0.9, size=(4, 8))
            >>> keep.dtype
            dtype('bool')
        """
        who = "rng.bernoulli"
        params, batch = bind(who, _bernoulli, [p])
        shape = result_shape(who, size, batch)
        drawn: Array = step(
            self,
            who,
            program(_bernoulli.sample, shape, np.dtype(bool)),
            *params,
            out_sharding=out_sharding,
        )
        return drawn

    def rademacher(
        self,
        size: Size = None,
        *,
        dtype: DTypeLike = int,
        out_sharding: OutSharding = None,
    ) -> Array:
        """Draw signs: -1 or 1, each with probability 1/2.

        Args:
            size: result shape; ``None`` gives a 0-d array.
            dtype: a signed integer or a float dtype; ``int`` and ``float`` are JAX's
                defaults.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size`` and the asked dtype.

        Raises:
            TypeError: if the dtype cannot hold -1.

        Examples:
            >>> rng = stateful_rng(0)
            >>> bool((abs(rng.rademacher(100)) == 1).all())
            True
        """
        who = "rng.rademacher"
        shape = result_shape(who, size, ())
        named = named_dtype(dtype)
        if named is None or named.kind in "bcu":
            must = "dtype must be one of signed integers or of floats"
            _errors.type_error(who, must, dtype)
        found = result_dtype(who, dtype, is_integer(named))
        drawn: Array = step(
            self, who, program(_rademacher, shape, found), out_sharding=out_sharding
        )
        return drawn


def refuse_out(who: str, out: object) -> None:
    """Refuses NumPy's ``out=``: a JAX array cannot be written to."""
    if out is not None:
        raise NotImplementedError(
            _errors.message(
                who,
                "out must be None, since a JAX array cannot be written to",
                _errors.describe(out),
                f"Write x = {who}(...).",
            )
        )


@law(result="native")
def _random(key: Array, shape: Shape, dtype: np.dtype) -> Array:
    return _bits.unit(key, shape, dtype)


@functools.cache
def _largest(dtype: np.dtype) -> float:
    return float(jnp.finfo(dtype).max)  # type: ignore[no-untyped-call]


def refuse_overflow(who: str, dtype: np.dtype, must: str, **ends: Any) -> None:
    """Raises an ``OverflowError`` if a number is not finite in ``dtype``."""
    largest = _largest(dtype)
    if all((abs(np.asarray(end, float)) <= largest).all() for end in ends.values()):
        return
    fix = ""
    if dtype != np.float64 and all(np.isfinite(end).all() for end in ends.values()):
        fix = f"Write {who}(..., dtype='float64') under {_errors.X64}."
        if dtype == np.float16:
            fix = f"Write {who}(..., dtype='float32')."
    must, got = f"{must} must be finite in {dtype}", _errors.named(**ends)
    raise OverflowError(_errors.message(who, must, got, fix))


def _ordered(who: str, dtype: np.dtype, low: Known, high: Known) -> None:
    if low is None or high is None:
        return
    if isinstance(low, float) and isinstance(high, float):  # in a tenth of the time
        largest = _largest(dtype)
        if -largest <= low <= high <= largest and high - low <= largest:
            return
    with np.errstate(over="ignore", invalid="ignore"):
        width = np.asarray(np.subtract(high, low, dtype=float))
    ends = {"low": low, "high": high, "high - low": width}
    refuse_overflow(who, dtype, "low, high and high - low", **ends)
    if (width < 0).any():
        must, fix = "low must be <= high", f"Write {who}(high, low)."
        got = _errors.named(low=low, high=high)
        raise ValueError(_errors.message(who, must, got, fix))


@law(real("low"), real("high"), result="native", check=_ordered)
def _uniform(
    key: Array, shape: Shape, dtype: np.dtype, low: Array, high: Array
) -> Array:
    # The sum and the maximum are jax.random.uniform's, for the same bits.
    low, high = jnp.broadcast_to(low, shape), jnp.broadcast_to(high, shape)
    x = _bits.unit(key, shape, dtype) * (high - low) + low
    x = lax.max(low, x)
    # An exact difference, so that the lanes that are corrected keep their gradient.
    at, top, bottom = (lax.stop_gradient(v) for v in (x, high, low))
    over = jnp.where(at >= top, jnp.nextafter(top, bottom) - at, np.asarray(0, dtype))
    return jnp.where(low <= high, x + over, jnp.nan)


# --- Host values -------------------------------------------------------------------


def refuse_trace(who: str, rng: Draws, fix: str) -> None:
    """Refuses a call whose result is a Python object, where JAX is tracing."""
    if isinstance(rng.counter, jax.core.Tracer) or not _internals.at_top_level():
        must = "the result is no JAX array, so the call cannot be traced"
        raise TypeError(
            _errors.message(who, must, "a call inside a transformed function", fix)
        )


def static_int(who: str, name: str, value: Any) -> int:
    """Returns an int that must be known before tracing."""
    must = f"{name} must be an int, known before tracing"
    if isinstance(value, jax.core.Tracer):
        fix = f"Mark it static: jax.jit(f, static_argnames={name!r})."
        _errors.type_error(who, must, value, fix)
    try:
        return operator.index(value)
    except TypeError:
        _errors.type_error(who, must, value)


_Bound: TypeAlias = int | np.ndarray | Array


def _integer_dtype(who: str, dtype: DTypeLike) -> np.dtype:
    if dtype is int:
        return default_dtype(int)
    found = _numpy_dtype(dtype)
    if found is not None and found.kind == "b":
        return found
    return result_dtype(who, dtype, integer=True)


def _numpy_dtype(dtype: DTypeLike) -> np.dtype | None:
    try:
        return np.dtype(dtype)
    except TypeError:  # one of JAX's own, or none at all
        return None


@functools.cache
def _limits(dtype: np.dtype) -> tuple[int, int]:
    if dtype.kind == "b":
        return 0, 1
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _bound(who: str, name: str, value: Any) -> _Bound:
    """Returns a bound as an exact Python int, as exact host integers, or as it is."""
    if type(value) is int:
        return value
    array = as_arrays(who, name, value)
    if isinstance(array, jax.Array):
        if array.dtype != jnp.bool_ and not jnp.issubdtype(array.dtype, jnp.integer):
            fix = f"Write {name}.astype(int)."
            _errors.type_error(who, f"{name} must be integers", value, fix)
        return array
    if array.dtype.kind == "f":
        if np.isnan(array).any():
            _errors.value_error(who, f"{name} must not be nan", value)
        if np.isinf(array).any():
            must = f"{name} must be finite"
            raise OverflowError(_errors.message(who, must, _errors.describe(value)))
    elif array.dtype.kind in "US":
        _errors.value_error(who, f"{name} must be integers", value)
    elif array.dtype.kind not in "biuO":
        _errors.type_error(who, f"{name} must be integers", value)
    if array.dtype.kind in "bi":
        return array.astype(np.int64) if array.ndim else int(array)
    # Python's integers: neither uint64 nor the integers of floats fit int64.
    exact = np.empty(array.shape, object)
    try:
        exact.reshape(-1)[:] = [int(x) for x in array.reshape(-1)]
    except (TypeError, ValueError):
        _errors.type_error(who, f"{name} must be integers", value)
    return exact if exact.ndim else exact[()]


def _held(bound: _Bound, dtype: np.dtype) -> np.generic | np.ndarray | Array:
    """Returns a bound in the dtype; as a scalar, which jit takes in half the time."""
    if type(bound) is int:
        held: np.generic = dtype.type(bound)
        return held
    return bound if isinstance(bound, jax.Array) else np.asarray(bound, dtype)


def _all(holds: Any) -> bool:
    return holds if holds is True or holds is False else bool(np.all(holds))


def _check_bounds(
    who: str, low: _Bound, high: _Bound, dtype: np.dtype, endpoint: bool, single: bool
) -> None:
    least, most = _limits(dtype)
    after = 0 if endpoint else 1
    known_low, known_high = (not isinstance(x, jax.Array) for x in (low, high))
    both = known_low and known_high
    if both and not _all(low <= high if endpoint else low < high):
        if single:
            must = f"high must be {'>=' if endpoint else '>'} 0"
            _errors.value_error(who, must, high)
        must = f"low must be {'<=' if endpoint else '<'} high"
        raise ValueError(_errors.message(who, must, _errors.named(low=low, high=high)))
    for name, value, known, floor, ceiling in (
        ("low", low, known_low, least, most),
        ("high", high, known_high, least + after, most + after),
    ):
        if known and not (_all(floor <= value) and _all(value <= ceiling)):
            fix = _errors.WIDER_INTS if dtype == np.int32 else ""
            must = f"{name} must lie in {dtype}: from {floor} to {ceiling}"
            _errors.value_error(who, must, value, fix)


# --- Samplers ----------------------------------------------------------------------


def at_most(key: Array, shape: Shape, last: Array, turn: Array | int = 0) -> Array:
    """Returns integers uniform on 0, …, ``last``, which may be the dtype's greatest.

    Multiplies a uniform number of twice the width by the number of integers and takes
    the whole part: no loop, and a bias of at most ``last`` / 2**64 (2**128).

    Args:
        key: whose words are taken, two an element.
        shape: of the result.
        last: uint32 or, under x64, uint64; broadcasts to ``shape``.
        turn: which set of words.
    """
    high, low = _bits.words(key, shape, 2, turn, width=8 * last.dtype.itemsize)
    last = jnp.broadcast_to(last, shape)
    if last.dtype == np.uint32:
        with jax.enable_x64(True):  # two products of 64 bits: no carry to look for
            half = np.uint64(32)
            count = last.astype(jnp.uint64) + np.uint64(1)
            tail = (low.astype(jnp.uint64) * count) >> half
            whole = (high.astype(jnp.uint64) * count + tail) >> half
            return whole.astype(jnp.uint32)
    count = last + np.uint64(1)
    above, tail = _bits.wide_product(high, count)
    carry = tail + _bits.wide_product(low, count)[0] < tail
    whole = above + carry.astype(last.dtype)
    return jnp.where(count == 0, high, whole)  # 0: all 2**64 integers


def _clipped(bound: Array, least: int, most: int) -> Array:
    """Clips to limits that may lie outside the bound's own dtype."""
    info = np.iinfo(bound.dtype)
    return jnp.clip(
        bound,
        np.asarray(max(least, int(info.min)), bound.dtype),
        np.asarray(min(most, int(info.max)), bound.dtype),
    )


def _integers(
    key: Array, shape: Shape, dtype: np.dtype, closed: bool, low: Array, high: Array
) -> Array:
    least, most = _limits(dtype)
    kind = np.dtype(np.uint8) if dtype.kind == "b" else dtype
    low, high = (  # a bool, or one of JAX's integers of less than 8 bits
        x if np.issubdtype(x.dtype, np.integer) else x.astype(jnp.int8)
        for x in (low, high)
    )
    # Modulo the dtype's width: high may be one past its end, and high - low wider.
    low = _clipped(low, least, most).astype(kind)
    if closed:
        last = _clipped(high, least, most).astype(kind)
    else:
        high = _clipped(high, least, most + 1)
        last = high.astype(kind) - np.asarray(1, kind)
        if least >= np.iinfo(high.dtype).min:
            empty = high == np.asarray(least, high.dtype)
            last = jnp.where(empty, np.asarray(least, kind), last)
    batch = np.broadcast_shapes(low.shape, last.shape)  # small, where the bounds are
    low, last = jnp.broadcast_to(low, batch), jnp.broadcast_to(last, batch)
    word = np.dtype(np.uint64 if kind.itemsize == 8 else np.uint32)
    width = (last - low).astype(f"uint{8 * kind.itemsize}").astype(word)
    width = jnp.where(low <= last, width, np.asarray(0, word))
    offset = at_most(key, shape, width).astype(kind)
    return (jnp.broadcast_to(low, shape) + offset).astype(dtype)


@law(interval("p", "[0", "1]"), result="integer")
def _bernoulli(key: Array, shape: Shape, dtype: np.dtype, p: Array) -> Array:
    p = jnp.broadcast_to(p, shape)
    high, low = _bits.words(key, shape, 2)
    scale = np.asarray(2.0**32, p.dtype)
    inside = jnp.where((p > 0) & (p < 1), p, np.asarray(0, p.dtype)) * scale
    whole = jnp.floor(inside)
    first = whole.astype(jnp.uint32)
    second = ((inside - whole) * scale).astype(jnp.uint32)
    return (high < first) | ((high == first) & (low < second)) | (p >= 1)


def _rademacher(key: Array, shape: Shape, dtype: np.dtype) -> Array:
    one = np.asarray(1, dtype)
    return jnp.where(_bits.bits(key, shape, 8) < 128, -one, one)

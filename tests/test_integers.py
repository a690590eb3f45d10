"""Integers: NumPy's arguments and errors, the law, and bounds of every dtype."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jax_stateful_rng import stateful_rng

NARROW = ["int8", "uint8", "int16", "uint16", "int32", "uint32"]
WIDE = ["int64", "uint64"]


def limits(dtype):
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def p_value(draws, cells, expected=None):
    counts = np.bincount(np.asarray(draws).reshape(-1), minlength=cells)
    assert len(counts) == cells
    return stats.chisquare(counts, expected).pvalue


# --- Arguments ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "value"),
    [
        (lambda r: r.integers(5, 6), 5),
        (lambda r: r.integers(5, 5, endpoint=True), 5),
        (lambda r: r.integers([5, 6], [6, 7]), [5, 6]),
        (lambda r: r.integers(1), 0),
        (lambda r: r.integers(0, endpoint=True), 0),
        (lambda r: r.integers(5, 4, size=0), []),
        (lambda r: r.integers(0, -10, 0), []),
        (lambda r: r.integers(0, 2**40, size=(0,)), []),
        (lambda r: r.integers(255, 256, 4, "uint8"), [255] * 4),
        (lambda r: r.integers(255, 255, 4, "uint8", True), [255] * 4),
        (lambda r: r.integers(1, 2, 4, bool), [True] * 4),
        (lambda r: r.integers(1, 1, 2, np.bool_, True), [True] * 2),
        (lambda r: r.integers(2**32 - 1, 2**32, 3, "uint32"), [2**32 - 1] * 3),
        (lambda r: r.integers(2**31 - 1, 2**31, 3), [2**31 - 1] * 3),
        (lambda r: r.integers(-(2**31), 1 - 2**31, 3), [-(2**31)] * 3),
        (lambda r: r.integers(2**31 - 1, [2**31], dtype="int32"), [2**31 - 1]),
        (lambda r: r.integers(np.uint64(7), np.int64(8)), 7),
        (lambda r: r.integers(0.5, 1.7, 2), [0, 0]),
        (lambda r: r.integers([3.0, 4.0], 5, (2, 2), "int16") // 3, [[1, 1]] * 2),
    ],
)
def test_fixed_values(call, value):
    drawn = call(stateful_rng(0))
    np.testing.assert_array_equal(drawn, np.asarray(value).reshape(drawn.shape))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda r: r.integers(0), ValueError, "high must be > 0"),
        (lambda r: r.integers(-2), ValueError, "high must be > 0"),
        (lambda r: r.integers([-2]), ValueError, "high must be > 0"),
        (lambda r: r.integers(-1, endpoint=True), ValueError, "high must be >= 0"),
        (lambda r: r.integers(5, 5), ValueError, "low must be < high"),
        (lambda r: r.integers(5, 4, endpoint=True), ValueError, "low must be <= high"),
        (lambda r: r.integers([1, 2], [2, 2]), ValueError, "low must be < high"),
        (lambda r: r.integers(0, 2**31 + 1), ValueError, "jax_enable_x64"),
        (lambda r: r.integers(-(2**31) - 1, 0), ValueError, "low must lie in int32"),
        (lambda r: r.integers(0, 2**65, dtype="uint32"), ValueError, "high must lie"),
        (lambda r: r.integers(-1, 2, dtype="uint8"), ValueError, "low must lie"),
        (lambda r: r.integers(0, 257, dtype="uint8"), ValueError, "from 1 to 256"),
        (lambda r: r.integers(0, [257], dtype="uint8"), ValueError, "from 1 to 256"),
        (lambda r: r.integers(0, 256, None, "uint8", True), ValueError, "0 to 255"),
        (lambda r: r.integers(0, 3, dtype=bool), ValueError, "high must lie in bool"),
        (lambda r: r.integers(0, 2, dtype=float), TypeError, "integer dtype"),
        (lambda r: r.integers(0, 2, dtype=jnp.bfloat16), TypeError, "integer dtype"),
        (lambda r: r.integers(0, 2, dtype=None), TypeError, "integer dtype"),
        (lambda r: r.integers(math.nan), ValueError, "high must not be nan"),
        (lambda r: r.integers(0, [math.inf]), OverflowError, "high must be finite"),
        (lambda r: r.integers("a"), ValueError, "must be integers"),
        (lambda r: r.integers(None), TypeError, "must be integers"),
        (lambda r: r.integers(0, 1j), TypeError, "must be integers"),
        (lambda r: r.integers(0, jnp.array(2.5)), TypeError, "high.astype"),
        (lambda r: r.integers([1, 2], [1, 2, 3]), ValueError, "broadcast"),
        (lambda r: r.integers([1, 2], size=3), ValueError, "size must be"),
        (lambda r: r.integers(3, size=-1), ValueError, "negative"),
        (lambda r: r.integers(3, size=2.0), TypeError, "size must be"),
    ],
)
def test_errors_leave_the_counter(call, error, text):
    rng = stateful_rng(0)
    before = rng.state()
    with pytest.raises(error, match=text):
        call(rng)
    assert (np.asarray(rng.state().counter) == np.asarray(before.counter)).all()


@pytest.mark.parametrize("dtype", [*NARROW, bool, int])
def test_dtype_shape_and_count(dtype):
    rng = stateful_rng(0)
    drawn = rng.integers(0, [[2], [2]], (2, 3), dtype)
    expected = np.int32 if dtype is int else np.dtype(dtype)
    assert drawn.shape == (2, 3)
    assert drawn.dtype == expected
    assert np.asarray(rng.state().counter).tolist() == [0, 1]


def test_exact_comparison_of_mixed_integers(x64):
    rng = stateful_rng(0)
    top = 2**63
    assert rng.integers(top - 1, np.uint64(top)) == top - 1
    drawn = rng.integers([top - 2, top - 1], np.array([top - 1, top], np.uint64))
    assert drawn.tolist() == [top - 2, top - 1]
    drawn = rng.integers(2**64 - 1, [2**64], dtype="uint64")
    assert drawn.tolist() == [2**64 - 1]
    with pytest.raises(ValueError, match="low must be < high"):
        rng.integers(np.array([top], np.uint64), np.array([top - 1]), dtype="uint64")
    with pytest.raises(ValueError, match="high must lie in int64"):
        rng.integers(0, top + 1)


# --- The law -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("endpoint", [False, True])
def test_full_range(dtype, endpoint):
    low, high = limits(dtype)
    rng = stateful_rng(7)
    x = rng.integers(low, high + (not endpoint), 50_000, dtype, endpoint)
    x = np.asarray(x).astype(np.int64) - low
    assert p_value(x * 16 // (high - low + 1), 16) > 1e-4
    if high - low < 2**10:
        assert x.min() == 0
        assert x.max() == high - low
    assert p_value(x % 16, 16) > 1e-4


@pytest.mark.parametrize("dtype", WIDE)
def test_full_range_of_64_bits(x64, dtype):
    low, high = limits(dtype)
    x = stateful_rng(7).integers(low, high + 1, 50_000, dtype)
    assert x.dtype == dtype
    x = np.asarray(x).astype(object) - low
    assert p_value((x >> 60).astype(int), 16) > 1e-4
    assert p_value((x & 15).astype(int), 16) > 1e-4


@pytest.mark.parametrize("span", [1, 2, 3, 6, 7, 100, 256])
def test_small_ranges(span):
    x = stateful_rng(span).integers(-5, span - 5, 60_000, "int16")
    assert p_value(np.asarray(x) + 5, span) > 1e-4 or span == 1


@pytest.mark.parametrize("span", [2_000_000_000, 3 * 2**29, 2**31])
def test_wide_ranges_have_no_bias(span):
    # jax.random.randint fails all three: 139484, 115110, … in ten bins of 1e6 draws.
    x = np.asarray(stateful_rng(span).integers(0, span, 1_000_000)).astype(np.int64)
    assert p_value(x * 24 // span, 24) > 1e-4
    assert p_value(x % 7, 7) > 1e-4


def test_wide_ranges_of_64_bits_have_no_bias(x64):
    span = 3 * 2**61
    x = np.asarray(stateful_rng(3).integers(-(2**62), span - 2**62, 500_000))
    assert p_value((x + 2**62) // (2**61 // 8), 24) > 1e-4


def test_multiplication_is_exact():
    # floor(span * U) of the 64-bit U that the words are.
    from jax_stateful_rng._samplers import _bits
    from jax_stateful_rng._samplers.simple import at_most

    key = jax.random.key(3)
    high, low = (np.asarray(w).astype(object) for w in _bits.words(key, (500,), 2))
    for last in (0, 1, 5, 2**31, 2**32 - 2, 2**32 - 1):
        exact = ((high << 32) + low) * (last + 1) >> 64
        found = at_most(key, (500,), jnp.uint32(last))
        assert (np.asarray(found).astype(object) == exact).all()
    with jax.enable_x64(True):
        high, low = (
            np.asarray(w).astype(object) for w in _bits.words(key, (500,), 2, width=64)
        )
        for last in (0, 5, 2**32, 2**63 + 12345, 2**64 - 2, 2**64 - 1):
            exact = ((high << 64) + low) * (last + 1) >> 128
            found = at_most(key, (500,), jnp.uint64(last))
            assert (np.asarray(found).astype(object) == exact).all()


# --- Bounds on the device ----------------------------------------------------------


@pytest.mark.parametrize("endpoint", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "uint32", bool])
def test_device_bounds_give_the_numbers_of_host_bounds(dtype, endpoint):
    low, high = (0, 1) if dtype is bool else (3, 17)
    high += not endpoint
    host = stateful_rng(1).integers(low, high, 50, dtype, endpoint)

    @jax.jit
    def draw(rng, low, high):
        return rng.integers(low, high, 50, dtype, endpoint)

    for kind in (jnp.int32, jnp.uint8):
        bounds = jnp.asarray(low, kind), jnp.asarray(high, kind)
        assert (draw(stateful_rng(1), *bounds) == host).all()
    mixed = stateful_rng(1).integers(low, bounds[1], 50, dtype, endpoint)
    assert (mixed == host).all()
    mixed = stateful_rng(1).integers(bounds[0], high, 50, dtype, endpoint)
    assert (mixed == host).all()


@pytest.mark.parametrize(
    ("low", "high", "options", "value"),
    [
        (5, 5, {}, 5),
        (5, 3, {}, 5),
        (5, 4, {"endpoint": True}, 5),
        (-(2**31), -(2**31), {}, -(2**31)),
        (0, -(2**31), {}, 0),
        (300, 400, {"dtype": "uint8"}, 255),  # clipped to the dtype
        (-300, -200, {"dtype": "int8"}, -128),
        (2, 9, {"dtype": bool}, True),
    ],
)
def test_an_empty_range_on_the_device_gives_low(low, high, options, value):
    rng = stateful_rng(0)
    draw = jax.jit(lambda low, high: rng.integers(low, high, 3, **options))
    assert draw(low, high).tolist() == [value] * 3
    drawn = rng.integers(jnp.asarray(low), jnp.asarray(high), 3, **options)
    assert drawn.tolist() == [value] * 3


def test_unsigned_bound_one_past_the_signed_dtype():
    drawn = stateful_rng(0).integers(
        jnp.asarray(2**31 - 1, jnp.uint32), jnp.asarray(2**31, jnp.uint32), 4, "int32"
    )
    assert drawn.tolist() == [2**31 - 1] * 4
    drawn = stateful_rng(0).integers(-3, jnp.asarray(0, jnp.uint8), 100)
    assert sorted(set(drawn.tolist())) == [-3, -2, -1]


# --- Transformations and keys --------------------------------------------------------


def test_jit_and_vmap_give_the_eager_numbers():
    eager = stateful_rng(2).integers(10, 99, 7)
    jitted = jax.jit(lambda rng: rng.integers(10, 99, 7))(stateful_rng(2))
    assert (eager == jitted).all()
    lanes = jax.vmap(lambda rng: rng.integers(10, 99, 7))(stateful_rng(2).split(3))
    for lane, child in zip(lanes, stateful_rng(2).spawn(3), strict=True):
        assert (lane == child.integers(10, 99, 7)).all()


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_other_impls(impl):
    x = stateful_rng(5, impl=impl).integers(0, 10, 20_000)
    assert p_value(x, 10) > 1e-4


def test_strict_modes():
    with (
        jax.numpy_rank_promotion("raise"),
        jax.numpy_dtype_promotion("strict"),
    ):
        rng = stateful_rng(0)
        low = jnp.arange(3, dtype=jnp.int16)
        assert rng.integers(low, 9, (2, 3)).shape == (2, 3)
        assert rng.uniform(jnp.zeros(3), 1.0, (2, 3)).shape == (2, 3)
        assert rng.bernoulli(jnp.full(3, 0.5), (2, 3)).shape == (2, 3)

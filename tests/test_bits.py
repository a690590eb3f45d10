"""Words, bytes, floats made of bits, booleans and signs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jax_stateful_rng import stateful_rng

SHAPES = [(), (1,), (7,), (3, 5), (0,), (2, 0)]


def pair(seed=0):
    """Returns a generator, and the key that its next draw takes."""
    return stateful_rng(seed), stateful_rng(seed).key()


# --- Bits --------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
def test_bits_are_those_of_jax(dtype, shape):
    rng, key = pair()
    drawn = rng.bits(shape, dtype=dtype)
    assert drawn.dtype == dtype
    np.testing.assert_array_equal(drawn, jax.random.bits(key, shape, dtype))


def test_bits_of_64_are_those_of_jax(x64):
    rng, key = pair()
    drawn = rng.bits((3, 5))
    assert drawn.dtype == np.uint64
    np.testing.assert_array_equal(drawn, jax.random.bits(key, (3, 5)))


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_bits_of_other_impls(impl):
    rng, key = stateful_rng(0, impl=impl), stateful_rng(0, impl=impl).key()
    np.testing.assert_array_equal(rng.bits(9), jax.random.bits(key, (9,)))


@pytest.mark.parametrize("dtype", ["int32", float, bool])
def test_bits_refuse_other_dtypes(dtype):
    with pytest.raises(TypeError, match="dtype must be an"):
        stateful_rng(0).bits(3, dtype=dtype)


# --- Bytes -------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1, 4, 5, np.int64(17)])
def test_bytes_are_the_bits(length):
    rng, key = pair()
    drawn = rng.bytes(length)
    assert isinstance(drawn, bytes)
    words = np.asarray(jax.random.bits(key, (8,)))
    assert drawn == words.astype("<u4").tobytes()[:length]
    assert np.asarray(rng.state().counter).tolist() == [0, 1]


def test_bytes_refuse():
    rng = stateful_rng(0)
    with pytest.raises(ValueError, match="length must be >= 0"):
        rng.bytes(-1)
    with pytest.raises(TypeError, match="length must be an int"):
        rng.bytes(2.0)
    with pytest.raises(TypeError, match=r"rng\.bits"):
        jax.jit(lambda: jnp.zeros(len(rng.bytes(3))))()
    with pytest.raises(TypeError, match=r"rng\.bits"):
        jax.jit(lambda rng: jnp.zeros(len(rng.bytes(3))))(rng)
    assert np.asarray(rng.state().counter).tolist() == [0, 0]


# --- Floats ------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_random_is_that_of_jax(dtype):
    rng, key = pair()
    drawn = rng.random((40, 25), dtype)
    np.testing.assert_array_equal(drawn, jax.random.uniform(key, (40, 25), dtype))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-2.0, 3.0), (100.0, 101.0)])
def test_uniform_is_that_of_jax_below_high(dtype, low, high):
    rng, key = pair()
    drawn = np.asarray(rng.uniform(low, high, 5000, dtype=dtype))
    jaxs = np.asarray(jax.random.uniform(key, (5000,), dtype, low, high))
    assert (drawn < high).all()
    assert (drawn >= low).all()
    same = jaxs < high
    np.testing.assert_array_equal(drawn[same], jaxs[same])
    below = np.nextafter(np.asarray(high, jaxs.dtype), np.asarray(0, jaxs.dtype))
    assert (drawn[~same] == below).all()


def test_uniform_keeps_the_gradient_where_it_corrects():
    rng = stateful_rng(0)

    def mean(low, high):
        return rng.uniform(low, high, 4000, dtype="bfloat16").astype("float32").mean()

    low, high = (jnp.asarray(x, jnp.bfloat16) for x in (100.0, 101.0))
    gradient = jax.jit(jax.grad(mean, argnums=(0, 1)))(low, high)
    assert abs(float(gradient[0]) - 0.5) < 0.03
    assert abs(float(gradient[1]) - 0.5) < 0.03


def test_uniform_at_one_point():
    assert stateful_rng(0).uniform(1.5, 1.5, 3).tolist() == [1.5] * 3


# --- Bernoulli ---------------------------------------------------------------------


@pytest.mark.parametrize("p", [0.0, 1e-3, 0.3, 0.5, 0.999, 1.0])
def test_bernoulli_law(p):
    n = 200_000
    drawn = stateful_rng(1).bernoulli(p, n)
    assert drawn.dtype == bool
    assert stats.binomtest(int(drawn.sum()), n, p).pvalue > 1e-4


def test_bernoulli_below_the_step_of_a_float():
    # 23 random bits would give 2**-23: 38 times as many.
    p = 2.0**-28
    hits = sum(int(stateful_rng(s).bernoulli(p, 2**22).sum()) for s in range(16))
    assert stats.poisson.sf(hits - 1, 16 * 2**22 * p) > 1e-4


def test_bernoulli_compares_all_64_bits():
    from jax_stateful_rng._samplers import _bits

    rng, key = pair()
    p = np.float32(0.3)
    high, low = (np.asarray(w).astype(object) for w in _bits.words(key, (4000,), 2))
    exact = (high << 32) + low < int(float(p) * 2**64)
    np.testing.assert_array_equal(np.asarray(rng.bernoulli(p, 4000)), exact == True)  # noqa: E712


def test_bernoulli_arguments():
    rng = stateful_rng(0)
    assert rng.bernoulli().shape == ()
    assert rng.bernoulli([0.0, 1.0], (3, 2)).tolist() == [[False, True]] * 3
    for p in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="p must lie in"):
            rng.bernoulli(p)
    p = jnp.array([-0.5, jnp.nan, 1.5, jnp.inf])
    assert rng.bernoulli(p).tolist() == [False, False, True, True]


# --- Rademacher --------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [int, float, "int8", "bfloat16", "float16"])
def test_rademacher(dtype):
    x = stateful_rng(3).rademacher(20_000, dtype=dtype)
    expected = {int: "int32", float: "float32"}.get(dtype, dtype)
    assert x.dtype == jnp.dtype(expected)
    x = np.asarray(x).astype(int)
    assert set(x.tolist()) == {-1, 1}
    assert stats.binomtest(int((x == 1).sum()), x.size).pvalue > 1e-4


@pytest.mark.parametrize("dtype", ["uint8", bool])
def test_rademacher_needs_a_sign(dtype):
    with pytest.raises(TypeError, match="dtype must"):
        stateful_rng(0).rademacher(3, dtype=dtype)

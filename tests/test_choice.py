"""Choices: with and without replacement, with and without weights."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jax_stateful_rng import stateful_rng
from jax_stateful_rng._samplers import _choice


def p_value(cells, expected):
    """Chi-square of the cells against expected counts; nothing may lie at zero."""
    expected = np.asarray(expected, float)
    counts = np.bincount(np.asarray(cells).reshape(-1), minlength=len(expected))
    assert len(counts) == len(expected)
    assert counts[expected == 0].sum() == 0
    live = expected > 0
    return stats.chisquare(counts[live], expected[live]).pvalue


def lanes(seed, number, draw):
    return np.asarray(jax.jit(jax.vmap(draw))(stateful_rng(seed).split(number)))


def code(tuples, n):
    """Returns one number for each ordered tuple of distinct items."""
    tuples = np.asarray(tuples)
    number = np.zeros(len(tuples), int)
    for i in range(tuples.shape[1]):
        smaller = (tuples[:, :i] < tuples[:, i : i + 1]).sum(1)
        number = number * (n - i) + tuples[:, i] - smaller
    return number


# --- Arguments ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "value"),
    [
        (lambda r: r.choice(0, 0), []),
        (lambda r: r.choice([], 0), []),
        (lambda r: r.choice(1, 3), [0, 0, 0]),
        (lambda r: r.choice([7], 3), [7, 7, 7]),
        (lambda r: r.choice([7, 7], 2, False), [7, 7]),
        (lambda r: r.choice(3, 0, replace=False), []),
        (lambda r: r.choice(3, 3, replace=False, shuffle=False), [0, 1, 2]),
        (lambda r: r.choice([[5], [6]], 2, False, None, 0, False), [[5], [6]]),
        (lambda r: r.choice([1, 2, 3], 2, p=[0, 0, 1]), [3, 3]),
        (lambda r: r.choice([1, 2, 3], 1, p=[0, 1, 0], replace=False), [2]),
        (lambda r: r.choice(2, 2, p=[1.0, 1e-300], replace=False), [0, 1]),
    ],
)
def test_fixed_values(call, value):
    drawn = call(stateful_rng(0))
    np.testing.assert_array_equal(drawn, np.asarray(value).reshape(drawn.shape))


@pytest.mark.parametrize(
    ("a", "size", "axis", "shape"),
    [
        (5, None, 0, ()),
        (5, (), 0, ()),
        (5, (2, 3), 7, (2, 3)),  # the axis of an int does not matter, as in NumPy
        (np.array(5), 3, 0, (3,)),
        ([1, 2, 3], None, 0, ()),
        (np.zeros((3, 2)), None, 0, (2,)),
        (np.zeros((3, 2)), 2, 1, (3, 2)),
        (np.zeros((3, 4, 5)), (2, 7), 1, (3, 2, 7, 5)),
        (np.zeros((3, 4, 5)), (2, 7), -1, (3, 4, 2, 7)),
        (np.zeros((3, 4, 5)), (), 1, (3, 5)),
        ([jnp.float32(1.0), 2.0], 4, 0, (4,)),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_shapes(a, size, axis, shape, weighted):
    rng = stateful_rng(0)
    n = np.shape(a)[axis] if np.ndim(a) else int(a)
    p = np.full(n, 1 / n) if weighted else None
    drawn = jax.eval_shape(lambda rng: rng.choice(a, size, axis=axis, p=p), rng)
    assert drawn.shape == shape


@pytest.mark.parametrize("dtype", ["uint8", "bool", "bfloat16", "complex64"])
def test_dtype(dtype):
    a = jnp.array([0, 1]).astype(dtype)
    assert stateful_rng(0).choice(a, 3).dtype == a.dtype
    assert stateful_rng(0).choice(4, 3).dtype == np.int32
    keys = jax.random.split(jax.random.key(0), 5)
    assert stateful_rng(0).choice(keys, 3).dtype == keys.dtype


def test_64_bits(x64):
    rng = stateful_rng(0)
    for options in ({}, {"p": np.full(9, 1 / 9)}):
        for replace in (True, False):
            assert rng.choice(9, 4, replace, **options).dtype == np.int64
    far = rng.choice(2**40, 1000, replace=False)
    assert len(set(far.tolist())) == 1000
    assert int(far.max()) > 2**39
    assert p_value(np.asarray(rng.choice(2**40, 20_000)) >> 36, [1250] * 16) > 1e-4


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda r: r.choice(0), ValueError, "must not be empty"),
        (lambda r: r.choice(-1, 0), ValueError, "nor negative"),
        (lambda r: r.choice([]), ValueError, "must not be empty"),
        (lambda r: r.choice(np.zeros((2, 0)), 1, axis=1), ValueError, "empty"),
        (lambda r: r.choice(2.5), ValueError, "sequence or an integer; got 2.5"),
        (lambda r: r.choice(None), ValueError, "sequence or an integer; got None"),
        (lambda r: r.choice("abc"), ValueError, "a sequence or an integer; got str"),
        (lambda r: r.choice([[1, 2], [3]]), ValueError, "rows have one length"),
        (lambda r: r.choice(["a", "b"]), TypeError, r"rng\.choice\(len\(a\)\)"),
        (lambda r: r.choice(2**33, 2), ValueError, "jax_enable_x64"),
        (lambda r: r.choice([1, 2], axis=1), IndexError, "axis 1 is out of bounds"),
        (lambda r: r.choice([1, 2], axis=-2), IndexError, "axis -2"),
        (
            lambda r: r.choice(3, 4, replace=False),
            ValueError,
            "size must not be larger",
        ),
        (lambda r: r.choice(3, -2, replace=False), ValueError, "negative"),
        (lambda r: r.choice(3, 2.0), TypeError, "size must be"),
        (lambda r: r.choice(3, p=[0.2, 0.3, 0.4]), ValueError, "sum to 1; got 0.9"),
        (lambda r: r.choice(3, p=[0.5, 0.5]), ValueError, "the 3 entries"),
        (lambda r: r.choice(3, p=[0.2, -0.3, 1.1]), ValueError, "p must be >= 0"),
        (lambda r: r.choice(3, p=[0.2, math.nan, 0.8]), ValueError, "not be nan"),
        (lambda r: r.choice(3, p=[None] * 3), TypeError, "real numbers"),
        (lambda r: r.choice(2, p=np.timedelta64(1, "s")), TypeError, "real numbers"),
        (lambda r: r.choice(3, p=["a", "b", "c"]), ValueError, "real numbers"),
        (lambda r: r.choice(3, p=[[0.2, 0.3, 0.5]]), ValueError, "1-dimensional"),
        (lambda r: r.choice(3, p=0.5), TypeError, "1-dimensional"),
        (lambda r: r.choice(3, p=jnp.ones(2)), ValueError, "the 3 entries"),
        (lambda r: r.choice(3, p=jnp.ones((3, 1))), ValueError, "1-dimensional"),
        (lambda r: r.choice(2, p=jnp.ones(2) * 1j), TypeError, "real numbers"),
        (
            lambda r: r.choice(3, 2, p=[1, 0, 0], replace=False),
            ValueError,
            "2 or more entries above zero",
        ),
    ],
)
def test_errors_leave_the_counter(call, error, text):
    rng = stateful_rng(0)
    with pytest.raises(error, match=text):
        call(rng)
    with pytest.raises(error, match=text):
        jax.jit(lambda rng: call(rng))(rng)
    assert np.asarray(rng.state().counter).tolist() == [0, 0]


def test_a_traced_length_is_refused():
    rng = stateful_rng(0)
    with pytest.raises(TypeError, match="static_argnames='a'"):
        jax.jit(rng.choice)(5)


def test_the_sum_is_checked_by_the_precision_of_p():
    rng = stateful_rng(0)
    p = np.full(3, 1 / 3, np.float16)
    rng.choice(3, p=p)
    rng.choice(3, p=p.astype(jnp.bfloat16))
    with pytest.raises(ValueError, match="sum to 1"):
        rng.choice(3, p=p.tolist())


# --- Without weights ---------------------------------------------------------------


@pytest.mark.parametrize(("n", "k"), [(6, 1), (6, 2), (6, 3), (7, 5), (5, 5)])
def test_all_ordered_tuples(n, k):
    drawn = lanes(n * k, 60_000, lambda rng: rng.choice(n, k, replace=False))
    number = math.perm(n, k)
    assert p_value(code(drawn, n), np.full(number, 60_000 / number)) > 1e-4


def test_ordered_pairs_by_the_table():
    # The three samplers at one small size: which is taken depends on the size only.
    n, k, number = 7, 3, math.perm(7, 3)
    keys = jax.random.split(jax.random.key(1), 60_000)
    for draw in (
        lambda key: _choice._by_table(key, k, n),
        lambda key: _choice.few_distinct(key, (k,), jnp.uint32(n - 1)),
        lambda key: _choice.random_order(key, (n,))[:k],
    ):
        drawn = jax.jit(jax.vmap(draw))(keys)
        assert p_value(code(drawn, n), np.full(number, 60_000 / number)) > 1e-4


@pytest.mark.parametrize(
    ("n", "k"), [(10**6, 10), (10**9, 3000), (30_000, 3000), (7000, 3000), (100, 60)]
)
def test_distinct_and_in_range(n, k):
    rng = stateful_rng(n)
    drawn = np.asarray(rng.choice(n, (2, k // 2), replace=False)).reshape(-1)
    assert len(set(drawn.tolist())) == k
    assert drawn.min() >= 0
    assert drawn.max() < n
    assert p_value(drawn.astype(np.int64) * 10 // n, np.full(10, k / 10)) > 1e-4
    assert p_value((np.diff(drawn) > 0) * 1, np.full(2, (k - 1) / 2)) > 1e-5


def test_with_replacement():
    x = stateful_rng(0).choice(10, 50_000)
    assert p_value(x, np.full(10, 5000)) > 1e-4
    pairs = np.asarray(x).reshape(-1, 2)
    assert p_value(pairs[:, 0] * 10 + pairs[:, 1], np.full(100, 250)) > 1e-4


# --- With weights ------------------------------------------------------------------

WEIGHTS = {
    "two": [0.3, 0.7],
    "one": [1.0],
    "zeros": [0.0, 0.5, 0.0, 0.25, 0.25, 0.0],
    "steep": [2.0**-i for i in range(1, 13)] + [2.0**-12],
    "heavy": [0.9] + [0.1 / 40] * 40,
    "light": [1e-4] * 40 + [0.996],
    "equal": [1 / 8] * 8,
    "ramp": list(np.arange(50) / np.arange(50).sum()),
}


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("draw", ["_by_alias", "_by_inversion"])
def test_weights_of_both_samplers(name, draw):
    p = np.asarray(WEIGHTS[name])
    n = 100_000

    def drawn(key, p):
        with jax.enable_x64(True):
            return getattr(_choice, draw)(key, (n,), p).astype(jnp.int32)

    key = jax.random.key(len(name))
    x = jax.jit(drawn)(key, _choice.parts(p))
    assert name == "one" or p_value(x, p * n) > 1e-4
    unnormalised = jax.jit(drawn)(key, jnp.asarray(p * 7, jnp.float32))
    assert name == "one" or p_value(unnormalised, p * n) > 1e-4


def random_weights(n, power):
    draws = np.random.default_rng(n)
    p = draws.random(n) ** power
    p[draws.random(n) < 0.3] = 0.0
    p[n // 2] = 1.0
    return p


@jax.jit
def alias_tables(p):
    with jax.enable_x64(True):
        n = p.shape[-1]
        unit = 2 ** (62 - _choice.bit_length(n))
        weights = _choice._whole_weights(p, n * unit)
        # As words, since 64 bits end with the block.
        halves = weights >> np.uint64(32), weights & np.uint64(2**32 - 1)
        return _choice._alias_tables(p), [x.astype(jnp.uint32) for x in halves]


@pytest.mark.parametrize(
    "p", [*WEIGHTS.values(), *(random_weights(64, power) for power in (0, 1, 3, 8))]
)
def test_alias_tables_are_exact(p):
    """The buckets' shares of every item add up to its weight, to the last unit."""
    p = np.asarray(p)
    n = len(p)
    tables, halves = alias_tables(_choice.parts(p))
    first, second, alias = (np.asarray(t).astype(object) for t in tables)
    share = (first << 32) + second
    weights = (np.asarray(halves[0]).astype(object) << 32) + np.asarray(halves[1])
    unit = 2 ** (62 - _choice.bit_length(n))
    total = np.zeros(n, object)
    for i in range(n):
        total[i] += share[i]
        total[alias[i]] += 2**64 - share[i]
    assert total.tolist() == [w * (2**64 // unit) for w in weights]
    assert sum(weights) == n * unit
    error = np.abs(weights.astype(float) / (n * unit) - p / p.sum())
    assert error.max() < n * 2.0**-47  # of the parts


@pytest.mark.parametrize("size", [5, 5000])
def test_choice_takes_the_weights(size):
    a = np.array([10.0, 20.0, 30.0, 40.0])
    p = [0.1, 0.2, 0.0, 0.7]
    for weights in (p, np.array(p, np.float32), jnp.array(p), jnp.array(p) * 3):
        x = lanes(1, 50_000 // size, lambda rng, w=weights: rng.choice(a, size, p=w))
        assert p_value(x.astype(int) // 10 - 1, np.array(p) * 50_000) > 1e-4


def test_a_million_equal_weights_have_no_bias():
    # A float32 cumulated sum is off: z = 9.6 in jax.random.choice.
    n = 10**6
    for size in (n, 2 * n):  # by inversion, and by aliases
        x = stateful_rng(size).choice(n, size, p=np.full(n, 1 / n))
        counts = np.bincount(np.asarray(x), minlength=n)
        statistic = ((counts - size / n) ** 2).sum() / (size / n)
        assert abs(statistic - (n - 1)) < 4 * math.sqrt(2 * n)
        upper = counts[n // 2 :].sum()
        assert stats.binomtest(int(upper), size).pvalue > 1e-4
        assert p_value(np.asarray(x) // 10_000, np.full(100, size / 100)) > 1e-4


def test_small_probabilities_are_not_rounded():
    # Ten standard deviations apart from what 24 bits of precision would give.
    p = np.array([1 - 3 * 2.0**-20, 2.0**-20, 2.0**-19])
    n = 2**23
    x = np.asarray(stateful_rng(2).choice(3, n, p=p))
    assert p_value(x, p * n) > 1e-4
    tiny = np.array([1 - 2.0**-45, 2.0**-45])
    with jax.enable_x64(True):
        weights = _choice._whole_weights(jnp.asarray(tiny), 2**62)
    assert weights.tolist() == [2**62 - 2**17, 2**17]


@pytest.mark.slow
def test_never_an_item_of_probability_zero():
    p = np.concatenate([np.ones(5_000_000), np.zeros(2_000_000)])
    x = stateful_rng(0).choice(p.size, p.size, p=p / p.sum())
    assert int(x.max()) < 5_000_000
    x = stateful_rng(1).choice(p.size, p.size, p=jnp.asarray(p[::-1].copy()))
    assert int(x.min()) >= 2_000_000
    x = stateful_rng(2).choice(p.size, 2 * p.size, p=jnp.asarray(p))
    assert int(x.max()) < 5_000_000


def test_illegal_weights_on_the_device():
    rng = stateful_rng(0)
    draw = jax.jit(lambda p, size: rng.choice(4, size, p=p), static_argnums=1)
    p = jnp.array([-1.0, jnp.nan, 2.0, jnp.inf])
    assert set(draw(p, 100).tolist()) == {2}
    assert set(draw(p, 5).tolist()) == {2}
    nothing = jnp.zeros(4)
    assert set(draw(nothing, 100).tolist()) == {0}
    assert set(draw(nothing, 5).tolist()) == {0}
    distinct = jax.jit(lambda p: rng.choice(4, 4, replace=False, p=p))
    assert distinct(p).tolist() == [2, 0, 1, 3]
    assert distinct(nothing).tolist() == [0, 1, 2, 3]


# --- With weights, without replacement ---------------------------------------------


def plackett_luce(p, k):
    """Returns the probabilities of all ordered k-tuples, in the order of `code`."""
    found = []
    for items in itertools.permutations(range(len(p)), k):
        probability, left = 1.0, 1.0
        for i in items:
            probability *= p[i] / left if left > 0 else 0.0
            left -= p[i]
        found.append(probability)
    return np.array(found)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_weighted_ordered_tuples(k):
    p = np.array([0.05, 0.15, 0.35, 0.2, 0.25])
    number = 60_000
    for weights in (p, jnp.asarray(p, jnp.float32) * 5):
        drawn = lanes(
            k, number, lambda rng, w=weights: rng.choice(5, k, replace=False, p=w)
        )
        assert p_value(code(drawn, 5), plackett_luce(p, k) * number) > 1e-4


def test_weighted_without_replacement_over_many_orders_of_magnitude():
    p = 10.0 ** -np.arange(0, 60, 6)
    p /= p.sum()
    drawn = lanes(3, 2000, lambda rng: rng.choice(10, 10, replace=False, p=p))
    # Each is 1e6 times as likely as the next: out of order once in 1e5 or so.
    assert (drawn == np.arange(10)).all(1).mean() > 0.99


def test_weighted_without_replacement_of_many():
    n, k = 100_000, 1000
    p = np.arange(1, n + 1, dtype=float)
    p /= p.sum()
    x = np.asarray(stateful_rng(0).choice(n, k, replace=False, p=p))
    assert len(set(x.tolist())) == k
    law = stats.beta(2, 1)  # k is so small that nearly the first draw's law holds
    assert stats.kstest((x + 0.5) / n, law.cdf).pvalue > 1e-4


def test_equal_weights_without_replacement_are_uniform():
    n = 10**5
    x = np.asarray(stateful_rng(5).choice(n, n, replace=False, p=np.full(n, 1 / n)))
    assert (np.sort(x) == np.arange(n)).all()
    assert p_value(np.arange(n) * 10 // n * 10 + x * 10 // n, np.full(100, 1e3)) > 1e-4


# --- Transformations and keys --------------------------------------------------------


def test_lanes_equal_children():
    a = jnp.arange(40.0).reshape(20, 2)
    p = np.arange(20) / 190

    def draws(rng):
        return (
            rng.choice(a, 3),
            rng.choice(a, 3, replace=False),
            rng.choice(a, 15, replace=False),
            rng.choice(20, 4, p=p),
            rng.choice(20, 60, p=jnp.asarray(p)),
            rng.choice(a, 4, replace=False, p=p),
        )

    found = jax.jit(jax.vmap(draws))(stateful_rng(5).split(3))
    by_itself = jax.jit(draws)
    for i, child in enumerate(stateful_rng(5).spawn(3)):
        for lane, alone in zip(found, by_itself(child), strict=True):
            assert (lane[i] == alone).all()


def test_weights_mapped_over():
    p = jnp.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    for size in (2, 20):
        found = jax.vmap(lambda rng, p, k=size: rng.choice(3, k, p=p))(
            stateful_rng(0).split(2), p
        )
        assert found.tolist() == [[1] * size, [2] * size]


def test_gradient_goes_through_the_choice():
    rng = stateful_rng(0)

    @jax.jit
    def gradient(x, p):
        def loss(x, p):
            return (jax.checkpoint(lambda x: rng.choice(x, 50, p=p))(x) ** 2).sum()

        return jax.grad(loss, argnums=(0, 1))(x, p)

    by_x, by_p = gradient(jnp.arange(4.0), jnp.full(4, 0.25))
    counts = by_x[1:] / (2 * jnp.arange(1.0, 4.0))
    assert (counts > 0).all()
    assert int(counts.sum()) <= 50
    assert by_p.tolist() == [0.0] * 4


def test_scan_and_cond():
    rng = stateful_rng(0)
    p = jnp.array([0.2, 0.3, 0.5])

    @jax.jit
    def run():
        def body(total, i):
            x = jax.lax.cond(
                i % 2 == 0,
                lambda: rng.choice(3, 4, p=p),
                lambda: rng.choice(3, 4, replace=True),
            )
            return total + x, rng.choice(9, 2, replace=False)

        return jax.lax.scan(body, jnp.zeros(4, int), jnp.arange(5))

    total, _ = run()
    other = stateful_rng(0)
    expected = 0
    for i in range(5):
        expected += other.choice(3, 4, p=p) if i % 2 == 0 else other.choice(3, 4)
        other.choice(9, 2, replace=False)
    assert total.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "impl", ["rbg", pytest.param("unsafe_rbg", marks=pytest.mark.slow)]
)
def test_other_impls(impl):
    rng = stateful_rng(5, impl=impl)
    p = np.array([0.1, 0.2, 0.7])
    assert p_value(rng.choice(3, 30_000, p=p), p * 30_000) > 1e-4
    assert len(set(rng.choice(10**6, 100, replace=False).tolist())) == 100
    assert len(set(rng.choice(9000, 3000, replace=False).tolist())) == 3000


def test_strict_modes():
    p = jnp.array([0.2, 0.3, 0.5])
    with (
        jax.numpy_rank_promotion("raise"),
        jax.numpy_dtype_promotion("strict"),
    ):
        rng = stateful_rng(0)
        x = jnp.ones((3, 2), jnp.bfloat16)
        assert rng.choice(x, (2, 2)).shape == (2, 2, 2)
        assert rng.choice(x, 2, replace=False).shape == (2, 2)
        assert rng.choice(5000, 2100, replace=False).shape == (2100,)
        assert rng.choice(x, 2, p=p).shape == (2, 2)
        assert rng.choice(x, 20, p=[0.5, 0.25, 0.25]).shape == (20, 2)
        assert rng.choice(x, 2, False, p).shape == (2, 2)

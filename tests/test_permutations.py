"""Orders: uniform over all of them, of whole slices or of every line by itself."""

import itertools
import math
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jax_stateful_rng import stateful_rng


def rank(orders):
    """Returns the number of each order among all n!, by its Lehmer code."""
    orders = np.asarray(orders)
    n = orders.shape[-1]
    number = np.zeros(orders.shape[:-1], int)
    for i in range(n):
        smaller = (orders[..., i + 1 :] < orders[..., i : i + 1]).sum(-1)
        number = number * (n - i) + smaller
    return number


def uniform_p_value(cells, number):
    counts = np.bincount(np.asarray(cells).reshape(-1), minlength=number)
    assert len(counts) == number
    return stats.chisquare(counts).pvalue


def test_the_rank_tells_all_orders_apart():
    orders = np.array(list(itertools.permutations(range(5))))
    assert sorted(rank(orders)) == list(range(120))


# --- The law -----------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1])
def test_all_orders_of_six(axis):
    x = jnp.broadcast_to(jnp.arange(6), (72_000, 6))
    drawn = stateful_rng(4).permuted(x if axis else x.T, axis=axis)
    drawn = np.asarray(drawn if axis else drawn.T)
    assert (np.sort(drawn, axis=1) == np.arange(6)).all()
    assert uniform_p_value(rank(drawn), math.factorial(6)) > 1e-4


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_all_orders_of_few_by_split_generators(n):
    drawn = jax.vmap(lambda rng: rng.permutation(n))(stateful_rng(n).split(20_000))
    assert uniform_p_value(rank(drawn), math.factorial(n)) > 1e-4


def test_ordered_pairs_of_thirty():
    n, rows = 30, 60_000
    x = jnp.broadcast_to(jnp.arange(n), (rows, n))
    drawn = np.asarray(stateful_rng(9).permuted(x, axis=1))
    for i, j in ((0, 1), (28, 29), (0, 29), (13, 14), (7, 22)):
        a, b = drawn[:, i], drawn[:, j]
        pair = a * (n - 1) + b - (b > a)
        assert uniform_p_value(pair, n * (n - 1)) > 1e-4


def test_every_item_goes_everywhere():
    n, rows = 30, 60_000
    x = jnp.broadcast_to(jnp.arange(n), (rows, n))
    drawn = np.asarray(stateful_rng(10).permuted(x, axis=1))
    assert uniform_p_value(drawn * n + np.arange(n), n * n) > 1e-4


def test_a_long_axis():
    n = 200_000
    drawn = np.asarray(stateful_rng(1).permutation(n))
    assert (np.sort(drawn) == np.arange(n)).all()
    # Where the first, second, … tenth goes, and what the neighbours are.
    cell = (np.arange(n) * 10 // n) * 10 + drawn * 10 // n
    assert uniform_p_value(cell, 100) > 1e-4
    ups = int((np.diff(drawn) > 0).sum())  # Eulerian: variance (n + 1) / 12
    assert abs(ups - (n - 1) / 2) < 4 * math.sqrt((n + 1) / 12)
    cycles, seen = 0, np.zeros(n, bool)
    for start in range(n):
        cycles += not seen[start]
        while not seen[start]:
            seen[start] = True
            start = drawn[start]
    assert abs(cycles - math.log(n) - 0.577) < 4 * math.sqrt(math.log(n))


def test_equal_random_bits_are_drawn_again(monkeypatch):
    # With words of two random bits all lines of six have ties, and need many turns.
    from jax_stateful_rng._samplers import _bits, _choice

    def poor(key, shape, number, turn=0, *, width=32):
        (word,) = _bits.words(key, shape, number, turn, width=width)
        two = word & np.uint64(0b11)  # where the first turn takes them, and the others
        return [two | (two << np.uint64(6))]

    monkeypatch.setattr(_choice, "_bits", types.SimpleNamespace(words=poor))
    order = jax.jit(lambda key: _choice.random_order(key, (40_000, 6), 1))
    drawn = np.asarray(order(jax.random.key(5)))
    assert (np.sort(drawn, axis=1) == np.arange(6)).all()
    assert uniform_p_value(rank(drawn), math.factorial(6)) > 1e-4


# --- permutation ---------------------------------------------------------------------


def test_permutation_moves_slices_as_wholes():
    x = np.arange(24).reshape(2, 3, 4)
    for axis in (0, 1, 2, -1):
        drawn = np.asarray(stateful_rng(3).permutation(x, axis))
        assert drawn.shape == x.shape
        lines = np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1).tolist()
        found = np.moveaxis(drawn, axis, 0).reshape(x.shape[axis], -1).tolist()
        assert sorted(found) == lines


@pytest.mark.parametrize(
    ("x", "shape"),
    [
        (0, (0,)),
        (1, (1,)),
        (np.int64(4), (4,)),
        (np.array(4), (4,)),
        ([], (0,)),
        (np.zeros((0, 3)), (0, 3)),
        (np.zeros((3, 0)), (3, 0)),
        ([1j, 2], (2,)),
        ([jnp.float32(1.0), 2.0], (2,)),
    ],
)
def test_permutation_shapes(x, shape):
    rng = stateful_rng(0)
    drawn = rng.permutation(x)
    assert drawn.shape == shape
    assert np.asarray(rng.state().counter).tolist() == [0, 1]


@pytest.mark.parametrize("dtype", ["uint8", "bool", "float16", "bfloat16", "int32"])
def test_permutation_keeps_the_dtype(dtype):
    x = jnp.arange(5).astype(dtype)
    drawn = stateful_rng(0).permutation(x)
    assert drawn.dtype == x.dtype
    assert (jnp.sort(drawn) == jnp.sort(x)).all()


def test_permutation_of_keys():
    keys = jax.random.split(jax.random.key(0), 5)
    drawn = jax.random.key_data(stateful_rng(0).permutation(keys))
    assert sorted(drawn.tolist()) == sorted(jax.random.key_data(keys).tolist())


def test_64_bits(x64):
    assert stateful_rng(0).permutation(5).dtype == np.int64
    x = np.array([2**40, 2**41, 2**42])
    assert sorted(stateful_rng(0).permutation(x).tolist()) == x.tolist()
    drawn = stateful_rng(0).permuted(np.broadcast_to(x, (4, 3)), axis=1)
    assert (jnp.sort(drawn, axis=1) == x).all()


def test_the_same_order_with_and_without_64_bits():
    narrow = stateful_rng(8).permutation(100)
    with jax.enable_x64(True):
        wide = stateful_rng(8).permutation(100)
    assert narrow.tolist() == wide.tolist()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda r: r.permutation(-1), ValueError, "x must be >= 0"),
        (lambda r: r.permutation(2**33), ValueError, "jax_enable_x64"),
        (
            lambda r: r.permutation(2.5),
            np.exceptions.AxisError,
            "array, or an int.*2.5",
        ),
        (lambda r: r.permutation("abc"), np.exceptions.AxisError, "array, or an int"),
        (lambda r: r.permutation([[1, 2], [3]]), ValueError, "rows have one length"),
        (lambda r: r.permutation(["a", "b"]), TypeError, "must hold numbers"),
        (lambda r: r.permutation([[1, 2]], 2), np.exceptions.AxisError, "axis 2"),
        (lambda r: r.permutation([[1, 2]], -3), np.exceptions.AxisError, "axis -3"),
        (lambda r: r.permutation([1, 2], slice(1)), TypeError, "axis must be an int"),
        (lambda r: r.permuted(5), TypeError, "x must be an array"),
        (lambda r: r.permuted(5, axis=0), np.exceptions.AxisError, "rng.permuted"),
        (lambda r: r.permuted([1, 2], axis=1), np.exceptions.AxisError, "axis 1"),
        (lambda r: r.permuted([1, 2], axis=1.0), TypeError, "axis must be an int"),
        (lambda r: r.permuted([1], out=np.zeros(1)), NotImplementedError, "out must"),
        (lambda r: r.shuffle(jnp.arange(3)), TypeError, r"x = rng\.permutation\(x\)"),
        (lambda r: r.shuffle(5), TypeError, "written to"),
        (lambda r: r.shuffle((1, 2)), TypeError, "written to"),
        (lambda r: r.shuffle("abc"), TypeError, "written to"),
        (lambda r: r.shuffle([[1, 2]], 1), NotImplementedError, "axis must be 0"),
        (lambda r: r.shuffle(np.ones((2, 3)), 2), np.exceptions.AxisError, "axis 2"),
        (lambda r: r.shuffle(np.array(5)), np.exceptions.AxisError, "axis 0"),
        (
            lambda r: r.shuffle(np.broadcast_to(np.arange(3), (2, 3))),
            ValueError,
            "read-only",
        ),
    ],
)
def test_errors_leave_the_counter(call, error, text):
    rng = stateful_rng(0)
    with pytest.raises(error, match=text):
        call(rng)
    assert np.asarray(rng.state().counter).tolist() == [0, 0]


def test_a_traced_length_is_refused():
    rng = stateful_rng(0)
    with pytest.raises(TypeError, match="static_argnames='x'"):
        jax.jit(rng.permutation)(5)


# --- permuted ------------------------------------------------------------------------


def test_permuted_lines_are_independent():
    x = jnp.broadcast_to(jnp.arange(3), (20_000, 2, 3))
    code = rank(stateful_rng(6).permuted(x, axis=-1))
    assert uniform_p_value(code[:, 0] * 6 + code[:, 1], 36) > 1e-4


def test_permuted_without_axis_permutes_all():
    x = jnp.arange(12).reshape(3, 4)
    drawn = stateful_rng(0).permuted(x)
    assert drawn.shape == x.shape
    assert sorted(drawn.reshape(-1).tolist()) == list(range(12))
    flat = stateful_rng(0).permutation(12)
    assert drawn.reshape(-1).tolist() == flat.tolist()


# --- shuffle -------------------------------------------------------------------------


def test_shuffle_does_what_permutation_does():
    expected = stateful_rng(3).permutation(10).tolist()
    array, items = np.arange(10), list(range(10))
    ref = jax.new_ref(jnp.arange(10))
    for x in (array, items, ref):
        rng = stateful_rng(3)
        assert rng.shuffle(x) is None
        assert np.asarray(rng.state().counter).tolist() == [0, 1]
    assert array.tolist() == items == ref[...].tolist() == expected


def test_shuffle_along_an_axis():
    x = np.arange(12).reshape(3, 4)
    expected = np.asarray(stateful_rng(1).permutation(x, axis=1))
    for axis in (1, -1):
        array, ref = x.copy(), jax.new_ref(jnp.asarray(x))
        stateful_rng(1).shuffle(array, axis)
        stateful_rng(1).shuffle(ref, axis)
        assert (array == expected).all()
        assert (ref[...] == expected).all()


def test_shuffle_of_a_ref_in_jit():
    rng, ref = stateful_rng(2), jax.new_ref(jnp.arange(8))

    @jax.jit
    def twice(rng, ref):
        rng.shuffle(ref)
        rng.shuffle(ref)

    twice(rng, ref)
    eager = jax.new_ref(jnp.arange(8))
    other = stateful_rng(2)
    other.shuffle(eager)
    other.shuffle(eager)
    assert ref[...].tolist() == eager[...].tolist()


def test_shuffle_of_host_containers():
    words = np.array(["a", "b", "c"], object)
    masked = np.ma.array([1, 2, 3, 4], mask=[0, 1, 0, 0])
    pairs = np.array([(1, 2.0), (3, 4.0)], [("x", int), ("y", float)])
    view = np.zeros((4, 4))
    for x in ([], [1], words, masked, pairs, np.zeros((0, 3)), view[:, 1]):
        stateful_rng(0).shuffle(x)
    assert sorted(words) == ["a", "b", "c"]
    assert masked.sum() == 8
    assert sorted(pairs["x"].tolist()) == [1, 3]


def test_shuffle_of_host_containers_is_not_traced():
    rng, x = stateful_rng(0), np.arange(5)
    with pytest.raises(TypeError, match="Ref"):
        jax.jit(lambda: rng.shuffle(x))()
    with pytest.raises(TypeError, match="Ref"):
        jax.jit(lambda rng: rng.shuffle([1, 2]))(rng)
    with pytest.raises(TypeError, match=r"rng\.permutation"):
        jax.jit(rng.shuffle)(x)
    assert x.tolist() == [0, 1, 2, 3, 4]
    assert np.asarray(rng.state().counter).tolist() == [0, 0]


# --- Transformations and keys --------------------------------------------------------


def test_lanes_equal_children():
    x = jnp.arange(24.0).reshape(2, 3, 4)

    def draws(rng):
        return rng.permutation(7), rng.permuted(x, axis=1), rng.permutation(x, 2)

    lanes = jax.vmap(draws)(stateful_rng(5).split(3))
    jitted = jax.jit(jax.vmap(draws))(stateful_rng(5).split(3))
    for i, child in enumerate(stateful_rng(5).spawn(3)):
        for lane, other, alone in zip(lanes, jitted, draws(child), strict=True):
            assert (lane[i] == alone).all()
            assert (other[i] == alone).all()


def test_gradient_goes_through_the_permutation():
    rng = stateful_rng(0)
    x, weight = jnp.arange(5.0), jnp.array([1.0, 10.0, 100.0, 1e3, 1e4])

    @jax.jit
    def value_and_grad(x):
        def f(x):
            drawn = rng.permutation(x)
            return (drawn * weight).sum(), drawn

        return jax.value_and_grad(jax.checkpoint(f), has_aux=True)(x)

    (_, drawn), gradient = value_and_grad(x)
    assert gradient[drawn.astype(int)].tolist() == weight.tolist()


def test_scan_and_remat():
    @jax.jit
    def run(rng):
        return jax.lax.scan(
            lambda x, _: (jax.checkpoint(rng.permutation)(x), None),
            jnp.arange(9),
            length=4,
        )[0]

    rng, x = stateful_rng(1), jnp.arange(9)
    for _ in range(4):
        x = rng.permutation(x)
    assert run(stateful_rng(1)).tolist() == x.tolist()


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_other_impls(impl):
    x = jnp.broadcast_to(jnp.arange(4), (20_000, 4))
    drawn = stateful_rng(5, impl=impl).permuted(x, axis=1)
    assert uniform_p_value(rank(drawn), 24) > 1e-4


def test_strict_modes():
    with (
        jax.numpy_rank_promotion("raise"),
        jax.numpy_dtype_promotion("strict"),
    ):
        rng = stateful_rng(0)
        assert rng.permutation(5).shape == (5,)
        assert rng.permuted(jnp.ones((2, 3)), axis=1).shape == (2, 3)


@pytest.mark.parametrize(
    "x",
    [[1700000000000, 1700000000001], np.array([2**40, 1]), np.array([1e300, 1.0])]
    + [np.array([2**63, 1], np.uint64)],
)
@pytest.mark.parametrize("name", ["permutation", "permuted", "choice"])
def test_what_32_bits_do_not_hold_is_refused(name, x):
    rng = stateful_rng(0)
    args = (x, 2) if name == "choice" else (x,)
    with pytest.raises(ValueError, match="jax_enable_x64"):
        getattr(rng, name)(*args)
    assert rng.state().counter[1] == 0
    with jax.enable_x64(True):
        assert set(np.asarray(getattr(rng, name)(*args)).tolist()) <= set(
            np.asarray(x).tolist()
        )

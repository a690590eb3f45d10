"""Seeds, keys, children, counts, and being a Python object."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import random as upstream

from jax_stateful_rng import (
    PRNGState,
    StatefulPRNG,
    _internals,
    default_rng,
    stateful_rng,
)

IMPLS = ["threefry2x32", "rbg", "unsafe_rbg", "threefry4x32", "philox4x32"]


def data(rng_or_key):
    key = getattr(rng_or_key, "base_key", rng_or_key)
    return np.asarray(jax.random.key_data(key)).tolist()


def words(count):
    return np.array([count >> 32, count & 0xFFFFFFFF], np.uint32)


def at(seed, count):
    return stateful_rng(PRNGState(jax.random.key(seed), words(count)))


def count(rng):
    hi, lo = np.asarray(rng.state().counter).tolist()
    return (hi << 32) + lo


# --- seeds -------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 42, 2**31 - 1, 2**31, 2**32 - 1])
@pytest.mark.parametrize("impl", IMPLS)
def test_small_ints_are_jax_keys(seed, impl):
    want = data(jax.random.key(np.uint32(seed), impl=impl))
    assert data(stateful_rng(seed, impl=impl)) == want
    with jax.enable_x64(True):
        assert data(stateful_rng(seed, impl=impl)) == want
        assert data(jax.random.key(seed, impl=impl)) == want


@pytest.mark.parametrize("seed", [2**32, 2**32 + 1, 2**63 - 1, 2**63, 2**64 - 1])
def test_64_bit_ints_are_the_keys_of_x64(seed):
    got = data(stateful_rng(seed))
    assert got == [seed >> 32, seed & 0xFFFFFFFF]
    with jax.enable_x64(True):
        assert data(stateful_rng(seed)) == got
        if seed < 2**63:
            assert data(jax.random.key(seed)) == got


def test_the_high_word_of_a_seed_counts():
    assert data(stateful_rng(2**32 + 1)) != data(stateful_rng(1))


@pytest.mark.parametrize("impl", IMPLS)
def test_long_ints_and_sequences_go_through_seed_sequence(impl):
    n = len(data(stateful_rng(0, impl=impl)))
    for seed in (2**64, 2**200 + 3, [1, 2, 3], [2**40, 0], range(4), (5,)):
        entropy = list(seed) if not isinstance(seed, int) else seed
        want = np.random.SeedSequence(entropy).generate_state(n).tolist()
        assert data(stateful_rng(seed, impl=impl)) == want
    want = np.random.SeedSequence(7).generate_state(n).tolist()
    assert data(stateful_rng(np.random.SeedSequence(7), impl=impl)) == want


def test_numpy_arrays_are_entropy_and_jax_arrays_are_keys():
    raw = np.array([3, 4], np.uint32)
    assert data(stateful_rng(jnp.asarray(raw))) == [3, 4]
    assert data(stateful_rng(raw)) == data(stateful_rng([3, 4])) != [3, 4]
    assert data(stateful_rng(np.int64(5))) == data(stateful_rng(5))
    assert data(stateful_rng(np.array(5))) == data(stateful_rng(5))
    assert data(stateful_rng(jnp.int32(5))) == data(stateful_rng(5))


def test_keys_states_and_generators_as_seeds():
    key = jax.random.key(9, impl="rbg")
    rng = stateful_rng(key)
    assert rng.base_key is key
    assert stateful_rng(rng) is rng
    assert default_rng is stateful_rng
    rng.random()
    other = stateful_rng(rng.state())
    assert other is not rng
    assert count(other) == 1
    assert other.random() == rng.random()


def test_unseeded_generators_differ():
    seen = {tuple(data(stateful_rng())) for _ in range(50)}
    assert len(seen) == 50
    high = {key[0] for key in seen}
    assert len(high) == 50  # the high 32 bits are entropy too


@pytest.mark.parametrize(
    ("seed", "error"),
    [
        (-1, ValueError),
        (np.int64(-5), ValueError),
        (jnp.int32(-5), ValueError),
        ([1, -2], ValueError),
        (1.0, TypeError),
        (np.float32(1), TypeError),
        ("a", TypeError),
        (True, TypeError),
        (np.array([True, False]), TypeError),
        ([True, False], TypeError),
        ([1.5], TypeError),
        (np.zeros((2, 2), int), TypeError),
        (jnp.zeros(2), TypeError),
        (jnp.zeros(3, jnp.int32), ValueError),
        (jnp.zeros(3, jnp.uint32), ValueError),
        (object(), TypeError),
        ({"a": 1}, TypeError),
    ],
)
def test_bad_seeds(seed, error):
    with pytest.raises(error, match=r"^stateful_rng: .*seed"):
        stateful_rng(seed)


@pytest.mark.parametrize(
    ("seed", "fix"),
    [
        (np.float32(3), "stateful_rng(int(seed))"),
        (np.array(3.0), "stateful_rng(int(seed))"),
        (jnp.float32(3), "stateful_rng(int(seed))"),
        (np.True_, "stateful_rng(int(seed))"),
        ("a", "fold_in(name)"),
        (np.random.default_rng(0), "stateful_rng(int(seed.integers(2**63)))"),
        (stateful_rng(0).state().to_dict(), "PRNGState.from_dict(saved)"),
    ],
)
def test_what_to_write_instead_of_a_bad_seed(seed, fix):
    with pytest.raises(TypeError) as caught:
        stateful_rng(seed)
    assert fix in str(caught.value)


def test_bad_keys_as_seeds():
    with pytest.raises(ValueError, match="single key"):
        stateful_rng(jax.random.split(jax.random.key(0), 3))
    with pytest.raises(ValueError, match="impl"):
        stateful_rng(jax.random.key(0), impl="rbg")
    with pytest.raises(ValueError, match="impl"):
        stateful_rng(stateful_rng(0), impl="rbg")
    with pytest.raises(ValueError, match="nope"):
        stateful_rng(0, impl="nope")


# --- the same bits as upstream -----------------------------------------------------


@pytest.mark.filterwarnings("ignore:rng.split")
@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "philox4x32"])
def test_bit_equality_with_upstream(impl):
    ours, theirs = stateful_rng(7, impl=impl), upstream.stateful_rng(7, impl=impl)
    for _ in range(2):
        assert (ours.key() == theirs.key()).all()
        assert (ours.key((2, 3)) == theirs.key((2, 3))).all()
        for dtype in ("float32", "float16", "bfloat16"):
            a, b = ours.random((5, 7), dtype), theirs.random((5, 7), dtype)
            assert a.dtype == b.dtype
            assert (a == b).all()
        assert (ours.uniform(-3, 5, 100) == theirs.uniform(-3, 5, 100)).all()
        low = np.arange(3.0)
        assert (ours.uniform(low, 9) == theirs.uniform(low, 9)).all()
        assert (ours.split(4).base_key == theirs.split(4)._base_key).all()
        for a, b in zip(ours.spawn(3), theirs.spawn(3), strict=True):
            assert a.base_key == b._base_key
        a, b = ours.normal(size=10_000), theirs.normal(size=10_000)
        np.testing.assert_array_max_ulp(np.asarray(a), np.asarray(b), 4)


def test_bit_equality_in_float64(x64):
    ours, theirs = stateful_rng(7), upstream.stateful_rng(7)
    assert (ours.random(100) == theirs.random(100)).all()
    assert (ours.uniform(2, 3, 100) == theirs.uniform(2, 3, 100)).all()
    a, b = ours.normal(size=1000), theirs.normal(size=1000)
    np.testing.assert_array_max_ulp(np.asarray(a), np.asarray(b), 4)


def test_the_values_that_the_jep_prints():
    rng = stateful_rng(1701)
    first = [0.09609699, 0.26730824, 0.5619041, 0.24421775, 0.7715055]
    second = [0.8131045, 0.33873856, 0.88808906, 0.96005905, 0.7616446]
    np.testing.assert_array_equal(rng.random((5,)), np.float32(first))
    np.testing.assert_array_equal(rng.random((5,)), np.float32(second))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_uniform_never_returns_high(dtype):
    rng, theirs = stateful_rng(0), upstream.stateful_rng(0)
    x = rng.uniform(100, 101, 200_000, dtype=dtype)
    y = theirs.uniform(100, 101, 200_000, dtype=dtype)
    assert (x < 101).all()
    assert (x >= 100).all()
    assert (x[y < 101] == y[y < 101]).all()
    if dtype != "float32":
        assert (y == 101).any()


# --- counting ----------------------------------------------------------------------


def test_the_nth_key_is_a_fold_in():
    rng = stateful_rng(3)
    for n in range(4):
        assert rng.key() == jax.random.fold_in(jax.random.key(3), n)


@pytest.mark.parametrize("start", [2**31 - 2, 2**32 - 2])
def test_the_counter_goes_on(start):
    rng = at(5, start)
    keys = [tuple(data(rng.key())) for _ in range(4)]
    assert count(rng) == start + 4
    assert len(set(keys)) == 4
    early = at(5, 0)
    assert not set(keys) & {tuple(data(early.key())) for _ in range(8)}
    base = jax.random.key(5)
    for n in range(2):
        assert keys[n] == tuple(data(jax.random.fold_in(base, np.uint32(start + n))))

    @jax.jit
    def traced(state):
        rng = stateful_rng(state)
        return [jax.random.key_data(rng.key()) for _ in range(4)]

    state = at(5, start).state()
    assert [tuple(k.tolist()) for k in traced(state)] == keys


def test_the_counter_ends_where_it_began():
    rng = at(5, 2**64 - 1)
    rng.random()
    assert count(rng) == 0


def test_no_epoch_repeats_another():
    seen = set()
    for epoch in (0, 1, 2, 3, 2**31, 2**32 - 1):
        rng = at(5, epoch << 32)
        seen |= {tuple(data(rng.key())) for _ in range(3)}
    assert len(seen) == 18


def test_every_call_consumes_one_count():
    rng = stateful_rng(0)
    calls = [
        rng.key,
        lambda: rng.key((3, 4)),
        rng.random,
        rng.normal,
        lambda: rng.split(5),
        lambda: rng.spawn(5),
        lambda: rng.spawn(0),
        lambda: rng.normal(size=0),
    ]
    for n, call in enumerate(calls, 1):
        call()
        assert count(rng) == n
    rng.fold_in("a"), rng.state(), repr(rng), copy.copy(rng), pickle.dumps(rng)
    assert count(rng) == len(calls)


# --- children ----------------------------------------------------------------------


def test_children():
    rng = stateful_rng(0)
    key = jax.random.fold_in(jax.random.key(0), 0)
    children = rng.split((2, 3))
    assert (children.base_key == jax.random.split(key, (2, 3))).all()
    assert children.counter.shape == (2, 3, 2)
    for n, child in enumerate(at(0, 0).spawn(6)):
        assert child.base_key == jax.random.split(key, 6)[n]
        assert count(child) == 0


def test_fold_in_lies_apart_from_counted_keys():
    rng = stateful_rng(0)
    # The digest of this name is 2332.
    assert rng.fold_in("layer149540").base_key != jax.random.fold_in(rng.base_key, 2332)
    assert rng.fold_in(2332).base_key != jax.random.fold_in(rng.base_key, 2332)
    assert rng.fold_in("layer149540").base_key != rng.fold_in(2332).base_key
    before = rng.fold_in("a").base_key
    rng.random()
    assert rng.fold_in("a").base_key == before
    traced = jax.jit(lambda i: jax.random.key_data(rng.fold_in(i).base_key))
    assert traced(7).tolist() == data(rng.fold_in(7))


@pytest.mark.parametrize(
    ("arg", "error"),
    [("", ValueError), (-1, ValueError), (2**32, ValueError), (1.5, TypeError)]
    + [(True, TypeError), (None, TypeError), (jnp.ones(2), TypeError)],
)
def test_bad_fold_in(arg, error):
    with pytest.raises(error, match=r"^rng\.fold_in: "):
        stateful_rng(0).fold_in(arg)


def test_many_spawned_children_are_those_of_split():
    keys = jax.random.key_data(stateful_rng(0).split(37).base_key)
    for n, child in enumerate(stateful_rng(0).spawn(37)):
        np.testing.assert_array_equal(jax.random.key_data(child.base_key), keys[n])


def test_bad_spawn_and_split():
    rng = stateful_rng(0)
    for bad, error in [(-1, ValueError), (2.0, TypeError), ("a", TypeError)]:
        with pytest.raises(error, match=r"^rng\.spawn: "):
            rng.spawn(bad)
        with pytest.raises(error, match=r"^rng\.split: "):
            rng.split(bad)
    assert count(rng) == 0


# --- being an object ---------------------------------------------------------------


def test_fields_and_identity():
    import dataclasses

    names = [field.name for field in dataclasses.fields(StatefulPRNG)]
    assert names == ["base_key", "counter"]
    a, b = stateful_rng(0), stateful_rng(0)
    assert a == a
    assert a != b
    assert len({a, b, a}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        a.base_key = b.base_key


def test_a_batch_is_not_indexed():
    children = stateful_rng(0).split(3)
    for use in (lambda: children[0], lambda: list(children)):
        with pytest.raises(TypeError, match=r"rng\.spawn\(2\)"):
            use()


def test_repr():
    rng = stateful_rng(0)
    rng.random()
    assert repr(rng) == "StatefulPRNG(impl='threefry2x32', count=1)"
    assert repr(rng.split(3)) == "StatefulPRNG(impl='threefry2x32', shape=(3,))"
    seen = []
    jax.jit(lambda rng: seen.append(repr(rng)))(rng)
    jax.jit(lambda: seen.append(repr(rng)))()
    jax.vmap(lambda rng: seen.append(repr(rng)))(rng.split(2))
    assert all(text == "StatefulPRNG(impl='threefry2x32', traced)" for text in seen)
    assert count(rng) == 3
    tree = jax.tree.structure(rng)
    assert repr(jax.tree.unflatten(tree, [None, None])).startswith("StatefulPRNG(")


def test_repr_of_a_counter_that_a_failed_draw_has_lost():
    rng = stateful_rng(0)
    state = rng.state()
    rng.random()
    with rng.lock:
        _internals.take_buffer(rng.counter, placed=False).delete()
    assert "count lost" in repr(rng)
    assert "rng.set_state(state)" in repr(rng)
    rng.set_state(state)
    assert repr(rng) == "StatefulPRNG(impl='threefry2x32', count=0)"


def test_mapping_in_batches_by_states():
    rng = stateful_rng(0)

    def mapped(f, over):
        return jax.lax.map(f, over, batch_size=3)

    with pytest.raises(ValueError, match=r"jax\.lax\.map\(lambda state: stateful_rng"):
        mapped(lambda x: x + rng.random(), jnp.ones(6))
    with pytest.raises(TypeError, match=r"jax\.lax\.map\(f, rng\.split\(n\)\.state"):
        mapped(lambda rng: rng.random(), rng.split(6))
    states = rng.split(6).state()
    alone = [float(stateful_rng(state).random()) for state in states]
    got = mapped(lambda state: stateful_rng(state).random(), states)
    assert got.tolist() == alone


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy])
def test_copies_are_independent_and_continue(clone):
    rng = stateful_rng(0)
    rng.random()
    other = clone(rng)
    assert other.random() == rng.random()
    other.random()
    assert (count(rng), count(other)) == (2, 3)


@pytest.mark.filterwarnings("ignore:rng.split")
@pytest.mark.parametrize("impl", IMPLS)
def test_pickle(impl):
    rng = stateful_rng(0, impl=impl)
    rng.random()
    other = pickle.loads(pickle.dumps(rng))
    assert count(other) == 1
    assert other.random() == rng.random()
    assert jax.jit(lambda: other.random())() == rng.random()
    batch = pickle.loads(pickle.dumps(rng.split(3)))
    assert batch.base_key.shape == (3,)


def test_deepcopy_of_a_tree_keeps_one_generator_one():
    rng = stateful_rng(0)
    a, b = copy.deepcopy([rng, rng])
    assert a is b
    assert a is not rng

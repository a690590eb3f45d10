"""PRNGState is a plain pytree: it goes wherever arrays go."""

import copy
import functools
import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jax_stateful_rng import PRNGState, StatefulPRNG, stateful_rng

IMPLS = ("threefry2x32", "rbg", "unsafe_rbg")


def words(state):
    """The state as comparable arrays."""
    return np.asarray(jax.random.key_data(state.base_key)), np.asarray(state.counter)


def assert_same(a, b):
    assert isinstance(a, PRNGState)
    assert a.base_key.dtype == b.base_key.dtype
    for x, y in zip(words(a), words(b), strict=True):
        np.testing.assert_array_equal(x, y)


def at(count, seed=0):
    """A state at draw ``count``."""
    counter = np.array([count >> 32, count & 0xFFFFFFFF], np.uint32)
    return PRNGState(jax.random.key(seed), jnp.array(counter))


def draw(state, size=()):
    rng = stateful_rng(state)
    return rng.random(size), rng.state()


# --- From a generator and back ------------------------------------------------------


def test_a_state_is_a_snapshot():
    rng = stateful_rng(1)
    rng.random()
    state = rng.state()
    first = rng.random(3)
    for _ in range(2):
        again = stateful_rng(state)
        np.testing.assert_array_equal(again.random(3), first)
    assert_same(state, at(1, seed=1))
    assert rng.state().counter.tolist() == [0, 2]


def test_set_state_moves_the_generator_and_all_that_hold_it():
    rng = stateful_rng(2)
    noisy = jax.jit(lambda x: x + rng.random())
    noisy(0.0)
    state = rng.state()
    first = noisy(0.0)
    rng.random()
    rng.set_state(state)
    assert noisy(0.0) == first


def test_set_state_takes_a_saved_state_of_the_same_stream():
    rng = stateful_rng(2)
    saved = PRNGState.from_dict(stateful_rng(2).state().to_dict())
    rng.random()
    rng.set_state(saved)
    assert rng.state().counter.tolist() == [0, 0]

    rng.random()
    jax.jit(lambda: rng.set_state(saved))()
    assert rng.state().counter.tolist() == [0, 0]


def test_set_state_of_a_batch():
    batch = stateful_rng(0).split(3)
    start = batch.state()
    first = jax.vmap(lambda rng: rng.random())(batch)
    assert batch.state().counter[:, 1].tolist() == [1, 1, 1]
    batch.set_state(start)
    np.testing.assert_array_equal(jax.vmap(lambda rng: rng.random())(batch), first)


def test_set_state_refuses_what_is_not_its_own():
    rng = stateful_rng(0)
    with pytest.raises(TypeError, match="must be a PRNGState"):
        rng.set_state(rng.state().to_dict())
    with pytest.raises(ValueError, match=r"stateful_rng\(state\)"):
        rng.set_state(stateful_rng(1).state())
    with pytest.raises(ValueError, match="same base key"):
        rng.set_state(stateful_rng(0, impl="rbg").state())
    with pytest.raises(ValueError, match="same base key"):
        rng.set_state(rng.split(2).state())
    with pytest.raises(ValueError, match=r"traced code.*rng = stateful_rng\(state\)"):
        jax.jit(rng.set_state)(rng.state())


def test_a_failed_set_state_changes_nothing():
    rng = stateful_rng(0)
    rng.random()
    with pytest.raises(ValueError, match="same base key"):
        rng.set_state(stateful_rng(1).state())
    assert rng.state().counter.tolist() == [0, 1]


def test_a_numpy_generator_costs_one_count_and_repeats():
    rng, again = stateful_rng(3), stateful_rng(3)
    made = rng.numpy_generator()
    assert isinstance(made, np.random.Generator)
    assert rng.state().counter.tolist() == [0, 1]
    other = again.numpy_generator()
    np.testing.assert_array_equal(made.random(5), other.random(5))
    assert rng.numpy_generator().random() != made.random()
    # The words of the key are all that goes in, so that this number stays.
    assert stateful_rng(0).numpy_generator().random() == 0.1863614338078079


def test_a_numpy_generator_serves_scipy():
    stats = pytest.importorskip("scipy.stats")
    rng = stateful_rng(3)
    x = stats.norm.rvs(size=4, random_state=rng.numpy_generator())
    y = stats.norm.rvs(size=4, random_state=stateful_rng(3).numpy_generator())
    np.testing.assert_array_equal(x, y)


def test_a_numpy_generator_in_traced_code_is_an_error():
    rng = stateful_rng(0)
    for traced in (
        lambda: jax.jit(lambda: rng.numpy_generator().random())(),
        lambda: jax.jit(lambda rng: rng.numpy_generator().random())(rng),
        lambda: jax.grad(lambda x: x * rng.numpy_generator().random())(1.0),
    ):
        with pytest.raises(TypeError, match=r"traced code.*outside"):
            traced()
    with pytest.raises(ValueError, match="batched"):
        rng.split(2).numpy_generator()
    assert rng.state().counter.tolist() == [0, 1]


def test_a_numbered_or_named_child_is_apart_from_every_drawn_key():
    """Untagged, the child of this name would be draw 2332: its digest is 2332."""
    rng = stateful_rng(0)
    drawn = jax.vmap(partial(jax.random.fold_in, rng.base_key))(jnp.arange(4000))
    drawn = set(map(tuple, jax.random.key_data(drawn).tolist()))
    children = ["layer149540", "dropout", 0, 1, 2332, 2**32 - 1]
    found = [
        tuple(jax.random.key_data(rng.fold_in(child).base_key).tolist())
        for child in children
    ]
    assert len(set(found)) == len(children)
    assert drawn.isdisjoint(found)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("impl", IMPLS)
def test_children_of_children_are_all_different(impl):
    """In unsafe_rbg too, whose fold_in is an XOR that could undo itself."""
    rng = stateful_rng(0, impl=impl)
    paths = [path for n in range(4) for path in itertools.product("ab", repeat=n)]
    paths += [(1, 2), (2, 1), (1, 1), (1, "a"), ("a", 1)]
    ends = [functools.reduce(StatefulPRNG.fold_in, path, rng) for path in paths]
    keys = [tuple(jax.random.key_data(end.base_key).tolist()) for end in ends]
    assert len(set(keys)) == len(paths)


def test_a_child_depends_on_base_key_and_data_only():
    rng = stateful_rng(0)
    before = rng.fold_in("a")
    before.random()
    rng.random(5)
    assert_same(rng.fold_in("a").state(), stateful_rng(0).fold_in("a").state())
    assert rng.state().counter.tolist() == [0, 1]
    traced = jax.jit(lambda i: rng.fold_in(i).random())(3)
    assert traced == rng.fold_in(3).random() == rng.fold_in(np.int8(3)).random()


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ("", ValueError),
        (-1, ValueError),
        (2**32, ValueError),
        (1.0, TypeError),
        (True, TypeError),
        (None, TypeError),
        (b"a", TypeError),
        (jnp.arange(2), TypeError),
        (jnp.float32(1), TypeError),
    ],
    ids=repr,
)
def test_a_child_of_nothing_is_an_error(data, error):
    with pytest.raises(error, match=r"rng\.fold_in"):
        stateful_rng(0).fold_in(data)


def test_a_child_of_a_batch_is_an_error():
    with pytest.raises(ValueError, match="batched"):
        stateful_rng(0).split(2).fold_in("a")


# --- A sequence of states -------------------------------------------------------------


def grid():
    """States of shape (3, 4), each at a draw number of its own."""
    keys = stateful_rng(0).split((3, 4)).state().base_key
    numbers = jnp.arange(12, dtype=jnp.uint32).reshape(3, 4)
    return PRNGState(keys, jnp.stack([numbers * 0, numbers], -1))


MASK = np.array([True, False, True])


@pytest.mark.parametrize(
    "index",
    [
        0,
        -1,
        slice(1, None),
        slice(None, None, -1),
        (slice(None), 2),
        (0, 3),
        ...,
        (..., 1),
        (..., slice(1, 3)),
        (0, ...),
        None,
        (..., None),
        (None, 1),
        (),
        np.array([2, 0, 0]),
        jnp.array([[2, 0], [1, 1]]),
        MASK,
        (MASK, 0),
        (0, slice(None), None),
        (np.array([0, 1]), np.array([3, 0])),
        (slice(None), jnp.array([3, 0])),
    ],
    ids=repr,
)
def test_indexing_reaches_the_batch_axes_only(index):
    states = grid()
    found = states[index]
    numbers = states.counter[..., 1][index]
    assert found.shape == numbers.shape
    np.testing.assert_array_equal(found.counter[..., 1], numbers)
    np.testing.assert_array_equal(
        jax.random.key_data(found.base_key),
        jax.random.key_data(states.base_key[index]),
    )


def test_indexing_with_a_traced_index():
    states = grid()
    found = jax.jit(lambda states, i: states[i])(states, 2)
    assert_same(found, states[2])
    host = PRNGState(states.base_key, np.asarray(states.counter))
    assert_same(jax.jit(lambda i: host[i])(2), states[2])


def test_len_iteration_and_repr():
    states = grid()
    assert len(states) == 3
    assert [row.shape for row in states] == [(4,)] * 3
    assert_same(list(states[0])[3], states[0, 3])
    assert repr(states) == "PRNGState(impl='threefry2x32', shape=(3, 4))"
    assert repr(at(2**40)) == "PRNGState(impl='threefry2x32', count=1099511627776)"
    gone = at(0)
    gone.counter.delete()
    assert repr(gone) == "PRNGState(impl='threefry2x32', count lost)"
    with pytest.raises(TypeError, match="no len"):
        len(at(0))
    with pytest.raises(TypeError, match="no len"):
        iter(at(0))
    with pytest.raises(IndexError):
        at(0)[0]


def test_stacking_and_concatenating():
    states = [stateful_rng(i).state() for i in range(3)]
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    assert batch.shape == (3,)
    for i, state in enumerate(states):
        assert_same(batch[i], state)
    both = jax.tree.map(lambda *x: jnp.concatenate(x), batch[1:], batch[:1])
    assert_same(both, batch[np.array([1, 2, 0])])
    shaped = jax.tree.map(lambda x: jnp.stack([x, x], axis=1), batch)
    assert_same(shaped[:, 1], batch)


def test_choosing_between_batches():
    done = np.array([True, False, True])
    a, b = grid()[:, 0], grid()[:, 1]
    found = jax.vmap(lambda done, a, b: jax.tree.map(partial(jnp.where, done), a, b))(
        done, a, b
    )
    for i in range(3):
        assert_same(found[i], (a if done[i] else b)[i])


def test_a_batched_state_makes_a_batched_generator():
    states = grid()[0]
    rng = stateful_rng(states)
    with pytest.raises(ValueError, match="batched"):
        rng.random()
    together = jax.vmap(lambda rng: rng.random(2))(rng)
    for i, state in enumerate(states):
        np.testing.assert_array_equal(together[i], stateful_rng(state).random(2))


# --- Transformations -----------------------------------------------------------------


def expected(n, size=(), state=None):
    rng = stateful_rng(at(0) if state is None else state)
    return np.stack([rng.random(size) for _ in range(n)]), rng.state()


def test_jit_returns_it():
    got, state = jax.jit(draw, static_argnums=1)(at(0), (2,))
    assert_same(state, at(1))
    np.testing.assert_array_equal(got, expected(1, (2,))[0][0])


@pytest.mark.parametrize("remat", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_scan_carries_it(remat, reverse):
    def step(state, x):
        noise, state = draw(state)
        return state, noise * x

    body = jax.checkpoint(step) if remat else step
    x = jnp.ones(5)
    state, noise = jax.lax.scan(body, at(0), x, reverse=reverse)
    want, last = expected(5)
    np.testing.assert_array_equal(noise[::-1] if reverse else noise, want)
    assert_same(state, last)

    grad = jax.grad(lambda x: jax.lax.scan(body, at(0), x, reverse=reverse)[1].sum())
    np.testing.assert_array_equal(grad(x), noise)


def test_scan_goes_through_states():
    states = grid()[:, 0]
    _, noise = jax.lax.scan(lambda c, s: (c, draw(s)[0]), 0, states)
    np.testing.assert_array_equal(noise, jax.vmap(lambda s: draw(s)[0])(states))


def test_while_and_fori_carry_it():
    def body(carry):
        i, total, state = carry
        noise, state = draw(state)
        return i + 1, total + noise, state

    start = (0, jnp.float32(0), at(0))
    *_, state = jax.lax.while_loop(lambda c: c[0] < 4, body, start)
    assert_same(state, at(4))
    *_, state = jax.lax.fori_loop(0, 4, lambda _, c: body(c), start)
    assert_same(state, at(4))


@pytest.mark.parametrize("remat", [False, True])
def test_a_data_dependent_cond_in_a_differentiated_scan(remat):
    """The branch that draws moves the state; the other leaves it."""

    def step(carry, draws):
        x, state = carry
        noise, state = jax.lax.cond(draws, draw, lambda s: (jnp.float32(1), s), state)
        return (x * noise, state), noise

    body = jax.checkpoint(step) if remat else step
    draws = jnp.array([True, False, True, True, False])

    def loss(x):
        (x, state), noise = jax.lax.scan(body, (x, at(0)), draws)
        return x, (state, noise)

    (value, (state, noise)), grad = jax.jit(jax.value_and_grad(loss, has_aux=True))(1.0)
    want = np.ones(5, np.float32)
    want[np.asarray(draws)] = expected(3)[0]
    np.testing.assert_array_equal(noise, want)
    assert_same(state, at(3))
    np.testing.assert_allclose(value, want.prod(), rtol=1e-6)
    np.testing.assert_allclose(grad, value, rtol=1e-6)


def test_switch_and_select_under_vmap():
    """A batched predicate: lanes that do not draw stay where they are."""
    states = grid()[:, 0]
    draws = jnp.array([True, False, True])

    def step(draws, state):
        return jax.lax.cond(draws, draw, lambda s: (jnp.float32(-1), s), state)

    noise, after = jax.vmap(step)(draws, states)
    assert noise[1] == -1
    moved = after.counter[:, 1] - states.counter[:, 1]
    assert moved.tolist() == [1, 0, 1]


def test_grad_takes_it_as_an_argument():
    def loss(x, state):
        noise, state = draw(state)
        return x * noise, state

    grad, state = jax.jit(jax.grad(loss, has_aux=True))(2.0, at(7))
    assert grad == stateful_rng(at(7)).random()
    assert_same(state, at(8))
    zeros = jax.grad(lambda s: draw(s)[0], allow_int=True)(at(7))
    assert zeros.counter.dtype == jax.dtypes.float0
    # Under jit: JAX 0.12 makes no Ref, of whatever kind, in an eager jax.jvp.
    _, tangent = jax.jit(lambda x: jax.jvp(lambda x: loss(x, at(7))[0], (x,), (x,)))(
        1.0
    )
    assert tangent == grad


def test_vmap_equals_a_loop_and_nests():
    states = grid()
    want, after = jax.vmap(jax.vmap(draw))(states)
    for i, j in np.ndindex(3, 4):
        noise, state = draw(states[i, j])
        assert noise == want[i, j]
        assert_same(state, after[i, j])
    columns, _ = jax.vmap(lambda s: jax.vmap(draw)(s), in_axes=1)(states)
    np.testing.assert_array_equal(columns, want.T)


def test_donation():
    step = jax.jit(draw, donate_argnums=0)
    rng = stateful_rng(0)
    state = copy.deepcopy(rng.state())
    for k in range(3):
        noise, new = step(state)
        assert noise == rng.random(), k
        assert jax.tree.leaves(state)[1].is_deleted()
        state = new
    assert_same(state, at(3))


def test_donating_a_snapshot_leaves_the_generator_alone():
    """The counter of a state is a copy; the base key is shared, and not written."""
    rng = stateful_rng(0)
    jax.jit(lambda counter: counter + 1, donate_argnums=0)(rng.state().counter)
    assert rng.random() == stateful_rng(0).random()


def test_sharding():
    if jax.device_count() < 4:
        pytest.skip("needs four devices")
    mesh = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    states = stateful_rng(0).split(8).state()
    spec = jax.sharding.NamedSharding(mesh, jax.P("d"))
    data = jax.device_put(jax.random.key_data(states.base_key), spec)
    placed = PRNGState(
        jax.random.wrap_key_data(data), jax.device_put(states.counter, spec)
    )
    noise, after = jax.jit(jax.vmap(draw))(placed)
    assert after.counter.sharding.is_equivalent_to(spec, 2)
    np.testing.assert_array_equal(noise, jax.vmap(draw)(states)[0])


def test_ahead_of_time():
    state = at(0)
    shapes = jax.eval_shape(draw, state)[1]
    assert shapes.shape == ()
    assert "PRNGState" in repr(shapes)
    compiled = jax.jit(draw).lower(state).compile()
    assert_same(compiled(state)[1], at(1))
    abstract = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), state)
    assert_same(jax.jit(draw).lower(abstract).compile()(state)[1], at(1))
    exported = jax.export.export(
        jax.jit(lambda c: stateful_rng(PRNGState(jax.random.key(0), c)).random())
    )(state.counter)
    np.testing.assert_array_equal(exported.call(state.counter), draw(state)[0])


def test_the_state_goes_on_after_32_bits():
    _, state = jax.jit(draw)(at(2**32 - 1))
    assert state.counter.tolist() == [1, 0]
    rng = stateful_rng(at(2**32 - 1))
    rng.random()
    assert draw(state)[0] == rng.random() != draw(at(0))[0]


@pytest.mark.parametrize("impl", IMPLS)
def test_impls(impl):
    rng = stateful_rng(0, impl=impl)
    noise, state = jax.jit(draw)(rng.state())
    assert noise == rng.random()
    assert_same(state, rng.state())
    assert f"{impl!r}" in repr(state)


def test_x64(x64):
    noise, state = jax.jit(draw)(at(0))
    assert noise.dtype == np.float64
    assert_same(state, at(1))


# --- What is no state -----------------------------------------------------------------


def test_the_constructor_refuses_what_would_go_wrong():
    key, counter = jax.random.key(0), jnp.zeros(2, jnp.uint32)
    with pytest.raises(TypeError, match="wrap_key_data"):
        PRNGState(jax.random.key_data(key), counter)
    with pytest.raises(TypeError, match="uint32"):
        PRNGState(key, jnp.zeros(2, jnp.int32))
    with pytest.raises(ValueError, match="shape"):
        PRNGState(key, jnp.zeros(3, jnp.uint32))
    with pytest.raises(ValueError, match="axis=0"):
        jax.tree.map(lambda *x: jnp.stack(x, axis=-1), *[at(0)] * 3)


def test_the_constructor_lets_pass_what_jax_puts_there():
    state = at(0)
    for leaf in (None, 0, object(), jax.ShapeDtypeStruct((), np.float32)):
        assert jax.tree.map(lambda _, leaf=leaf: leaf, state) is not None
    tree = jax.tree.structure(state)
    assert jax.tree.unflatten(tree, [1, 2]).counter == 2


def test_states_compare_by_identity():
    state = at(0)
    assert state == state
    assert state != at(0)
    assert len({state, state}) == 1


def test_copies():
    states = grid()
    for copied in (copy.copy(states), copy.deepcopy(states)):
        assert_same(copied, states)
    assert copy.copy(states).counter is states.counter
    assert copy.deepcopy(states).counter is not states.counter
    assert_same(jax.jit(copy.copy)(states), states)
    assert_same(jax.jit(copy.deepcopy)(states), states)
    generator = copy.deepcopy({"a": (rng := stateful_rng(0)), "b": rng})
    assert isinstance(generator["a"], StatefulPRNG)
    assert generator["a"] is generator["b"] is not rng

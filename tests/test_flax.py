"""Generators and flax.nnx: one stream in two forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jax_stateful_rng import (
    PRNGState,
    key_from,
    named_streams,
    rngs_from_seed,
    stateful_rng,
)

nnx = pytest.importorskip("flax.nnx")

from jax_stateful_rng import flax as bridge  # noqa: E402 (it needs flax)


def data(key):
    return jax.random.key_data(key).tolist()


def at(count, shape=()):
    """A generator, or a batch of them, at draw ``count``."""
    rng = stateful_rng(0)
    rng = rng.split(shape) if shape else rng
    words = np.array([count >> 32, count & 0xFFFFFFFF], np.uint32)
    counter = jnp.broadcast_to(words, (*shape, 2))
    return stateful_rng(PRNGState(rng.base_key, counter))


# --- There and back -------------------------------------------------------------------


def test_a_generator_is_the_stream_default():
    rng = stateful_rng(3)
    rng.random()
    rngs = bridge.to_nnx(rng)
    assert isinstance(rngs, nnx.Rngs)
    assert list(rngs) == ["default"]
    assert rngs.default.count.get_value() == 1
    for stream in (rngs, rngs.params, rngs.anything):
        assert data(stream()) == data(rng.key())
    back = bridge.from_nnx(rngs)
    assert list(back) == ["default"]
    assert back["default"].state().counter.tolist() == [0, 4]
    assert data(back["default"].base_key) == data(rng.base_key)
    assert back["default"].random() == rng.random()


def test_named_streams_keep_their_names():
    streams = named_streams(1, ["params", "dropout"])
    streams["dropout"].random()
    rngs = bridge.to_nnx(streams)
    assert list(rngs) == ["params", "dropout"]
    back = bridge.from_nnx(rngs)
    for name, rng in streams.items():
        want = data(rng.key())
        assert data(rngs[name]()) == want
        assert data(back[name].key()) == want


def test_an_rngs_of_flax_goes_on_as_generators():
    rngs = nnx.Rngs(0, params=1)
    rngs.params()
    streams = bridge.from_nnx(rngs)
    for name in ("default", "params"):
        for _ in range(2):
            assert data(streams[name].key()) == data(rngs[name]())


def test_split_streams_are_batched_generators():
    batch = at(5, (3,))
    rngs = bridge.to_nnx(batch)
    assert rngs.default.count.get_value().tolist() == [5, 5, 5]
    keys = nnx.vmap(lambda rngs: rngs())(rngs)
    want = jax.vmap(lambda rng: rng.key())(batch)
    assert data(keys) == data(want)
    back = bridge.from_nnx(rngs)["default"]
    assert back.state().counter.tolist() == batch.state().counter.tolist()


def test_counts_beyond_32_bits_go_into_the_base_key():
    rng = at(2**32 + 7)
    assert data(bridge.to_nnx(rng)()) == data(rng.key())


def test_the_bridge_inside_jit():
    @jax.jit
    def draw(rng):
        rngs = bridge.to_nnx(rng)
        rngs.dropout()
        after = bridge.from_nnx(rngs)["default"]
        return after.key(), after.state()

    key, state = draw(at(4))
    assert data(key) == data(at(5).key())
    assert state.counter.tolist() == [0, 6]


@pytest.mark.parametrize(
    "source", [None, 0, jax.random.key(0), {"a": 0}, {1: stateful_rng(0)}], ids=repr
)
def test_what_is_no_generator(source):
    with pytest.raises(TypeError, match="to_nnx: source must"):
        bridge.to_nnx(source)


def test_what_is_no_rngs():
    with pytest.raises(TypeError, match="from_nnx: rngs must"):
        bridge.from_nnx(stateful_rng(0))


# --- Modules -------------------------------------------------------------------------


class Model(nnx.Module):
    def __init__(self, rngs):
        self.linear = nnx.Linear(4, 1, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x):
        return self.linear(self.dropout(x))[:, 0]


def test_one_generator_runs_a_training():
    """Parameters, dropout and data come from one seed; the same again is the same."""
    optax = pytest.importorskip("optax")

    @nnx.jit
    def step(model, optimizer, rng):
        x = rng.normal(size=(8, 4))
        loss = lambda model: ((model(x) - x.sum(1)) ** 2).mean()
        value, grads = nnx.value_and_grad(loss)(model)
        optimizer.update(model, grads)
        return value

    def train(seed):
        rng = stateful_rng(seed)
        model = Model(bridge.to_nnx(rng.fold_in("model")))
        optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)

        losses = [step(model, optimizer, rng) for _ in range(30)]
        assert rng.state().counter.tolist() == [0, 30]
        assert model.dropout.rngs.count.get_value() == 30
        return np.stack(losses)

    first = train(0)
    assert first[-5:].mean() < first[:5].mean()
    np.testing.assert_array_equal(train(0), first)
    assert (train(1) != first).any()


def test_dropout_draws_the_masks_of_the_generator():
    rng = stateful_rng(0)
    dropout = nnx.Dropout(0.5, rngs=bridge.to_nnx(rng))
    x = dropout(jnp.ones(100))
    # nnx.Dropout keeps a stream of its own, forked from the one that it gets.
    stream = jax.random.fold_in(rng.key(), 0)
    keep = jax.random.bernoulli(stream, 0.5, (100,))
    np.testing.assert_array_equal(x, jnp.where(keep, 2.0, 0.0))


def test_key_from_inside_nnx_jit():
    rngs = rngs_from_seed(0, ("sample",))
    draw = nnx.jit(lambda rngs: key_from(rngs, streams=("x", "sample")))
    want = named_streams(0, ["sample"])["sample"]
    for _ in range(2):
        assert data(draw(rngs)) == data(want.key())


class Noisy(nnx.Module):
    """Holds a generator as it is."""

    def __init__(self, rng, weight=1.0):
        self.rng = rng
        self.weight = nnx.Param(jnp.float32(weight))

    def __call__(self, x):
        return x + self.weight * self.rng.normal(size=x.shape)


def test_a_generator_as_an_attribute():
    x = jnp.zeros(3)
    model, want = Noisy(stateful_rng(0)), stateful_rng(0)
    np.testing.assert_array_equal(model(x), want.normal(size=3))
    call = nnx.jit(lambda model, x: model(x))
    for _ in range(2):
        np.testing.assert_array_equal(call(model, x), want.normal(size=3))
    grads = nnx.jit(nnx.grad(lambda model: model(x).sum()))(model)
    np.testing.assert_allclose(grads["weight"][...], want.normal(size=3).sum())
    graph, state = nnx.split(model)
    np.testing.assert_array_equal(nnx.merge(graph, state)(x), want.normal(size=3))
    assert model.rng.state().counter.tolist() == [0, 5]


def test_a_second_module_gets_a_generator_of_its_own():
    """One generator in two modules is one stream; its state makes another."""
    model = Noisy(stateful_rng(0))
    other = Noisy(stateful_rng(model.rng.state()))
    np.testing.assert_array_equal(other(jnp.zeros(2)), model(jnp.zeros(2)))


def test_a_state_as_a_variable():
    """What can be checkpointed with the model: the state, in a Variable."""

    class Stream(nnx.Variable):
        pass

    class Layer(nnx.Module):
        def __init__(self, rng):
            self.stream = Stream(rng.state())

        def __call__(self, x):
            rng = stateful_rng(self.stream.get_value())
            x = x + rng.normal(size=x.shape)
            self.stream.set_value(rng.state())
            return x

    layer, want = Layer(stateful_rng(0)), stateful_rng(0)
    call = nnx.jit(lambda layer, x: layer(x))
    for _ in range(2):
        np.testing.assert_array_equal(call(layer, jnp.zeros(3)), want.normal(size=3))
    _, state = nnx.split(layer)
    assert state["stream"].get_value().counter.tolist() == [0, 2]


def test_a_batch_of_modules_from_a_batched_generator():
    batch = stateful_rng(0).split(3)
    linear = lambda rng: nnx.Linear(2, 2, rngs=nnx.Rngs(rng.key()))
    many = nnx.vmap(linear)(batch)
    one = nnx.Linear(2, 2, rngs=nnx.Rngs(stateful_rng(0).spawn(3)[1].key()))
    np.testing.assert_allclose(many.kernel[...][1], one.kernel[...], rtol=1e-6)

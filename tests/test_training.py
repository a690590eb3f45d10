"""A small network trains with one generator as it does with keys written by hand.

Three layers with dropout on scikit-learn's digits, each under ``jax.checkpoint``,
trained under ``jit(value_and_grad(...))``. All programs share the model; they differ in
where the noise comes from. By hand, draw n of the program has ``fold_in(base, n)``.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import load_digits

from jax_stateful_rng import stateful_rng

SEED, STEPS, BATCH, KEEP, RATE = 1701, 80, 64, 0.9, 0.3
SHAPES = [(64, 96), (96, 48), (48, 10)]
# One draw a layer for the weights; one a step for the batch, two for the dropout.
DRAWS = len(SHAPES) + 3 * STEPS


@functools.cache
def digits():
    data = load_digits()
    return np.float32(data.data / 16), np.int32(data.target)


def batch(key):
    inputs, labels = map(jnp.asarray, digits())
    chosen = jax.random.randint(key, (BATCH,), 0, len(labels))
    return inputs[chosen], labels[chosen]


def weights(keys):
    return [
        jax.random.normal(key, shape) / np.sqrt(shape[0])
        for key, shape in zip(keys, SHAPES, strict=True)
    ]


def layer(random, source, w, x):
    h = jax.nn.relu(x @ w)
    return jnp.where(random(source, h.shape) < KEEP, h / KEEP, 0)


def readout(w, x):
    return x @ w


def sgd(params, key, random, sources):
    """One step, in which ``random(source, shape)`` draws the noise of one layer."""
    x, labels = batch(key)

    def loss(params):
        *hidden, last = params
        h = x
        for w, source in zip(hidden, sources, strict=True):
            h = jax.checkpoint(functools.partial(layer, random))(source, w, h)
        logs = jax.nn.log_softmax(jax.checkpoint(readout)(last, h))
        return -jnp.take_along_axis(logs, labels[:, None], 1).mean()

    value, gradients = jax.value_and_grad(loss)(params)
    return [w - RATE * g for w, g in zip(params, gradients, strict=True)], value


def repeat(step, params):
    losses = []
    for n in range(STEPS):
        params, value = step(params, n)
        losses.append(value)
    return params, jnp.stack(losses)


@functools.cache
def by_hand():
    base = jax.random.key(SEED)

    def key(n):
        return jax.random.fold_in(base, n)

    params = weights([key(n) for n in range(len(SHAPES))])

    @jax.jit
    def step(params, n):
        n = len(SHAPES) + 3 * n
        keys = [key(n + 1), key(n + 2)]
        return sgd(params, key(n), jax.random.uniform, keys)

    return repeat(step, params)


def start():
    rng = stateful_rng(SEED)
    return rng, weights([rng.key() for _ in SHAPES])


def closed_over():
    rng, params = start()

    def random(_, shape):
        return rng.random(shape)

    @jax.jit
    def step(params, _):
        return sgd(params, rng.key(), random, [None, None])

    return repeat(step, params), rng.state()


def passed_on(rng, shape):
    return rng.random(shape)


def argument():
    rng, params = start()

    @jax.jit
    def step(params, rng):
        return sgd(params, rng.key(), passed_on, [rng, rng])

    return repeat(lambda params, _: step(params, rng), params), rng.state()


def scanned():
    """All the training is one scan that closes over the generator."""
    rng, params = start()

    def step(params, _):
        return sgd(params, rng.key(), passed_on, [rng, rng])

    trained = jax.jit(lambda params: jax.lax.scan(step, params, length=STEPS))(params)
    return trained, rng.state()


def carried():
    """All the training is one scan that carries the generator's state."""
    rng, params = start()

    def step(carry, _):
        params, state = carry
        rng = stateful_rng(state)
        params, value = sgd(params, rng.key(), passed_on, [rng, rng])
        return (params, rng.state()), value

    @jax.jit
    def train(*carry):
        return jax.lax.scan(step, carry, length=STEPS)

    (params, state), losses = train(params, rng.state())
    return (params, losses), state


@pytest.mark.parametrize("train", [closed_over, argument, scanned, carried])
def test_losses_equal_those_of_explicit_keys(train):
    (params, losses), state = train()
    wanted_params, wanted = by_hand()
    np.testing.assert_allclose(losses, wanted, rtol=1e-6)
    for got, want in zip(params, wanted_params, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(state.counter, [0, DRAWS])


def test_it_learns():
    params, losses = by_hand()
    inputs, labels = digits()
    for w in params:
        inputs = jax.nn.relu(inputs) @ w
    assert losses[-5:].mean() < 0.3 * losses[:5].mean()
    assert np.mean(np.argmax(inputs, -1) == labels) > 0.9

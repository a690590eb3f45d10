"""Libraries that take JAX keys: they get them from ``rng.key()``."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jax_stateful_rng import stateful_rng


def test_equinox():
    """Layers are made and dropout is drawn from keys; a module may hold a state."""
    eqx = pytest.importorskip("equinox")
    rng = stateful_rng(0)
    model = eqx.nn.MLP(3, 1, 8, 1, key=rng.key())
    dropout = eqx.nn.Dropout(0.5)

    @eqx.filter_jit
    def loss(model, x, rng):
        return jnp.square(dropout(jax.vmap(model)(x), key=rng.key())).mean()

    x = rng.normal(size=(5, 3))
    state = rng.state()
    values = [loss(model, x, rng) for _ in range(2)]
    assert values[0] != values[1]
    assert rng.state().counter.tolist() == [0, 4]
    assert loss(model, x, stateful_rng(state)) == values[0]

    class Noisy(eqx.Module):
        state: object

        def __call__(self, x):
            rng = stateful_rng(self.state)
            return x + rng.normal(), Noisy(rng.state())

    layer, twin = Noisy(stateful_rng(1).state()), stateful_rng(1)
    for _ in range(2):
        y, layer = eqx.filter_jit(lambda layer, x: layer(x))(layer, 1.0)
        np.testing.assert_allclose(y, 1.0 + twin.normal(), rtol=1e-6)


def test_optax():
    """A training on fresh data, with optax's own noise on the gradients."""
    optax = pytest.importorskip("optax")
    rng = stateful_rng(0)
    weights = rng.normal(size=3)
    optimizer = optax.chain(optax.add_noise(0.1, 0.55, rng.key()), optax.adam(0.1))

    @jax.jit
    def step(weights, opt, rng):
        x = rng.normal(size=(16, 3))
        loss = lambda weights: ((x @ weights - x.sum(1)) ** 2).mean()
        value, grads = jax.value_and_grad(loss)(weights)
        updates, opt = optimizer.update(grads, opt, weights)
        return optax.apply_updates(weights, updates), opt, value

    opt, values = optimizer.init(weights), []
    for _ in range(80):
        weights, opt, value = step(weights, opt, rng)
        values.append(value)
    assert np.mean(values[-10:]) < 0.2 * np.mean(values[:10])
    assert rng.state().counter.tolist() == [0, 82]


def test_numpyro():
    """A key for the chain, the next for a seeded model."""
    numpyro = pytest.importorskip("numpyro")
    infer, handlers = numpyro.infer, numpyro.handlers
    rng = stateful_rng(0)
    data = rng.normal(1.5, 1.0, size=200)

    def model(data=None):
        loc = numpyro.sample("loc", numpyro.distributions.Normal(0, 10))
        with numpyro.plate("n", 200):
            numpyro.sample("x", numpyro.distributions.Normal(loc, 1), obs=data)

    mcmc = infer.MCMC(
        infer.HMC(
            model,
            step_size=0.05,
            num_steps=5,
            trajectory_length=None,
            adapt_step_size=False,
            adapt_mass_matrix=False,
        ),
        num_warmup=100,
        num_samples=200,
        progress_bar=False,
    )
    mcmc.run(rng.key(), data)
    draws = mcmc.get_samples()["loc"]
    assert abs(draws.mean() - data.mean()) < 0.1
    assert rng.state().counter.tolist() == [0, 2]

    with handlers.seed(rng_seed=rng.key()):
        a = numpyro.sample("a", numpyro.distributions.Normal(0, 1))
    assert np.isfinite(a)


def test_blackjax():
    """The chain's keys come from a generator inside the scan."""
    blackjax = pytest.importorskip("blackjax")
    log_density = lambda x: -0.5 * ((x - 3.0) ** 2).sum()
    kernel = blackjax.hmc(log_density, 0.5, jnp.ones(1), 5)
    rng = stateful_rng(0)

    @jax.jit
    def sample(start, rng):
        def step(chain, _):
            chain, _ = kernel.step(rng.key(), chain)
            return chain, chain.position

        return jax.lax.scan(step, kernel.init(start), length=500)[1]

    draws = sample(jnp.zeros(1), rng)
    assert abs(draws[100:].mean() - 3.0) < 0.3
    assert rng.state().counter.tolist() == [0, 500]

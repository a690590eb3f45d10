"""A rollout replayed in shuffled minibatches of environments sees the same noise.

Every environment carries its own state. The loss gets the states from before the
rollout, ``carry[inds]``, and must draw what the rollout drew: keys, bits and uniforms
bit for bit, normals to a few ulp (XLA rounds them differently at other batch sizes).
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jax_stateful_rng import PRNGState, stateful_rng

ENVS, STEPS, MINIBATCHES = 64, 128, 8
WIDTH = 3
ULP = 4


@pytest.fixture(scope="module")
def minibatches():
    """Shuffled: an unshuffled first minibatch replays by accident in any scheme."""
    order = np.random.default_rng(0).permutation(ENVS)
    return order.reshape(MINIBATCHES, -1)


@pytest.fixture(scope="module")
def done():
    """Resets at arbitrary steps, of some environments more often than of others."""
    odds = np.linspace(0, 0.3, ENVS)[:, None]
    return np.random.default_rng(1).random((ENVS, STEPS)) < odds


def choose(condition, a, b):
    """A pytree select for one environment."""
    return jax.tree.map(partial(jnp.where, condition), a, b)


class Noise(NamedTuple):
    """What a step draws: its key, uniforms of it, normals of the next."""

    key: jax.Array
    uniform: jax.Array
    normal: jax.Array


def draws(state):
    rng = stateful_rng(state)
    key = rng.key()
    noise = Noise(jax.random.key_data(key), rng.random(WIDTH), rng.normal(size=WIDTH))
    return noise, rng.state()


def chain_survives(state, done):
    """The policy of resets in which an environment's stream just goes on."""
    return state


def fresh_on_reset(state, done):
    """The policy in which a reset starts a stream of its own, from the old one."""
    return choose(done, stateful_rng(state).fold_in("reset").state(), state)


@partial(jax.jit, static_argnums=2)
def rollout(states, done, on_reset=chain_survives):
    """Runs all steps of all environments; returns the noise [env, step, ...]."""

    def step(state, done):
        noise, state = draws(state)
        return on_reset(state, done), noise

    return jax.vmap(lambda state, done: jax.lax.scan(step, state, done))(states, done)


def assert_replays(noise, again, where):
    np.testing.assert_array_equal(again.key, noise.key[where])
    np.testing.assert_array_equal(again.uniform, noise.uniform[where])
    np.testing.assert_array_max_ulp(again.normal, noise.normal[where], ULP)


def assert_all_keys_differ(noise):
    keys = noise.key.reshape(-1, noise.key.shape[-1])
    assert len(np.unique(keys, axis=0)) == len(keys)


@pytest.mark.parametrize("on_reset", [chain_survives, fresh_on_reset])
def test_every_shuffled_minibatch_replays(on_reset, minibatches, done):
    states = stateful_rng(7).split(ENVS).state()
    after, noise = jax.device_get(rollout(states, done, on_reset))
    assert_all_keys_differ(noise)
    for inds in minibatches:
        last, again = jax.device_get(rollout(states[inds], done[inds], on_reset))
        assert_replays(noise, again, inds)
        np.testing.assert_array_equal(last.counter, after.counter[inds])


def test_the_place_of_an_environment_changes_nothing(done):
    """Environments one by one instead of by vmap, and steps one by one."""
    states = stateful_rng(7).split(ENVS).state()
    _, noise = jax.device_get(rollout(states, done))
    some = np.array([40, 3, 63])
    looped = jax.lax.map(
        lambda s: jax.lax.scan(lambda s, _: draws(s)[::-1], s, length=STEPS)[1],
        states[some],
    )
    assert_replays(noise, jax.device_get(looped), some)

    state, step = states[40], jax.jit(draws)
    for t in range(3):
        found, state = step(state)
        np.testing.assert_array_equal(found.uniform, noise.uniform[40, t])


def test_a_snapshot_is_a_value_and_a_discarded_step_changes_nothing(done):
    """As the bootstrap value at the end of a rollout, whose noise nobody keeps."""
    rng = stateful_rng(7).split(ENVS)
    states = rng.state()
    middle, first = rollout(states, done[:, :64])
    draws_of_all = jax.jit(jax.vmap(draws))
    draws_of_all(middle)
    _, second = rollout(middle, done[:, 64:])
    jax.vmap(lambda rng: rng.random())(rng)
    _, whole = rollout(states, done)
    np.testing.assert_array_equal(
        np.concatenate([first.uniform, second.uniform], 1), whole.uniform
    )


def test_one_generator_for_the_whole_batch_fails(minibatches):
    """The trap that per-environment states are for."""

    @partial(jax.jit, static_argnums=1)
    def rollout(state, envs):
        def step(state, _):
            rng = stateful_rng(state)
            noise = rng.random((envs, WIDTH))
            return rng.state(), noise

        return jax.lax.scan(step, state, length=STEPS)[1].swapaxes(0, 1)

    state = stateful_rng(7).state()
    noise = np.asarray(rollout(state, ENVS))
    again = np.asarray(rollout(state, ENVS // MINIBATCHES))
    for inds in minibatches:
        assert (again == noise[inds]).mean() < 0.2
    # Unshuffled, the first one hides the fault.
    np.testing.assert_array_equal(again, noise[: len(again)])


def test_the_number_of_draws_of_one_environment_is_its_own():
    """Every environment draws until it is content, and no other one notices."""

    def until_large(state, threshold):
        def body(carry):
            _, state = carry
            rng = stateful_rng(state)
            return rng.random(), rng.state()

        return jax.lax.while_loop(lambda c: c[0] < threshold, body, (-1.0, state))

    states = stateful_rng(3).split(ENVS).state()
    thresholds = jnp.linspace(0, 0.98, ENVS)
    both = jax.jit(jax.vmap(until_large))
    value, after = both(states, thresholds)
    counts = np.asarray(after.counter[:, 1])
    assert counts.min() == 1
    assert counts.max() > 20
    for env in (1, 30, ENVS - 1):
        rng = stateful_rng(states[env])
        tries = np.stack([rng.random() for _ in range(counts[env])])
        assert (tries[:-1] < thresholds[env]).all()
        assert tries[-1] == value[env]
    # Other thresholds elsewhere leave this environment's draws where they were.
    others = thresholds.at[:32].set(0.99)
    again, _ = both(states, others)
    np.testing.assert_array_equal(again[32:], value[32:])


def test_layers_with_streams_of_their_own_do_not_move_each_other():
    """A layer that draws once more leaves the noise of the others alone."""

    def step(streams, extra):
        rngs = {name: stateful_rng(state) for name, state in streams.items()}
        for _ in range(extra):
            rngs["dropout"].random()
        noise = {name: rng.random() for name, rng in rngs.items()}
        return noise, {name: rng.state() for name, rng in rngs.items()}

    rng = stateful_rng(0).split(4)
    streams = {
        name: jax.vmap(lambda rng, name=name: rng.fold_in(name).state())(rng)
        for name in ("bottleneck", "dropout")
    }
    plain, extra = (
        jax.vmap(partial(step, extra=extra))(streams)[0] for extra in (0, 1)
    )
    np.testing.assert_array_equal(plain["bottleneck"], extra["bottleneck"])
    assert (plain["dropout"] != extra["dropout"]).all()


# --- A bottleneck in plain JAX --------------------------------------------------------


class Params(NamedTuple):
    """Weights of a bottleneck and of the two heads behind it."""

    mean: jax.Array
    log_std: jax.Array
    policy: jax.Array
    value: jax.Array


OBS, LATENT = 4, 6


def new_params(rng):
    return Params(
        rng.normal(size=(OBS, LATENT)) / 2,
        rng.normal(size=(OBS, LATENT)) / 10,
        rng.normal(size=LATENT) / 2,
        rng.normal(size=LATENT) / 2,
    )


def bottleneck(params, obs, state):
    """A variational bottleneck: z ~ N(mean, std²), and its cost against N(0, 1)."""
    mean, log_std = obs @ params.mean, obs @ params.log_std
    rng = stateful_rng(state)
    z = rng.normal(mean, jnp.exp(log_std))
    cost = 0.5 * (mean**2 + jnp.exp(2 * log_std) - 1 - 2 * log_std).sum()
    return z, cost, rng.state()


def log_prob(raw, mean):
    """The log density of a tanh-squashed normal action, from its raw value."""
    return -0.5 * (raw - mean) ** 2 - jnp.log1p(-(jnp.tanh(raw) ** 2) + 1e-6)


class Step(NamedTuple):
    """What a rollout keeps of one step."""

    obs: jax.Array
    raw: jax.Array
    log_prob: jax.Array
    advantage: jax.Array
    done: jax.Array


@jax.jit
def play(params, carry, obs):
    """Rolls the policy out; the bottleneck and the actions have a stream each."""

    def step(carry, _):
        obs, noise, actions = carry
        z, _, noise = bottleneck(params, obs, noise)
        rng = stateful_rng(actions)
        raw = z @ params.policy + rng.normal()
        done = rng.random() < 0.05
        nxt = 0.9 * jnp.roll(obs, 1) + 0.2 * jnp.tanh(raw)
        nxt = jnp.where(done, jnp.ones(OBS), nxt)
        kept = Step(
            obs, raw, log_prob(raw, z @ params.policy), z @ params.value - raw, done
        )
        return (nxt, noise, rng.state()), kept

    run = lambda carry: jax.lax.scan(step, carry, length=STEPS)
    return jax.vmap(run)((obs, *carry))


def replay(params, noise, steps):
    """The log probability of the stored raw actions, and the cost: no action drawn."""

    def step(noise, kept):
        z, cost, noise = bottleneck(params, kept.obs, noise)
        return noise, (log_prob(kept.raw, z @ params.policy), cost)

    return jax.vmap(lambda n, s: jax.lax.scan(step, n, s)[1])(noise, steps)


def ppo_loss(params, noise, steps):
    found, cost = replay(params, noise, steps)
    ratio = jnp.exp(found - steps.log_prob)
    clipped = jnp.clip(ratio, 0.8, 1.2)
    gain = jnp.minimum(ratio * steps.advantage, clipped * steps.advantage)
    return (1e-3 * cost - gain).mean(), ratio


ppo_grad = jax.jit(jax.grad(ppo_loss, has_aux=True))


@pytest.fixture(scope="module")
def played():
    rng = stateful_rng(11)
    params = new_params(rng)
    envs = rng.split(ENVS)
    carry = tuple(
        jax.vmap(lambda rng, name=name: rng.fold_in(name).state())(envs)
        for name in ("bottleneck", "actions")
    )
    obs = rng.normal(size=(ENVS, OBS))
    _, steps = play(params, carry, obs)
    return params, carry, steps


def test_ppo_ratios_are_one_before_the_first_update(played, minibatches):
    params, (noise, _), steps = played
    assert steps.done.any()
    for inds in minibatches:
        part = jax.tree.map(lambda x, inds=inds: x[inds], steps)
        _, ratio = ppo_grad(params, noise[inds], part)
        np.testing.assert_allclose(ratio, 1, atol=2e-5)


def test_ppo_minibatch_gradients_average_to_the_whole(played, minibatches):
    params, (noise, _), steps = played
    whole, _ = ppo_grad(params, noise, steps)
    parts = []
    for inds in minibatches:
        part = jax.tree.map(lambda x, inds=inds: x[inds], steps)
        parts.append(ppo_grad(params, noise[inds], part)[0])
    mean = jax.tree.map(lambda *x: jnp.mean(jnp.stack(x), 0), *parts)
    for a, b in zip(mean, whole, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5 * np.abs(b).max())


def test_ppo_gradients_at_other_noise_are_wrong(played):
    """What the replay is for: with other noise the gradient is off by far."""
    params, (noise, _), steps = played
    whole, _ = ppo_grad(params, noise, steps)
    other, ratio = ppo_grad(params, noise[::-1], steps)
    assert np.abs(ratio - 1).max() > 0.1
    assert any(
        np.linalg.norm(a - b) > 0.1 * np.linalg.norm(b)
        for a, b in zip(other, whole, strict=True)
    )


def test_checkpointed_replay_has_the_same_gradient(played):
    params, (noise, _), steps = played
    few = jax.tree.map(lambda x: x[:2, :8], steps)
    loss = lambda params: ppo_loss(params, noise[:2], few)[0]
    want = jax.jit(jax.grad(loss))(params)
    found = jax.jit(jax.grad(jax.checkpoint(loss)))(params)
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


# --- The same in flax ----------------------------------------------------------------


def test_a_bottleneck_in_flax_replays(minibatches):
    nnx = pytest.importorskip("flax.nnx")

    class VariationalBottleneck(nnx.Module):
        def __init__(self, rngs):
            self.mean = nnx.Linear(OBS, LATENT, rngs=rngs)
            self.log_std = nnx.Linear(OBS, LATENT, rngs=rngs)

        def __call__(self, x, state):
            rng = stateful_rng(state)
            z = rng.normal(self.mean(x), jnp.exp(0.1 * self.log_std(x)))
            return z, rng.state()

    rng = stateful_rng(5)
    module = VariationalBottleneck(nnx.Rngs(rng.key()))

    def loss(module, states, obs):
        graph, weights = nnx.split(module)

        def step(state, x):
            z, state = nnx.merge(graph, weights)(x, state)
            return state, z

        run = jax.vmap(lambda state, x: jax.lax.scan(step, state, x))
        after, z = run(states, obs)
        return (z**2).mean(), (after, z)

    grad = nnx.jit(nnx.grad(loss, has_aux=True))
    states = rng.split(ENVS).state()
    obs = rng.normal(size=(ENVS, STEPS, OBS))
    whole, (after, z) = grad(module, states, obs)
    assert isinstance(after, PRNGState)
    parts = []
    for inds in minibatches:
        part, (last, again) = grad(module, states[inds], obs[inds])
        np.testing.assert_array_equal(last.counter, after.counter[inds])
        np.testing.assert_allclose(again, z[inds], rtol=2e-6, atol=2e-6)
        parts.append(part)
    mean = jax.tree.map(lambda *x: sum(x) / len(x), *parts)
    for a, b in zip(jax.tree.leaves(mean), jax.tree.leaves(whole), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_lanes_of_rbg_need_a_loop(minibatches):
    """Under vmap rbg draws from the first key only: lax.map replays, vmap does not."""
    keys = jax.random.split(jax.random.key(0, impl="rbg"), 16)
    states = PRNGState(keys, jnp.zeros((16, 2), jnp.uint32))
    inds = np.array([9, 4])
    draw = lambda state: stateful_rng(state).random(WIDTH)
    looped = jax.jit(lambda states: jax.lax.map(draw, states))
    np.testing.assert_array_equal(looped(states[inds]), looped(states)[inds])
    lanes = jax.vmap(draw)
    assert (lanes(states[inds]) != lanes(states)[inds]).any()

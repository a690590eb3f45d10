"""Programs as NumPy's users write them: they run unchanged with either generator.

Each returns a statistic whose expectation is known; its bound is five standard errors
where nothing else is said. The only arrays written in place are the program's own.
"""

import numpy as np
import pytest

from jax_stateful_rng import stateful_rng


def random_walks(rng):
    steps = rng.choice([-1, 1], size=(500, 100))
    walks = steps.cumsum(axis=1)
    return np.mean(walks[:, -1] ** 2)


def gamblers_ruin(rng):
    rounds = 0
    for _ in range(30):
        money = 3
        while 0 < money < 6:
            money += rng.choice([-1, 1])
            rounds += 1
    return rounds / 30


def bootstrap_interval(rng):
    data = rng.exponential(2.0, size=200)
    resampled = rng.choice(data, size=(1000, data.size))
    low, high = np.percentile(resampled.mean(axis=1), [2.5, 97.5])
    return (high - low) / (np.std(data) / np.sqrt(data.size))


def monte_carlo_pi(rng):
    x, y = rng.uniform(-1, 1, size=(2, 50_000))
    return 4 * np.mean(x**2 + y**2 < 1)


def k_means_plus_plus(rng):
    corners = np.array([[0, 0], [100, 0], [0, 100], [100, 100]])
    cluster = rng.integers(4, size=400)
    points = corners[cluster] + rng.normal(size=(400, 2))
    chosen = [rng.integers(400)]
    for _ in range(3):
        distances = [((points - points[i]) ** 2).sum(axis=1) for i in chosen]
        nearest = np.min(distances, axis=0)
        chosen.append(rng.choice(400, p=nearest / nearest.sum()))
    return len({int(cluster[i]) for i in chosen})


def metropolis(rng):
    def log_density(x):
        return np.where(x > 0, -x, -np.inf)

    walkers = np.ones(500)
    for _ in range(60):
        proposal = walkers + rng.normal(0, 2, size=500)
        ratio = np.exp(log_density(proposal) - log_density(walkers))
        walkers = np.where(rng.random(500) < ratio, proposal, walkers)
    return np.mean(walkers)


def epidemic(rng):
    susceptible, infectious = np.full(2000, 2), np.full(2000, 1)
    while infectious.any():
        infectious = rng.binomial(susceptible, 1 - 0.7**infectious)
        susceptible = susceptible - infectious
    return np.mean(2 - susceptible)


def percolation(rng):
    right = rng.random((400, 7, 7)) < 0.5  # from column c to c + 1 of 8
    down = rng.random((400, 6, 8)) < 0.5  # from row r to r + 1 of 7
    wet = np.zeros((400, 7, 8), bool)
    wet[:, :, 0] = True
    before = -1
    while wet.sum() > before:
        before = wet.sum()
        wet[:, :, 1:] |= wet[:, :, :-1] & right
        wet[:, :, :-1] |= wet[:, :, 1:] & right
        wet[:, 1:] |= wet[:, :-1] & down
        wet[:, :-1] |= wet[:, 1:] & down
    return np.mean(wet[:, :, -1].any(axis=1))


def epsilon_greedy(rng):
    rates = [0.3, 0.5, 0.7]
    pulls, wins = np.ones(3), np.ones(3)  # hopeful: all arms look perfect
    surplus = 0.0
    for _ in range(200):
        arm = rng.integers(3) if rng.random() < 0.1 else np.argmax(wins / pulls)
        won = rng.random() < rates[arm]
        pulls[arm] += 1
        wins[arm] += won
        surplus += won - rates[arm]
    return surplus / 200


def thompson_sampling(rng):
    rates = rng.random((200, 3))  # 200 bandits of three arms
    wins = losses = np.zeros((200, 3))
    for _ in range(30):
        pulled = np.eye(3)[rng.beta(1 + wins, 1 + losses).argmax(axis=1)]
        won = pulled * (rng.random((200, 3)) < rates)
        wins, losses = wins + won, losses + pulled - won
    return np.mean(rng.beta(1 + wins, 1 + losses) < rates)


def camera_noise(rng):
    image = np.add.outer(np.arange(64), np.arange(64)) + 10.0
    noisy = rng.poisson(image) + rng.normal(0, 2, size=image.shape)
    return np.mean((noisy - image) ** 2 / (image + 2**2))


def matrix_factorisation(rng):
    truth = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 40))
    ratings = truth + rng.normal(0, 0.1, size=truth.shape)
    users = rng.normal(size=(60, 2))
    for _ in range(20):
        items = np.linalg.solve(users.T @ users, users.T @ ratings)
        users = np.linalg.solve(items @ items.T, items @ ratings.T).T
    residual = (ratings - users @ items) / 0.1
    return np.sum(residual**2) / (60 * 40 - 2 * (60 + 40 - 2))


# The expected statistic and its bound.
PROGRAMS = {
    # S² of n fair steps has mean n and variance 2n² - 2n.
    random_walks: (100, 5 * (19_800 / 500) ** 0.5),
    # From a away from either end: a² rounds, of variance 2a²(a² - 1) / 3.
    gamblers_ruin: (9, 5 * (48 / 30) ** 0.5),
    # Twice 1.96 standard errors; a 2.5% quantile of N has the standard error
    # √(0.025 · 0.975 / N) / φ(1.96), and there are two.
    bootstrap_interval: (2 * 1.96, 5 * (2 * 0.0244 / 1000) ** 0.5 / 0.0584),
    monte_carlo_pi: (np.pi, 5 * (np.pi * (4 - np.pi) / 50_000) ** 0.5),
    # That two seeds share a cluster has a probability of 0.2%.
    k_means_plus_plus: (4, 0),
    # The exponential law: mean and standard deviation are 1.
    metropolis: (1, 5 / 500**0.5),
    # Reed and Frost's households of three, one of them ill, with q = 0.7: one more
    # falls ill with probability 2(1 - q)q², both with 1 - q² - 2(1 - q)q².
    epidemic: (0.726, 5 * (0.631 / 2000) ** 0.5),
    # Bond percolation at 1/2 is its own dual on an n by n + 1 rectangle.
    percolation: (0.5, 5 * 0.5 / 400**0.5),
    # A martingale, whatever the policy: its steps have a variance below 1/4.
    epsilon_greedy: (0, 5 * 0.5 / 200**0.5),
    # Given the data, a rate and a belief have one law: a coin for each arm.
    thompson_sampling: (0.5, 5 * 0.5 / 600**0.5),
    # The square of a residual of variance v = λ + 4, in units of v, has the variance
    # 2 + λ / v² < 2.1.
    camera_noise: (1, 5 * (2.1 / 64**2) ** 0.5),
    # χ² with 2400 - 196 degrees of freedom, in units of them.
    matrix_factorisation: (1, 5 * (2 / 2204) ** 0.5),
}


@pytest.mark.parametrize("make", [np.random.default_rng, stateful_rng])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_program_written_for_numpy_runs_unchanged(program, make):
    expected, bound = PROGRAMS[program]
    assert abs(float(program(make(2024))) - expected) <= bound

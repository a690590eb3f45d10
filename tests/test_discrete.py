"""What is particular to the laws of counts."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from jax_stateful_rng import stateful_rng
from jax_stateful_rng._samplers import _counts
from jax_stateful_rng._samplers.discrete import _table

INT_MAX = 2**31 - 1


def log_factorial(x):
    return special.gammaln(np.asarray(x, float) + 1)


# --- Masses ------------------------------------------------------------------------


@pytest.mark.parametrize(("bits", "off"), [(32, 2e-8), (64, 1e-15)])
def test_stirlings_remainder(bits, off):
    k = np.arange(1, 3000)
    with jax.enable_x64(bits == 64):
        got = np.asarray(_counts.stirling(jnp.asarray(k, f"float{bits}")), float)
        assert _counts.stirling(jnp.zeros((), f"float{bits}")) == 0
    exact = [  # to 1e-19, from 16 on by the asymptotic series alone
        math.log(math.factorial(x))
        - (x * math.log(x) - x + math.log(2 * math.pi * x) / 2)
        if x < 16
        else 1 / (12 * x) - 1 / (360 * x**3) + 1 / (1260 * x**5) - 1 / (1680 * x**7)
        for x in k.tolist()
    ]
    # The logarithms of large factorials have no more digits than this.
    np.testing.assert_allclose(got, exact, rtol=0, atol=max(off, 5e-14 * (bits == 64)))


@pytest.mark.parametrize("mean", [10.5, 300.25, 1e6, 1e9])
def test_a_mass_in_float32(mean):
    """The mass of a Poisson law, far into its tails, to 1e-5."""
    whole = math.floor(mean)
    reach = 6 * math.sqrt(mean)
    offset = np.unique(np.linspace(-reach, reach, 200).astype(int))
    offset = offset[whole + offset >= 0]
    k = whole + offset
    _, exponent, root = _counts.cell(
        jnp.int32(whole),
        jnp.float32(mean),
        1,
        jnp.asarray(offset, jnp.int32),
        jnp.float32(mean - whole),
    )
    got = np.asarray(-exponent, float) - np.log(np.asarray(root, float))
    exact = np.array([_log_poisson(int(x), mean) for x in k])
    np.testing.assert_allclose(got, exact, rtol=2e-6, atol=1e-5)


def _log_poisson(k, mean):
    """Without cancellation: log1p of the exact distance from the mean."""
    if k == 0:
        return -mean
    t = (k - mean) / mean
    deviance = mean * ((1 + t) * math.log1p(t) - t)
    if abs(t) < 1e-3:
        deviance = mean * sum((-t) ** j / (j * (j - 1)) for j in range(2, 9))
    remainder = 1 / (12 * k) - 1 / (360 * k**3) + 1 / (1260 * k**5)
    if k < 16:
        remainder = math.log(math.factorial(k)) - (
            k * math.log(k) - k + math.log(2 * math.pi * k) / 2
        )
    return -deviance - remainder - math.log(2 * math.pi * k) / 2


def test_the_hat_covers_the_masses():
    """Transformed rejection is exact only where the mass is nowhere above the hat."""
    edge = np.logspace(-9, -3, 60)
    u = np.concatenate([np.linspace(-0.4999, 0.4999, 4001), 0.5 - edge, edge - 0.5])
    us = 0.5 - np.abs(u)
    random = np.random.default_rng(0)

    def height(mean, variance, skew, log_mass, low, high):
        b = 1.15 + 2.53 * math.sqrt(variance)
        a = -0.0873 + 0.0248 * b + 0.01 * skew
        k = np.floor((2 * a / us + b) * u + mean + 0.5)
        inside = (k >= low) & (k <= high)
        mass = np.where(inside, np.exp(log_mass(np.clip(k, low, high))), 0)
        hat = (2.83 + (5.1 + 3 / b) / b) / math.sqrt(2 * math.pi)
        return (mass * (a / us**2 + b)).max() / hat

    highest = 0.0
    for mean in np.concatenate(
        [np.linspace(10, 30, 60), 10 ** random.uniform(1, 6, 60)]
    ):

        def poisson(k, mean=mean):
            return k * math.log(mean) - mean - log_factorial(k)

        highest = max(highest, height(mean, mean, 0, poisson, 0, np.inf))
        p = random.choice([0.5, random.uniform(0.001, 0.5)])
        n = math.ceil(mean / p)

        def binomial(k, n=n, p=p):
            return (
                log_factorial(n)
                - log_factorial(k)
                - log_factorial(n - k)
                + k * math.log(p)
                + (n - k) * math.log1p(-p)
            )

        got = height(n * p, n * p * (1 - p), p, binomial, 0, n)
        highest = max(highest, got)
    tables = [(40, 20, 20), (41, 20, 20), (42, 20, 21), (60, 25, 30), (80, 40, 20)]
    for _ in range(150):
        whole = int(10 ** random.uniform(1.7, 7))
        rarer = int(whole * 10 ** random.uniform(-2, math.log10(0.5)))
        part = math.ceil(10 ** random.uniform(1, 2) * whole / max(rarer, 1))
        if rarer >= 20 and part <= whole // 2:
            tables.append((whole, rarer, part))
    for whole, rarer, part in tables:
        rest = whole - rarer
        mean = part * rarer / whole
        variance = mean * (rest / whole) * ((whole - part) / (whole - 1))

        def table(k, whole=whole, rarer=rarer, rest=rest, part=part):
            log = log_factorial
            return (
                log(rarer) + log(rest) + log(part) + log(whole - part) - log(whole)
            ) - (log(k) + log(rarer - k) + log(part - k) + log(rest - part + k))

        skew = min(rarer, part) / whole
        got = height(mean, variance, skew, table, 0, min(rarer, part))
        highest = max(highest, got)
    assert 0.9 < highest < 0.998


# --- Exact products ----------------------------------------------------------------


@pytest.mark.parametrize("bits", [32, 64])
def test_products_of_counts_are_exact(bits):
    largest = 2 ** (bits - 1) - 1
    random = np.random.default_rng(1)
    rows = [(largest, 1, largest), (largest // 2, largest // 2, largest), (0, 5, 9)]
    for _ in range(500):
        whole = int(2 ** random.uniform(1, bits - 1)) - 1
        rows.append(tuple(int(random.random() * whole) for _ in range(2)) + (whole,))
    rows = [(min(a, w), min(b, w), max(w, 1)) for a, b, w in rows]
    with jax.enable_x64(bits == 64):
        columns = [
            jnp.asarray(np.array(c, dtype=np.int64), f"int{bits}")
            for c in zip(*rows, strict=True)
        ]
        whole, fraction = _counts.share(*columns, np.dtype(f"float{bits}"))
    for (a, b, n), got, rest in zip(
        rows, whole.tolist(), fraction.tolist(), strict=True
    ):
        assert got == a * b // n
        assert rest == pytest.approx(a * b % n / n, abs=1e-6)


@pytest.mark.parametrize("bits", [32, 64])
def test_expectations_are_exact(bits):
    from fractions import Fraction

    random = np.random.default_rng(2)
    real = np.dtype(f"float{bits}").type
    rows = [(2 ** (bits - 1) - 1, real(0.5)), (7, real(0)), (10**6, real(1e-30))]
    for _ in range(500):
        n = int(2 ** random.uniform(0, bits - 1)) - 1
        rows.append((n, real(2 ** random.uniform(-bits, -1))))
    with jax.enable_x64(bits == 64):
        n = jnp.asarray(np.array([n for n, _ in rows]), f"int{bits}")
        whole, fraction = _counts.expectation(n, jnp.asarray([p for _, p in rows]))
    for (n, p), got, rest in zip(rows, whole.tolist(), fraction.tolist(), strict=True):
        exact = n * Fraction(float(p))
        assert got == exact // 1
        assert rest == pytest.approx(float(exact % 1), abs=1e-6)


def test_the_table_of_a_hypergeometric_law():
    fraction, cells = _table(jnp.int32(1000), jnp.int32(500), jnp.int32(2001))
    assert [int(x) for x in cells[::2]] == [249, 251, 751, 750]
    assert float(fraction) == pytest.approx(500_000 / 2001 - 249, abs=1e-6)
    means = [float(x) for x in cells[1::2]]
    assert sum(means) == pytest.approx(2001)


# --- Ranges ------------------------------------------------------------------------


def test_what_does_not_fit_saturates():
    rng = stateful_rng(0)
    assert (rng.geometric(1e-30, size=5) == INT_MAX).all()
    assert (rng.poisson(jnp.array([2.0**31, 1e19, jnp.inf])) == INT_MAX).all()
    assert (rng.zipf(1.0000001, size=1000) == INT_MAX).mean() > 0.99
    assert (rng.zipf(1 + 1e-13, size=5) == INT_MAX).all()
    assert (rng.negative_binomial(jnp.float32(1e30), 0.1, size=5) == INT_MAX).all()
    assert (rng.poisson(1000.0, size=5, dtype="int8") == 127).all()
    assert (rng.binomial(1000, 0.5, size=5, dtype="uint8") == 255).all()


def test_zipf_near_1_and_far_from_it():
    for a in (1.0000001, 1.01, 1e4, 1e30):
        draws = np.asarray(stateful_rng(0).zipf(a, size=10_000))
        assert draws.min() >= 1


def test_the_mean_has_room_for_its_law():
    rng = stateful_rng(0)
    limit = INT_MAX - 10 * math.sqrt(INT_MAX)
    draws = np.asarray(rng.poisson(math.floor(limit), size=1000)).astype(float)
    assert abs(draws - limit).max() < 6 * math.sqrt(limit)
    for lam in (limit + 1, 2**31, 2**63 - 1, 1e19, math.inf, [3.0, 1e19]):
        with pytest.raises(ValueError, match=r"rng\.poisson: lam must"):
            rng.poisson(lam)
    for n, p in ((2**62, 0.1), (1e10, 1e-9), ([1.0, 2**62], [0.1, 0.1])):
        with pytest.raises(ValueError, match=r"negative_binomial: n must not be too"):
            rng.negative_binomial(n, p)
    with pytest.raises(ValueError, match="must fit int32"):
        rng.binomial(2**31, 0.5)
    with pytest.raises(ValueError, match="ngood"):
        rng.hypergeometric(2**30, 2**30, 5)
    with pytest.raises(ValueError, match="nsample must be at most"):
        rng.hypergeometric([5, 6], 5, [1, 20])
    assert rng.state().counter[1] == 1


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda r: r.binomial(-1, 0.5), "n must be an integer >= 0; got -1."),
        (lambda r: r.binomial(math.nan, 0.5), "n must be an integer >= 0; got nan."),
        (lambda r: r.binomial(2**40, 0.5), "got 1099511627776. Switch 64-bit types on"),
        (lambda r: r.hypergeometric(5, 5, 11), "got ngood=5, nbad=5, nsample=11."),
        (lambda r: r.hypergeometric(2**30, 2**30, 1), "nbad=1073741824. Switch 64-bit"),
        (lambda r: r.poisson(3e9), "got 3000000000.0. Switch 64-bit types on"),
        (lambda r: r.binomial(np.timedelta64(3, "s"), 0.5), "n must be real numbers"),
    ],
)
def test_a_message_shows_the_numbers(call, text):
    rng = stateful_rng(0)
    with pytest.raises((TypeError, ValueError)) as caught:
        call(rng)
    assert text in str(caught.value)
    assert rng.state().counter[1] == 0


def test_hypergeometric_stays_in_its_support():
    random = np.random.default_rng(0)
    good, bad = random.integers(0, 60, (2, 5000))
    sample = (random.random(5000) * (good + bad + 1)).astype(int)
    rng = stateful_rng(0)
    draws = np.asarray(rng.hypergeometric(good, bad, sample))
    assert (draws >= np.maximum(0, sample - bad)).all()
    assert (draws <= np.minimum(good, sample)).all()
    mean = sample * good / np.maximum(good + bad, 1)
    assert abs((draws - mean).mean()) < 0.1


def test_a_sum_that_wraps_is_illegal():
    half = jnp.int32(2**30)
    assert stateful_rng(0).hypergeometric(half, half, 5) == -1


@pytest.mark.parametrize("p", [3e-6, 1e-8])
def test_large_waiting_times_have_all_their_digits(p):
    draws = np.asarray(stateful_rng(0).geometric(p, size=100_000))
    draws = draws[draws < INT_MAX]
    for bit in range(10):
        odd = (draws >> bit & 1).sum()
        assert stats.binomtest(int(odd), draws.size).pvalue > 1e-5
    exact = stats.kstest(draws * -math.log1p(-p), "expon")
    assert exact.pvalue > 1e-4


@pytest.mark.slow
def test_large_means_have_odd_draws():
    for draws in (
        stateful_rng(0).poisson(1e9, size=20_000),
        stateful_rng(0).binomial(INT_MAX, 0.3, size=20_000),
        stateful_rng(0).hypergeometric(10**9, 10**9, 10**9, size=20_000),
    ):
        odd = int((np.asarray(draws) & 1).sum())
        assert stats.binomtest(odd, 20_000).pvalue > 1e-4


def test_counts_of_nan_are_illegal():
    nan = jnp.float32(jnp.nan)
    assert stateful_rng(0).binomial(nan, 0.5) == -1
    assert stateful_rng(0).hypergeometric(5, nan, 1) == -1


@pytest.mark.slow
def test_small_and_large_means_side_by_side():
    lam = np.tile(np.array([0.0, 1e-3, 3.0, 9.99, 10.0, 40.0, 1e6]), (20_000, 1))
    draws = np.asarray(stateful_rng(0).poisson(lam)).astype(float)
    error = (draws.mean(0) - lam[0]) / np.sqrt(np.maximum(lam[0], 1e-9) / 20_000)
    assert np.abs(error[1:]).max() < 4.5
    assert (draws[:, 0] == 0).all()
    n = np.tile(np.array([0, 1, 20, 100, 1000, 10**8]), (20_000, 1))
    draws = np.asarray(stateful_rng(1).binomial(n, 0.3)).astype(float)
    deviation = np.sqrt(np.maximum(n[0] * 0.21, 1e-9) / 20_000)
    assert np.abs((draws.mean(0) - n[0] * np.float32(0.3)) / deviation)[1:].max() < 4.5


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("name", "args", "mean", "deviation"),
    [
        ("poisson", (1e15,), 1e15, 1e15**0.5),
        ("binomial", (2**62, 0.25), 2**60, (2**62 * 3 / 16) ** 0.5),
        ("hypergeometric", (2**60, 2**60, 2**60), 2**59, (2**61 / 16) ** 0.5),
        ("geometric", (1e-12,), 1e12, 1e12),
    ],
)
def test_64_bits_reach_further(name, args, mean, deviation):
    draws = np.asarray(getattr(stateful_rng(0), name)(*args, size=20_000))
    assert draws.dtype == np.int64
    scaled = (draws - int(mean)).astype(float) / deviation
    law = "norm" if name != "geometric" else stats.expon(-1)
    assert stats.kstest(scaled, law.cdf if name == "geometric" else law).pvalue > 1e-4
    odd = int((draws & 1).sum())
    assert stats.binomtest(odd, draws.size).pvalue > 1e-4

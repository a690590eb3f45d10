"""The laws of counts in the table of cases."""

import numpy as np
from cases import NAN, Case, Point
from scipy import special, stats


class Tabulated:
    """A law of counts by its masses from ``low`` on, where scipy's is too slow.

    What the masses lack to 1 lies beyond them.
    """

    def __init__(self, low, masses):
        self.low = low
        self.through = np.cumsum(masses)

    def cdf(self, x):
        place = np.clip(np.floor(x) - self.low + 1, 0, len(self.through))
        return np.concatenate([[0.0], self.through])[place.astype(int)]

    def ppf(self, q):
        place = np.searchsorted(self.through, q)
        return self.low + np.minimum(place, len(self.through) - 1)

    def support(self):
        return self.low, np.inf


def hypergeometric(good, bad, sample):
    """The law within 12 standard deviations of its mean."""
    whole = good + bad
    mean = sample * good / whole
    variance = mean * (bad / whole) * ((whole - sample) / (whole - 1))
    reach = int(12 * variance**0.5) + 3
    low = max(0, sample - bad, int(mean) - reach)
    k = np.arange(low, min(good, sample, int(mean) + reach) + 1)
    log = -sum(
        special.gammaln(x + 1.0) for x in (k, good - k, sample - k, bad - sample + k)
    )
    masses = np.exp(log - log.max())
    return Tabulated(low, masses / masses.sum())


def logseries(p):
    k = np.arange(1, 100_000)
    return Tabulated(1, -(p**k) / (k * np.log1p(-p)))


def zipf(a):
    k = np.arange(1, 100_000)
    return Tabulated(1, k**-a / special.zeta(a))


DISCRETE = (
    Case(
        "binomial",
        (
            Point((20, 0.3), stats.binom(20, 0.3)),
            Point((1000, 0.3), stats.binom(1000, 0.3)),
            Point((25, 0.6), stats.binom(25, 0.6)),
            Point((3, 0.999), stats.binom(3, 0.999)),
            Point((10**9, 2e-9), stats.binom(10**9, 2e-9)),
            Point((10**7, 0.4), stats.binom(10**7, 0.4)),
            Point((2**31 - 1, 0.25), stats.binom(2**31 - 1, 0.25)),
        ),
        illegal=((-1, 0.5), (NAN, 0.5), (10, -0.1), (10, 1.1), (10, NAN)),
        edges=(
            ((0, 0.5), 0),
            ((0, 1.0), 0),
            ((10, 0.0), 0),
            ((10, -0.0), 0),
            ((10, 1.0), 10),
            ((2**31 - 1, 1.0), 2**31 - 1),
        ),
        integer=True,
        traced=-1,
    ),
    Case(
        "geometric",
        (
            Point((0.2,), stats.geom(0.2)),
            Point((0.999,), stats.geom(0.999)),
            Point((1e-3,), stats.geom(1e-3)),
            Point((2e-8,), stats.geom(2e-8)),
        ),
        illegal=((0.0,), (-0.1,), (1.1,), (NAN,)),
        edges=(((1.0,), 1), ((1e-30,), 2**31 - 1)),
        integer=True,
        traced=-1,
    ),
    Case(
        "hypergeometric",
        (
            Point((10, 20, 8), stats.hypergeom(30, 10, 8)),
            Point((18, 3, 11), stats.hypergeom(21, 18, 11)),
            Point((40, 40, 40), stats.hypergeom(80, 40, 40)),
            Point((500, 3000, 1000), stats.hypergeom(3500, 500, 1000)),
            Point((300, 5, 290), stats.hypergeom(305, 300, 290)),
            Point((2**20 - 2,) * 3, hypergeometric(*(2**20 - 2,) * 3)),
            Point((2**30, 10**9, 10**6), hypergeometric(2**30, 10**9, 10**6)),
            Point((10**9, 10**5, 10**9), hypergeometric(10**9, 10**5, 10**9)),
        ),
        illegal=((-1, 20, 8), (NAN, 20, 8), (10, -1, 8), (10, 20, -1), (10, 20, 31)),
        edges=(
            ((5, 0, 3), 3),
            ((0, 5, 3), 0),
            ((5, 5, 10), 5),
            ((5, 5, 0), 0),
            ((0, 0, 0), 0),
            ((15, 0, 12), 12),
            ((2**30, 2**30 - 1, 2**31 - 1), 2**30),
        ),
        integer=True,
        traced=-1,
    ),
    Case(
        "logseries",
        (
            Point((0.8,), stats.logser(0.8)),
            Point((0.01,), stats.logser(0.01)),
            Point((0.999,), logseries(0.999)),
        ),
        illegal=((-0.1,), (1.5,), (NAN,)),
        edges=(((0.0,), 1), ((-0.0,), 1)),
        integer=True,
        traced=-1,
    ),
    Case(
        "negative_binomial",
        (
            Point((5.0, 0.3), stats.nbinom(5.0, 0.3)),
            Point((0.1, 0.01), stats.nbinom(0.1, 0.01)),
            Point((1e6, 0.5), stats.nbinom(1e6, 0.5)),
            Point((2.5, 0.999), stats.nbinom(2.5, 0.999)),
        ),
        illegal=(
            (0.0, 0.4),
            (-1.0, 0.4),
            (NAN, 0.4),
            (5.0, 0.0),
            (5.0, 1.1),
            (5.0, NAN),
        ),
        edges=(((1.0, 1.0), 0), ((0.5, 1.0), 0)),
        integer=True,
        traced=-1,
    ),
    Case(
        "poisson",
        (
            Point((4.0,), stats.poisson(4.0)),
            Point((9.99,), stats.poisson(9.99)),
            Point((10.0,), stats.poisson(10.0)),
            Point((100.0,), stats.poisson(100.0)),
            Point((1e-3,), stats.poisson(1e-3)),
            Point((1e6,), stats.poisson(1e6)),
            Point((1e9,), stats.poisson(1e9)),
        ),
        illegal=((-1.0,), (NAN,)),
        edges=(((0.0,), 0), ((-0.0,), 0)),
        integer=True,
        traced=-1,
    ),
    Case(
        "zipf",
        (
            Point((2.0,), zipf(2.0)),
            Point((1.2,), zipf(1.2)),
            Point((5.5,), stats.zipf(5.5)),
        ),
        illegal=((0.5,), (-1.0,), (NAN,)),
        edges=(((1e4,), 1), ((1e5,), 1)),
        integer=True,
        traced=-1,
    ),
)

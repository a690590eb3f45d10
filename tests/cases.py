"""The table of laws that the tests run through: one row a method.

`test_laws.py` checks every row in the same way; what is particular to one law stands
in the test of its family.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special, stats


@dataclasses.dataclass(frozen=True)
class Point:
    """Parameters, and the exact law that draws with them follow.

    Attributes:
        args: the parameters, in the order of NumPy's signature.
        law: a frozen law of ``scipy.stats``, or whatever has its ``cdf`` and
            ``support`` (an integer law is asked for its ``ppf`` too).
    """

    args: tuple[Any, ...]
    law: Any


@dataclasses.dataclass(frozen=True)
class Case:
    """One method with scalar parameters and what must hold of it.

    Attributes:
        name: of the method.
        points: three or more, one of them extreme.
        illegal: parameters that are refused on the host and that give ``traced`` when
            they are traced.
        edges: parameters at which every draw is one value.
        integer: whether the draws are integers.
        traced: what traced illegal parameters give: nan, or an integer.
        never: values in the closed support that are never drawn.
        gradient: for the parameters by which the draws can be differentiated, in
            order, the derivative of the mean at the first point; ``None`` for one
            by which they cannot.
    """

    name: str
    points: tuple[Point, ...]
    illegal: tuple[tuple[Any, ...], ...] = ()
    edges: tuple[tuple[tuple[Any, ...], float], ...] = ()
    integer: bool = False
    traced: float = math.nan
    never: tuple[float, ...] = ()
    gradient: tuple[float | None, ...] = ()

    def __str__(self) -> str:
        return self.name


@dataclasses.dataclass(frozen=True)
class Law:
    """A law that ``scipy.stats`` has not, by its distribution function."""

    cdf: Callable[[np.ndarray], np.ndarray]
    low: float = -math.inf
    high: float = math.inf

    def support(self) -> tuple[float, float]:
        return self.low, self.high


INF, NAN = math.inf, math.nan


def ratio_of_gammas_limit(shape: float) -> Any:
    """F with infinite degrees of freedom above: the reciprocal of a mean-one gamma."""
    return stats.invgamma(shape, scale=shape)


CONTINUOUS = (
    Case(
        "exponential",
        (
            Point((2.0,), stats.expon(scale=2.0)),
            Point((1.0,), stats.expon()),
            Point((1e-30,), stats.expon(scale=1e-30)),
            Point((1e30,), stats.expon(scale=1e30)),
        ),
        illegal=((-1.0,), (-0.0,)),
        edges=(((0.0,), 0.0),),
        never=(0.0,),
        gradient=(1.0,),
    ),
    Case("standard_exponential", (Point((), stats.expon()),), never=(0.0,)),
    Case(
        "normal",
        (
            Point((2.0, 3.0), stats.norm(2.0, 3.0)),
            Point((0.0, 1.0), stats.norm()),
            Point((-1e3, 1e-3), stats.norm(-1e3, 1e-3)),
        ),
        illegal=((0.0, -1.0), (0.0, -0.0)),
        edges=(((3.0, 0.0), 3.0), ((INF, 1.0), INF)),
        gradient=(1.0, 0.0),
    ),
    Case("standard_normal", (Point((), stats.norm()),)),
    Case(
        "lognormal",
        (
            Point((0.5, 0.75), stats.lognorm(0.75, scale=math.exp(0.5))),
            Point((0.0, 1.0), stats.lognorm(1.0)),
            Point((-2.0, 0.01), stats.lognorm(0.01, scale=math.exp(-2.0))),
            Point((0.0, 12.0), stats.lognorm(12.0)),
        ),
        illegal=((0.0, -1.0), (0.0, -0.0)),
        edges=(((0.0, 0.0), 1.0),),
        gradient=(math.exp(0.78125), 0.75 * math.exp(0.78125)),
    ),
    Case(
        "laplace",
        (
            Point((1.0, 2.0), stats.laplace(1.0, 2.0)),
            Point((0.0, 1.0), stats.laplace()),
            Point((0.0, 1e-30), stats.laplace(0.0, 1e-30)),
        ),
        illegal=((0.0, -1.0), (0.0, -0.0)),
        edges=(((2.0, 0.0), 2.0),),
        gradient=(1.0, 0.0),
    ),
    Case(
        "logistic",
        (
            Point((1.0, 2.0), stats.logistic(1.0, 2.0)),
            Point((0.0, 1.0), stats.logistic()),
            Point((-1e3, 1e-2), stats.logistic(-1e3, 1e-2)),
        ),
        illegal=((0.0, -1.0), (0.0, -0.0)),
        edges=(((2.0, 0.0), 2.0),),
        gradient=(1.0, 0.0),
    ),
    Case(
        "gumbel",
        (
            Point((1.0, 2.0), stats.gumbel_r(1.0, 2.0)),
            Point((0.0, 1.0), stats.gumbel_r()),
            Point((-1e3, 1e-2), stats.gumbel_r(-1e3, 1e-2)),
        ),
        illegal=((0.0, -1.0), (0.0, -0.0)),
        edges=(((2.0, 0.0), 2.0),),
        gradient=(1.0, float(np.euler_gamma)),
    ),
    Case(
        "pareto",
        (
            Point((4.0,), stats.lomax(4.0)),
            Point((1.0,), stats.lomax(1.0)),
            Point((0.3,), stats.lomax(0.3)),
            Point((1e6,), stats.lomax(1e6)),
        ),
        illegal=((0.0,), (-1.0,), (-0.0,)),
        gradient=(-1 / 9,),
    ),
    Case(
        "power",
        (
            Point((3.0,), stats.powerlaw(3.0)),
            Point((1.0,), stats.powerlaw(1.0)),
            Point((0.01,), stats.powerlaw(0.01)),
            Point((1e5,), stats.powerlaw(1e5)),
        ),
        illegal=((0.0,), (-1.0,), (-0.0,)),
        gradient=(1 / 16,),
    ),
    Case(
        "rayleigh",
        (
            Point((2.0,), stats.rayleigh(scale=2.0)),
            Point((1.0,), stats.rayleigh()),
            Point((1e30,), stats.rayleigh(scale=1e30)),
        ),
        illegal=((-1.0,), (-0.0,)),
        edges=(((0.0,), 0.0),),
        never=(0.0,),
        gradient=(math.sqrt(math.pi / 2),),
    ),
    Case("standard_cauchy", (Point((), stats.cauchy()),), never=(0.0,)),
    Case(
        "triangular",
        (
            Point((-1.0, 0.5, 3.0), stats.triang(0.375, -1.0, 4.0)),
            Point((0.0, 0.0, 2.0), stats.triang(0.0, 0.0, 2.0)),
            Point((0.0, 2.0, 2.0), stats.triang(1.0, 0.0, 2.0)),
            Point((0.0, 1e-6, 1.0), stats.triang(1e-6)),
        ),
        illegal=((0.0, -1.0, 2.0), (0.0, 3.0, 2.0), (1.0, 1.0, 1.0), (2.0, 1.0, 0.0)),
        gradient=(1 / 3, 1 / 3, 1 / 3),
    ),
    Case(
        "vonmises",
        (
            Point((0.0, 2.0), stats.vonmises(2.0)),
            Point((0.5, 0.0), stats.uniform(-math.pi, 2 * math.pi)),
            Point((0.0, 1e-8), stats.uniform(-math.pi, 2 * math.pi)),
            Point((0.0, 0.01), stats.vonmises(0.01)),
            Point((0.0, 40.0), stats.vonmises(40.0)),
            Point((2.0, 1e4), stats.norm(2.0, 0.01)),
            Point((0.0, 1e15), stats.norm(0.0, 10**-7.5)),
        ),
        illegal=((0.0, -1.0), (0.0, -0.0)),
        edges=(((1.0, INF), 1.0),),
        gradient=(1.0, 0.0),
    ),
    Case(
        "wald",
        (
            Point((2.0, 3.0), stats.invgauss(2 / 3, scale=3.0)),
            Point((1.0, 1.0), stats.invgauss(1.0)),
            Point((1e4, 1.0), stats.invgauss(1e4)),
            Point((1e9, 2.25), stats.levy(scale=2.25)),
            Point((1.0, 1e5), stats.invgauss(1e-5, scale=1e5)),
        ),
        illegal=((0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (1.0, -0.0)),
        never=(0.0,),
        gradient=(1.0, 0.0),
    ),
    Case(
        "weibull",
        (
            Point((1.5,), stats.weibull_min(1.5)),
            Point((1.0,), stats.weibull_min(1.0)),
            Point((0.1,), stats.weibull_min(0.1)),
            Point((1e4,), stats.weibull_min(1e4)),
        ),
        illegal=((-1.0,), (-0.0,)),
        edges=(((0.0,), 0.0),),
        gradient=(-math.gamma(5 / 3) * special.digamma(5 / 3) / 2.25,),
    ),
    Case(
        "standard_gamma",
        (
            Point((2.5,), stats.gamma(2.5)),
            Point((1.0,), stats.gamma(1.0)),
            Point((0.3,), stats.gamma(0.3)),
            Point((1e-3,), stats.gamma(1e-3)),
            Point((1e7,), stats.gamma(1e7)),
        ),
        illegal=((-1.0,), (-0.0,)),
        edges=(((0.0,), 0.0), ((INF,), INF)),
        gradient=(1.0,),
    ),
    Case(
        "gamma",
        (
            Point((2.5, 3.0), stats.gamma(2.5, scale=3.0)),
            Point((0.5, 1e30), stats.gamma(0.5, scale=1e30)),
            Point((1e3, 1e-3), stats.gamma(1e3, scale=1e-3)),
        ),
        illegal=((-1.0, 1.0), (1.0, -1.0), (1.0, -0.0), (-0.0, 1.0)),
        edges=(((0.0, 1.0), 0.0), ((2.0, 0.0), 0.0), ((0.0, 0.0), 0.0)),
        gradient=(3.0, 2.5),
    ),
    Case(
        "beta",
        (
            Point((2.0, 3.0), stats.beta(2.0, 3.0)),
            Point((1.0, 1.0), stats.uniform()),
            Point((0.05, 0.1), stats.beta(0.05, 0.1)),
            Point((1e-4, 1e-4), stats.beta(1e-4, 1e-4)),
            Point((1e5, 3e5), stats.beta(1e5, 3e5)),
        ),
        illegal=((0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (1.0, -0.0)),
        edges=(((INF, 1.0), 1.0), ((1.0, INF), 0.0)),
        gradient=(3 / 25, -2 / 25),
    ),
    Case(
        "chisquare",
        (
            Point((3.0,), stats.chi2(3.0)),
            Point((1.0,), stats.chi2(1.0)),
            Point((1e-2,), stats.chi2(1e-2)),
            Point((1e6,), stats.chi2(1e6)),
        ),
        illegal=((0.0,), (-1.0,), (-0.0,)),
        gradient=(1.0,),
    ),
    Case(
        "f",
        (
            Point((3.0, 10.0), stats.f(3.0, 10.0)),
            Point((1.0, 1.0), stats.f(1.0, 1.0)),
            Point((0.1, 0.5), stats.f(0.1, 0.5)),
            Point((1e5, 1e5), stats.f(1e5, 1e5)),
            Point((INF, 4.0), ratio_of_gammas_limit(2.0)),
        ),
        illegal=((0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (1.0, -0.0)),
        edges=(((INF, INF), 1.0),),
        gradient=(0.0, -2 / 64),
    ),
    Case(
        "standard_t",
        (
            Point((3.0,), stats.t(3.0)),
            Point((1.0,), stats.cauchy()),
            Point((0.3,), stats.t(0.3)),
            Point((1e6,), stats.norm()),
            Point((INF,), stats.norm()),
        ),
        illegal=((0.0,), (-1.0,), (-0.0,)),
        gradient=(0.0,),
    ),
    Case(
        "noncentral_chisquare",
        (
            Point((3.0, 2.0), stats.ncx2(3.0, 2.0)),
            Point((1.0, 4.0), stats.ncx2(1.0, 4.0)),
            Point((0.5, 3.0), stats.ncx2(0.5, 3.0)),
            Point((0.5, 0.0), stats.chi2(0.5)),
            Point((1e-2, 100.0), stats.ncx2(1e-2, 100.0)),
            Point((5.0, 0.0), stats.chi2(5.0)),
            Point((1.0, 1e10), stats.norm(1e10 + 1, math.sqrt(2 + 4e10))),
            Point((0.5, 1e10), stats.norm(1e10 + 0.5, math.sqrt(1 + 4e10))),
        ),
        illegal=((0.0, 1.0), (-1.0, 1.0), (1.0, -1.0), (1.0, -0.0)),
        edges=(((1.0, INF), INF),),
        gradient=(1.0, 1.0),
    ),
    Case(
        "noncentral_f",
        (
            Point((3.0, 20.0, 2.0), stats.ncf(3.0, 20.0, 2.0)),
            Point((0.5, 10.0, 1.5), stats.ncf(0.5, 10.0, 1.5)),
            Point((0.9, 0.9, 2.0), stats.ncf(0.9, 0.9, 2.0)),
            Point((4.0, 6.0, 0.0), stats.f(4.0, 6.0)),
            Point((0.3, 0.5, 0.0), stats.f(0.3, 0.5)),
        ),
        illegal=(
            (0.0, 1.0, 1.0),
            (1.0, 0.0, 1.0),
            (1.0, 1.0, -1.0),
            (1.0, 1.0, -0.0),
        ),
        # The mean is n (m + nonc) / (m (n - 2)).
        gradient=(-2 * 20 / (9 * 18), -2 * 5 / (3 * 18**2), 20 / (3 * 18)),
    ),
)

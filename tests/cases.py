"""The table of laws that the tests run through: one row a method.

`test_laws.py` checks every row in the same way; what is particular to one law stands
in the test of its family.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats


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


NAN = math.nan

CONTINUOUS = (
    Case(
        "normal",
        (
            Point((2.0, 3.0), stats.norm(2.0, 3.0)),
            Point((0.0, 1.0), stats.norm()),
            Point((-1e3, 1e-3), stats.norm(-1e3, 1e-3)),
        ),
        illegal=((0.0, -1.0), (0.0, -0.0)),
        edges=(((3.0, 0.0), 3.0),),
        gradient=(1.0, 0.0),
    ),
)

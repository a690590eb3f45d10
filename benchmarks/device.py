"""Whether an accelerator draws the right numbers, and how fast: in five minutes.

    python -m benchmarks.device            # on a machine with a GPU, say
    python -m benchmarks.device --quick    # a smoke run of a minute, anywhere

Every law of the tests' table is checked on JAX's default device in the way of the law
tests, first at one point each, then at further points while there is time. What those
do not hold (words, integers, permutations, vectors) must equal what the CPU of the same
machine draws. Then come ratios to ``jax.random``. The status is 1 if a check fails.
Needs the checkout with its tests, pytest and scipy.
"""

import argparse
import functools
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jax_stateful_rng import StatefulPRNG, stateful_rng

from . import _bulk, _eager, _report, _timing

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import test_laws

LEAST_P = 1e-6
# Seconds since the start after which no further check, or no further row, begins.
CHECKS_END, ROWS_END = 170.0, 270.0
# What a float may differ by from one compiler to the other.
ROUNDING = 1e-4

Draw = Callable[[StatefulPRNG], jax.Array]

_COVARIANCE = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 1.5]])
_WEIGHTS = np.arange(1.0, 11.0) / 55.0

LIKE_CPU: dict[str, Draw] = {
    "bits": lambda rng: rng.bits(1000),
    "random": lambda rng: rng.random(1000),
    "uniform": lambda rng: rng.uniform(-1.0, 3.0, 1000),
    "integers": lambda rng: rng.integers(0, 1000, 1000),
    "bernoulli": lambda rng: rng.bernoulli(0.3, 1000),
    "rademacher": lambda rng: rng.rademacher(1000),
    "permutation": lambda rng: rng.permutation(1000),
    "permuted": lambda rng: rng.permuted(jnp.arange(1000).reshape(10, 100), axis=1),
    "choice": lambda rng: rng.choice(1000, 100, replace=False),
    "choice by weights": lambda rng: rng.choice(10, 1000, p=_WEIGHTS),
    "categorical": lambda rng: rng.categorical(jnp.log(_WEIGHTS), size=1000),
    "multinomial": lambda rng: rng.multinomial(20, _WEIGHTS, 100),
    "dirichlet": lambda rng: rng.dirichlet(10 * _WEIGHTS, 100),
    "multivariate_hypergeometric": lambda rng: rng.multivariate_hypergeometric(
        [20, 30, 50], 40, 100
    ),
    "multivariate_normal": lambda rng: rng.multivariate_normal(
        np.zeros(3), _COVARIANCE, 100
    ),
    "orthogonal": lambda rng: rng.orthogonal(3, 100),
}

ROWS = (
    "random(",
    "normal(",
    "integers(",
    "exponential(",
    "gamma(",
    "beta(",
    "poisson(",
    "binomial(",
    "permutation(",
)


def points() -> Iterator[tuple[Any, Any]]:
    """Yields the first point of every law, then the second of every law, and so on."""
    turn = 0
    while found := [case for case in test_laws.CASES if len(case.points) > turn]:
        for case in found:
            yield case, case.points[turn]
        turn += 1


def follows_its_law(case: Any, point: Any) -> str:
    """Returns what is wrong with the draws at one point, or an empty string."""
    seed = test_laws.seed_of(f"{case.name}{point.args}")
    try:
        test_laws.check_law(case, point, seed, LEAST_P)
    except AssertionError as error:
        return str(error).strip() or "AssertionError"
    return ""


def equals_cpu(draw: Draw) -> str:
    """Returns how draws differ from those of the CPU, or an empty string."""
    got = np.asarray(draw(stateful_rng(7)))
    with jax.default_device(jax.devices("cpu")[0]):
        expected = np.asarray(draw(stateful_rng(7)))
    exact = got.dtype.kind != "f"
    same = got == expected if exact else abs(got - expected) <= ROUNDING
    return "" if same.all() else f"{(~same).mean():.2%} of {same.size} draws differ"


def checks(quick: bool) -> Iterator[tuple[str, Callable[[], str], bool]]:
    """Yields the name of each check, the check, and whether it may be left out."""
    for name, draw in LIKE_CPU.items():
        if not quick or name in ("bits", "integers", "dirichlet"):
            yield f"{name} as on the CPU", functools.partial(equals_cpu, draw), False
    laws = len(test_laws.CASES)
    for number, (case, point) in enumerate(points()):
        if not quick or (number < laws and case.name in ("normal", "gamma", "poisson")):
            check = functools.partial(follows_its_law, case, point)
            yield f"{case.name}{point.args}", check, number >= laws


def rows(quick: bool) -> Iterator[_timing.Row]:
    """Yields what is timed: calls from Python, and a million draws a call."""
    yield from _eager.rows(_timing.QUICK, quick=True)
    for name in ROWS[:1] if quick else ROWS:
        size = 10**3 if quick else 10**6
        yield from _bulk.rows(_timing.QUICK, quick=False, only=name, size=size)


def main() -> int:
    """Prints the environment, the checks and the ratios; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.device")
    parser.add_argument("--quick", action="store_true", help="a smoke run")
    quick = parser.parse_args().quick
    start = time.monotonic()
    for name, value in _report.environment().items():
        print(f"{name}: {value}")
    failed = passed = left_out = 0
    for name, check, optional in checks(quick):
        if optional and time.monotonic() - start > CHECKS_END:
            left_out += 1
            continue
        wrong = check()
        passed += not wrong
        failed += bool(wrong)
        if wrong:
            print(f"WRONG {name}: {wrong}", flush=True)
    print(
        f"checks: {passed} passed, {failed} failed, {left_out} further points left "
        f"out for time ({time.monotonic() - start:.0f} s)",
        flush=True,
    )
    for row in rows(quick):
        print(_report.line(row), flush=True)
        if time.monotonic() - start > ROWS_END:
            print("out of time: no further rows")
            break
    print(f"{time.monotonic() - start:.0f} s in all")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Fixtures for tests that draw: ``pytest -p jax_stateful_rng.pytest_plugin``.

Or, in the ``conftest.py`` of the root folder,
``pytest_plugins = ["jax_stateful_rng.pytest_plugin"]``. It is never loaded by itself.
"""

import argparse
from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import jax
    from flax import nnx

    from ._generator import StatefulPRNG

# What JAX and flax are needed for is imported in the fixtures: a run that uses none
# of them pays for none, and a test may still set what JAX reads when it starts.

_SEED = 42
_STREAMS = ("default", "params", "dropout", "sample")
_ORIGIN = pytest.StashKey[str]()


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a non-negative int, not {text!r}")
    return int(text)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds ``--rng-seed``."""
    parser.getgroup("jax_stateful_rng").addoption(
        "--rng-seed",
        type=_seed,
        default=_SEED,
        metavar="N",
        help="seed of the fixture rng; every test draws from this and its own name "
        "(default: %(default)s)",
    )


def pytest_report_header(config: pytest.Config) -> str:
    """Says the seed."""
    return f"jax_stateful_rng: --rng-seed={config.getoption('rng_seed')}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds to a failure how to draw the same again."""
    report = yield
    origin = item.stash.get(_ORIGIN, None)
    if report.failed and origin is not None:
        report.sections.append(("random numbers", origin))
    return report


@pytest.fixture
def rng_key() -> "jax.Array":
    """A typed key: ``jax.random.key(42)`` in every test."""
    import jax

    return jax.random.key(_SEED)


@pytest.fixture
def rngs() -> "nnx.Rngs":
    """A fresh ``nnx.Rngs`` of seed 42 with default, params, dropout and sample."""
    pytest.importorskip("flax", reason="the fixture rngs needs flax")
    from ._streams import rngs_from_seed

    return rngs_from_seed(_SEED, _STREAMS)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> "StatefulPRNG":
    """A generator whose seed depends on ``--rng-seed`` and the test's node id only.

    The test draws the same alone, in the whole suite, under xdist and in any order.
    """
    from ._streams import named_streams

    seed = request.config.getoption("rng_seed")
    item = request.node
    # Not item.nodeid: xdist puts the name of a group behind that.
    name = f"{item.parent.nodeid}::{item.name}"
    item.stash[_ORIGIN] = (
        f"The fixture rng drew from --rng-seed={seed} and the test's node id. "
        f"The same again: pytest {name!r} --rng-seed={seed}"
    )
    return named_streams(seed, [name])[name]

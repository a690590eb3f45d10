"""What all tests share."""

import os

# Before JAX starts: the mesh tests want several devices.
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import jax
import pytest

from jax_stateful_rng import stateful_rng


def pytest_collection_modifyitems(items):
    """Puts the tests of one law side by side: they share its compiled programs."""

    def place(item):
        case = getattr(item, "callspec", None) and item.callspec.params.get("case")
        return item.path, str(case or "")

    items.sort(key=place)


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace):
    import jax.numpy as jnp
    import numpy as np

    doctest_namespace.update(jax=jax, jnp=jnp, np=np, stateful_rng=stateful_rng)


@pytest.fixture
def x64():
    """Runs a test with 64-bit types."""
    with jax.enable_x64(True):
        yield

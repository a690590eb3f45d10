"""Every example in the package's docstrings runs and gives what it says."""

import doctest
import importlib
import pkgutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jax_stateful_rng

MODULES = [
    module.name
    for module in pkgutil.walk_packages(
        jax_stateful_rng.__path__, prefix=f"{jax_stateful_rng.__name__}."
    )
]


@pytest.mark.parametrize("name", [jax_stateful_rng.__name__, *MODULES])
def test_examples(name, capsys):
    failed, _ = doctest.testmod(
        importlib.import_module(name),
        extraglobs={
            "jax": jax,
            "jnp": jnp,
            "np": np,
            "stateful_rng": jax_stateful_rng.stateful_rng,
        },
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE,
    )
    assert failed == 0, capsys.readouterr().out


def test_modules_are_found():
    assert {"jax_stateful_rng._generator", "jax_stateful_rng._samplers.simple"} <= set(
        MODULES
    )

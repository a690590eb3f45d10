"""The README's example runs, and its commands are where CI looks for them."""

import re
from pathlib import Path

import numpy as np
import pytest

from jax_stateful_rng import StatefulPRNG

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.M | re.S)


def test_it_is_short():
    assert len(README.splitlines()) < 100


@pytest.mark.parametrize("word", ["python -m jax_stateful_rng", "python -m pytest"])
def test_a_command_is_one_line_in_a_block_of_its_own(word):
    (block,) = (block for block in blocks("bash") if word in block)
    assert block.count("\n") == 1
    assert block.startswith("python3 -m venv .venv && ")


def test_the_example(capsys):
    (example,) = blocks("python")
    lines = [line for line in example.splitlines() if line]
    assert len(lines) <= 11
    names = {}
    exec(compile(example, "README.md", "exec"), names)
    # Without dropout the best weights are all ones. The noise shrinks them.
    np.testing.assert_allclose(names["w"], np.ones(8), atol=0.2)
    assert f"print(rng)  # {capsys.readouterr().out.strip()}" == lines[-1]


def test_all_of_numpys_draws_are_there():
    methods = {name for name in dir(np.random.Generator) if not name.startswith("_")}
    assert methods - {"bit_generator"} <= set(dir(StatefulPRNG))


@pytest.mark.parametrize("target", re.findall(r"\]\((?!https?:)([^)]+)\)", README))
def test_a_link_leads_to_a_file(target):
    assert (Path(__file__).parents[1] / target).is_file()

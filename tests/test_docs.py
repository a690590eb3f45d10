"""The pages of the site: their code runs, and the reference is complete.

All blocks marked ``python`` of a page run in order, with one namespace. A block whose
last line is a comment like ``# ValueError: text`` must raise that. Blocks marked ``py``
need other packages or more time; they run with ``pytest -m slow``.
"""

import inspect
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import jax_stateful_rng
from jax_stateful_rng import StatefulPRNG

DOCS = Path(__file__).parents[1] / "docs"
# The code of scaling.md is for several devices and processes: see test_sharding.py.
PAGES = sorted(path for path in DOCS.glob("*.md") if path.stem != "scaling")
API = "".join(path.read_text("utf-8") for path in sorted(DOCS.glob("api/*.md")))
BLOCK = re.compile(r"^```(python|py)\n(.*?)^```$", re.M | re.S)
RAISES = re.compile(r"^# (\w+Error): (.+)\n\Z", re.M)

pytestmark = pytest.mark.skipif(not PAGES, reason="an sdist has no docs")


def run(path, kinds):
    """Runs the blocks of a page; the lines of a traceback are those of the page."""
    text = path.read_text("utf-8")
    names = {"__name__": path.stem}
    for block in BLOCK.finditer(text):
        kind, source = block.groups()
        if kind not in kinds:
            continue
        lines = text[: block.start(2)].count("\n")
        code = compile("\n" * lines + source, path, "exec")
        expected = RAISES.search(source)
        if expected is None:
            exec(code, names)
            continue
        with pytest.raises((TypeError, ValueError)) as caught:
            exec(code, names)
        assert type(caught.value).__name__ == expected[1]
        assert str(caught.value).startswith(expected[2].rstrip("."))


def pages_with(kind):
    found = [
        path
        for path in PAGES
        if any(block[1] == kind for block in BLOCK.finditer(path.read_text("utf-8")))
    ]
    return pytest.mark.parametrize("path", found, ids=lambda path: path.stem)


@pages_with("python")
def test_code(path):
    run(path, {"python"})


@pytest.mark.slow
@pages_with("py")
def test_code_with_other_libraries(path):
    for name in ("blackjax", "equinox", "flax", "numpyro", "optax", "orbax.checkpoint"):
        pytest.importorskip(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries
        run(path, {"python", "py"})


def test_every_method_is_in_the_reference():
    """By its family: the directive lists what that class defines."""
    families = set(re.findall(r"^```\{family\} (\w+)$", API, re.M))
    assert sorted(families) == sorted(set(families))
    owners = {
        base.__name__
        for base in StatefulPRNG.__mro__
        if base is not object and any(not name.startswith("_") for name in vars(base))
    }
    assert families == owners


@pytest.mark.parametrize("name", jax_stateful_rng.__all__)
def test_every_public_name_is_in_the_reference(name):
    assert re.search(rf"^\.\. (?:auto|py:)\w+:: {name}\b", API, re.M)


def test_the_table_for_numpy_has_every_method():
    """With NumPy's parameters, which are ours up to what stands behind them."""
    text = (DOCS / "from-numpy.md").read_text("utf-8")
    rows = dict(re.findall(r"^\| `(\w+)\((.*?)\)`", text, re.M))
    theirs = {name for name in dir(np.random.Generator) if not name.startswith("_")}
    assert set(rows) == theirs - {"bit_generator"}
    for name, listed in rows.items():
        listed = [part for part in listed.split(", ") if part != "*"]
        ours = list(inspect.signature(getattr(StatefulPRNG, name)).parameters)[1:]
        assert ours[: len(listed)] == listed, name
        assert set(ours[len(listed) :]) <= {"dtype", "out_sharding"}, name

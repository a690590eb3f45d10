"""The tour passes, and fails when anything that it shows is not so."""

import os
import runpy
import subprocess
import sys

import pytest

from jax_stateful_rng import _generator
from jax_stateful_rng.__main__ import TOUR, main


def test_command():
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    ran = subprocess.run(
        [sys.executable, "-m", "jax_stateful_rng"],
        capture_output=True,
        text=True,
        encoding="ascii",  # for any terminal
        env=environment,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stderr == ""
    assert "\033" not in ran.stdout
    assert max(map(len, ran.stdout.splitlines())) <= 88
    for shown in (
        "[0.09609699, 0.26730824, 0.5619041 , 0.24421775]",
        "StatefulPRNG(impl='threefry2x32', count=5)",
        "ValueError: rng.normal: a batched generator does not draw by itself",
        "OK: ",
    ):
        assert shown in ran.stdout


@pytest.mark.parametrize("session", [">>> 1\n1\n", ">>> 1\n2\n"])
def test_colors_are_for_terminals(session, capsys, monkeypatch):
    session = f"A heading.\n\n{session}"
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    main(session)
    colored = capsys.readouterr().out
    assert "\033[1mA heading.\033[0m" in colored
    assert "\033[32mOK" in colored or "\033[31m    NOT SO" in colored
    monkeypatch.setenv("NO_COLOR", "1")
    main(session)
    assert "\033" not in capsys.readouterr().out


def test_passes_with_64_bits(x64, capsys):
    assert main() == 0
    assert "float64" in capsys.readouterr().out


@pytest.mark.parametrize("line", [">>> 1 + 1\n3\n", ">>> 1 / 0\n3\n", ">>> 3\n"])
def test_a_line_that_is_not_so(line, capsys):
    assert main(f"A heading.\n\n{line}>>> print('after')\n") == 1
    printed = capsys.readouterr().out
    assert "A heading." in printed
    assert "NOT SO. It should be: " in printed
    assert "FAILED: the tour stopped at line 1." in printed
    assert "after" not in printed


def test_an_error_that_does_not_come(capsys):
    assert main(TOUR.replace("rng.split(3).normal()", "rng.normal()")) == 1
    assert "ValueError: rng.normal: a batched generator" in capsys.readouterr().out


def test_exit_status(monkeypatch, capsys):
    # The tour of a generator with other numbers: its last line is not so.
    other = _generator.stateful_rng(1702)
    monkeypatch.setattr(_generator, "stateful_rng", lambda seed: other)
    monkeypatch.delitem(sys.modules, "jax_stateful_rng.__main__")
    with pytest.raises(SystemExit) as exit:
        runpy.run_module("jax_stateful_rng", run_name="__main__")
    assert exit.value.code == 1
    assert capsys.readouterr().out.count("NOT SO") == 1

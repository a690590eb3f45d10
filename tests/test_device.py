"""A smoke run of the check of accelerators, and that it finds what is wrong."""

import numpy as np
import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are in the repository only")

from cases import Case, Point
from scipy import stats

from benchmarks import device


@pytest.mark.slow
def test_a_quick_run(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["device", "--quick"])
    assert device.main() == 0
    printed = capsys.readouterr().out
    assert "checks: 6 passed, 0 failed" in printed
    assert "bulk random()" in printed


def test_another_law_is_found():
    case = Case("normal", (Point((0.0, 1.0), stats.norm(0.1)),))
    assert device.follows_its_law(case, case.points[0])


def test_other_numbers_than_the_cpus_are_found():
    draws = iter((np.arange(4), np.array([0, 1, 2, 4])))
    assert device.equals_cpu(lambda rng: next(draws)) == "25.00% of 4 draws differ"


def test_every_law_of_the_table_is_checked():
    found = [case.name for case, _ in device.points()]
    assert set(found[: len(device.test_laws.CASES)]) == set(found)

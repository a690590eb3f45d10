"""A smoke run of each benchmark: the figures are there, whatever they are."""

import json

import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are in the repository only")

from benchmarks import __main__ as command
from benchmarks._bars import BARS, check
from benchmarks._timing import OURS, Row


@pytest.fixture
def call(monkeypatch, capsys):
    def run(*words):
        monkeypatch.setattr("sys.argv", ["benchmarks", *map(str, words)])
        status = command.main()
        return status, capsys.readouterr().out

    return run


@pytest.mark.parametrize(
    ("mode", "peer"),
    [
        ("eager", "split and draw"),
        pytest.param("traced", "fold_in and draw", marks=pytest.mark.slow),
        ("bulk", "jax.random"),
    ],
)
def test_each_mode_measures_ours_against_its_peers(call, tmp_path, mode, peer):
    json_file, page = tmp_path / "figures.json", tmp_path / "speed.md"
    status, _ = call(mode, "--quick", "--json", json_file, "--markdown", page)
    assert status == 0
    saved = json.loads(json_file.read_text())
    assert saved["quick"]
    assert {"python", "jax", "numpy", "device", "processor"} <= set(
        saved["environment"]
    )
    assert {row["mode"] for row in saved["rows"]} == {mode}
    for row in saved["rows"]:
        ours = row["minimum"][OURS]
        assert ours > 0
        assert row["ratios"][peer] == pytest.approx(row["minimum"][peer] / ours)
        assert row["median"][peer] >= row["minimum"][peer]
    text = page.read_text()
    assert saved["rows"][0]["case"] in text
    assert peer in text


def test_saved_figures_are_checked_reported_and_plotted(call, tmp_path):
    def row(ours):
        times = {OURS: ours, "split and draw": 100e-6, "jitted x + 1": 4e-6}
        return Row("eager", "uniform", "scalar", "run", times, times, {})

    for ours, status in ((12e-6, 0), (30e-6, 1)):
        report = {
            "environment": {"jax": "1.2.3", "python": "3.11"},
            "quick": False,
            "skipped": [],
            "rows": [row(ours).to_dict()],
        }
        path = tmp_path / "figures.json"
        path.write_text(json.dumps(report))
        found, out = call("check", path)
        assert found == status
        assert ("FAIL" in out) == bool(status)
        assert "absent  eager uniform [scalar]" in out  # upstream is not in the file

    pytest.importorskip("matplotlib")
    page, picture = tmp_path / "speed.md", tmp_path / "speed.svg"
    call("report", path, "--markdown", page, "--plot", picture)
    assert "jax 1.2.3" in page.read_text()
    assert picture.stat().st_size > 0


def test_a_bar_is_a_ratio_of_minima():
    bar = next(b for b in BARS if b.peer == "jitted x + 1")
    for ours, passes in ((bar.most, True), (bar.most * 1.01, False)):
        minimum = {OURS: ours, bar.peer: 1.0}
        lines, holds = check(
            [Row(bar.mode, bar.case, bar.size, bar.what, minimum, minimum, {})]
        )
        assert holds == passes
        assert sum("absent" not in line for line in lines) == 1

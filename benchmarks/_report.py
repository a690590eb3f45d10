"""Results as JSON, as Markdown tables and as a plot."""

import dataclasses
import importlib.metadata
import importlib.util
import json
import math
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax

from ._timing import OURS, Row


@dataclasses.dataclass(frozen=True)
class Report:
    """The results of one run.

    Attributes:
        environment: the machine and the versions.
        quick: whether it was a smoke run, whose figures say little.
        skipped: peers and methods that were not there.
        rows: the results.
    """

    environment: Mapping[str, str]
    quick: bool
    skipped: Sequence[str]
    rows: Sequence[Row]

    def save(self, path: Path) -> None:
        rows = [row.to_dict() for row in self.rows]
        saved = {**vars(self), "rows": rows}
        path.write_text(json.dumps(saved, indent=1) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Report":
        saved = json.loads(path.read_text())
        rows = [Row.from_dict(row) for row in saved.pop("rows")]
        return cls(**saved, rows=rows)


def environment() -> dict[str, str]:
    """Returns what the figures depend on."""
    packages = ("jax", "jaxlib", "numpy", "flax")
    versions = {
        name: importlib.metadata.version(name)
        for name in packages
        if importlib.util.find_spec(name) is not None
    }
    device = jax.devices()[0]
    return {
        "python": platform.python_version(),
        **versions,
        "device": f"{device.device_kind} ({device.platform})",
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def merged(reports: Iterable[Report]) -> list[Report]:
    """Joins the reports of the same versions: one run of each mode makes one report."""
    found: dict[tuple[str, ...], Report] = {}
    for report in reports:
        versions = {k: v for k, v in report.environment.items() if k != "load"}
        place = tuple(versions.values())
        if place in found:
            before = found[place]
            report = Report(
                before.environment,
                before.quick or report.quick,
                list(dict.fromkeys([*before.skipped, *report.skipped])),
                [*before.rows, *report.rows],
            )
        found[place] = report
    return list(found.values())


# --- Markdown ----------------------------------------------------------------------

_INTRODUCTION = """\
# Speed

Written by `python -m benchmarks`, which compares within one run: the calls of all
peers take turns in short slices, and a figure is the minimum over the slices (the
medians, and the processor times, are in the JSON). In brackets: how many times the
time of `jax_stateful_rng` that is, so that 2× means that we are twice as fast.
Measured with:
"""

_ABOUT = {
    "eager": """\
## Calls from Python

The time of a call in a Python loop, as in a notebook: dispatch included, with one
wait for the last result of each slice. *split and draw* is
`key, sub = jax.random.split(key)` and a draw by `jax.random`; *fold_in and draw* counts
instead; *jitted x + 1* is what a jitted function costs that does nothing.
""",
    "traced": """\
## Inside jitted functions

Every result is waited for. *captured*: the generator is closed over, not an argument;
upstream's is captured too. *split and draw* and *fold_in and draw* are the usual
functional code, `flax.nnx.Rngs` is split and merged as a pure state. All that JAX has
cached is thrown away before a trace or a compilation is timed; equations are those of
the jaxpr, inner ones included.
""",
    "bulk": """\
## Many draws in one call

Every result is waited for. Ours is the method called from Python, `jax.random` the
best that one can write: a jitted function that splits the key and draws, with the
parameters as arguments. NumPy's numbers are float32 where its method has a `dtype`,
else float64. *First call*: with its trace and compilation, after all that JAX has
cached was thrown away. Of a law with vectors, the size counts the numbers, not the
vectors.
""",
}


def markdown(reports: Sequence[Report]) -> str:
    """Returns the page with the tables of the reports."""
    parts = [_INTRODUCTION]
    for report in reports:
        versions = ", ".join(f"{k} {v}" for k, v in report.environment.items())
        skipped = f" Skipped: {', '.join(report.skipped)}." if report.skipped else ""
        quick = " A quick run: the figures say little." if report.quick else ""
        parts.append(f"- {versions}.{skipped}{quick}")
    parts.append("")
    for mode, about in _ABOUT.items():
        found = [
            (report, [row for row in report.rows if row.mode == mode])
            for report in reports
        ]
        if any(rows for _, rows in found):
            parts.append(about)
        for report, rows in found:
            parts += _tables(f"jax {report.environment['jax']}", rows)
    return "\n".join(parts)


def _tables(title: str, rows: Sequence[Row]) -> Iterator[str]:
    for what in dict.fromkeys(row.what for row in rows):
        chosen = [row for row in rows if row.what == what]
        peers = list(dict.fromkeys(peer for row in chosen for peer in row.minimum))
        unit = "count" if what == "equations" else "time"
        head = ["case", "size", *peers]
        lines = [
            f"**{title}: {what}** ({unit})\n",
            "| " + " | ".join(head) + " |",
            "| --- | ---: |" + " ---: |" * len(peers),
        ]
        for row in chosen:
            cells = [row.case, row.size, *(_cell(row, peer) for peer in peers)]
            lines.append("| " + " | ".join(cells) + " |")
        yield "\n".join(lines) + "\n"


def line(row: Row) -> str:
    """Returns a row as one line of text."""
    cells = [f"{peer} {_cell(row, peer)}" for peer in row.minimum]
    return f"{row.mode} {row.case} [{row.size}] {row.what}: " + "; ".join(cells)


def _cell(row: Row, peer: str) -> str:
    if peer not in row.minimum:
        return "–"
    value = row.minimum[peer]
    shown = f"{value:.0f}" if row.what == "equations" else _seconds(value)
    return shown if peer == OURS else f"{shown} ({row.ratios[peer]:.2g}×)"


def _seconds(value: float) -> str:
    unit, scale = ("s", 1.0) if value >= 1 else ("ms", 1e-3)
    if value < 1e-3:
        unit, scale = "µs", 1e-6
    digits = max(0, 2 - math.floor(math.log10(value / scale)))
    return f"{value / scale:.{digits}f} {unit}"


# --- Plot --------------------------------------------------------------------------


def plot(reports: Sequence[Report], path: Path) -> None:
    """Draws how many times faster than each peer every call is, a panel a mode."""
    import matplotlib.pyplot as plt  # only for this: the tables need none

    runs: dict[str, list[tuple[str, Row]]] = {}
    for report in reports:
        for row in report.rows:
            if row.what == "run":
                label = f"{row.case} [{row.size}]"
                if len(reports) > 1:
                    label += f", jax {report.environment['jax']}"
                runs.setdefault(row.mode, []).append((label, row))
    heights = [len(rows) for rows in runs.values()]
    figure, panels = plt.subplots(
        len(runs),
        figsize=(9, 1.2 * len(runs) + 0.22 * sum(heights)),
        height_ratios=heights,
        squeeze=False,
        layout="constrained",
    )
    for panel, (mode, labelled) in zip(panels[:, 0], runs.items(), strict=True):
        _panel(panel, mode, labelled)
    figure.savefig(path)
    plt.close(figure)


def _panel(panel: Any, mode: str, labelled: Sequence[tuple[str, Row]]) -> None:
    ratios = [row.ratios for _, row in labelled]
    for peer in dict.fromkeys(peer for found in ratios for peer in found):
        places = [i for i, found in enumerate(ratios) if peer in found]
        panel.plot([ratios[i][peer] for i in places], places, "o", label=peer, ms=4)
    panel.axvline(1, color="0.4", lw=0.8)
    panel.set_xscale("log")
    panel.set_xlabel(f"{mode}: time of the peer / time of {OURS}")
    panel.set_yticks(range(len(labelled)), [label for label, _ in labelled], fontsize=7)
    panel.set_ylim(len(labelled) - 0.5, -0.5)
    panel.grid(axis="x", which="major", alpha=0.4)
    panel.legend(fontsize=7)

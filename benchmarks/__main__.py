"""The command line: run a mode, or look at saved results."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from . import _bars, _bulk, _eager, _peers, _report, _timing, _traced

_MODES = ("eager", "traced", "bulk")


def _rows(mode: str, quick: bool) -> Iterator[_timing.Row]:
    effort = _timing.QUICK if quick else _timing.FULL
    if mode == "eager":
        return _eager.rows(effort, quick=quick)
    if mode == "traced":
        return _traced.rows(effort, quick=quick)
    return _bulk.rows(effort, quick=quick)


def _run(mode: str, quick: bool) -> _report.Report:
    skipped = [*_peers.missing(), *(_bulk.skipped() if mode == "bulk" else ())]
    for name in skipped:
        print(f"skipped: {name}")
    environment = _report.environment()
    rows = []
    for row in _rows(mode, quick):
        rows.append(row)
        print(_report.line(row), flush=True)
    return _report.Report(environment, quick, skipped, rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    output = argparse.ArgumentParser(add_help=False)
    output.add_argument("--markdown", type=Path, metavar="FILE", help="write tables")
    output.add_argument("--plot", type=Path, metavar="FILE", help="write a plot")
    for mode, what in zip(
        _MODES,
        ("single draws from Python", "draws in jitted functions", "many draws a call"),
        strict=True,
    ):
        run = commands.add_parser(mode, parents=[output], help=f"measure {what}")
        run.add_argument("--quick", action="store_true", help="a smoke run")
        run.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    about = "write tables and a plot of saved JSON files"
    report = commands.add_parser("report", parents=[output], help=about)
    report.add_argument("files", nargs="+", type=Path)
    check = commands.add_parser("check", help="compare saved JSON files with the bars")
    check.add_argument("files", nargs="+", type=Path)
    return parser


def main() -> int:
    """Runs one command and returns the exit status: 1 where a bar fails."""
    args = _parser().parse_args()
    if args.command in _MODES:
        reports = [_run(args.command, args.quick)]
        if args.json is not None:
            reports[0].save(args.json)
    else:
        reports = _report.merged(_report.Report.load(path) for path in args.files)
    if args.command == "check":
        return _check(reports)
    if args.markdown is not None:
        args.markdown.write_text(_report.markdown(reports))
    if args.plot is not None:
        _report.plot(reports, args.plot)
    return 0


def _check(reports: list[_report.Report]) -> int:
    status = 0
    for report in reports:
        lines, holds = _bars.check(report.rows)
        environment = report.environment
        print(f"jax {environment['jax']}, Python {environment['python']}")
        print("\n".join(lines))
        status |= not holds
    return status


if __name__ == "__main__":
    sys.exit(main())

"""The command line: run a mode, or look at saved results."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from . import (
    _bars,
    _bulk,
    _eager,
    _peers,
    _quality,
    _report,
    _streams,
    _timing,
    _traced,
)

_MODES = ("eager", "traced", "bulk")


def _rows(args: argparse.Namespace) -> Iterator[_timing.Row]:
    effort = _timing.QUICK if args.quick else _timing.FULL
    if args.command == "eager":
        return _eager.rows(effort, quick=args.quick)
    if args.command == "traced":
        return _traced.rows(effort, quick=args.quick)
    return _bulk.rows(effort, quick=args.quick, only=args.only, size=args.size)


def _run(args: argparse.Namespace) -> _report.Report:
    missing = _bulk.skipped() if args.command == "bulk" else ()
    skipped = [*_peers.missing(), *missing]
    for name in skipped:
        print(f"skipped: {name}")
    rows: list[_timing.Row] = []
    report = _report.Report(_report.environment(), args.quick, skipped, rows)
    for row in _rows(args):
        rows.append(row)
        print(_report.line(row), flush=True)
        if args.json is not None:  # every time: a run may be stopped
            report.save(args.json)
    return report


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
        if mode == "bulk":
            about = "only what begins so: gamma"
            run.add_argument("--only", default="", metavar="CASE", help=about)
            run.add_argument("--size", type=int, help="only this many numbers")
    about = "write tables and a plot of saved JSON files"
    report = commands.add_parser("report", parents=[output], help=about)
    report.add_argument("files", nargs="+", type=Path)
    about = "test the random words of all streams"
    quality = commands.add_parser("quality", help=about)
    about = "64 times as many words, and dieharder, if it is installed"
    quality.add_argument("--long", action="store_true", help=about)
    quality.add_argument("--impl", choices=_streams.IMPLS, help="only this one")
    quality.add_argument("--seed", type=int, default=0)
    check = commands.add_parser("check", help="compare saved JSON files with the bars")
    check.add_argument("files", nargs="+", type=Path)
    return parser


def main() -> int:
    """Runs one command and returns the exit status: 1 where something fails."""
    args = _parser().parse_args()
    if args.command == "quality":
        return _quality_of(args)
    if args.command in _MODES:
        reports = [_run(args)]
    else:
        reports = _report.merged(_report.Report.load(path) for path in args.files)
    if args.command == "check":
        return _check(reports)
    if args.markdown is not None:
        args.markdown.write_text(_report.markdown(reports))
    if args.plot is not None:
        _report.plot(reports, args.plot)
    return 0


def _quality_of(args: argparse.Namespace) -> int:
    impls = _streams.IMPLS if args.impl is None else (args.impl,)
    if args.long and not _quality.has_dieharder():
        print("skipped: dieharder")
    status = 0
    for what, found in _quality.results(impls, args.seed, long=args.long):
        print(_quality.line(what, found), flush=True)
        status |= _quality.is_fault(found)
    return status


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

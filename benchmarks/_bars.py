"""What must be fast, as figures, and the check of saved results against them."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from ._bulk import IN_JIT, JAX
from ._peers import FOLD_IN, LIMIT, NUMPY, SPLIT, UPSTREAM
from ._timing import OURS, Row


@dataclasses.dataclass(frozen=True)
class Bar:
    """Ours against a peer: ``ours / peer`` must be at most ``most``.

    Attributes:
        mode: of the row.
        case: of the row.
        size: of the row.
        peer: the peer, or ``None`` where ``most`` is seconds.
        most: the largest ratio of the minima that passes.
        what: of the row.
    """

    mode: str
    case: str
    size: str
    peer: str | None
    most: float
    what: str = "run"

    def __str__(self) -> str:
        if self.peer is None:
            must = f"at most {self.most * 1e6:g} µs"
        elif self.most < 1:
            must = f"at least {1 / self.most:g}× as fast as {self.peer}"
        else:
            must = f"at most {self.most:g}× the time of {self.peer}"
        return f"{self.mode} {self.case} [{self.size}], {self.what}: {must}"


_CALL, _SCAN, _MANY = "uniform", "scan of scalar draws", "draws in one function"
_COMPILE = "trace + compile"


def _bulk(
    case: str,
    *,
    jax: float | None = None,
    numpy: float | None = None,
    size: int = 10**6,
) -> Iterator[Bar]:
    """Yields bars: how many times faster than jax.random, at most what of NumPy."""
    if jax is not None:
        yield Bar("bulk", case, str(size), JAX, 1 / jax)
    if numpy is not None:
        yield Bar("bulk", case, str(size), NUMPY, numpy)


BARS = (
    Bar("eager", _CALL, "scalar", UPSTREAM, 1 / 20),
    Bar("eager", _CALL, "scalar", SPLIT, 1 / 4),
    Bar("eager", _CALL, "scalar", LIMIT, 4),
    Bar("traced", _SCAN, "100000", FOLD_IN, 1.15),
    Bar("traced", _SCAN, "100000", SPLIT, 1),
    Bar("traced", _MANY, "100", SPLIT, 1.3, _COMPILE),
    Bar("traced", _MANY, "100", FOLD_IN, 1.3, _COMPILE),
    *_bulk("random()", jax=4, numpy=1.2),
    *_bulk("uniform(-1.0, 1.0)", jax=4, numpy=1.2),
    *_bulk("integers(0, 1000003)", jax=2.5, numpy=1.1),
    Bar("bulk", "choice(10**6, n, replace=False)", "10", None, 100e-6),
    *_bulk("permutation(n)", jax=6),
    *_bulk("choice(1000, n, p=weights)", jax=6, numpy=0.2),
    *_bulk("gamma(2.5, 2.0)", jax=20, numpy=1),
    *_bulk("gamma(0.3, 2.0)", jax=20, numpy=1),
    *_bulk("dirichlet([0.5] * 10)", jax=20),
    *_bulk("beta(2.0, 3.0)", jax=15, numpy=1.5),
    *_bulk("standard_t(3.0)", jax=15, numpy=1),
    *_bulk("poisson(4.0)", jax=12, numpy=1),
    *_bulk("poisson(100.0)", jax=4, numpy=1.5),
    *_bulk("poisson(1 to 200)", numpy=1.5),
    *_bulk("binomial(20, 0.3)", jax=12, numpy=1),
    *_bulk("binomial(1000, 0.3)", jax=4, numpy=1.5),
    *_bulk("multinomial(100, [0.1] * 10)", jax=4),
    *_bulk("normal(1.0, 2.0)", jax=2, numpy=1),
    *_bulk("exponential(2.0)", numpy=1),
    *_bulk("geometric(0.2)", numpy=1),
    *_bulk("wald(2.0, 3.0)", numpy=1),
    *_bulk("logseries(0.8)", numpy=1),
    *_bulk("vonmises(0.0, 2.0)", numpy=1),
    *_bulk("zipf(2.0)", numpy=1),
    *_bulk("hypergeometric(60, 40, 30)", numpy=1),
    *_bulk("negative_binomial(5.0, 0.3)", numpy=1.5),
)


def _of_every_law(rows: Sequence[Row]) -> Iterator[Bar]:
    """Yields the bars that hold for each law: never slower than jax.random."""
    for row in rows:
        if row.mode == "bulk" and JAX in row.minimum:
            most = 1.5 if row.what == "first call" else 1.0
            yield Bar(row.mode, row.case, row.size, JAX, most, row.what)


def _ratio(bar: Bar, row: Row, times: Mapping[str, float]) -> float:
    ours = times[OURS]
    if row.what == "run" and row.size == "1" and IN_JIT in times:
        # The peer is a jitted function: beside it stands ours in a jitted one.
        ours = times[IN_JIT]
    return ours / (1 if bar.peer is None else times[bar.peer])


def _figure(bar: Bar, ratio: float) -> str:
    if bar.peer is None:
        return f"{ratio * 1e6:.3g} µs"
    if bar.most < 1:
        return f"{1 / ratio:.3g}× as fast"
    return f"{ratio:.3g}× the time"


def check(rows: Sequence[Row]) -> tuple[list[str], bool]:
    """Compares rows with the bars.

    Returns:
        One line a bar, and whether every bar that could be looked at holds.
    """
    found = {(row.mode, row.case, row.size, row.what): row for row in rows}
    modes = {row.mode for row in rows}
    lines, holds = [], True
    for bar in (*BARS, *_of_every_law(rows)):
        if bar.mode not in modes:
            continue
        row = found.get((bar.mode, bar.case, bar.size, bar.what))
        if row is None or (bar.peer is not None and bar.peer not in row.minimum):
            lines.append(f"absent  {bar}")
            continue
        ratio = _ratio(bar, row, row.minimum)
        passed = ratio <= bar.most
        holds &= passed
        figure = _figure(bar, ratio)
        if OURS in row.cpu:  # steadier on a busy machine
            figure += f" (processor: {_figure(bar, _ratio(bar, row, row.cpu))})"
        lines.append(f"{'pass' if passed else 'FAIL'}    {bar}: {figure}")
    return lines, holds

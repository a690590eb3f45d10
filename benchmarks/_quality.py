"""Statistical tests of streams of words: our own, and those of dieharder.

A test counts what it sees in a block of words; the sums over all blocks give its
p-value. Those of streams are two-sided: what fits too well is a fault, too.
"""

import contextlib
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np
from scipy import stats

from . import _streams

LEAST_P = 1e-6
"""A p-value below it is a fault."""

DIEHARDER = (0, 1, 2, 3, 8, 9, 10, 13, 15, 16, 100, 101, 102, 204, 205, 207, 209)
"""Some of the tests that it calls good: two minutes a stream."""


class Test(NamedTuple):
    """One test.

    Attributes:
        count: the counts of a block.
        p_value: of the sums of these.
    """

    count: Callable[[np.ndarray], np.ndarray]
    p_value: Callable[[np.ndarray], float]


def _two_sided(below: float, above: float) -> float:
    return min(1.0, 2 * float(min(below, above)))


def _chi_square(probabilities: np.ndarray) -> Callable[[np.ndarray], float]:
    """Returns the test that each row of counts is multinomial."""

    def p_value(counts: np.ndarray) -> float:
        expected = counts.sum(axis=1, keepdims=True) * probabilities
        statistic = ((counts - expected) ** 2 / expected).sum()
        law = stats.chi2(len(counts) * (probabilities.size - 1))
        return _two_sided(law.cdf(statistic), law.sf(statistic))

    return p_value


def _uniform(cells: int) -> Callable[[np.ndarray], float]:
    return _chi_square(np.full(cells, 1 / cells))


def _bytes(words: np.ndarray) -> np.ndarray:
    columns = words.view(np.uint8).reshape(-1, 4).T
    return np.stack([np.bincount(column, minlength=256) for column in columns])


def _pairs(words: np.ndarray) -> np.ndarray:
    """Counts the highest bytes of two words, and the lowest."""
    rows = []
    for part in (words >> 24, words & 255):
        rows.append(np.bincount(part[::2] << 8 | part[1::2], minlength=2**16))
    return np.stack(rows)


def _runs(words: np.ndarray) -> np.ndarray:
    """Counts the runs of equal bits by their length, up to 16 and more."""
    bits = np.unpackbits(words.view(np.uint8))
    lengths = np.diff(np.flatnonzero(bits[1:] != bits[:-1]))
    return np.bincount(np.minimum(lengths, 16), minlength=17)[None, 1:]


_RUNS = 0.5 ** np.array([*range(1, 16), 15])

_BIRTHDAYS = 4096


def _birthdays(words: np.ndarray) -> np.ndarray:
    """Counts groups of 4096 words, and the spacings in them that repeat another."""
    spacings = np.diff(np.sort(words.reshape(-1, _BIRTHDAYS), axis=1), axis=1)
    spacings.sort(axis=1)
    return np.array([len(spacings), (spacings[:, 1:] == spacings[:, :-1]).sum()])


def _birthdays_p(counts: np.ndarray) -> float:
    groups, repeats = counts.tolist()
    m, days = _BIRTHDAYS, 2.0**32
    # Equal pairs of spacings; where three are equal, the pairs count one too many.
    mean = m * (m - 1) * (m - 2) / (4 * days) - m**5 / (18 * days**2)
    law = stats.poisson(groups * mean)
    return _two_sided(law.cdf(repeats), law.sf(repeats - 1))


_CLASSES = np.digitize(np.arange(33), [14, 16, 17, 19])
_WEIGHTS = np.bincount(_CLASSES, stats.binom(32, 0.5).pmf(np.arange(33)))


def _weights(words: np.ndarray) -> np.ndarray:
    """Counts pairs of words by the classes of their numbers of ones."""
    classes = _CLASSES[np.bitwise_count(words)]
    return np.bincount(classes[::2] * 5 + classes[1::2], minlength=25)[None]


def _flips(words: np.ndarray) -> np.ndarray:
    """Counts for each bit how often it differs in two words."""
    changed = (words[::2] ^ words[1::2]).view(np.uint8).reshape(-1, 4)
    flips = np.unpackbits(changed, axis=1).sum(axis=0, dtype=np.int64)
    return np.stack([len(changed) - flips, flips], axis=1)


TESTS = {
    "bytes": Test(_bytes, _uniform(256)),
    "pairs": Test(_pairs, _uniform(2**16)),
    "runs": Test(_runs, _chi_square(_RUNS)),
    "birthdays": Test(_birthdays, _birthdays_p),
    "weights": Test(_weights, _chi_square(np.outer(_WEIGHTS, _WEIGHTS).ravel())),
    "flips": Test(_flips, _uniform(2)),
}
"""Chi-square of bytes and of serial pairs; runs of bits; birthday spacings; dependence
of Hamming weights, and avalanche, between neighbours."""


def p_values(blocks: _streams.Blocks, words: int) -> dict[str, float]:
    """Returns the p-value of each test on the first words of a stream."""
    totals = dict.fromkeys(TESTS, 0)
    for block in islice(blocks, words // _streams.BLOCK):
        for name, test in TESTS.items():
            totals[name] = totals[name] + test.count(block)
    return {name: test.p_value(totals[name]) for name, test in TESTS.items()}


def repeats(keys: np.ndarray) -> tuple[int, float]:
    """Returns how many keys repeat another, and the p-value of as many or more.

    That is, were they random numbers of 64 bits.
    """
    number = len(keys) - len(np.unique(keys, axis=0))
    pairs = len(keys) * (len(keys) - 1) / 2
    return number, float(stats.poisson(pairs / 2**64).sf(number - 1))


def has_dieharder() -> bool:
    """Whether it is installed: it is a package of Debian's, for one."""
    return shutil.which("dieharder") is not None


def dieharder(blocks: _streams.Blocks, test: int) -> dict[str, float]:
    """Returns the p-values of one of dieharder's tests; it takes what it needs."""
    fields = ("test_name", "ntuple", "tsamples", "psamples", "pvalues")
    flags = [word for field in fields for word in ("-D", field)]
    command = ["dieharder", "-g", "200", "-d", str(test), "-c", ",", *flags]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError), process.stdin as stdin:
            for block in blocks:  # until it has enough and closes the pipe
                stdin.write(block.tobytes())
        output = process.stdout.read().decode()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, output)
    found: dict[str, float] = {}
    for number, line in enumerate(output.splitlines(), 1):
        name, ntuple, _, _, p = (field.strip() for field in line.split(","))
        found[f"{name} {ntuple} ({number})"] = _two_sided(float(p), 1 - float(p))
    return found


def results(
    impls: Sequence[str], seed: int, *, long: bool
) -> Iterator[tuple[str, dict[str, float]]]:
    """Yields what was tested and its p-values.

    Args:
        impls: the implementations.
        seed: the seed of the streams.
        long: whether to take 64 times as many words, and to call dieharder, where it
            is installed, for JAX's default implementation.
    """
    words = 2**24 if long else 2**18
    for impl in impls:
        keys = _streams.keys(seed, impl)
        number, p = repeats(keys)
        yield f"{impl}, {number} repeats among {len(keys)} keys", {"repeats": p}
        for name in _streams.streams_of(impl):
            blocks = _streams.STREAMS[name](seed, impl)
            yield f"{impl}, {name}", p_values(blocks, words)
    if not (long and "threefry2x32" in impls and has_dieharder()):
        return
    for name in ("short draws", "seeds", "children"):
        for test in DIEHARDER:
            blocks = _streams.STREAMS[name](seed, "threefry2x32")
            yield f"threefry2x32, {name}, dieharder", dieharder(blocks, test)


def is_fault(found: dict[str, float]) -> bool:
    """Whether a p-value is too small to be chance."""
    return min(found.values()) < LEAST_P


def line(what: str, found: dict[str, float]) -> str:
    """Returns one line about what was tested."""
    p_values = "  ".join(f"{name} {p:.2g}" for name, p in found.items())
    return f"{'FAIL' if is_fault(found) else 'pass'}  {what}: {p_values}"

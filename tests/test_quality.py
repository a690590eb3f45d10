"""The random words of all streams, and that their tests see faults."""

import subprocess
import sys

import jax
import numpy as np
import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are in the repository only")

from benchmarks import __main__ as command
from benchmarks import _quality, _streams
from jax_stateful_rng import PRNGState, _counter, _draw, stateful_rng

WORDS = 2**18
SEED = 1
# The seed is fixed, so that nothing fails by chance once it has passed.
LEAST_P = 1e-4
# What a fault must go below.
IMPOSSIBLE = 1e-12

DEFAULT = "threefry2x32"
# Of the other implementations, the rest takes time to compile and differs little.
MAIN = {"short draws", "counts a bit apart", "counts past 2³²", "named children"}
STREAMS = [
    pytest.param(
        impl, name, marks=[] if impl == DEFAULT or name in MAIN else pytest.mark.slow
    )
    for impl in _streams.IMPLS
    for name in _streams.streams_of(impl)
]


def p_values(stream, impl=DEFAULT):
    return _quality.p_values(_streams.STREAMS[stream](SEED, impl), WORDS)


@pytest.mark.parametrize(("impl", "stream"), STREAMS)
def test_words_are_uniform_and_do_not_depend_on_their_neighbours(impl, stream):
    found = p_values(stream, impl)
    assert min(found.values()) > LEAST_P, found


@pytest.mark.parametrize("impl", _streams.IMPLS)
def test_no_key_comes_twice(impl):
    keys = _streams.keys(SEED, impl)
    assert len(keys) > 300_000
    assert _quality.repeats(keys)[0] == 0


@pytest.mark.parametrize("impl", [DEFAULT, "rbg"])
def test_the_streams_are_what_the_methods_draw(impl):
    """One by one, without the loops that make the streams fast."""

    def rng(seed=SEED):
        return stateful_rng(seed, impl=impl)

    def at(high, low):
        there = rng()
        counter = np.array([high, low], np.uint32)
        there.set_state(PRNGState(there.base_key, counter))
        return there

    one, early, late = rng(), rng(), at(1, 0)
    bits_apart = [0, 1, _streams.ODD, _streams.ODD ^ 2]
    expected = {
        "long draws": rng().bits(size=_streams.BLOCK)[:4],
        "short draws": [one.bits() for _ in range(4)],
        "keys": jax.random.key_data(rng().key())[:2],
        "seeds": [rng(SEED + i).bits() for i in range(4)],
        "seeds a bit apart": [rng(SEED + i % 2**32).bits() for i in bits_apart],
        "counts a bit apart": [at(i >> 32, i % 2**32).bits() for i in bits_apart],
        "counts k · 2³²": [at(k, 0).bits() for k in range(4)],
        "counts past 2³²": [x.bits() for _ in range(2) for x in (early, late)],
        "children": [child.bits() for child in rng().spawn(4)],
        "grandchildren": [child.bits() for child in rng().spawn(1)[0].spawn(4)],
        "named children": [rng().fold_in(f"layer{i}").bits() for i in range(4)],
        "numbered children": [rng().fold_in(i).bits() for i in range(4)],
    }
    assert set(expected) == set(_streams.STREAMS)
    for stream, words in expected.items():
        drawn = next(_streams.STREAMS[stream](SEED, impl))
        assert drawn[: len(words)].tolist() == [int(word) for word in words], stream


def test_repeated_keys_are_seen():
    key = np.asarray(jax.random.key_data(stateful_rng(SEED).key()))
    number, p = _quality.repeats(np.concatenate([_streams.keys(SEED, DEFAULT), [key]]))
    assert number == 1
    assert p < 1e-7
    # Two draws have one key, 1024 draws apart.
    words = next(_streams.STREAMS["short draws"](SEED, DEFAULT))
    twice = np.repeat(words.reshape(-1, 1024), 2, axis=0)[: len(words) // 1024]
    found = _quality.p_values(iter([twice.ravel()]), WORDS)
    assert found["birthdays"] < IMPOSSIBLE


def test_a_counter_that_does_not_carry_is_seen(monkeypatch):
    def advance(counter):
        return counter.at[..., 1].add(1)

    with monkeypatch.context() as patch:
        patch.setattr(_counter, "advance", advance)
        _draw.program.cache_clear()
        found = p_values("counts past 2³²")
        number, p = _quality.repeats(_streams.keys(SEED, DEFAULT))
    _draw.program.cache_clear()
    assert found["flips"] < IMPOSSIBLE
    assert found["weights"] < IMPOSSIBLE
    assert number >= 32
    assert p < IMPOSSIBLE


@pytest.mark.filterwarnings("ignore:stateful_rng. keys of impl")
def test_keys_of_32_bits_are_seen():
    number, p = _quality.repeats(_streams.keys(SEED, "philox2x32"))
    assert number > 1
    assert p < IMPOSSIBLE


@pytest.mark.parametrize("test", _quality.TESTS)
def test_each_test_sees_its_fault(test):
    good = np.random.default_rng(SEED).integers(2**32, size=WORDS, dtype=np.uint32)
    assert _quality.p_values(iter([good]), WORDS)[test] > LEAST_P
    before, eighth = np.roll(good, 1), np.arange(WORDS) % 8 == 1
    bad = {
        "bytes": good - ((good & 255) == 255),  # one value never comes
        "pairs": np.where(eighth, before, good),
        "runs": good | good >> 1 & 0x01010101,
        "birthdays": good & 0xFFFFF000,
        "weights": np.where(eighth, before << 7 | before >> 25, good),
        "flips": np.where(
            eighth, good ^ (good ^ before) & 1, good
        ),  # of the lowest bit
    }[test].astype(np.uint32)
    assert _quality.p_values(iter([bad]), WORDS)[test] < IMPOSSIBLE


DIEHARDER = """#!{python}
import sys
wanted = 1_500_000
words = sys.stdin.buffer.read(wanted)
assert len(words) == wanted
assert sys.argv[1:7] == "-g 200 -d 15 -c ,".split()
assert sys.argv[7::2] == ["-D"] * 5
assert sys.argv[8::2] == "test_name ntuple tsamples psamples pvalues".split()
# As printed by dieharder 3.31.1.
print("        diehard_runs,   0,    100000,     100,0.47960046")
print("        diehard_runs,   0,    100000,     100,%.8f" % (words[{at}] / 256))
sys.exit({status})
"""


@pytest.fixture
def fake_dieharder(tmp_path, monkeypatch):
    def install(status=0):
        program = tmp_path / "dieharder"
        at = 4 * (_streams.BLOCK + 1)
        program.write_text(
            DIEHARDER.format(python=sys.executable, at=at, status=status)
        )
        program.chmod(0o755)

    monkeypatch.setenv("PATH", str(tmp_path))
    return install


def test_dieharder_reads_the_words_from_a_pipe(fake_dieharder):
    blocks = [np.full(_streams.BLOCK, i, np.uint32) for i in range(1, 9)]
    assert not _quality.has_dieharder()
    fake_dieharder()
    assert _quality.has_dieharder()
    found = _quality.dieharder(iter(blocks), 15)
    assert found == pytest.approx(
        {"diehard_runs 0 (1)": 2 * 0.47960046, "diehard_runs 0 (2)": 2 * 2 / 256}
    )
    fake_dieharder(status=1)
    with pytest.raises(subprocess.CalledProcessError):
        _quality.dieharder(iter(blocks), 15)


def test_the_command_reports_a_fault(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["benchmarks", "quality", "--impl", "philox4x32"])
    monkeypatch.setattr(_streams, "streams_of", lambda impl: ["long draws"])
    for keys, status in ((np.arange(4)[:, None], 0), (np.zeros((4, 1)), 1)):
        monkeypatch.setattr(_streams, "keys", lambda seed, impl, keys=keys: keys)
        assert command.main() == status
        first, second = capsys.readouterr().out.splitlines()
        assert first.startswith("FAIL" if status else "pass")
        assert second.startswith("pass  philox4x32, long draws: bytes ")

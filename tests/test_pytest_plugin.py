"""The fixtures, in test suites of their own."""

import json
import subprocess
import sys
from importlib.util import find_spec

import jax
import pytest

from jax_stateful_rng import fold_in_name, stateful_rng

pytest_plugins = ("pytester",)

LOADED = ("-p", "jax_stateful_rng.pytest_plugin", "-p", "no:cacheprovider")


@pytest.fixture(autouse=True)
def _no_other_plugins(monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


SUITE = """
    import json
    import pathlib
    import pytest

    @pytest.fixture
    def note(request):
        def note(rng):
            line = json.dumps([request.node.name, float(rng.random())])
            with pathlib.Path(__file__).with_name("drawn").open("a") as file:
                file.write(line + "\\n")
        return note

    @pytest.mark.parametrize("case", ["a", "b/c"])
    def test_case(note, rng, case):
        note(rng)

    @pytest.mark.xdist_group("some")
    def test_grouped(note, rng):
        note(rng)

    class TestClass:
        def test_case(self, note, rng):
            note(rng)

    @pytest.fixture
    def noise(rng):
        return rng.random()

    def test_shared_in_one_test(note, noise, rng):
        assert rng.state().counter.tolist() == [0, 1]
        note(rng)
"""
REVERSED = """
    def pytest_collection_modifyitems(items):
        items.reverse()
"""


@pytest.fixture
def drawn(pytester):
    """Runs the suite and returns what every test drew, by name."""
    path = pytester.makepyfile(test_suite=SUITE).with_name("drawn")

    def run(*args, count=5):
        path.unlink(missing_ok=True)
        pytester.runpytest(*LOADED, *args).assert_outcomes(passed=count)
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        assert len(rows) == count
        return dict(rows)

    return run


def test_a_test_draws_the_same_alone_in_the_suite_and_in_any_order(drawn, pytester):
    suite = drawn()
    assert len(set(suite.values())) == 5, "every test has a stream of its own"
    node = "test_suite.py::test_case[b/c]"
    assert drawn(node, count=1) == {"test_case[b/c]": suite["test_case[b/c]"]}
    key = fold_in_name(jax.random.key(42), node)
    assert suite["test_case[b/c]"] == stateful_rng(key).random()
    pytester.makeconftest(REVERSED)
    assert drawn() == suite
    other = drawn("--rng-seed=7")
    assert not set(other.values()) & set(suite.values())
    assert drawn("--rng-seed", str(2**70)) != other


@pytest.mark.skipif(find_spec("xdist") is None, reason="needs pytest-xdist")
def test_a_test_draws_the_same_under_xdist(drawn):
    """With --dist loadgroup, xdist adds the name of the group to the node id."""
    assert drawn("-p", "xdist", "-n", "2", "--dist", "loadgroup") == drawn()


def test_the_seed_shows_in_the_header_and_in_a_failure(pytester):
    pytester.makepyfile(
        """
        import pytest

        def test_bad(rng):
            assert rng.random() > 2

        @pytest.fixture
        def broken(rng):
            raise RuntimeError

        def test_broken(broken):
            pass

        def test_good(rng):
            pass

        def test_without():
            assert not "no numbers here"
        """
    )
    result = pytester.runpytest(*LOADED, "--rng-seed=5")
    result.assert_outcomes(passed=1, failed=2, errors=1)
    result.stdout.fnmatch_lines(["jax_stateful_rng: --rng-seed=5"])
    text = result.stdout.str()
    assert text.count("- random numbers -") == 2
    for name in ("test_bad", "test_broken"):
        node = f"test_the_seed_shows_in_the_header_and_in_a_failure.py::{name}"
        assert f"pytest '{node}' --rng-seed=5" in text
    pytester.runpytest(*LOADED, "-q").stdout.no_fnmatch_line("*: --rng-seed=42")


@pytest.mark.parametrize("seed", ["-1", "1.5", "x", ""])
def test_a_seed_is_a_non_negative_int(pytester, seed):
    result = pytester.runpytest(*LOADED, f"--rng-seed={seed}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"*--rng-seed: must be a non-negative int, not '{seed}'"]
    )


KEYS = """
    import jax
    import pytest

    def data(key):
        return jax.random.key_data(key).tolist()

    @pytest.mark.parametrize("again", range(2))
    def test_rng_key(rng_key, again):
        assert data(rng_key) == [0, 42]
        assert rng_key.shape == ()

    @pytest.mark.parametrize("again", range(2))
    def test_rngs(rngs, again):
        assert list(rngs) == ["default", "params", "dropout", "sample"]
        assert data(rngs.params()) == [474410159, 3143627885]
        assert data(rngs.default()) == [1859293688, 1642853681]
"""


def test_keys_and_streams_are_fresh_in_every_test(pytester):
    pytest.importorskip("flax")
    pytester.makepyfile(KEYS)
    pytester.runpytest(*LOADED, "--rng-seed=5").assert_outcomes(passed=4)


def test_without_flax_rngs_skips_with_a_reason(pytester, monkeypatch):
    monkeypatch.setitem(sys.modules, "flax", None)
    pytester.makepyfile(KEYS)
    result = pytester.runpytest(*LOADED, "-rs")
    result.assert_outcomes(passed=2, skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED*the fixture rngs needs flax*"])


def test_it_can_stand_in_a_conftest(pytester):
    pytester.makeconftest('pytest_plugins = ["jax_stateful_rng.pytest_plugin"]')
    pytester.makepyfile("def test_draw(rng): rng.random()")
    pytester.runpytest().assert_outcomes(passed=1)


def test_it_is_not_loaded_by_itself(pytester):
    pytester.makepyfile("def test_draw(rng): rng.random()")
    pytester.runpytest().assert_outcomes(errors=1)


def test_a_doctest_can_have_the_generator(pytester):
    pytester.maketxtfile(
        """
        >>> rng = getfixture("rng")
        >>> rng.random(2).shape
        (2,)
        """
    )
    pytester.runpytest(*LOADED, "--doctest-glob=*.txt").assert_outcomes(passed=1)


def test_loading_the_plugin_imports_neither_jax_nor_flax():
    code = (
        "import sys, jax_stateful_rng.pytest_plugin; "
        "assert not {'jax', 'flax', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

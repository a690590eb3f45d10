"""Streams by name: golden values, and no stream moves another."""

import itertools
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jax_stateful_rng import (
    MissingRngStreamError,
    StatefulPRNG,
    fold_in_name,
    key_from,
    named_streams,
    rngs_from_seed,
    split_key,
    stateful_rng,
)

GOLDEN = json.loads((Path(__file__).parent / "data/streams_golden.json").read_text())
CLASH = ("layer22179", "layer37909")  # two names with one digest


def kind(value):
    """An id without the address that a repr may have: xdist compares ids."""
    return type(value).__name__


def data(key):
    return jax.random.key_data(key).tolist()


# --- fold_in_name and split_key ----------------------------------------------------


@pytest.mark.parametrize("row", GOLDEN["fold_in_name"], ids=lambda row: row["name"])
def test_golden_names(row):
    name = row["name"]
    assert data(fold_in_name(jax.random.key(0), name)) == row["key0"]
    assert data(fold_in_name(jax.random.key(42), name)) == row["key42"]
    raw = fold_in_name(jax.random.PRNGKey(0), name)
    assert raw.dtype == np.uint32
    assert raw.tolist() == row["raw_PRNGKey0"]
    for impl in ("rbg", "unsafe_rbg"):
        assert (
            data(fold_in_name(jax.random.key(0, impl=impl), name))
            == (row[f"{impl}_key0"])
        )
    word = jnp.uint32(row["word_big_endian"])
    assert data(jax.random.fold_in(jax.random.key(0), word)) == row["key0"]


def test_a_name_is_the_same_traced_and_under_x64():
    row = GOLDEN["fold_in_name"][1]
    traced = jax.jit(lambda key: fold_in_name(key, row["name"]))
    assert data(traced(jax.random.key(42))) == row["key42"]
    assert traced(jax.random.PRNGKey(0)).tolist() == row["raw_PRNGKey0"]
    with jax.enable_x64(True):
        assert data(fold_in_name(jax.random.key(42), row["name"])) == row["key42"]
    with jax.threefry_partitionable(False):
        assert data(fold_in_name(jax.random.key(42), row["name"])) == row["key42"]


def test_names_are_not_normalised():
    key = jax.random.key(0)
    assert data(fold_in_name(key, "é")) != data(fold_in_name(key, "e\u0301"))


@pytest.mark.parametrize("row", GOLDEN["split_key"], ids=lambda r: str(r["num"]))
def test_golden_splits(row):
    assert data(split_key(jax.random.key(row["seed"]), row["num"])) == row["keys"]
    raw = split_key(jax.random.PRNGKey(row["seed"]), np.int64(row["num"]))
    assert raw.tolist() == row["keys"]


NO_KEYS = [
    None,
    7,
    "a",
    np.zeros(2, np.uint32),
    jnp.ones(2),
    jnp.zeros((3, 2), jnp.uint32),
    jnp.zeros(4, jnp.uint32),
    jax.random.split(jax.random.key(0), 2),
]


@pytest.mark.parametrize("key", NO_KEYS, ids=kind)
def test_functional_keys_must_be_single_keys(key):
    with pytest.raises(TypeError, match="fold_in_name: key must be a single key"):
        fold_in_name(key, "a")
    with pytest.raises(TypeError, match="split_key: key must be a single key"):
        split_key(key, 2)


def test_a_raw_key_has_the_shape_of_the_default_impl():
    with jax.default_prng_impl("rbg"):
        raw = jax.random.PRNGKey(0)
        assert raw.shape == (4,)
        assert fold_in_name(raw, "a").shape == (4,)
        with pytest.raises(TypeError, match="single key"):
            fold_in_name(jnp.zeros(2, jnp.uint32), "a")


@pytest.mark.parametrize(
    ("name", "error"), [("", ValueError), (b"a", TypeError), (1, TypeError)], ids=repr
)
def test_a_name_must_be_a_string(name, error):
    with pytest.raises(error, match="name must"):
        fold_in_name(jax.random.key(0), name)
    with pytest.raises(error, match="name must"):
        named_streams(0, [name])


@pytest.mark.parametrize(
    ("num", "error"),
    [
        (0, ValueError),
        (-1, ValueError),
        (1.0, TypeError),
        (True, TypeError),
        ("2", TypeError),
        (None, TypeError),
        ((2,), TypeError),
    ],
    ids=repr,
)
def test_split_key_makes_at_least_one(num, error):
    with pytest.raises(error, match="num must be an int >= 1"):
        split_key(jax.random.key(0), num)


# --- Streams of a seed ---------------------------------------------------------------


@pytest.mark.parametrize(
    "row", GOLDEN["rngs_from_seed"], ids=lambda row: "-".join(row["streams"])
)
def test_golden_streams(row):
    pytest.importorskip("flax")
    rngs = rngs_from_seed(row["seed"], row["streams"])
    streams = named_streams(row["seed"], row["streams"])
    assert list(rngs) == list(streams) == row["streams"]
    for name, want in row["result"].items():
        assert data(rngs[name].key.get_value()) == want["stream_base_key"]
        assert data(streams[name].base_key) == want["stream_base_key"]
        assert [data(rngs[name]()) for _ in range(3)] == want["draws"]
        assert [data(streams[name].key()) for _ in range(3)] == want["draws"]


def test_the_example_of_the_documentation():
    pytest.importorskip("flax")
    want = list(GOLDEN["doc_example"].values())
    rngs = rngs_from_seed(42, streams=("params", "dropout", "sample"))
    key = key_from(rngs, streams=("sample", "default"), context="sampling")
    assert data(key) == want[0]
    second = key_from(rngs, streams=("sample", "default"), context="sampling")
    assert data(second) == want[1]
    walkers = split_key(key, 1024)
    assert data(walkers[0]) == want[2]
    assert data(walkers[1023]) == want[3]
    assert data(fold_in_name(key, "observation_noise")) == want[4]


def test_adding_removing_and_reordering_streams_moves_no_other():
    names = ("params", "dropout", "sample", "α")
    want = {name: data(named_streams(3, [name])[name].key()) for name in names}
    assert len({tuple(key) for key in want.values()}) == len(names)
    for n in range(1, len(names) + 1):
        for chosen in itertools.permutations(names, n):
            streams = named_streams(3, chosen)
            assert list(streams) == list(chosen)
    for chosen in (names, names[::-1], names[1:], (*names, "more")):
        streams = named_streams(3, chosen)
        for name in set(names) & set(chosen):
            assert data(streams[name].key()) == want[name]


def test_drawing_from_one_stream_moves_no_other():
    streams, again = (named_streams(0, ["a", "b"]) for _ in range(2))
    streams["a"].random(100)
    assert streams["b"].random() == again["b"].random()


@pytest.mark.parametrize(
    "seed",
    [0, 2**32 + 42, 2**70, [1, 2], np.random.SeedSequence(5), jax.random.key(9)],
    ids=kind,
)
def test_seeds_are_those_of_a_generator(seed):
    base = stateful_rng(seed).base_key
    stream = named_streams(seed, ["a"])["a"]
    assert isinstance(stream, StatefulPRNG)
    assert data(stream.base_key) == data(fold_in_name(base, "a"))
    assert data(stream.key()) == data(jax.random.fold_in(fold_in_name(base, "a"), 0))


def test_a_large_seed_is_not_cut_to_32_bits():
    a, b = (named_streams(seed, ["a"])["a"] for seed in (42, 2**32 + 42))
    assert a.random() != b.random()


def test_streams_of_a_traced_seed():
    traced = jax.jit(lambda seed: named_streams(seed, ["a"])["a"].random())
    assert traced(3) == named_streams(3, ["a"])["a"].random()


@pytest.fixture(params=["named_streams", "rngs_from_seed"])
def make(request):
    return {"named_streams": named_streams, "rngs_from_seed": rngs_from_seed}[
        request.param
    ]


@pytest.mark.parametrize(
    "seed",
    [None, True, "42", 1.5, stateful_rng(0), stateful_rng(0).state()],
    ids=repr,
)
def test_what_is_no_seed(make, seed):
    with pytest.raises(TypeError, match=f"{make.__name__}: seed must"):
        make(seed, ["a"])


def test_seeds_out_of_range(make):
    with pytest.raises(ValueError, match="seed must not be negative"):
        make(-1, ["a"])
    with pytest.raises(ValueError, match="single key"):
        make(jax.random.split(jax.random.key(0)), ["a"])


@pytest.mark.parametrize(
    ("names", "error"),
    [
        ((), ValueError),
        (("a", "a"), ValueError),
        (CLASH, ValueError),
        ("params", TypeError),
        (b"params", TypeError),
        (None, TypeError),
        (3, TypeError),
        ((1,), TypeError),
    ],
    ids=repr,
)
def test_what_are_no_names(make, names, error):
    with pytest.raises(error, match=f"{make.__name__}: .*(name|streams)"):
        make(0, names)


def test_a_clash_of_digests_is_named(make):
    with pytest.raises(ValueError, match=r"layer22179.*layer37909.*rename"):
        make(0, CLASH)


# --- key_from ----------------------------------------------------------------------


def rngs_of_both_kinds():
    yield named_streams(42, ["params", "sample"])
    pytest.importorskip("flax")
    yield rngs_from_seed(42, ["params", "sample"])


def test_key_from_takes_the_first_stream_that_there_is():
    for rngs in rngs_of_both_kinds():
        want = named_streams(42, ["params", "sample"])
        key = key_from(rngs, streams=("default", "sample", "params"), context="me")
        assert data(key) == data(want["sample"].key())
        key = key_from(rngs, streams=["sample"], context="me")
        assert data(key) == data(want["sample"].key())
        key = key_from(rngs, streams=("params", "sample"), context="me")
        assert data(key) == data(want["params"].key()), "another stream moved it"


def test_key_from_never_falls_back():
    nnx = pytest.importorskip("flax.nnx")
    for rngs in (*rngs_of_both_kinds(), nnx.Rngs(0), {}):
        with pytest.raises(MissingRngStreamError) as caught:
            key_from(rngs, streams=("sample_", "x"), context="sampling")
        error = caught.value
        assert isinstance(error, ValueError)
        assert error.context == "sampling"
        assert error.streams == ("sample_", "x")
        assert str(error).startswith("sampling needs a stream named 'sample_' or 'x'")
    rngs = nnx.Rngs(0)
    assert rngs.default.count.get_value() == 0
    key = key_from(rngs, streams=("sample", "default"), context="sampling")
    assert data(key) == data(nnx.Rngs(0).default())


def test_the_error_survives_pickling():
    error = pickle.loads(pickle.dumps(MissingRngStreamError("sampling", ["a", "b"])))
    assert (error.context, error.streams) == ("sampling", ("a", "b"))
    assert str(error) == str(MissingRngStreamError("sampling", ("a", "b")))


def test_key_from_draws_from_a_generator():
    rng = stateful_rng(0)
    key = key_from(rng, streams=("sample",), context="sampling")
    assert data(key) == data(stateful_rng(0).key())
    assert rng.state().counter.tolist() == [0, 1]
    with pytest.raises(ValueError, match="batched"):
        key_from(rng.split(2), streams=("sample",), context="sampling")


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg"])
def test_key_from_returns_a_key_as_it_is(impl):
    key = jax.random.key(0, impl=impl)
    assert key_from(key, streams=("a",), context="me") is key
    raw = jax.random.PRNGKey(0)
    assert key_from(raw, streams=("a",), context="me") is raw
    same = jax.jit(lambda key: key_from(key, streams=("a",), context="me"))
    assert data(same(key)) == data(key)
    assert data(same(raw)) == data(raw)


@pytest.mark.parametrize("rng", [*NO_KEYS, np.random.default_rng(0)], ids=kind)
def test_key_from_refuses_the_rest(rng):
    with pytest.raises(TypeError, match=r"sampling: rng must.*StatefulPRNG.*got"):
        key_from(rng, streams=("a",), context="sampling")


def test_key_from_refuses_a_mapping_of_something_else():
    with pytest.raises(TypeError, match="sampling: the stream 'a' must"):
        key_from({"a": jax.random.key(0)}, streams=("a",), context="sampling")


def test_key_from_wants_names():
    rng = stateful_rng(0)
    with pytest.raises(TypeError, match=r"\('sample',\)"):
        key_from(rng, streams="sample", context="sampling")
    with pytest.raises(ValueError, match="at least one"):
        key_from(rng, streams=(), context="sampling")
    assert rng.state().counter.tolist() == [0, 0]


def test_key_from_inside_transformations():
    streams = named_streams(0, ["a", "b"])
    noise = jax.jit(lambda: jax.random.uniform(key_from(streams, streams=["b"])))
    want = named_streams(0, ["b"])["b"]
    assert noise() == want.random()
    assert noise() == want.random()


# --- A process of its own --------------------------------------------------------

ALONE = """
import sys
import jax
from jax_stateful_rng import fold_in_name, key_from, named_streams, rngs_from_seed

streams = named_streams(42, ["sample"])
for owner in (streams, jax.random.key(0)):
    key_from(owner, streams=["sample"])
assert "flax" not in sys.modules
print(jax.random.key_data(fold_in_name(jax.random.key(0), "dropout")).tolist())

sys.modules["flax"] = None  # as where it is not installed
try:
    rngs_from_seed(0)
except ModuleNotFoundError as error:
    assert "pip install 'jax-stateful-rng[flax]'" in str(error), error
else:
    raise AssertionError
"""


def test_streams_need_no_flax_and_no_hash_seed():
    found = subprocess.run(
        [sys.executable, "-c", ALONE],
        env={"PYTHONHASHSEED": "12345", "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert json.loads(found.stdout) == GOLDEN["fold_in_name"][1]["key0"]

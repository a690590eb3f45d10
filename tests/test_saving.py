"""A state survives whatever saves arrays, a kill, and another version of JAX."""

import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import resume_worker

from jax_stateful_rng import PRNGState, StatefulPRNG, stateful_rng

HERE = Path(__file__).parent
IMPLS = ("threefry2x32", "rbg", "unsafe_rbg")


def assert_goes_on(found, want):
    """Whether a saved state is the one saved, and draws what that would have drawn."""
    assert isinstance(found, PRNGState)
    assert found.base_key.dtype == want.base_key.dtype
    np.testing.assert_array_equal(
        *map(jax.random.key_data, (found.base_key, want.base_key))
    )
    np.testing.assert_array_equal(found.counter, want.counter)
    if not want.shape:
        a, b = stateful_rng(found), stateful_rng(want)
        np.testing.assert_array_equal(a.random(3), b.random(3))


@pytest.fixture(params=[*IMPLS, "batch"])
def state(request):
    if request.param == "batch":
        return stateful_rng(1).split((2, 3)).state()
    rng = stateful_rng(1, impl=request.param)
    rng.random()
    return rng.state()


# --- to_dict and from_dict -----------------------------------------------------------


def test_a_dict_of_plain_things(state):
    saved = state.to_dict()
    assert list(saved) == ["version", "impl", "base_key", "counter"]
    assert type(saved["version"]) is int
    assert type(saved["impl"]) is str
    for name in ("base_key", "counter"):
        assert type(saved[name]) is np.ndarray
        assert saved[name].dtype == np.uint32
        assert saved[name].flags.owndata
    assert_goes_on(PRNGState.from_dict(saved), state)


def test_a_dict_is_independent_of_the_state():
    rng = stateful_rng(0)
    saved = rng.state().to_dict()
    saved["counter"][1] = 3
    saved["base_key"][:] = 0
    assert rng.state().counter.tolist() == [0, 0]
    found = PRNGState.from_dict(saved)
    saved["counter"][1] = 9
    assert found.counter.tolist() == [0, 3]


def test_a_dict_in_traced_code():
    state = stateful_rng(3).state()
    kept = []
    jax.jit(lambda: kept.append(state.to_dict()))()
    assert_goes_on(PRNGState.from_dict(kept[0]), state)
    with pytest.raises(TypeError, match="Return the state"):
        jax.jit(lambda state: state.to_dict())(state)
    traced = jax.jit(lambda words: PRNGState.from_dict({**kept[0], "counter": words}))
    assert_goes_on(traced(state.counter), state)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"version": 2}, ValueError, "reads version 1"),
        ({"version": None}, ValueError, "reads version 1"),
        ({"impl": "mt19937"}, ValueError, "impl must name"),
        ({"impl": "rbg"}, ValueError, "base_key must have 4 words"),
        ({"base_key": np.zeros(3, np.uint32)}, ValueError, "must have 2 words"),
        ({"base_key": np.uint32(0)}, TypeError, "base_key must be a uint32 array"),
        ({"base_key": np.zeros(2)}, TypeError, r"np\.asarray\(base_key, np\.uint32\)"),
        ({"base_key": [0, 7]}, TypeError, "base_key must be a uint32 array"),
        ({"base_key": jax.random.key(0)}, TypeError, "must be a uint32 array"),
        ({"counter": np.zeros(2, np.int32)}, TypeError, "counter must be a uint32"),
        ({"counter": np.zeros(3, np.uint32)}, ValueError, "must have 2 words"),
        ({"counter": np.zeros((4, 2), np.uint32)}, ValueError, "shape of base_key"),
    ],
    ids=str,
)
def test_what_was_not_saved_so(change, error, text):
    saved = stateful_rng(7).state().to_dict() | change
    with pytest.raises(error, match=text):
        PRNGState.from_dict(saved)


@pytest.mark.parametrize("name", ["version", "impl", "base_key", "counter"])
def test_what_is_missing(name):
    saved = stateful_rng(7).state().to_dict()
    del saved[name]
    with pytest.raises(ValueError, match="must have the entries version, impl"):
        PRNGState.from_dict(saved)


def test_what_is_no_mapping():
    with pytest.raises(TypeError, match="must be a mapping"):
        PRNGState.from_dict(stateful_rng(0).state())


# --- Formats -------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle(state, protocol):
    assert_goes_on(pickle.loads(pickle.dumps(state, protocol)), state)


def test_pickle_of_a_generator():
    rng = stateful_rng(3)
    rng.random()
    again = pickle.loads(pickle.dumps(rng))
    assert isinstance(again, StatefulPRNG)
    assert repr(again) == repr(rng)
    np.testing.assert_array_equal(again.random(3), rng.random(3))
    again.random()
    assert rng.state().counter.tolist() == [0, 2], "they are independent"
    batch = rng.split(2)
    draw = jax.vmap(lambda rng: rng.random())
    np.testing.assert_array_equal(draw(pickle.loads(pickle.dumps(batch))), draw(batch))


@pytest.mark.parametrize(
    "path", sorted((HERE / "data").glob("*.pickle")), ids=lambda p: p.stem
)
def test_pickles_of_every_jax(path):
    """Written by tests/data/write_pickles.py under the JAX that the name says."""
    found = pickle.loads(path.read_bytes())
    rng = stateful_rng(7)
    rng.random(3)
    rng.random()
    rng.random()
    assert_goes_on(found["generator"].state(), rng.state())
    batch = stateful_rng(8).split((2, 3)).state()
    counter = batch.counter + np.array([0, 1], np.uint32)
    assert_goes_on(found["batch"], PRNGState(batch.base_key, counter))
    far = PRNGState(jax.random.key(9), jnp.array([5, 6], jnp.uint32))
    assert_goes_on(found["far"], far)
    rbg = stateful_rng(10, impl="rbg")
    rbg.random()
    assert_goes_on(found["rbg"], rbg.state())


def test_there_are_pickles_of_the_oldest_and_of_a_new_jax():
    names = {path.stem for path in (HERE / "data").glob("*.pickle")}
    assert {"states_jax_0.10.2", "states_jax_0.12.0.1"} <= names


def test_npz(state, tmp_path):
    np.savez(tmp_path / "a.npz", weights=np.ones(3), **state.to_dict())
    with np.load(tmp_path / "a.npz", allow_pickle=False) as saved:
        assert_goes_on(PRNGState.from_dict(saved), state)


def test_json(state):
    """Lists lose their dtype: one call gives it back."""
    saved = state.to_dict()
    words = {name: saved[name].tolist() for name in ("base_key", "counter")}
    found = json.loads(json.dumps(saved | words))
    for name in words:
        found[name] = np.asarray(found[name], np.uint32)
    assert_goes_on(PRNGState.from_dict(found), state)


def test_flax_serialization(state):
    serialization = pytest.importorskip("flax.serialization")
    train = {"weights": jnp.ones(3), "rng": state.to_dict()}
    data = serialization.to_bytes(train)
    found = serialization.msgpack_restore(data)
    assert_goes_on(PRNGState.from_dict(found["rng"]), state)
    found = serialization.from_bytes(train, data)
    assert_goes_on(PRNGState.from_dict(found["rng"]), state)


def test_safetensors(state, tmp_path):
    """Text goes into the metadata, arrays into tensors."""
    safetensors = pytest.importorskip("safetensors")
    saver = pytest.importorskip("safetensors.numpy")
    saved = state.to_dict()
    text = {name: str(saved.pop(name)) for name in ("version", "impl")}
    path = tmp_path / "rng.safetensors"
    saver.save_file(saved, path, metadata=text)
    with safetensors.safe_open(path, "numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        assert_goes_on(PRNGState.from_dict(arrays | file.metadata()), state)


def test_orbax(tmp_path):
    """Takes the states as they are, among other arrays."""
    orbax = pytest.importorskip("orbax.checkpoint")
    single, batch = stateful_rng(3), stateful_rng(4).split(3)
    single.random()
    train = {"weights": jnp.arange(3.0), "rng": single.state(), "envs": batch.state()}
    with orbax.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "one", train)
        checkpointer.wait_until_finished()
        found = checkpointer.restore(
            tmp_path / "one", jax.tree.map(orbax.utils.to_shape_dtype_struct, train)
        )
    for name in ("rng", "envs"):
        assert_goes_on(found[name], train[name])


# --- Killed, and on again ------------------------------------------------------------


def worker(*args):
    command = [sys.executable, resume_worker.__file__, *map(str, args)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)


def test_killed_between_two_checkpoints(tmp_path):
    """The run that was killed and resumed ends where the other does, bit for bit."""
    whole, killed = tmp_path / "whole.npz", tmp_path / "killed.npz"
    resume_worker.main(whole, 20)

    process = worker(killed, 20, 13)
    assert process.stdout.readline() == "from 0\n"
    assert process.stdout.readline() == "paused\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL

    process = worker(killed, 20)
    assert process.communicate(timeout=300)[0] == "from 10\n"
    assert process.returncode == 0
    with np.load(whole) as want, np.load(killed) as found:
        assert sorted(found) == sorted(want)
        assert want["counter"].tolist() == [0, 42]
        for name in want:
            np.testing.assert_array_equal(found[name], want[name], err_msg=name)

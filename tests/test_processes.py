"""Two processes on one mesh draw what one process draws, and one device."""

import os
import socket
import subprocess
import sys

import jax
import numpy as np
import process_worker
import pytest
from process_worker import STEPS, Training, draws, mesh_of, resume

pytestmark = pytest.mark.skipif(
    jax.device_count() < 4, reason="needs 4 devices: XLA_FLAGS was set already"
)

SECONDS = 120


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def start(task, folder, processes, devices):
    """Runs the worker in several processes on loopback; returns what each left."""
    port, started, outputs = free_port(), [], []
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        "JAX_PLATFORMS": "cpu",
    }
    try:
        for number in range(processes):
            command = [sys.executable, process_worker.__file__, task, folder, port]
            command += [number, processes]
            log = open(folder / f"{task}-{number}.log", "w+")  # noqa: SIM115
            outputs.append(log)
            started.append(
                subprocess.Popen(
                    list(map(str, command)), stdout=log, stderr=log, env=env
                )
            )
        codes = [process.wait(SECONDS) for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
        logs = []
        for log in outputs:
            log.seek(0)
            logs.append(log.read())
            log.close()
        print(*logs, sep="\n")  # shown where the test fails
    assert codes == [0] * processes
    results = []
    for number in range(processes):
        with np.load(folder / f"{task}-{number}.npz") as saved:
            results.append(dict(saved))
    return results


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("processes")


@pytest.fixture(scope="module")
def two(folder):
    """What two processes of two devices each drew."""
    return start("run", folder, processes=2, devices=2)


@pytest.fixture(params=[4, 1], ids=["four devices", "one device"], scope="module")
def mesh(request):
    """A mesh of this process."""
    return mesh_of(jax.devices()[: request.param])


def test_draws_are_those_of_one_process(two, mesh):
    expected = draws(mesh)
    for result in two:
        for name, value in expected.items():
            if name == "jitted":
                np.testing.assert_allclose(result[name], value, rtol=4e-6, atol=1e-6)
            else:
                np.testing.assert_array_equal(result[name], value, err_msg=name)


def test_losses_are_those_of_one_process(two, mesh):
    losses = Training(mesh).run(2 * STEPS)
    for result in two:
        got = np.concatenate([result["losses"], result["later losses"]])
        np.testing.assert_allclose(got, losses, rtol=1e-5)


def test_an_unseeded_generator_is_agreed_on(two):
    first, second = (result["agreed"] for result in two)
    np.testing.assert_array_equal(first, second)
    assert first.any()
    for result in two:
        assert "in a run of 2 processes" in str(result["unseeded"])
        assert "secrets.randbits(64)" in str(result["unseeded"])


def test_a_process_that_drew_once_more_is_found(two):
    for result in two:
        text = str(result["once more"])
        assert "count 1 in process 0, count 2 in process 1" in text
        assert "rng.assert_in_sync: " in text
        assert "one in process 0 and another one in process 1" in str(
            result["other stream"]
        )
        assert result["other seed"]


def test_resumed_in_one_process(two, folder, mesh):
    for losses in resume(mesh, folder).values():
        np.testing.assert_allclose(losses, two[0]["later losses"], rtol=1e-5)


def test_resumed_in_four_processes(two, folder):
    for result in start("resume", folder, processes=4, devices=1):
        assert "plain" in result
        for losses in result.values():
            np.testing.assert_allclose(losses, two[0]["later losses"], rtol=1e-5)


def test_in_one_process_there_is_nothing_to_compare():
    from jax_stateful_rng import stateful_rng

    rng = stateful_rng()
    rng.assert_in_sync()
    with pytest.raises(ValueError, match="one generator is compared"):
        rng.split(2).assert_in_sync()
    with pytest.raises(TypeError, match="outside traced code"):
        jax.jit(lambda rng: rng.assert_in_sync())(rng)
    assert rng.state().counter[1] == 1

"""The driver: sizes and dtypes, one compile, threads, devices, the public path."""

import asyncio
import sys
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jax_stateful_rng import PRNGState, _draw, _internals, stateful_rng
from jax_stateful_rng._samplers.continuous import _normal
from jax_stateful_rng._samplers.simple import _uniform

BASE = jax.random.key(42)
DAY, SECOND = np.datetime64("2020-01-01"), np.timedelta64(1, "s")


def count(rng):
    hi, lo = np.asarray(rng.state().counter).tolist()
    return (hi << 32) + lo


@pytest.fixture
def no_fast_path(monkeypatch):
    monkeypatch.setattr(_internals, "fast_path", lambda: False)


# --- sizes and dtypes --------------------------------------------------------------


@pytest.mark.parametrize(
    "size",
    [None, 0, 3, (), [], (2, 3), [2, 3], range(3), np.int64(2), np.array(2)]
    + [np.array([2, 3]), (0, 2), np.uint32(1)],
)
def test_sizes_are_numpys(size):
    want = np.random.default_rng(0).normal(size=size)
    assert stateful_rng(0).normal(size=size).shape == np.shape(want)


@pytest.mark.parametrize(
    ("size", "error"),
    [(-1, ValueError), ((2, -1), ValueError), (1.0, TypeError), ((1, 2.0), TypeError)]
    + [(True, TypeError), ((True,), TypeError), ("3", TypeError), (b"3", TypeError)]
    + [(np.array([1.0]), TypeError), (jnp.ones(()), TypeError), ({}.get, TypeError)]
    + [({3: 4}, TypeError), ({3}, TypeError), (2**64, ValueError)]
    + [((2**40, 2**40), ValueError), ((0, 2**64), ValueError)],
)
def test_bad_sizes(size, error):
    with pytest.raises(error, match=r"^rng\.normal: size must"):
        stateful_rng(0).normal(size=size)


def test_a_traced_size():
    with pytest.raises(TypeError, match="static_argnames"):
        jax.jit(lambda n: stateful_rng(0).normal(size=n))(3)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (1, 3), (0,)])
@pytest.mark.parametrize("size", [None, (), 1, 3, (2, 3), (5, 1), (3, 1), 0, (2, 1, 3)])
def test_size_may_enlarge_the_parameters_only(shape, size):
    loc = np.zeros(shape)
    try:
        want = np.shape(np.random.default_rng(0).normal(loc, size=size))
    except ValueError:
        with pytest.raises(ValueError, match="size must be what the parameters"):
            stateful_rng(0).normal(loc, size=size)
    else:
        got = jax.eval_shape(lambda rng: rng.normal(loc, size=size), stateful_rng(0))
        assert got.shape == want


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", np.float32, float])
def test_dtypes(dtype):
    want = np.dtype(np.float32) if dtype is float else np.dtype(jnp.dtype(dtype))
    assert stateful_rng(0).normal(size=2, dtype=dtype).dtype == want


@pytest.mark.parametrize("dtype", [int, "int32", complex, bool, "str", None, object])
def test_bad_dtypes(dtype):
    with pytest.raises(TypeError, match=r"^rng\.normal: dtype must be"):
        stateful_rng(0).normal(dtype=dtype)


def test_float64_without_x64_warns_as_jax_does():
    with pytest.warns(UserWarning, match="float64"):
        x = stateful_rng(0).normal(dtype=np.float64)
    assert x.dtype == np.float32


def test_x64(x64):
    rng = stateful_rng(0)
    assert rng.normal().dtype == np.float64
    assert rng.normal(dtype=np.float32).dtype == np.float32
    assert rng.normal(jnp.float32(1), dtype=float).dtype == np.float64


@pytest.mark.parametrize(
    ("value", "error"),
    [("a", ValueError), (None, TypeError), (1j, TypeError), ([1j], TypeError)]
    + [([1, "a"], ValueError), (jnp.ones(2, complex), TypeError), (BASE, TypeError)]
    + [(DAY, TypeError), ([SECOND], TypeError), (np.array([DAY]), TypeError)],
)
def test_bad_parameters(value, error):
    with pytest.raises(error, match=r"^rng\.normal: loc must be real numbers"):
        stateful_rng(0).normal(value)


@pytest.mark.parametrize(
    ("call", "got"),
    [
        (lambda r: r.normal(0, -2), "got -2.0."),
        (lambda r: r.normal(0, np.array(-2)), "got -2."),
        (lambda r: r.normal(0, np.float32(-2)), "got np.float32(-2.0)."),
        (lambda r: r.normal(0, [1, -2]), "got list [1, -2]."),
        (lambda r: r.normal(0, np.array([1, -2])), "got a numpy int64[2] [1, -2]."),
        (lambda r: r.normal(0, np.full(9, -2.0)), "got a numpy float64[9]."),
        (lambda r: r.normal(np.array("a")), "got str 'a'."),
        (lambda r: r.normal(np.array([DAY])), "got a numpy datetime64[D][1]."),
        (lambda r: r.normal(jnp.array(1j)), "got a jax.Array complex64[]."),
        (lambda r: r.normal([jnp.ones(2), 1j]), "float32[2], 1j."),
        (lambda r: r.normal([jnp.ones(2), jnp.ones(1)]), "rows have one length"),
        (lambda r: r.normal([[1], [2, 3]]), "got list [[1], [2, 3]]."),
        (lambda r: r.normal(SECOND), "span / np.timedelta64(1, 's')"),
        (lambda r: r.normal(r), "got StatefulPRNG(impl='threefry2x32', count=0)."),
        (lambda r: r.normal([1, 2], [1, 2, 3]), "loc of (2,) and scale of (3,)."),
        (lambda r: r.normal(size=2.0), "Write size=int(2.0)."),
        (lambda r: r.key(2.0), "shape must be"),
        (lambda r: r.split(-1), "num must not be"),
        (lambda r: r.random(3, 4), "size=(2, 3)"),
        (lambda r: r.normal(dtype=int), "rng.normal(...).astype(int)"),
        (lambda r: r.poisson(dtype="bfloat16"), "rng.poisson(...).astype('bfloat16')"),
        (lambda r: r.rademacher(dtype="foo"), "dtype must be one of signed"),
        (lambda r: r.integers([[1], [2, 3]]), "rows have one length"),
        (lambda r: r.categorical([SECOND]), "logits must be real numbers"),
    ],
)
def test_what_a_message_says(call, got):
    rng = stateful_rng(0)
    with pytest.raises((TypeError, ValueError)) as caught:
        call(rng)
    assert str(caught.value).startswith("rng.")
    assert got in str(caught.value)
    assert count(rng) == 0


@pytest.mark.parametrize(
    "loc",
    [1, 1.5, True, np.float64(2), np.int8(3), [1, 2], (1.0, 2.0), [[1], [2]]]
    + [np.arange(3), jnp.arange(3), jnp.float16(1), [jnp.ones(()), 2.0]],
)
def test_what_a_parameter_may_be(loc):
    x = stateful_rng(0).normal(loc, 0.0)
    want = jnp.asarray(loc, jnp.float32)
    assert (x == want).all()
    assert x.shape == want.shape


@pytest.mark.parametrize(
    ("low", "high"),
    [(-3e38, 3e38), (-1e39, 0), (0, 1e39), (-1e308, 1e308), (0, np.inf)]
    + [(np.zeros(2), np.array([1.0, 1e39]))],
)
def test_a_width_beyond_the_dtype_overflows(low, high):
    with pytest.raises(OverflowError, match="finite"):
        stateful_rng(0).uniform(low, high)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (-6e4, 6e4),
        (0, 7e4),
        (7e4, 70001),
        (np.array([-6e4]), 6e4),
        (np.float16(0), 7e4),
    ],
)
def test_a_width_beyond_float16_overflows(low, high):
    rng = stateful_rng(0)
    with pytest.raises(OverflowError, match=r"in float16; .*dtype='float32'"):
        rng.uniform(low, high, dtype="float16")
    assert count(rng) == 0
    for dtype in ("float32", "bfloat16"):
        assert np.isfinite(
            np.asarray(rng.uniform(low, high, 9, dtype=dtype), float)
        ).all()


def test_the_width_is_that_of_the_numbers_and_not_of_their_dtype():
    ends = np.array([-6e4], np.float16), np.array([6e4], np.float16)
    assert np.isfinite(stateful_rng(0).uniform(*ends)).all()
    assert np.isfinite(stateful_rng(0).uniform(-3e4, 3e4, 9, dtype="float16")).all()


def test_device_values_out_of_range_give_nan():
    rng = stateful_rng(0)
    assert np.isnan(rng.normal(0, jnp.array([1.0, -1.0]))).tolist() == [False, True]
    assert np.isnan(rng.uniform(jnp.array(2.0), 1.0))
    assert np.isnan(jax.jit(lambda s: rng.normal(0, s))(-1.0))


# --- one program -------------------------------------------------------------------


def test_values_do_not_recompile():
    program = _draw.program(_normal.sample, (77,), np.dtype(np.float32))
    rng = stateful_rng(0)
    for loc in range(100):
        rng.normal(loc + 0.5, 2.0, 77)
    assert program.fused._cache_size() == 1
    rng.normal(3, 2, 77)
    assert program.fused._cache_size() == 1


def test_nothing_else_in_the_jaxpr():
    rng = stateful_rng(0)
    jaxpr = jax.make_jaxpr(lambda: rng.uniform())()
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["get", "jit", "swap"] or [
        eqn.primitive.name for eqn in jaxpr.eqns
    ] == ["get", "pjit", "swap"]


def draws(rng):
    return [
        rng.random(),
        rng.uniform(-1, 3, 4),
        rng.normal(size=3),
        rng.normal([1, 2], jnp.ones(2)),
        jax.random.key_data(rng.key()),
        jax.random.key_data(rng.key((2,))),
        rng.fold_in("a").random(),
        rng.spawn(2)[1].random(),
        jax.vmap(lambda r: r.random())(rng.split(3)),
        rng.state().counter,
    ]


def test_every_path_gives_the_same_numbers(monkeypatch):
    fast = draws(stateful_rng(0))
    traced = jax.jit(lambda rng: draws(rng))(stateful_rng(0))
    _, scanned = jax.lax.scan(
        lambda c, _: (c, draws(stateful_rng(0))), 0, None, length=1
    )
    monkeypatch.setattr(_internals, "fast_path", lambda: False)
    public = draws(stateful_rng(0))
    monkeypatch.setattr(_internals, "_trace_ctx", None)
    blind = draws(stateful_rng(0))
    for got in (traced, jax.tree.map(lambda x: x[0], scanned), public, blind):
        for a, b in zip(fast, got, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, strict=True)


def test_the_fast_path_is_there():
    """Fails where a new JAX has moved what `_internals` reaches for."""
    assert _internals.fast_path()
    assert _internals._trace_ctx is not None
    assert _internals._config is not None
    seen = {}

    def look(name):
        def f(x):
            seen[name] = list(_internals.layers_between())
            return x

        return f

    jax.vmap(look("vmap"))(jnp.ones(2))
    jax.jit(look("jit"))(1.0)
    jax.lax.while_loop(lambda c: look("cond")(c) < 1, lambda c: c + 1, 0.0)
    f = jax.custom_vjp(lambda x: look("rule")(x))
    f.defvjp(lambda x: (x, None), lambda _, g: (g,))
    jax.jit(f)(1.0)
    assert seen["vmap"] == ["vmap"]
    assert seen["jit"] == ["jit"]
    assert seen["cond"] == ["while_cond"]
    assert seen["rule"][0] == "custom_vjp fun"
    with jax.ensure_compile_time_eval():
        assert _internals.folds_constants()
    assert not _internals.folds_constants()


def test_at_top_level():
    assert _internals.at_top_level()
    found = []
    jax.jit(lambda: found.append(_internals.at_top_level()))()
    jax.grad(lambda x: found.append(_internals.at_top_level()) or x)(1.0)
    jax.vmap(lambda x: found.append(_internals.at_top_level()))(jnp.ones(2))
    assert found == [False, False, False]
    assert _internals.at_top_level()


def test_import_inside_a_trace():
    import subprocess
    import sys

    code = (
        "import jax\n"
        "def f():\n"
        "    from jax_stateful_rng import stateful_rng, _internals\n"
        "    assert not _internals.at_top_level()\n"
        "    return stateful_rng(0).random()\n"
        "x = jax.jit(f)()\n"
        "from jax_stateful_rng import stateful_rng, _internals\n"
        "assert _internals.at_top_level()\n"
        "assert stateful_rng(0).random() == x\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- devices -----------------------------------------------------------------------


def test_draws_are_not_committed():
    rng = stateful_rng(0)
    f = jax.jit(lambda: rng.normal())
    for _ in range(2):
        for x in (rng.random(), rng.normal(size=3), rng.key(), rng.key(3)):
            assert not x.committed
        assert not rng.spawn(1)[0].random().committed
        assert not rng.state().counter.committed
        assert not rng.fold_in(1).random().committed
        f()  # leaves a committed counter behind
        assert not jax.grad(lambda x: x * rng.normal())(1.0).committed


def test_a_state_that_jit_returns_is_placed_nowhere():
    state = jax.jit(lambda rng: rng.state())(stateful_rng(0))
    assert state.base_key.committed  # as JAX commits whatever comes out beside a Ref
    rng = stateful_rng(state)
    assert not rng.random().committed
    mesh = jax.make_mesh((8,), ("d",))
    spread = jax.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))
    children = rng.split(8, sharding=spread)
    assert children.base_key.sharding.device_set == set(jax.devices())
    elsewhere = jax.device_put(state, jax.devices()[3])
    assert stateful_rng(elsewhere).random().devices() == {jax.devices()[3]}


def test_draws_mix_with_arrays_on_several_devices():
    mesh = jax.make_mesh((8,), ("d",))
    spread = jax.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))
    x = jax.device_put(jnp.arange(8.0), spread)
    other = jax.device_put(jnp.ones(8), jax.devices()[3])
    rng, same = stateful_rng(0), stateful_rng(0)
    for array in (x, other, x):
        got = rng.normal(array, 1.0)
        np.testing.assert_allclose(got, same.normal(np.asarray(array), 1.0), rtol=1e-6)
        assert got.sharding.device_set == array.sharding.device_set
        rng.random(8) + array
        same.random(8)
    assert count(rng) == 6
    assert not rng.random().committed


def test_default_device():
    rng = stateful_rng(0)
    rng.random()
    with jax.default_device(jax.devices()[2]):
        assert rng.random().devices() == {jax.devices()[2]}
    assert rng.random(3).shape == (3,)


def test_dispatch_is_asynchronous():
    rng = stateful_rng(0)
    n = 20_000_000
    rng.random(n).block_until_ready()
    for _ in range(5):
        start = time.perf_counter()
        x = rng.random(n)
        y = rng.random()
        returned = time.perf_counter() - start
        x.block_until_ready()
        total = time.perf_counter() - start
        y.block_until_ready()
        if returned < total / 2:
            return
    pytest.fail(f"the call took {returned:.3f} s of {total:.3f} s")


# --- threads -----------------------------------------------------------------------


def in_threads(work, n):
    errors = []

    def run(i):
        try:
            work(i)
        except Exception as error:  # noqa: BLE001 - shown by the assertion below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


@pytest.mark.parametrize("path", ["fast", "public"])
def test_threads_share_one_generator(path, monkeypatch):
    n, per = 16, 1000
    if path == "public":
        monkeypatch.setattr(_internals, "fast_path", lambda: False)
        n, per = 8, 100
    rng = stateful_rng(0)
    keys, singles = [[] for _ in range(n)], [[] for _ in range(n)]

    def work(i):
        for j in range(per):
            match j % 50:
                case 10:
                    keys[i].extend(jax.random.key_data(rng.split(2).base_key))
                case 20:
                    keys[i].extend(
                        jax.random.key_data(r.base_key) for r in rng.spawn(2)
                    )
                case 30:
                    keys[i].append(jax.random.key_data(rng.key()))
                case _:
                    singles[i].append(rng.random(2))

    in_threads(work, n)
    assert count(rng) == n * per
    seen = {tuple(np.asarray(x).tolist()) for part in singles for x in part}
    assert len(seen) == sum(map(len, singles))
    seen = {tuple(np.asarray(x).tolist()) for part in keys for x in part}
    assert len(seen) == sum(map(len, keys))


def test_set_state_among_threads():
    rng = stateful_rng(BASE)
    start = PRNGState(BASE, np.array([7, 0], np.uint32))

    def work(i):
        for j in range(200):
            if i == 0 and j == 100:
                rng.set_state(start)
            rng.random()

    in_threads(work, 8)
    hi, lo = np.asarray(rng.state().counter).tolist()
    assert hi == 7
    assert 100 <= lo <= 1600


def test_asyncio_threads():
    rng = stateful_rng(0)

    async def run():
        return await asyncio.gather(
            *(asyncio.to_thread(rng.random, 2) for _ in range(200))
        )

    values = asyncio.run(run())
    assert len({tuple(np.asarray(v).tolist()) for v in values}) == 200
    assert count(rng) == 200


def test_jitted_closures_under_the_lock():
    rng = stateful_rng(0)
    f = jax.jit(lambda: rng.random(2))
    f()
    found = [[] for _ in range(8)]

    def work(i):
        for _ in range(100):
            with rng.lock:
                found[i].append(f())
            found[i].append(rng.random(2))

    in_threads(work, 8)
    assert count(rng) == 1601
    seen = {tuple(np.asarray(x).tolist()) for part in found for x in part}
    assert len(seen) == 1600


def test_jitted_closures_without_the_lock_never_repeat_a_draw():
    interval = sys.getswitchinterval()
    found, errors = [], []
    for seed in range(3):
        rng = stateful_rng(seed)
        f = jax.jit(lambda rng=rng: rng.random(2))
        f()

        def work(draw):
            for _ in range(400):
                try:
                    found.append(np.asarray(draw()))
                except RuntimeError as error:  # JAX's in f, ours in the eager draw
                    errors.append(error)

        threads = [
            threading.Thread(target=work, args=(draw,))
            for draw in (f, lambda rng=rng: rng.random(2)) * 2
        ]
        sys.setswitchinterval(1e-5)  # many more chances to come between
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
    assert len(found) + len(errors) == 3 * 4 * 400
    assert len({tuple(x.tolist()) for x in found}) == len(found)


def test_a_counter_that_a_failed_call_has_lost_comes_back():
    def fail(x):
        raise ValueError("of its own")

    @jax.jit
    def failing():
        scalar = jax.ShapeDtypeStruct((), jnp.float32)
        return jax.pure_callback(fail, scalar, rng.random())

    rng = stateful_rng(0)
    state = rng.state()
    first = rng.random()
    with pytest.raises(Exception, match="of its own"):
        jax.block_until_ready(failing())
    assert "rng.set_state" in repr(rng)
    for call in (rng.random, rng.key, rng.state):
        with pytest.raises(RuntimeError, match=r"rng\.set_state"):
            call()
    rng.set_state(state)
    assert rng.random() == first


def test_one_lock_a_counter():
    rng = stateful_rng(0)
    leaves, tree = jax.tree.flatten(rng)
    assert jax.tree.unflatten(tree, leaves).lock is rng.lock
    assert stateful_rng(0).lock is not rng.lock


# --- failure -----------------------------------------------------------------------


def test_a_law_that_fails_leaves_the_counter(monkeypatch):
    rng = stateful_rng(0)

    def broken(key, shape, dtype, low, high):
        raise RuntimeError("broken")

    law = _draw.Law("broken", broken, _uniform.params, "real")
    for call in (
        lambda: rng._draw(law, None, float, 0, 1),
        lambda: jax.jit(lambda: rng._draw(law, None, float, 0, 1))(),
    ):
        with pytest.raises(RuntimeError, match="broken"):
            call()
    assert count(rng) == 0

"""Generators on meshes: the same numbers wherever they live, and no collectives."""

import contextlib
import copy
import dataclasses
import functools
import pickle
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec, SingleDeviceSharding

from jax_stateful_rng import PRNGState, StatefulPRNG, _advice, stateful_rng

P = PartitionSpec
SHAPES = ((1,), (2,), (4,), (8,), (4, 2))
OLD_JAX = jax.__version_info__ < (0, 12)

COLLECTIVE = re.compile(
    r"all-gather|all-reduce|all-to-all|collective-permute|collective-broadcast"
    r"|reduce-scatter"
)

pytestmark = pytest.mark.skipif(
    jax.device_count() < 8, reason="needs 8 devices: XLA_FLAGS was set already"
)


def mesh_of(shape, kind):
    return jax.make_mesh(
        shape, ("d", "e")[: len(shape)], axis_types=(kind,) * len(shape)
    )


MESHES = [
    (kind, shape) for kind in (AxisType.Auto, AxisType.Explicit) for shape in SHAPES
]


def name_of(param):
    kind, shape, *rest = param
    return "-".join([kind.name, "x".join(map(str, shape)), *rest])


def name_of_kind(kind):
    return kind.name


@pytest.fixture(params=MESHES, ids=name_of)
def any_mesh(request):
    kind, shape = request.param
    return mesh_of(shape, kind)


@pytest.fixture(
    params=[(AxisType.Auto, (8,)), (AxisType.Explicit, (4, 2))], ids=name_of
)
def mesh(request):
    kind, shape = request.param
    return mesh_of(shape, kind)


@dataclasses.dataclass(frozen=True)
class Setting:
    """A mesh, and how a test uses it.

    Attributes:
        mesh: with Auto or Explicit axes; some settings are under its ``set_mesh``.
        placed: whether generators are made on all of the mesh, or left unplaced.
    """

    mesh: jax.sharding.Mesh
    placed: bool

    def rng(self, seed=0):
        everywhere = NamedSharding(self.mesh, P())
        return stateful_rng(seed, sharding=everywhere if self.placed else None)


def settings():
    """All of them; what says the least new is marked slow."""
    for kind, shape in MESHES:
        # For the fourth see test_an_unplaced_generator_where_no_mesh_is_set.
        for where, use in (("placed", "set"), ("placed", "unset"), ("free", "set")):
            new = (shape, where, use) in (
                ((4, 2), "placed", "set"),
                ((8,), "free", "set"),
                ((8,), "placed", "unset"),
            )
            param = (kind, shape, where, use)
            marks = () if new else pytest.mark.slow
            yield pytest.param(param, marks=marks, id=name_of(param))


@pytest.fixture(params=settings())
def setting(request):
    kind, shape, where, use = request.param
    mesh = mesh_of(shape, kind)
    with jax.set_mesh(mesh) if use == "set" else contextlib.nullcontext():
        yield Setting(mesh, where == "placed")


def along(mesh):
    """The sharding that spreads the first axis over all axes of the mesh."""
    return NamedSharding(mesh, P(mesh.axis_names))


def count(rng):
    hi, lo = np.asarray(rng.state().counter)
    return (int(hi) << 32) + int(lo)


def some(rng):
    """A draw of each kind."""
    return {
        "uniform": rng.uniform(size=8),
        "normal": rng.normal(size=8),
        "integers": rng.integers(0, 1000, size=8),
        "key": jax.random.key_data(rng.key()),
    }


def assert_same(got, expected):
    """Equal bits, but for floats that XLA contracts from one program to the next."""
    for name, value in expected.items():
        if name == "normal":
            np.testing.assert_allclose(got[name], value, rtol=4e-6, atol=1e-6)
        else:
            np.testing.assert_array_equal(got[name], value, err_msg=name)


@pytest.fixture(scope="module")
def plain():
    """What a generator on one device draws."""
    return jax.device_get(some(stateful_rng(0)))


@pytest.fixture(scope="module")
def plain_children():
    """What each of eight children draws by itself."""
    each = [jax.device_get(some(child)) for child in stateful_rng(0).spawn(8)]
    return {name: np.stack([one[name] for one in each]) for name in each[0]}


# --- One generator for the whole mesh --------------------------------------------


def test_eager(setting, plain):
    rng = setting.rng()
    assert_same(some(rng), plain)
    assert count(rng) == 4


def test_jit(setting, plain):
    rng = setting.rng()
    assert_same(jax.jit(some)(rng), plain)
    assert count(rng) == 4
    rng = setting.rng()
    assert_same(jax.jit(lambda: some(rng))(), plain)
    assert count(rng) == 4


def test_beside_sharded_arrays(setting):
    mesh = setting.mesh
    rng, same = setting.rng(), stateful_rng(0)
    x = jax.device_put(jnp.arange(8.0), along(mesh))
    host = np.arange(8.0, dtype=np.float32)
    add = lambda rng, x: rng.random(8) + x
    np.testing.assert_array_equal(add(rng, x), add(same, host))
    np.testing.assert_array_equal(jax.jit(add)(rng, x), add(same, host))
    closed = jax.jit(lambda x: add(rng, x))
    np.testing.assert_array_equal(closed(x), add(same, host))
    np.testing.assert_allclose(rng.normal(x), same.normal(host), rtol=1e-6)
    slope = jax.jit(jax.grad(lambda x: (rng.random(8) * x).sum()))
    np.testing.assert_array_equal(slope(x), same.random(8))
    assert count(rng) == count(same) == 5


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=name_of_kind)
def test_eager_gradients_beside_sharded_arrays(kind):
    mesh, expected = mesh_of((8,), kind), stateful_rng(0).random(8)
    x = jax.device_put(jnp.ones(8), along(mesh))
    with jax.set_mesh(mesh):
        for rng in (stateful_rng(0), stateful_rng(0, sharding=P())):
            slope = jax.grad(lambda x: (rng.random(8) * x).sum())(x)
            np.testing.assert_array_equal(slope, expected)


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=name_of_kind)
def test_an_unplaced_generator_where_no_mesh_is_set(kind):
    """Eager draws go anywhere; JAX compiles no Ref of one device for several."""
    mesh, expected = mesh_of((8,), kind), stateful_rng(0).random(8)
    x = jax.device_put(jnp.ones(8), along(mesh))
    add = lambda rng, x: rng.random(8) + x
    lanes = jax.vmap(lambda rng: rng.random())
    split = lambda rng: lanes(rng.split(8, sharding=along(mesh)))
    np.testing.assert_array_equal(add(stateful_rng(0), x), expected + 1)
    rng = stateful_rng(0)
    for traced in (lambda: jax.jit(add)(rng, x), lambda: jax.jit(split)(rng)):
        with pytest.raises(
            ValueError, match=r"incompatible devices|device assignment 1 "
        ):
            traced()
    assert count(rng) == 0
    alone = [child.random() for child in stateful_rng(0).spawn(8)]
    np.testing.assert_array_equal(jax.jit(lanes)(rng.split(8)), alone)
    children = stateful_rng(0).split(8, sharding=along(mesh))
    np.testing.assert_array_equal(jax.jit(lanes)(children), alone)
    rng = stateful_rng(0, sharding=NamedSharding(mesh, P()))
    np.testing.assert_array_equal(jax.jit(add)(rng, x), expected + 1)
    rng = stateful_rng(0, sharding=NamedSharding(mesh, P()))
    np.testing.assert_array_equal(jax.jit(split)(rng), alone)


def test_loops_and_gradients(setting):
    mesh = setting.mesh
    rng, same = setting.rng(), stateful_rng(0)
    x = jax.device_put(jnp.ones(8), along(mesh))

    @jax.jit
    def run(rng, x):
        def body(total, _):
            part = jax.checkpoint(lambda x: jnp.sin(rng.random(8) * x).sum())
            value, slope = jax.value_and_grad(part)(x)
            return total + value, slope

        return lax.scan(body, 0.0, length=3)

    for got, expected in zip(run(rng, x), run(same, np.ones(8)), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5)
    assert count(rng) == 3


def test_the_whole_core(setting):
    rng, same = setting.rng(), stateful_rng(0)
    for a, b in zip(rng.spawn(2), same.spawn(2), strict=True):
        assert a.random() == b.random()
    assert rng.fold_in("name").random() == same.fold_in("name").random()
    assert rng.fold_in(3).fold_in("x").key() == same.fold_in(3).fold_in("x").key()
    assert (rng.key((2, 3)) == same.key((2, 3))).all()
    state = rng.state()
    ahead = rng.random()
    assert stateful_rng(state).random() == ahead
    assert copy.deepcopy(rng).random() == pickle.loads(pickle.dumps(rng)).random()
    rng.set_state(state)
    assert rng.random() == ahead
    assert "count=3" in repr(rng)


def test_a_placed_generator_stays_on_its_mesh(mesh):
    everywhere = NamedSharding(mesh, P())
    rng = stateful_rng(0, sharding=everywhere)
    jitted = jax.jit(lambda: rng.random())
    for _ in range(2):
        for array in (rng.base_key, rng.state().counter, rng.random(), jitted()):
            assert array.sharding.is_equivalent_to(everywhere, array.ndim)
    state = rng.state()
    for array in (state.base_key, state.counter):
        assert array.committed
        assert array.sharding.is_equivalent_to(everywhere, array.ndim)


# --- Split children ----------------------------------------------------------------


def test_children(setting, plain_children):
    mesh = setting.mesh
    children = setting.rng().split(8, sharding=along(mesh))
    assert_same(jax.jit(jax.vmap(some))(children), plain_children)
    children = setting.rng().split(8, sharding=along(mesh))
    assert_same(jax.vmap(some)(children), plain_children)
    assert_same(jax.jit(jax.vmap(some))(setting.rng().split(8)), plain_children)
    traced = jax.jit(lambda rng: jax.vmap(some)(rng.split(8, sharding=along(mesh))))
    rng = setting.rng()
    assert_same(traced(rng), plain_children)
    assert count(rng) == 1


def test_where_children_live(setting):
    mesh = setting.mesh
    sharding = along(mesh)
    children = setting.rng().split(8, sharding=sharding)
    state = children.state()
    jax.jit(jax.vmap(lambda rng: rng.random()))(children)
    later = jax.jit(lambda rng: rng.split(8, sharding=sharding).state())(setting.rng())
    for found in (state, children.state(), later):
        for array in (found.base_key, found.counter):
            assert array.sharding.is_equivalent_to(sharding, array.ndim)


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=name_of_kind)
def test_children_in_a_grid(kind, plain_children):
    mesh, expected = mesh_of((4, 2), kind), plain_children["uniform"]
    draw = jax.jit(jax.vmap(jax.vmap(lambda rng: rng.uniform(size=8))))
    with jax.set_mesh(mesh):
        for shape, spec in (((4, 2), P("d", "e")), ((2, 4), P(None, "d"))):
            grid = stateful_rng(0).split(shape, sharding=NamedSharding(mesh, spec))
            np.testing.assert_array_equal(draw(grid), expected.reshape(*shape, 8))
            # A spec by itself counts in the mesh that is set.
            grid = stateful_rng(0).split(shape, sharding=spec)
            np.testing.assert_array_equal(draw(grid), expected.reshape(*shape, 8))


def test_children_train_as_they_do_alone(setting):
    """Value and gradient at the same noise, lane by lane."""

    def loss(x, rng):
        return jax.checkpoint(lambda x: jnp.sin(rng.random() * x) * rng.random())(x)

    lanes = jax.jit(jax.vmap(jax.value_and_grad(loss)))
    expected = lanes(jnp.full(8, 1.5), stateful_rng(0).split(8))
    children = setting.rng().split(8, sharding=along(setting.mesh))
    x = jax.device_put(jnp.full(8, 1.5), along(setting.mesh))
    for got, want in zip(lanes(x, children), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


# --- No talk between devices --------------------------------------------------------


def plain_laws(rng):
    return {
        "random": rng.random(1024),
        "uniform": rng.uniform(-2, 3, size=1024),
        "normal": rng.normal(1, 2, size=1024),
        "integers": rng.integers(0, 1000, size=1024),
        "exponential": rng.exponential(2.0, size=1024),
        "bits": rng.bits(1024),
    }


def test_sharded_draws_without_a_collective(any_mesh):
    mesh = any_mesh
    rng = stateful_rng(0, sharding=NamedSharding(mesh, P()))
    compiled = jax.jit(plain_laws, out_shardings=along(mesh)).lower(rng).compile()
    assert not COLLECTIVE.findall(compiled.as_text())
    got, expected = compiled(rng), plain_laws(stateful_rng(0))
    for name, array in got.items():
        assert array.sharding.is_equivalent_to(along(mesh), 1)
        if name in ("random", "integers", "bits"):
            np.testing.assert_array_equal(array, expected[name])
        else:
            np.testing.assert_allclose(array, expected[name], rtol=1e-6, atol=1e-6)


def test_children_without_a_collective(any_mesh):
    mesh = any_mesh
    children = stateful_rng(0).split(8, sharding=along(mesh))
    draw = jax.jit(jax.vmap(lambda rng: (rng.normal(size=4), rng.integers(9, size=4))))
    assert not COLLECTIVE.findall(draw.lower(children).compile().as_text())
    split = jax.jit(lambda rng: rng.split(8, sharding=along(mesh)).state())
    rng = stateful_rng(0, sharding=NamedSharding(mesh, P()))
    assert not COLLECTIVE.findall(split.lower(rng).compile().as_text())


# --- out_sharding -------------------------------------------------------------------

ARGUMENTS = {
    "random": (16,),
    "uniform": (0.0, 1.0, 16),
    "normal": (0.0, 1.0, 16),
    "integers": (0, 10, 16),
    "bits": (16,),
    "bernoulli": (0.5, 16),
    "permutation": (16,),
    "dirichlet": ([1.0, 2.0], 16),
}


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=name_of_kind)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_out_sharding(name, kind):
    mesh = mesh_of((8,), kind)
    draw = lambda rng, **where: getattr(rng, name)(*ARGUMENTS[name], **where)
    rng, expected = stateful_rng(0), draw(stateful_rng(0))
    eager = draw(rng, out_sharding=along(mesh))
    with jax.set_mesh(mesh):
        placed = stateful_rng(0, sharding=P())
        traced = jax.jit(lambda rng: draw(rng, out_sharding=P("d")))(placed)
    for found in (eager, traced):
        assert found.sharding.is_equivalent_to(along(mesh), found.ndim)
        np.testing.assert_allclose(found, expected, rtol=4e-6, atol=1e-6)
    assert count(rng) == 1


def test_out_sharding_that_does_not_fit(line):
    rng = stateful_rng(0)
    for draw in (
        rng.random,
        rng.bits,
        lambda n, **s: rng.dirichlet([1.0, 2.0], n, **s),
    ):
        with pytest.raises(ValueError, match="out_sharding must fit the shape"):
            draw(6, out_sharding=NamedSharding(line, P("d")))
        with pytest.raises(TypeError, match="out_sharding must be a sharding"):
            draw(8, out_sharding=line)
    with pytest.raises(ValueError, match="does not draw by itself"):
        rng.split(8).random(8, out_sharding=NamedSharding(line, P("d")))
    assert count(rng) == 1
    children = NamedSharding(line, P("d", None))  # an axis of the vectors themselves
    assert rng.dirichlet([1.0, 2.0], 8, out_sharding=children).shape == (8, 2)


WIDE = {
    "integers": lambda rng: rng.integers(jnp.zeros(8, int), 2**31 - 1),
    "binomial": lambda rng: rng.binomial(jnp.full(8, 1000), 0.3),
}


@pytest.mark.parametrize("wide", [False, True], ids=["32 bits", "64 bits"])
@pytest.mark.parametrize("name", WIDE)
def test_products_of_two_words_on_several_devices(line, name, wide):
    """``lax.mulhi`` would not compile."""
    with jax.enable_x64(wide):
        check_on_several_devices(line, WIDE[name])


def check_on_several_devices(line, draw):
    rng = stateful_rng(0, sharding=NamedSharding(line, P()))
    got = jax.jit(draw, out_shardings=along(line))(rng)
    np.testing.assert_array_equal(got, draw(stateful_rng(0)))


# --- shard_map -----------------------------------------------------------------------


def shard_mapped(f, mesh, in_specs=None):
    spread = P(mesh.axis_names)
    in_specs = spread if in_specs is None else in_specs  # P() is false
    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=spread))


def test_shard_map_is_vmap(any_mesh, plain_children):
    children = stateful_rng(0).split(8, sharding=along(any_mesh))
    assert_same(shard_mapped(jax.vmap(some), any_mesh)(children), plain_children)
    # It moves each child on by as much.
    moved = np.broadcast_to([0, 4], (8, 2))
    np.testing.assert_array_equal(children.state().counter, moved)


def test_the_state_in_shard_map(setting, plain_children):
    mesh = setting.mesh

    def lane(state):
        rng = stateful_rng(state)
        return some(rng), rng.state()

    states = setting.rng().split(8, sharding=along(mesh)).state()
    draws, after = shard_mapped(jax.vmap(lane), mesh)(states)
    assert_same(draws, plain_children)
    np.testing.assert_array_equal(after.counter, np.broadcast_to([0, 4], (8, 2)))


def test_gradients_in_shard_map(mesh):
    def lane(rng, x):
        return jax.value_and_grad(lambda x: jnp.sin(rng.random() * x))(x)

    x = jnp.full(8, 1.5)
    expected = jax.vmap(lane)(stateful_rng(0).split(8), x)
    children = stateful_rng(0).split(8, sharding=along(mesh))
    run = shard_mapped(jax.vmap(lane), mesh, in_specs=(P(mesh.axis_names),) * 2)
    got = run(children, jax.device_put(x, along(mesh)))
    for a, b in zip(got, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_one_generator_for_all_shards_draws_the_same_on_each(any_mesh):
    mesh = any_mesh
    rng = stateful_rng(0, sharding=NamedSharding(mesh, P()))
    run = shard_mapped(lambda rng: rng.random(3)[None], mesh, in_specs=P())
    got = np.asarray(run(rng))
    expected = np.broadcast_to(stateful_rng(0).random(3), (mesh.size, 3))
    np.testing.assert_array_equal(got, expected)
    assert count(rng) == 1


# --- shard_map: what cannot be -------------------------------------------------------


@pytest.fixture
def line():
    return mesh_of((8,), AxisType.Auto)


def test_a_generator_closed_over_in_shard_map(line):
    for sharding in (None, NamedSharding(line, P())):
        rng = stateful_rng(0, sharding=sharding)
        run = shard_mapped(lambda x: x + rng.random(), line)
        with pytest.raises(ValueError, match="must come in as an argument"):
            run(jnp.zeros(8))
        assert count(rng) == 0
        assert rng.random() == stateful_rng(0).random()


def test_a_generator_as_an_argument_of_an_eager_shard_map(line):
    """JAX does not take Refs there; under jit it does."""
    eager = jax.shard_map(
        jax.vmap(lambda rng: rng.random()), mesh=line, in_specs=P("d"), out_specs=P("d")
    )
    children = stateful_rng(0).split(8, sharding=NamedSharding(line, P("d")))
    with pytest.raises((AssertionError, NotImplementedError)):
        eager(children)
    assert not children.state().counter.any()
    assert jax.jit(eager)(children).shape == (8,)


def test_a_batch_of_children_in_shard_map_does_not_draw(line):
    run = shard_mapped(lambda rng: rng.random(), line)
    with pytest.raises(ValueError, match="Map over it"):
        run(stateful_rng(0).split(8, sharding=NamedSharding(line, P("d"))))


def rematerialised(rng, x):
    return jax.value_and_grad(jax.checkpoint(lambda x: jnp.sin(rng.random() * x)))(x)


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=name_of_kind)
def test_checkpoint_in_shard_map(kind):
    """Where JAX loses the kind of the Ref, an error and not another draw's slope."""
    mesh = mesh_of((8,), kind)
    x = jax.device_put(jnp.full(8, 1.5), along(mesh))
    expected = jax.vmap(rematerialised)(stateful_rng(0).split(8), jnp.full(8, 1.5))
    children = stateful_rng(0).split(8, sharding=along(mesh))
    lane = jax.vmap(rematerialised)
    run = shard_mapped(lane, mesh, in_specs=(P("d"), P("d")))
    if OLD_JAX:
        with pytest.raises(ValueError, match=r"rng = stateful_rng\(state\)"):
            run(children, x)
        assert not children.state().counter.any()
    else:
        for got, want in zip(run(children, x), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=name_of_kind)
def test_checkpoint_in_shard_map_of_a_state(kind):
    """The way out that the error of the test above names."""
    mesh = mesh_of((8,), kind)
    x = jax.device_put(jnp.full(8, 1.5), along(mesh))
    expected = jax.vmap(rematerialised)(stateful_rng(0).split(8), jnp.full(8, 1.5))
    states = stateful_rng(0).split(8, sharding=along(mesh)).state()
    lane = jax.vmap(lambda state, x: rematerialised(stateful_rng(state), x))
    run = shard_mapped(lane, mesh, in_specs=(P("d"), P("d")))
    for got, want in zip(run(states, x), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


# --- States --------------------------------------------------------------------------


def test_a_state_to_a_sharding(mesh):
    everywhere = NamedSharding(mesh, P())
    plain = stateful_rng(0)
    plain.random()
    for state in (
        plain.state(),
        stateful_rng(plain.state(), sharding=everywhere).state(),
    ):
        rng = stateful_rng(state, sharding=everywhere)
        assert rng.base_key.sharding.is_equivalent_to(everywhere, 0)
        assert count(rng) == 1
        assert rng.random() == stateful_rng(plain.state()).random()
        assert count(rng) == 2
        assert stateful_rng(state).random() == stateful_rng(plain.state()).random()


def test_the_state_of_children_to_a_sharding(mesh, plain_children):
    state = stateful_rng(0).split(8).state()
    children = stateful_rng(state, sharding=along(mesh))
    for array in (children.base_key, children.state().counter):
        assert array.sharding.is_equivalent_to(along(mesh), array.ndim)
    assert_same(jax.jit(jax.vmap(some))(children), plain_children)
    # And from there to all devices.
    back = stateful_rng(children.state(), sharding=NamedSharding(mesh, P()))
    np.testing.assert_array_equal(back.state().counter[:, 1], [4] * 8)


def test_a_traced_state_to_a_sharding(mesh):
    everywhere = NamedSharding(mesh, P())

    @jax.jit
    def run(state):
        rng = stateful_rng(state, sharding=everywhere)
        return rng.random(), rng.state()

    with jax.set_mesh(mesh):
        value, state = run(stateful_rng(0).state())
    assert value == stateful_rng(0).random()
    assert state.counter.sharding.is_equivalent_to(everywhere, 1)


def test_set_state_of_a_placed_generator(setting):
    mesh = setting.mesh
    everywhere = NamedSharding(mesh, P())
    rng, plain = stateful_rng(0, sharding=everywhere), stateful_rng(0)
    for _ in range(5):
        plain.random()
    placed = stateful_rng(plain.state(), sharding=everywhere)
    saved = PRNGState.from_dict(plain.state().to_dict())
    for state in (plain.state(), placed.state(), saved):
        rng.random()
        rng.set_state(state)
        assert count(rng) == 5
        assert rng.state().counter.sharding.is_equivalent_to(everywhere, 1)
        got = jax.jit(lambda: rng.random())()
        assert got == stateful_rng(plain.state()).random()
    # And the other way: a plain generator stays where it is.
    plain.set_state(placed.state())
    assert plain.random().committed == stateful_rng(0).random().committed
    children = stateful_rng(0).split(8, sharding=along(mesh))
    children.set_state(stateful_rng(0).split(8).state())
    assert children.state().counter.sharding.is_equivalent_to(along(mesh), 2)


def test_a_copy_stays_where_the_original_is(mesh):
    everywhere = NamedSharding(mesh, P())
    rng = stateful_rng(0, sharding=everywhere)
    for clone in (copy.copy(rng), copy.deepcopy(rng)):
        assert clone.base_key.sharding.is_equivalent_to(everywhere, 0)
        assert clone.random() == stateful_rng(0).random()
    # Pickles hold numbers and no mesh.
    assert not pickle.loads(pickle.dumps(rng)).random().committed


def test_orbax_restores_to_a_sharding(tmp_path):
    orbax = pytest.importorskip("orbax.checkpoint")
    rng = stateful_rng(0)
    rng.random()
    saved = {"rng": rng.state(), "envs": rng.split(8).state()}
    expected = rng.random(3), rng.split(8).state()
    with orbax.StandardCheckpointer() as checkpointer:
        checkpointer.save(tmp_path / "one", saved)
    for shape in ((4, 2), (8,)):
        mesh = mesh_of(shape, AxisType.Auto)
        everywhere = NamedSharding(mesh, P())
        target = jax.eval_shape(lambda: saved)
        placements = {"rng": everywhere, "envs": along(mesh)}
        target = {
            name: jax.tree.map(
                lambda x, s=placements[name]: jax.ShapeDtypeStruct(
                    x.shape, x.dtype, sharding=s
                ),
                target[name],
            )
            for name in target
        }
        with orbax.StandardCheckpointer() as checkpointer:
            found = checkpointer.restore(tmp_path / "one", target)
        again = stateful_rng(found["rng"])
        assert again.base_key.sharding.is_equivalent_to(everywhere, 0)
        assert found["envs"].counter.sharding.is_equivalent_to(along(mesh), 2)
        again.split(8)
        np.testing.assert_array_equal(again.random(3), expected[0])
        lanes = jax.jit(jax.vmap(lambda rng: rng.random(2)))
        np.testing.assert_array_equal(
            lanes(stateful_rng(found["envs"])), lanes(stateful_rng(saved["envs"]))
        )


# --- Errors --------------------------------------------------------------------------


def test_a_generator_given_as_seed_is_not_moved(line):
    with pytest.raises(ValueError, match=r"stateful_rng\(rng.state\(\), sharding"):
        stateful_rng(stateful_rng(0), sharding=NamedSharding(line, P()))


def test_what_is_no_sharding(line):
    rng = stateful_rng(0)
    for wrong in (line, "d", jax.devices()):
        with pytest.raises(TypeError, match="stateful_rng: sharding must be"):
            stateful_rng(0, sharding=wrong)
    for wrong in (line, "d", jax.devices()):
        with pytest.raises(TypeError, match=r"rng\.split: sharding must be"):
            rng.split(8, sharding=wrong)
    with pytest.raises(ValueError, match=r"rng\.split: .*jax\.set_mesh"):
        rng.split(8, sharding=P("d"))
    with pytest.raises(ValueError, match=r"stateful_rng: .*jax\.set_mesh"):
        stateful_rng(0, sharding=P())
    assert count(rng) == 0


def test_children_that_do_not_fit_the_mesh(line):
    rng = stateful_rng(0)
    with pytest.raises(ValueError, match=r"rng\.split: sharding must fit"):
        rng.split(6, sharding=NamedSharding(line, P("d")))
    with pytest.raises(ValueError, match=r"rng\.split: sharding must fit"):
        rng.split(8, sharding=NamedSharding(line, P(None, "d")))
    assert count(rng) == 0


def test_one_device_named():
    device = jax.devices()[3]
    rng = stateful_rng(0, sharding=SingleDeviceSharding(device))
    assert rng.random().devices() == {device}
    assert rng.random().devices() == {device}
    children = stateful_rng(0).split(3, sharding=SingleDeviceSharding(device))
    assert children.base_key.devices() == {device}
    assert children.state().counter.devices() == {device}


# --- Advice --------------------------------------------------------------------------


@pytest.fixture
def fresh_advice():
    """Forgets which warnings were given, before the test and after it."""
    _advice._once.cache_clear()
    yield
    _advice._once.cache_clear()


def warns_once(match, act):
    """Checks that ``act`` warns at the first call only, in this file."""
    with pytest.warns(UserWarning, match=match) as seen:
        act()
    assert [warning.filename for warning in seen] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        act()


@pytest.mark.usefixtures("fresh_advice")
@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_advice_on_lanes(impl):
    rng = stateful_rng(0, impl=impl)
    warns_once(f"{impl!r}.*first lane's key", lambda: rng.split(4))


@pytest.mark.usefixtures("fresh_advice")
def test_advice_on_philox_and_meshes(line):
    text = "philox4x32.*does not compile for several devices"
    make = functools.partial(stateful_rng, 0, impl="philox4x32")
    warns_once(text, lambda: make(sharding=NamedSharding(line, P())))
    make(sharding=SingleDeviceSharding(jax.devices()[1])).split(4)
    rng = make()
    with (
        jax.set_mesh(line),
        pytest.warns(UserWarning, match=r"rng\.split: impl 'philox4x32' does not"),
        pytest.raises(jax.errors.JaxRuntimeError),
    ):
        rng.split(8, sharding=P("d"))


@pytest.mark.usefixtures("fresh_advice")
def test_advice_on_short_keys():
    warns_once("32 bits.*philox4x32", lambda: stateful_rng(0, impl="philox2x32"))


@pytest.mark.usefixtures("fresh_advice")
def test_advice_on_names():
    rng = stateful_rng(0, impl="unsafe_rbg")
    warns_once("exclusive or.*impl='rbg'", lambda: rng.fold_in("dropout"))


@pytest.mark.usefixtures("fresh_advice")
def test_no_advice_where_none_is_due(line):
    rng = stateful_rng(0, sharding=NamedSharding(line, P()))
    rng.split(8)
    rng.fold_in("dropout")
    assert isinstance(rng, StatefulPRNG)

"""Every row of the transformation table: right numbers, or our error.

A case draws scalar uniforms, so that draw ``k`` has to be that of ``fold_in(base, k)``.
Functions of ``x`` are linear in it with the draws as slopes: their value shows the
noise of the forward pass and their gradient the noise of the backward pass.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.ad_checkpoint import checkpoint_name

from jax_stateful_rng import StatefulPRNG, stateful_rng

BASE = jax.random.key(42)


@functools.cache
def expected(n: int) -> np.ndarray:
    keys = jax.vmap(jax.random.fold_in, (None, 0))(BASE, jnp.arange(n))
    return np.asarray(jax.vmap(jax.random.uniform)(keys))


def u(*draws):
    return expected(64)[list(draws)].sum()


@pytest.fixture
def rng():
    return stateful_rng(BASE)


def count(rng) -> int:
    hi, lo = np.asarray(rng.state().counter)
    return (int(hi) << 32) + int(lo)


def check(got, *draws, rtol=1e-6):
    np.testing.assert_allclose(got, u(*draws), rtol=rtol)


def draw(rng, x):
    return rng.uniform() * x


def draw2(rng, x):
    return rng.uniform() * x + rng.uniform() * x


# --- jit ---------------------------------------------------------------------------


def test_jit_closure(rng):
    f = jax.jit(lambda x: draw2(rng, x))
    check(f(1.0), 0, 1)
    check(f(1.0), 2, 3)
    assert count(rng) == 4
    assert f._cache_size() == 1


def test_jit_argument(rng):
    traces = []

    @jax.jit
    def f(rng, x):
        traces.append(x)
        return draw2(rng, x)

    check(f(rng, 1.0), 0, 1)
    check(f(rng, 1.0), 2, 3)
    assert count(rng) == 4
    f(stateful_rng(1), 1.0)
    assert len(traces) == 1


def test_jit_created_inside():
    f = jax.jit(lambda key, x: draw2(stateful_rng(key), x))
    check(f(BASE, 1.0), 0, 1)
    check(f(BASE, 1.0), 0, 1)


def test_jit_mixed_with_eager(rng):
    f = jax.jit(lambda x: draw(rng, x))
    check(rng.uniform(), 0)
    check(f(1.0), 1)
    check(rng.uniform(), 2)
    check(f(1.0), 3)
    assert count(rng) == 4


def test_nested_jit(rng):
    inner = jax.jit(lambda x: draw(rng, x))
    outer = jax.jit(lambda x: inner(x) + draw(rng, x) + inner(x))
    check(outer(1.0), 0, 1, 2)
    check(inner(1.0), 3)
    assert count(rng) == 4


def test_disable_jit(rng):
    with jax.disable_jit():
        check(jax.jit(lambda x: draw2(rng, x))(1.0), 0, 1)
    assert count(rng) == 2


def test_lower_compile(rng):
    compiled = jax.jit(draw2).lower(rng, 1.0).compile()
    assert count(rng) == 0
    check(compiled(rng, 1.0), 0, 1)
    check(compiled(rng, 1.0), 2, 3)
    assert count(rng) == 4


def test_eval_shape_and_make_jaxpr_do_not_advance(rng):
    assert jax.eval_shape(lambda x: draw(rng, x), 1.0).shape == ()
    assert jax.eval_shape(draw, rng, 1.0).shape == ()
    jax.make_jaxpr(lambda x: draw(rng, x))(1.0)
    jax.make_jaxpr(draw)(rng, 1.0)
    assert count(rng) == 0
    check(rng.uniform(), 0)


def test_export_of_the_state():
    # A Ref cannot cross jax.export; the state can.
    @jax.jit
    def f(data, counter):
        state = stateful_rng(jax.random.wrap_key_data(data)).state()
        rng = stateful_rng(type(state)(state.base_key, counter))
        return draw2(rng, 1.0), rng.state().counter

    data = jax.random.key_data(BASE)
    exported = jax.export.export(f)(data, np.zeros(2, np.uint32))
    value, counter = exported.call(data, np.zeros(2, np.uint32))
    check(value, 0, 1)
    value, counter = exported.call(data, counter)
    check(value, 2, 3)
    assert counter.tolist() == [0, 4]


@pytest.mark.filterwarnings("ignore:Some donated buffers")
def test_donated_generator(rng):
    f = jax.jit(draw, donate_argnums=0)
    check(f(rng, 1.0), 0)
    check(f(rng, 1.0), 1)
    check(rng.uniform(), 2)


def test_traced_seed():
    f = jax.jit(lambda seed: stateful_rng(seed).uniform())
    assert f(7) == stateful_rng(7).uniform()


# --- automatic differentiation -----------------------------------------------------


AD = {
    "value_and_grad": lambda f: jax.value_and_grad(f)(2.0),
    "jit_value_and_grad": lambda f: jax.jit(jax.value_and_grad(f))(2.0),
    "grad_of_jit": lambda f: jax.value_and_grad(jax.jit(f))(2.0),
    "jvp": lambda f: jax.jvp(f, (2.0,), (1.0,)),
    "linearize": lambda f: (lambda y, g: (y, g(1.0)))(*jax.linearize(f, 2.0)),
    "vjp": lambda f: (lambda y, g: (y, g(1.0)[0]))(*jax.vjp(f, 2.0)),
    "jit_vjp": lambda f: jax.jit(
        lambda x: (lambda y, g: (y, g(1.0)[0]))(*jax.vjp(f, x))
    )(2.0),
    "jacrev": lambda f: (jax.value_and_grad(f)(2.0)[0], None),
}


def flat(rng):
    return lambda x: draw2(rng, x)


def remat(rng):
    return jax.checkpoint(lambda x: draw2(rng, x))


def remat_twice(rng):
    return jax.checkpoint(lambda x: jax.checkpoint(lambda x: draw2(rng, x))(x))


def remat_no_cse(rng):
    return jax.checkpoint(lambda x: draw2(rng, x), prevent_cse=False)


def remat_between(rng):
    inner = jax.checkpoint(lambda x: draw(rng, x))
    return lambda x: inner(x) + draw(rng, x)


def remat_argument(rng):
    return lambda x: jax.checkpoint(draw2)(rng, x)


def cond_draws(rng):
    return lambda x: (
        draw(rng, x) + lax.cond(x > 1, lambda x: draw(rng, x), lambda x: x * 0.0, x)
    )


def custom_rule_argument(rng):
    @jax.custom_vjp
    def f(rng, x):
        return draw2(rng, x)

    def fwd(rng, x):
        a, b = rng.uniform(), rng.uniform()
        return a * x + b * x, a + b

    f.defvjp(fwd, lambda slope, g: (None, slope * g))
    return lambda x: f(rng, x)


PROGRAMS = [flat, remat, remat_twice, remat_no_cse, remat_between, remat_argument]
PROGRAMS += [cond_draws]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("how", AD)
def test_value_and_gradient_see_one_noise(rng, program, how):
    value, slope = AD[how](program(rng))
    check(value / 2.0, 0, 1)
    if slope is not None:
        check(slope, 0, 1)
    assert count(rng) == 2
    check(rng.uniform(), 2)


@pytest.mark.parametrize("how", ["value_and_grad", "jit_value_and_grad", "vjp"])
def test_custom_vjp_with_the_generator_as_argument(rng, how):
    value, slope = AD[how](custom_rule_argument(rng))
    check(value / 2.0, 0, 1)
    check(slope, 0, 1)
    assert count(rng) == 2


@pytest.mark.parametrize("program", [flat, remat])
def test_pullback_applied_twice(rng, program):
    value, pullback = jax.vjp(program(rng), 2.0)
    check(value / 2, 0, 1)
    check(pullback(1.0)[0], 0, 1)
    check(pullback(1.0)[0], 0, 1)
    value, push = jax.linearize(program(rng), 2.0)
    check(push(1.0), 2, 3)
    check(push(1.0), 2, 3)
    assert count(rng) == 4


@pytest.mark.parametrize("how", AD)
def test_generator_made_inside(how):
    for make in (lambda: BASE, lambda: stateful_rng(BASE).state()):
        value, slope = AD[how](lambda x, make=make: draw2(stateful_rng(make()), x))
        check(value / 2, 0, 1)
        if slope is not None:
            check(slope, 0, 1)


def test_split_inside(rng):
    f = lambda x: x * jax.vmap(lambda r: r.uniform())(rng.split(2)).sum()
    value, slope = jax.jvp(f, (1.0,), (1.0,))
    assert value == slope != jax.grad(f)(1.0)
    assert count(rng) == 2


def test_gradient_of_gradient(rng):
    f = lambda x: draw(rng, x**3)
    second = jax.grad(jax.grad(f))
    check(second(1.0) / 6, 0)
    assert count(rng) == 1
    check(jax.jit(second)(1.0) / 6, 1)
    check(jax.grad(jax.grad(jax.checkpoint(f)))(1.0) / 6, 2)
    assert count(rng) == 3


def test_jvp_of_remat_and_grad_of_it(rng):
    f = jax.checkpoint(lambda x: draw(rng, x**2))
    value, slope = jax.jvp(f, (1.0,), (1.0,))
    check(value, 0)
    check(slope / 2, 0)
    slope = lambda x: jax.jvp(f, (x,), (1.0,))[1]
    check(jax.grad(slope)(1.0) / 2, 1)
    assert count(rng) == 2


def test_jacrev(rng):
    jacobian = jax.jacrev(lambda x: rng.uniform(size=3) * x)(jnp.ones(3))
    assert count(rng) == 1
    noise = jax.random.uniform(jax.random.fold_in(BASE, 0), (3,))
    np.testing.assert_allclose(jacobian, np.diag(noise), rtol=1e-6)


POLICIES = sorted(
    name
    for name in dir(jax.checkpoint_policies)
    if not name.startswith(("_", "save_", "offload", "dot_with"))
    and name != "checkpoint_dots_with_no_batch_dims"
)


@pytest.mark.parametrize("policy", POLICIES)
def test_checkpoint_policies(rng, policy):
    policy = getattr(jax.checkpoint_policies, policy)

    def layer(x):
        return jnp.sin(jax.checkpoint(lambda x: draw(rng, x), policy=policy)(x))

    f = jax.checkpoint(lambda x: layer(x) + layer(x), policy=policy)
    value, slope = jax.jit(jax.value_and_grad(f))(0.5)
    a, b = expected(2)
    np.testing.assert_allclose(value, np.sin(a / 2) + np.sin(b / 2), rtol=1e-5)
    np.testing.assert_allclose(slope, a * np.cos(a / 2) + b * np.cos(b / 2), rtol=1e-5)
    assert count(rng) == 2


@pytest.mark.parametrize("make", ["save_only_these_names", "save_any_names_but_these"])
def test_checkpoint_name_policies(rng, make):
    policy = getattr(jax.checkpoint_policies, make)("noise")

    f = jax.checkpoint(
        lambda x: checkpoint_name(rng.uniform(), "noise") * x, policy=policy
    )
    value, slope = jax.value_and_grad(f)(2.0)
    check(value / 2, 0)
    check(slope, 0)
    assert count(rng) == 1


# --- control flow ------------------------------------------------------------------


def over_scan(body, n=3, **kwargs):
    def f(x):
        total, parts = lax.scan(
            lambda c, _: (c, body(x)), 0.0, None, length=n, **kwargs
        )
        return parts.sum() + 0 * total

    return f


SCANS = {
    "scan": lambda rng: over_scan(lambda x: draw(rng, x)),
    "scan_unroll": lambda rng: over_scan(lambda x: draw(rng, x), unroll=2),
    "scan_reverse": lambda rng: over_scan(lambda x: draw(rng, x), reverse=True),
    "scan_remat": lambda rng: over_scan(jax.checkpoint(lambda x: draw(rng, x))),
    "remat_scan": lambda rng: jax.checkpoint(over_scan(lambda x: draw(rng, x))),
    "remat_scan_remat": lambda rng: jax.checkpoint(
        over_scan(jax.checkpoint(lambda x: draw(rng, x)))
    ),
    "scan_remat_scan_remat": lambda rng: over_scan(
        jax.checkpoint(over_scan(jax.checkpoint(lambda x: draw(rng, x)), n=1))
    ),
    "scan_jit": lambda rng: over_scan(jax.jit(lambda x: draw(rng, x))),
    "map": lambda rng: lambda x: lax.map(lambda _: draw(rng, x), jnp.arange(3)).sum(),
}


@pytest.mark.parametrize("loop", SCANS)
@pytest.mark.parametrize("how", ["value_and_grad", "jit_value_and_grad", "jvp"])
def test_scans(rng, loop, how):
    value, slope = AD[how](SCANS[loop](rng))
    check(value / 2, 0, 1, 2)
    check(slope, 0, 1, 2)
    assert count(rng) == 3


def test_scan_order_and_argument(rng):
    @jax.jit
    def f(rng):
        return lax.scan(lambda c, _: (c, rng.uniform()), 0, None, length=4)[1]

    np.testing.assert_array_equal(f(rng), expected(4))
    assert count(rng) == 4


def test_scan_of_length_zero(rng):
    lax.scan(lambda c, _: (c, rng.uniform()), 0, None, length=0)
    assert count(rng) == 0


def test_fori_and_while_body(rng):
    check(lax.fori_loop(0, 3, lambda i, c: c + rng.uniform(), 0.0), 0, 1, 2)
    total, _ = lax.while_loop(
        lambda c: c[1] < 4, lambda c: (c[0] + rng.uniform(), c[1] + 1), (0.0, 0)
    )
    check(total, 3, 4, 5, 6)
    assert count(rng) == 7


@pytest.mark.parametrize("branch", [0, 1, 2])
def test_switch_with_unequal_draws(rng, branch):
    branches = [lambda: rng.uniform(), lambda: 0.0]
    branches += [lambda: rng.uniform() + rng.uniform() + rng.uniform()]
    got = jax.jit(lambda i: lax.switch(i, branches))(branch)
    draws = [1, 0, 3][branch]
    check(got, *range(draws))
    assert count(rng) == draws
    check(rng.uniform(), draws)


def test_while_body_in_cond_in_scan(rng):
    def body(c, flag):
        return c, lax.cond(flag, lambda: rng.uniform(), lambda: 0.0)

    _, out = lax.scan(body, 0, jnp.array([True, False, True]))
    np.testing.assert_array_equal(out, [expected(2)[0], 0, expected(2)[1]])
    assert count(rng) == 2


# --- vmap --------------------------------------------------------------------------


def alone(rng, f):
    """What each child gives by itself; moves the parent as one split does."""
    n = 4
    return np.stack([np.asarray(f(child)) for child in rng.spawn(n)])


LANES = {
    "draws": lambda r: r.uniform(size=2) + r.uniform(),
    "scan": lambda r: lax.scan(lambda c, _: (c, r.uniform()), 0, None, length=3)[1],
    "fori": lambda r: lax.fori_loop(0, 3, lambda i, c: c + r.uniform(), 0.0),
    "grad": lambda r: jax.grad(lambda x: draw2(r, x))(1.0) + r.uniform(),
    "remat": lambda r: (
        jax.grad(jax.checkpoint(lambda x: draw2(r, x)))(1.0) + r.uniform()
    ),
    "while": lambda r: lax.while_loop(
        lambda c: c[0] < 0.8, lambda c: (r.uniform(), c[1] + 1), (0.0, 0)
    )[1],
    "jit": lambda r: jax.jit(lambda r: r.uniform())(r) + r.uniform(),
    "key": lambda r: jax.random.uniform(r.key(), (2,)),
    "split": lambda r: jax.vmap(lambda r: r.uniform())(r.split(3)),
    "integers_params": lambda r: r.normal(jnp.arange(3.0), 2.0),
}


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("jitted", [False, True])
def test_vmap_over_split_equals_each_child_alone(lane, jitted):
    f = LANES[lane]
    want = alone(stateful_rng(BASE), f)
    mapped = jax.vmap(f)
    got = (jax.jit(mapped) if jitted else mapped)(stateful_rng(BASE).split(4))
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_vmap_counts_lane_by_lane():
    children = stateful_rng(BASE).split(3)

    def f(rng, n):
        return lax.fori_loop(0, n, lambda i, c: c + rng.uniform(), 0.0)

    jax.vmap(f)(children, jnp.array([1, 5, 2]))
    assert children.state().counter[:, 1].tolist() == [1, 5, 2]


def test_nested_vmap_and_in_axes_1():
    children = stateful_rng(BASE).split((3, 4))
    single = [[stateful_rng(s).uniform() for s in row] for row in children.state()]
    f = lambda rng: rng.uniform()
    np.testing.assert_array_equal(jax.vmap(jax.vmap(f))(children), single)
    again = stateful_rng(BASE).split((3, 4))
    got = jax.vmap(jax.vmap(f), in_axes=1, out_axes=1)(again)
    np.testing.assert_array_equal(got, single)
    assert (again.state().counter[..., 1] == 1).all()


def test_generator_made_inside_vmap(rng):
    seeds = jnp.arange(3)
    got = jax.vmap(lambda seed: stateful_rng(seed).uniform())(seeds)
    np.testing.assert_array_equal(got, [stateful_rng(i).uniform() for i in range(3)])
    states = stateful_rng(BASE).split(3).state()
    got = jax.vmap(lambda state: stateful_rng(state).uniform())(states)
    np.testing.assert_array_equal(got, [stateful_rng(s).uniform() for s in states])


# --- configurations ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("jax_numpy_rank_promotion", "raise"),
        ("jax_numpy_dtype_promotion", "strict"),
        ("jax_enable_checks", True),
        ("jax_check_tracer_leaks", True),
        ("jax_debug_key_reuse", True),
        ("jax_threefry_partitionable", False),
    ],
)
def test_configurations(option, value):
    old = getattr(jax.config, option)
    jax.config.update(option, value)
    try:
        rng = stateful_rng(BASE)
        eager = [rng.uniform(), rng.normal(np.arange(3), 1, (2, 3))[1, 1]]
        f = lambda r, x: r.uniform() * x + 0 * r.normal(jnp.arange(3), 1).sum()
        traced, slope = jax.jit(jax.value_and_grad(f, argnums=1))(rng, 1.0)
        want = jax.random.uniform(jax.random.fold_in(BASE, 2))
        assert traced == slope == want
        assert eager[0] == jax.random.uniform(jax.random.fold_in(BASE, 0))
        jax.vmap(lambda r: r.uniform())(rng.split(2))
    finally:
        jax.config.update(option, old)


def test_x64_toggled_after_creation(rng):
    f = jax.jit(lambda: rng.uniform(dtype="float32"))
    check(f(), 0)
    with jax.enable_x64(True):
        check(f(), 1)
        check(rng.uniform(dtype="float32"), 2)
        assert rng.uniform().dtype == np.float64
    check(f(), 4)
    assert count(rng) == 5


# --- what must raise ---------------------------------------------------------------


def refused(rng, f, words, error=ValueError):
    with pytest.raises(error, match=words):
        f()
    assert count(rng) == 0
    check(rng.uniform(), 0)


def test_batched_generator_draws(rng):
    children = rng.split(3)
    for call in (children.uniform, children.key, children.normal):
        with pytest.raises(ValueError, match=r"jax\.vmap\(lambda rng"):
            call()
    with pytest.raises(ValueError, match="batched"):
        children.split(2)
    assert (children.state().counter == 0).all()


@pytest.mark.parametrize("jitted", ["vmap", "jit_vmap", "vmap_jit", "vmap_scan"])
def test_unsplit_generator_under_vmap(rng, jitted):
    f = lambda x: x + rng.uniform()
    run = {
        "vmap": jax.vmap(f),
        "jit_vmap": jax.jit(jax.vmap(f)),
        "vmap_jit": jax.vmap(jax.jit(f)),
        "vmap_scan": jax.vmap(
            lambda x: lax.scan(lambda c, _: (c, f(x)), 0, None, length=2)[1]
        ),
    }[jitted]
    refused(rng, lambda: run(jnp.ones(3)), r"rng\.split\(n\)")


def test_in_axes_none(rng):
    f = jax.vmap(lambda rng, x: rng.uniform() + x, in_axes=(None, 0))
    refused(rng, lambda: f(rng, jnp.ones(3)), r"rng\.split\(n\)")


def test_in_axes_none_of_a_jitted_function(rng):
    # Traced before vmap sees it: JAX's own error.
    f = jax.vmap(jax.jit(lambda rng, x: rng.uniform() + x), in_axes=(None, 0))
    with pytest.raises(Exception, match=r".") as caught:
        f(rng, jnp.ones(3))
    assert count(rng) == 0, caught


def test_jacfwd_and_hessian_over_a_closure(rng):
    refused(rng, lambda: jax.jacfwd(lambda x: rng.uniform() * x)(jnp.ones(2)), "jacfwd")
    other = stateful_rng(BASE)
    f = lambda x: other.uniform() * (x**2).sum()
    refused(other, lambda: jax.hessian(f)(jnp.ones(2)), "hessian")


def test_while_condition(rng):
    def run():
        return lax.while_loop(lambda c: rng.uniform() < 0.5, lambda c: c + 1, 0)

    refused(rng, run, "cond_fun")


@pytest.mark.parametrize("kind", ["custom_vjp", "custom_jvp", "custom_gradient"])
def test_closed_over_in_a_custom_rule_in_a_differentiated_scan(rng, kind):
    def make():
        if kind == "custom_gradient":
            return jax.custom_gradient(lambda x: (draw(rng, x), lambda g: g))
        f = getattr(jax, kind)(lambda x: draw(rng, x))
        if kind == "custom_vjp":
            f.defvjp(lambda x: (draw(rng, x), None), lambda _, g: (g,))
        else:
            f.defjvp(lambda p, t: (draw(rng, p[0]), t[0]))
        return f

    f = make()
    run = lambda: jax.grad(over_scan(f))(1.0)
    refused(rng, run, "argument")


@pytest.mark.parametrize("rule", ["while_body", "custom_vjp fun"])
def test_the_new_remat(rng, rule):
    if jax.__version_info__ < (0, 12):
        pytest.skip("before 0.12 jax_remat3 refuses every Ref itself")
    old = jax.config.jax_remat3
    jax.config.update("jax_remat3", True)
    try:
        if rule == "while_body":
            f = lambda x: (
                x
                * lax.while_loop(
                    lambda c: c[1] < 3,
                    lambda c: (c[0] + rng.uniform(), c[1] + 1),
                    (0.0, 0),
                )[0]
            )
        else:
            f = custom_rule_argument(rng)
        grad = jax.jit(jax.value_and_grad(jax.checkpoint(f)))
        refused(rng, lambda: grad(1.0), "jax_remat3")
        for program in (remat, remat_twice, SCANS["scan_remat"], SCANS["remat_scan"]):
            rng = stateful_rng(BASE)
            value, slope = jax.jit(jax.value_and_grad(program(rng)))(2.0)
            n = count(rng)
            check(value / 2, *range(n))
            check(slope, *range(n))
            assert n == (3 if program in SCANS.values() else 2)
    finally:
        jax.config.update("jax_remat3", old)


def test_rows_where_jax_itself_raises(rng):
    conditional = lambda x: lax.cond(x > 0, lambda: draw(rng, x), lambda: 0 * x)
    with pytest.raises(NotImplementedError):
        jax.grad(over_scan(conditional))(1.0)
    predicates = jnp.array([True, False])
    with pytest.raises((NotImplementedError, ValueError)):
        jax.vmap(lambda r, p: lax.cond(p, lambda: r.uniform(), lambda: 0.0))(
            rng.split(2), predicates
        )
    with pytest.raises(Exception, match=r"[Rr]ef|type"):
        jax.jit(lambda rng: rng)(rng)
    with pytest.raises(Exception, match=r"[Rr]ef|type"):
        lax.scan(lambda r, _: (r, r.uniform()), rng, None, length=2)


def test_ensure_compile_time_eval(rng):
    @jax.jit
    def f(x):
        with jax.ensure_compile_time_eval():
            return x + rng.uniform()

    refused(rng, lambda: f(1.0), "ensure_compile_time_eval")


def test_unseeded_in_traced_code():
    with pytest.raises(TypeError, match="explicit seed"):
        jax.jit(lambda: stateful_rng().uniform())()


def test_plain_ref_and_other_wrong_fields():
    for counter in (
        jax.new_ref(jnp.zeros(2, jnp.uint32)),
        jax.new_ref(jnp.zeros(2), kind="no_grad_no_remat"),
        jax.new_ref(jnp.zeros((), jnp.uint32), kind="no_grad_no_remat"),
        jax.new_ref(jnp.zeros((3, 2), jnp.uint32), kind="no_grad_no_remat"),
        jnp.zeros(2, jnp.uint32),
    ):
        with pytest.raises(TypeError, match="counter must be a Ref"):
            StatefulPRNG(BASE, counter)
    good = stateful_rng(0).counter
    with pytest.raises(TypeError, match="typed key"):
        StatefulPRNG(jax.random.key_data(BASE), good)


def test_placeholders_pass(rng):
    leaves, tree = jax.tree.flatten(rng)
    for fill in (None, 0, True, object(), jax.ShapeDtypeStruct((), jnp.float32)):
        jax.tree.unflatten(tree, [fill] * len(leaves))
    assert jax.tree.map(lambda x: x.shape, rng).counter == (2,)


def test_failed_calls_leave_the_counter(rng):
    for call in (
        lambda: rng.normal(0, -1),
        lambda: rng.uniform(1, 0),
        lambda: rng.normal(size=-1),
        lambda: rng.normal(size=1.5),
        lambda: rng.normal(dtype=int),
        lambda: rng.normal(np.zeros(3), np.ones(2)),
        lambda: rng.key("a"),
        lambda: rng.spawn(-1),
        lambda: rng.split(None),
        lambda: jax.jit(lambda: rng.normal(0, -1))(),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()
    assert count(rng) == 0

"""What holds of every law, checked over the table of cases."""

import itertools
import math
import zlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import CONTINUOUS, Case, Point
from cases_discrete import DISCRETE
from scipy import stats

from jax_stateful_rng import stateful_rng

CASES: tuple[Case, ...] = CONTINUOUS + DISCRETE
DRAWS = 100_000
# Compilation is most of the time, so the tests share two more programs a law: FEW
# draws with scalar parameters, and one draw each with ROWS parameters on the device.
FEW = 50
ROWS = 750


def draw(rng, case, *args, **options):
    return getattr(rng, case.name)(*args, **options)


def draw_on_device(case, rows):
    """Draws once with each row of parameters, from arrays on the device."""
    rows = list(rows)
    padded = rows + [case.points[0].args] * (ROWS - len(rows))
    kind = None if case.integer else float  # integer laws have parameters of both kinds
    columns = [jnp.asarray(column, kind) for column in zip(*padded, strict=True)]
    return np.asarray(draw(stateful_rng(0), case, *columns))[: len(rows)]


def seed_of(text):
    return zlib.crc32(text.encode())


def each_case(*, where=lambda case: True):
    return pytest.mark.parametrize(
        "case", [case for case in CASES if where(case)], ids=str
    )


def each_point():
    return pytest.mark.parametrize(
        ("case", "point"),
        [
            pytest.param(case, point, id=f"{case.name}-{point.args}")
            for case in CASES
            for point in case.points
        ],
    )


# --- The law -----------------------------------------------------------------------


def p_value_real(draws, law):
    """Kolmogorov's p-value of draws that are rounded to their dtype.

    The law is taken of the interval that rounds to each value, so that the atoms that
    rounding makes (beta(1e-4, 1e-4) is 0 or 1 in half of the cases) do no harm.
    """
    values, counts = np.unique(draws, return_counts=True)
    above = np.nextafter(values, np.inf, dtype=draws.dtype).astype(float)
    least = float(jnp.finfo(draws.dtype).tiny)  # XLA's CPU code flushes what is below
    above = np.where((values >= 0) & (above < least), least, above)
    through = np.cumsum(counts) / draws.size
    exact = law.cdf(values + (above - values) / 2)
    distance = np.abs(through - exact).max()
    return stats.kstwo.sf(distance, draws.size)


def p_value_integer(draws, law, cells=200):
    """The p-value of a chi-square test in cells of about equal probability."""
    edges = np.unique(law.ppf(np.arange(1, cells) / cells))
    edges = np.concatenate([[-np.inf], edges, [np.inf]])
    cumulated = np.concatenate([[0.0], law.cdf(edges[1:-1]), [1.0]])
    expected = np.diff(cumulated) * draws.size
    place = np.searchsorted(edges[1:-1], draws, side="left")
    observed = np.bincount(place, minlength=len(expected))
    enough = expected >= 10
    rest = expected[~enough].sum()
    if rest < 10:  # joins the cell before it is too small to be tested by itself
        assert observed[~enough].sum() <= rest + 12 + 8 * math.sqrt(rest)
        observed, expected = observed[enough], expected[enough]
        expected *= observed.sum() / expected.sum()
    else:
        observed = np.append(observed[enough], observed[~enough].sum())
        expected = np.append(expected[enough], rest)
    if len(expected) == 1:
        return 1.0
    return stats.chisquare(observed, expected).pvalue


def check_law(case: Case, point: Point, seed: int, least: float):
    rng = stateful_rng(seed)
    draws = np.asarray(draw(rng, case, *point.args, size=DRAWS))
    assert np.isfinite(draws).all()
    low, high = point.law.support()
    kind = float if case.integer else draws.dtype
    assert draws.min() >= np.asarray(low, kind)
    assert draws.max() <= np.asarray(high, kind)
    for value in case.never:
        assert not (draws == value).any()
    p_value = p_value_integer if case.integer else p_value_real
    assert p_value(draws, point.law) > least


@each_point()
def test_the_law_is_exact(case, point):
    check_law(case, point, seed_of(f"{case.name}{point.args}"), 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@each_point()
def test_the_law_is_exact_for_many_seeds(case, point, seed):
    check_law(case, point, seed, 1e-6)


# --- Shape, dtype, errors ----------------------------------------------------------

SHAPES = ((), (3,), (2, 3), (2, 1))
SIZES = (None, 3, (), (0,), (2, 3), (4, 2, 3), (3, 1))
# The driver decides shapes for every law alike.
IN_FULL = {"normal", "gamma", "poisson"}


def arranged(case, shapes):
    args = case.points[0].args
    return [
        np.full(shape, arg) if shape else arg
        for arg, shape in zip(args, shapes, strict=True)
    ]


@each_case()
def test_shapes_are_numpys(case):
    rng, theirs = stateful_rng(0), np.random.default_rng(0)
    number = len(case.points[0].args)
    pairs, sizes = itertools.product(SHAPES, repeat=min(number, 2)), SIZES
    if case.name not in IN_FULL:
        pairs, sizes = list(pairs)[-2:], (None, (0,), (2, 3), (4, 2, 3))
    for shapes in pairs:
        shapes = (*shapes, *[()] * (number - len(shapes)))
        args = arranged(case, shapes)
        for size in sizes:
            try:
                expected = np.shape(draw(theirs, case, *args, size=size))
            except ValueError:
                with pytest.raises(ValueError, match=rf"rng\.{case.name}"):
                    draw(rng, case, *args, size=size)
                continue
            got = jax.eval_shape(
                lambda rng, args=args, size=size: draw(rng, case, *args, size=size), rng
            )
            assert got.shape == expected, (shapes, size)
    assert rng.state().counter[1] == 0


@pytest.mark.slow
@each_case()
def test_the_result_has_the_shape_that_tracing_promises(case):
    args = arranged(case, ((2, 1), (3,), (3,))[: len(case.points[0].args)])
    made = draw(stateful_rng(0), case, *args, size=(4, 2, 3))
    assert made.shape == (4, 2, 3)
    assert np.isfinite(np.asarray(made)).all()


@each_case()
def test_dtypes(case):
    rng, args = stateful_rng(0), case.points[0].args
    if case.integer:
        allowed, refused = ["int32", "int16", "uint32", int], ["float32", "str", bool]
        default = jnp.int32
    else:
        allowed = ["float32", "float16", jnp.bfloat16, float]
        refused, default = ["int32", "complex64", "str", None], jnp.float32
    for dtype in allowed:
        expected = default if dtype in (int, float) else jnp.dtype(dtype)
        promised = jax.eval_shape(
            lambda rng, dtype=dtype: draw(rng, case, *args, dtype=dtype), rng
        )
        assert promised.dtype == expected
    assert rng.state().counter[1] == 0
    for dtype in refused:
        with pytest.raises(TypeError, match="dtype must be"):
            draw(rng, case, *args, dtype=dtype)
    assert rng.state().counter[1] == 0
    narrow = draw(rng, case, *args, dtype=allowed[1], size=3)
    assert narrow.dtype == jnp.dtype(allowed[1])
    assert np.isfinite(np.asarray(narrow, float)).all()


@each_case()
def test_64_bits(case):
    point = case.points[0]
    with jax.enable_x64(True):
        draws = np.asarray(draw(stateful_rng(1), case, *point.args, size=20_000))
        assert draws.dtype == (np.int64 if case.integer else np.float64)
    if not case.integer:  # float32 in disguise would have many equal draws
        assert len(np.unique(draws)) > 19_990
    p_value = p_value_integer if case.integer else p_value_real
    assert p_value(draws, point.law) > 1e-4


@each_case()
def test_illegal_parameters_known_on_the_host_are_refused(case):
    rng = stateful_rng(0)
    traced = jax.jit(lambda rng, args: draw(rng, case, *args), static_argnums=1)
    for args in case.illegal:
        with pytest.raises(ValueError, match=rf"rng\.{case.name}"):
            draw(rng, case, *args)
        with pytest.raises(ValueError, match=rf"rng\.{case.name}"):
            draw(rng, case, *[np.full(2, arg) for arg in args])
        with pytest.raises(ValueError, match=rf"rng\.{case.name}"):
            traced(rng, args)
    assert rng.state().counter[1] == 0


@each_case(where=lambda case: case.illegal)
def test_illegal_parameters_that_are_traced_do_no_harm(case):
    good = case.points[0].args
    bad = [
        args
        for args in case.illegal
        # The sign of a zero is no matter on the device.
        if not any(math.copysign(1, x) < 0 and x == 0 for x in args)
    ]
    made = draw_on_device(case, [*bad, good])
    if math.isnan(case.traced):
        assert np.isnan(made[:-1]).all()
    else:
        assert (made[:-1] == case.traced).all()
    assert np.isfinite(made[-1])


@each_case(where=lambda case: case.points[0].args)
def test_any_traced_parameter_ends(case):
    number = len(case.points[0].args)
    odd = [math.nan, math.inf, -math.inf, 0.0, -1.0, 1e-45, 1e-38, 1e38, 0.5]
    rows = list(itertools.product(odd, repeat=number))
    assert draw_on_device(case, rows).shape == (len(rows),)


@each_case(where=lambda case: case.points[0].args and not case.integer)
def test_nan_gives_nan(case):
    args = case.points[0].args
    rows = [
        [math.nan if i == place else x for i, x in enumerate(args)]
        for place in range(len(args))
    ]
    assert np.isnan(draw_on_device(case, rows)).all()


@each_case(where=lambda case: case.edges)
def test_edges(case):
    rng = stateful_rng(0)
    for args, value in case.edges:
        np.testing.assert_array_equal(draw(rng, case, *args, size=FEW), value)
    rows, values = zip(*case.edges, strict=True)
    np.testing.assert_array_equal(draw_on_device(case, rows), values)


@pytest.mark.parametrize("turns", [1, 1000, 10**6, -(10**9)])
@pytest.mark.parametrize("form", [float, lambda mu: np.full(50, mu)])
def test_whole_turns_of_an_angle_do_not_matter(turns, form):
    """In float32 the noise would be rounded away beside so large a mode."""
    mu = 1.0 + turns * 2 * math.pi
    far = stateful_rng(0).vonmises(form(mu), 100.0, size=50)
    near = stateful_rng(0).vonmises(form(1.0), 100.0, size=50)
    np.testing.assert_allclose(far, near, atol=2e-6)


@pytest.mark.parametrize("mu", [1e4, -123456.0])
def test_an_angle_on_the_device_keeps_its_noise(mu):
    rest = float(np.remainder(np.float64(np.float32(mu)), 2 * math.pi))
    far = stateful_rng(0).vonmises(jnp.full(50, mu, jnp.float32), 100.0)
    near = stateful_rng(0).vonmises(jnp.full(50, rest, jnp.float32), 100.0)
    apart = np.abs(np.exp(1j * np.asarray(far, float)) - np.exp(1j * np.asarray(near)))
    assert apart.max() < 2e-6


@pytest.mark.parametrize("form", [float, lambda end: np.full(2000, end)])
def test_a_triangle_wider_than_float32(form):
    rng = stateful_rng(0)
    wide = rng.triangular(form(-3e38), form(1e38), form(3e38), size=2000)
    law = stats.triang(4 / 6, -3.0, 6.0)
    assert stats.kstest(np.asarray(wide, float) / 1e38, law.cdf).pvalue > 1e-4
    for ends in ((0.0, 0.0, 1e39), (-math.inf, 0.0, 1.0)):
        with pytest.raises(OverflowError, match="must be finite in float32"):
            rng.triangular(*map(form, ends))
    with jax.enable_x64(True):
        assert np.isfinite(rng.triangular(0, 0, 1e39))
        with pytest.raises(OverflowError, match="must be finite in float32"):
            rng.triangular(0, 0, 1e39, dtype="float32")


# --- Under transformations ---------------------------------------------------------


def assert_same(case, got, expected):
    """The same draws: bits for integers, a few units in the last place for floats.

    XLA contracts sums and products differently from one program to the next.
    """
    if case.integer:
        np.testing.assert_array_equal(got, expected)
    else:
        np.testing.assert_allclose(got, expected, rtol=4e-6, atol=1e-6)


@each_case()
def test_eager_is_jit(case):
    args, size = case.points[0].args, (FEW,)
    eager = draw(stateful_rng(5), case, *args, size=size)
    rng = stateful_rng(5)
    jitted = jax.jit(lambda *args: draw(rng, case, *args, size=size))
    assert_same(case, jitted(*args), eager)
    assert rng.state().counter[1] == 1


@each_case()
def test_a_lane_of_vmap_is_the_child_alone(case):
    args = case.points[0].args
    children = stateful_rng(2).split(3)
    lanes = jax.vmap(lambda rng: draw(rng, case, *args, size=FEW))(children)
    for lane, child in zip(lanes, stateful_rng(2).spawn(3), strict=True):
        assert_same(case, lane, draw(child, case, *args, size=FEW))


# Laws see of an impl only the words, and the keys folded from one: these take words
# once, in the rejection loop, in the large and small branches of counts, and by way of
# other laws.
OF_EACH_KIND = {"laplace", "beta", "poisson", "hypergeometric", "logseries"}


@each_case(where=lambda case: case.name in OF_EACH_KIND)
def test_another_impl(case):
    check_impl(case, "philox4x32")


@pytest.mark.slow
@each_case()
@pytest.mark.parametrize("impl", ["philox4x32", "rbg", "unsafe_rbg", "threefry4x32"])
def test_every_impl(case, impl):
    check_impl(case, impl)


def check_impl(case, impl):
    point = case.points[0]
    draws = np.asarray(draw(stateful_rng(3, impl=impl), case, *point.args, size=2000))
    p_value = p_value_integer if case.integer else p_value_real
    assert p_value(draws, point.law) > 1e-4


@each_case(where=lambda case: case.gradient)
def test_the_gradient_of_the_mean(case):
    point = case.points[0]

    places = [i for i, slope in enumerate(case.gradient) if slope is not None]

    def mean(values):
        args = list(point.args)
        for place, value in zip(places, values, strict=True):
            args[place] = value
        return draw(stateful_rng(7), case, *args, size=20_000).mean()

    got = jax.grad(mean)([jnp.float32(point.args[place]) for place in places])
    for place, slope in zip(places, got, strict=True):
        expected = pytest.approx(case.gradient[place], rel=0.05, abs=0.05)
        assert slope == expected, place

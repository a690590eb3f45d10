"""What is particular to the continuous laws, beyond the table of cases."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from cases import CONTINUOUS
from scipy import special

from jax_stateful_rng import stateful_rng
from jax_stateful_rng._samplers import _bits, _bulk, _noise
from jax_stateful_rng._samplers.gamma import gamma_factors

MANY = 2**23


def steps_between(a, b):
    """Units in the last place between float32 numbers of one sign."""
    a, b = (np.asarray(x).view(np.int32).astype(np.int64) for x in (a, b))
    return np.abs(a - b).max()


# --- Words and the standard laws of one word ---------------------------------------


def edge_words():
    """All words near the ends and the middle, and some from everywhere."""
    near = np.arange(3000)
    spread = (2.0 ** np.linspace(0, 31.999, 50_000)).astype(np.int64)
    top = 2**32 - 1
    anywhere = np.random.default_rng(0).integers(0, 2**32, 200_000)
    parts = [near, top - near, 2**31 + near, 2**31 - near, spread, top - spread]
    return np.unique(np.concatenate([*parts, anywhere])).astype(np.uint32)


def halves(words):
    high = (words >> 1).astype(float)
    return (high + 0.5) / 2**31, (2**31 - 1 - high + 0.5) / 2**31


def test_exponential_is_the_logarithm_of_the_word():
    words = edge_words()
    got = np.asarray(jax.jit(_noise.exponential)(words))
    rest = (2.0**32 - 1 - words + 0.5) / 2**32
    exact = np.where(words >= 2**31, -np.log1p(-rest), -np.log((words + 0.5) / 2.0**32))
    np.testing.assert_allclose(got, exact, rtol=4e-7)
    assert got.min() > 1e-10
    assert got.max() > 22.8


def test_normal_is_the_quantile_of_the_word():
    words = edge_words()
    got = np.asarray(jax.jit(_noise.normal)(words))
    v, x = halves(words)
    size = np.where(v > 0.5, np.sqrt(2) * special.erfinv(x), -special.ndtri(v / 2))
    np.testing.assert_allclose(got, np.where(words & 1, -size, size), rtol=6e-7)
    assert got.max() == -got.min() > 6.3


def test_cauchy_is_the_quantile_of_the_word():
    words = edge_words()
    got = np.asarray(jax.jit(_noise.cauchy)(words))
    v, rest = (np.pi / 2 * part for part in halves(words))
    size = np.where(v < rest, 1 / np.tan(v), np.tan(rest))
    np.testing.assert_allclose(got, np.where(words & 1, -size, size), rtol=6e-7)
    assert got.max() == -got.min() > 2.7e9


def test_standard_laws_of_64_bits():
    with jax.enable_x64(True):
        words = np.random.default_rng(1).integers(0, 2**64, 10_000, dtype=np.uint64)
        u = words / 2.0**64
        inner = (words > 2**40) & (words < 2**64 - 2**40)
        np.testing.assert_allclose(
            np.asarray(_noise.exponential(words))[inner], -np.log(u[inner]), rtol=1e-12
        )
        ends = jnp.array([0, 2**64 - 1], jnp.uint64)
        least, largest = np.sort(_noise.exponential(ends))
        assert 0 < least < 1e-19
        assert largest > 45
        assert _noise.normal(ends[:1])[0] > 9.1
        draws = _noise.normal(words)
        assert abs(np.mean(draws)) < 0.05
        assert abs(np.std(draws) - 1) < 0.03


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_words_are_whole_threefry_blocks(number):
    key = jax.random.key(4)
    words = _bits.words(key, (5, 7), number)
    assert len(words) == number
    if number == 2:
        np.testing.assert_array_equal(words[0] ^ words[1], _bits.bits(key, (5, 7)))
    every = [np.asarray(w).ravel() for turn in range(3) for w in words_at(key, turn)]
    assert len(np.unique(np.concatenate(every))) == 3 * 4 * 35


def words_at(key, turn):
    return _bits.words(key, (5, 7), 4, jnp.uint32(turn))


def test_wide_words_are_two_words():
    with jax.enable_x64(True):
        key = jax.random.key(4)
        wide = _bits.words(key, (6,), 1, width=64)[0]
        assert wide.dtype == jnp.uint64
        np.testing.assert_array_equal(wide, _bits.bits(key, (6,), 64))


# --- The rejection loop ------------------------------------------------------------


def accepted_below(chance):
    """A law that is uniform whatever ``chance`` is, proposed until accepted."""

    def propose(words, chance):
        kept = _bits.open_unit(words[1]) <= chance
        return jnp.where(kept, _bits.open_unit(words[0]), -1)

    return propose, chance


@functools.partial(jax.jit, static_argnames=("shape", "spare"))
def rejected(key, shape, chance, spare=0.3):
    propose, chance = accepted_below(chance)
    return _bulk.reject(
        key,
        shape,
        (chance.astype(jnp.float32),),
        propose,
        refused=-1,
        otherwise=-2,
        dtype=np.dtype(np.float32),
        spare=spare,
    )


@pytest.mark.parametrize(
    "shape", [(), (4096,), (4097,), pytest.param((50_000,), marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("spare", [0.05, 0.3])
def test_every_element_is_accepted_in_the_end(shape, spare):
    size = int(np.prod(shape))
    chance = np.linspace(0.05, 1, size).reshape(shape)
    draws = np.asarray(rejected(jax.random.key(0), shape, chance, spare))
    assert draws.shape == shape
    assert ((draws > 0) & (draws <= 1)).all()
    assert len(np.unique(draws)) > 0.99 * size
    if size > 1000:
        assert draws.mean() == pytest.approx(0.5, abs=0.02)


def test_elements_keep_their_own_parameters_in_the_pool():
    chance = np.linspace(0.3, 1, 40_000, dtype=np.float32)

    def propose(words, chance):
        return jnp.where(_bits.open_unit(words[0]) <= chance, chance, -1)

    for spare in (0.05, 0.3):

        @jax.jit
        def found(key, chance, spare=spare):
            return _bulk.reject(
                key,
                chance.shape,
                (chance,),
                propose,
                refused=-1,
                otherwise=-2,
                dtype=np.dtype(np.float32),
                spare=spare,
            )

        np.testing.assert_array_equal(found(jax.random.key(1), chance), chance)


@pytest.mark.parametrize("size", [3, 10_000])
def test_what_is_never_accepted_ends(size):
    chance = np.where(np.arange(size) % 2 == 0, 0.0, 0.5)
    draws = np.asarray(rejected(jax.random.key(0), (size,), chance))
    np.testing.assert_array_equal(draws == -2, chance == 0)
    nothing = np.full(size, np.nan)
    assert (rejected(jax.random.key(0), (size,), nothing) == -2).all()


# --- Tails -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["standard_exponential", "gumbel", "logistic", "laplace", "rayleigh"]
    + ["standard_cauchy", "standard_normal", "lognormal"],
)
def test_every_draw_is_finite(name):
    draws = np.asarray(getattr(stateful_rng(0), name)(size=MANY))
    assert np.isfinite(draws).all()


def test_draws_of_the_extreme_words_are_finite():
    ends = jnp.array([0, 1, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1], jnp.uint32)
    e = _noise.exponential(ends)
    logistic = jnp.log(_bits.open_unit(ends) / _bits.open_unit(~ends))
    for noise in (e, -jnp.log(e), logistic, _noise.normal(ends), _noise.cauchy(ends)):
        assert np.isfinite(noise).all()


def test_wald_is_positive():
    for mean, scale in [(1e4, 1.0), (1e9, 2.25), (1e30, 1e-30), (np.inf, 1.0)]:
        draws = stateful_rng(0).wald(mean, scale, size=100_000)
        assert (np.asarray(draws) > 0).all()


def test_vonmises_stays_on_the_circle():
    for mu in (0.0, 7.0, -100.0, np.float32(np.pi)):
        for kappa in (0.0, 1.0, 1e15):
            draws = np.asarray(stateful_rng(0).vonmises(mu, kappa, size=5000), float)
            assert (np.abs(draws) <= np.pi).all()


@pytest.mark.slow
def test_quotients_of_tiny_gammas_are_numbers():
    rng = stateful_rng(0)
    assert not np.isnan(rng.f(0.01, 0.01, size=20_000)).any()
    assert not np.isnan(rng.noncentral_f(0.01, 0.01, 0.0, size=20_000)).any()


def test_beta_of_the_least_parameters_is_a_choice_of_the_ends():
    rng, tiny = stateful_rng(0), np.finfo(float).tiny
    pairs = [(1e-36, 3e-36), (1e-49, 1e-40), (tiny / 32, tiny / 40), (1e-49, 2.0)]
    for a, b in pairs:
        draws = np.asarray(rng.beta(a, b, size=20_000))
        assert set(np.unique(draws)) <= {0.0, 1.0}
        assert draws.mean() == pytest.approx(a / (a + b), abs=0.02)


def test_pareto_starts_at_zero():
    draws = np.asarray(stateful_rng(0).pareto(5.0, size=10_000))
    assert 0 < draws.min() < 1e-3


# --- Normal ------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (7,), (300_000,), (3, 4, 5)])
def test_normal_is_jax_normal(shape):
    rng = stateful_rng(3)
    noise = jax.random.normal(stateful_rng(3).key(), shape)
    assert steps_between(rng.normal(size=shape), noise) <= 4
    rng = stateful_rng(3)
    assert steps_between(rng.standard_normal(shape), noise) <= 4


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_normal_is_jax_normal_in_every_dtype(dtype):
    with jax.enable_x64(dtype == "float64"):
        noise = jax.random.normal(stateful_rng(3).key(), (1000,), dtype)
        draws = stateful_rng(3).standard_normal(1000, dtype)
        assert draws.dtype == noise.dtype
        few = 4 * float(jnp.finfo(dtype).eps)
        np.testing.assert_allclose(
            np.asarray(draws, float), np.asarray(noise, float), rtol=few
        )


# --- Signatures --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "args"),
    [("standard_normal", ()), ("standard_exponential", ()), ("standard_gamma", (1.0,))],
)
def test_out_is_refused(name, args):
    rng = stateful_rng(0)
    with pytest.raises(NotImplementedError, match="out must be None"):
        getattr(rng, name)(*args, out=np.zeros(3))
    assert rng.state().counter[1] == 0


def test_both_methods_of_standard_exponential():
    a = stateful_rng(0).standard_exponential(5, method="zig")
    b = stateful_rng(0).standard_exponential(5, float, "inv")
    np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="method must be"):
        stateful_rng(0).standard_exponential(5, method="fast")


def test_triangular_names_the_order_that_is_broken():
    rng = stateful_rng(0)
    with pytest.raises(ValueError, match="left must be <= mode"):
        rng.triangular([0.0, 2.0], 1.0, 3.0)
    with pytest.raises(ValueError, match="mode must be <= right"):
        rng.triangular(0.0, [1.0, 4.0], 3.0)
    with pytest.raises(ValueError, match="left must be < right"):
        rng.triangular(1.0, 1.0, np.array([1.0, 2.0]))


@pytest.mark.parametrize("case", CONTINUOUS, ids=str)
def test_strict_settings(case):
    args = [np.full(3, x) for x in case.points[0].args]
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        draws = jax.eval_shape(  # tracing is when the rules of promotion speak
            lambda rng: getattr(rng, case.name)(*args, size=(2, 3)), stateful_rng(0)
        )
    assert draws.shape == (2, 3)


# --- Gradients ---------------------------------------------------------------------


def slope(f, *args, size=100_000):
    """The gradient of the mean of ``f(draws(rng, *args))``."""
    return jax.grad(lambda args: f(stateful_rng(11), *args, size).mean())(
        [jnp.float32(a) for a in args]
    )


@pytest.mark.parametrize("a", [1e-3, 3.0])
def test_the_gradient_of_log_gamma(a):
    """E log X is digamma(a)."""

    def mean_log(a):
        dtype = np.dtype(np.float32)
        v, b = gamma_factors(jax.random.key(2), (100_000,), dtype, a)
        return (jnp.log(v) + b).mean()

    got = jax.grad(mean_log)(jnp.float32(a))
    assert got == pytest.approx(float(special.polygamma(1, a)), rel=0.03)


@pytest.mark.slow
def test_the_gradient_of_a_tiny_beta():
    a, b = 0.02, 0.03
    got = slope(lambda rng, a, b, n: rng.beta(a, b, size=n), a, b)
    exact = [b / (a + b) ** 2, -a / (a + b) ** 2]
    np.testing.assert_allclose(got, exact, rtol=0.1)


def test_the_gradient_of_a_variance_of_t():
    got = slope(lambda rng, df, n: rng.standard_t(df, size=n) ** 2, 10.0)
    assert got[0] == pytest.approx(-2 / 64, rel=0.1)


@pytest.mark.parametrize("kappa", [1e-2, 3.0, 1e5])
def test_the_gradient_in_the_concentration(kappa):
    """E cos X is I1(kappa) / I0(kappa) = A, with slope 1 - A / kappa - A**2."""
    got = slope(lambda rng, k, n: jnp.cos(rng.vonmises(0.0, k, size=n)), kappa)[0]
    if kappa < 1e4:
        ratio = special.i1e(kappa) / special.i0e(kappa)
        exact = 1 - ratio / kappa - ratio**2
    else:
        exact = 1 / (2 * kappa**2)
    assert got == pytest.approx(exact, rel=0.05)


@pytest.mark.parametrize(("mean", "scale"), [(2.0, 3.0), (0.1, 5.0), (1.0, 0.05)])
def test_the_gradient_of_the_reciprocal_wald(mean, scale):
    """E 1 / X is 1 / mean + 1 / scale."""
    got = slope(lambda rng, m, s, n: 1 / rng.wald(m, s, size=n), mean, scale)
    np.testing.assert_allclose(got, [-1 / mean**2, -1 / scale**2], rtol=0.05)


@pytest.mark.parametrize(
    ("df", "nonc"), [(0.5, 3.0), pytest.param(0.3, 2000.0, marks=pytest.mark.slow)]
)
def test_the_gradient_of_a_noncentral_square(df, nonc):
    def square(rng, df, nonc, n):
        return rng.noncentral_chisquare(df, nonc, size=n) ** 2

    exact = [2 + 2 * (df + nonc), 4 + 2 * (df + nonc)]
    np.testing.assert_allclose(slope(square, df, nonc), exact, rtol=0.05)


def test_gradients_under_jit_and_vmap():
    def loss(a, rng):
        return rng.gamma(a, size=100).mean()

    children = stateful_rng(0).split(3)
    lanes = jax.jit(jax.vmap(jax.grad(loss)))(jnp.array([0.5, 2.0, 9.0]), children)
    alone = [
        jax.grad(loss)(jnp.float32(a), child)
        for a, child in zip((0.5, 2.0, 9.0), stateful_rng(0).spawn(3), strict=True)
    ]
    np.testing.assert_allclose(lanes, np.stack(alone), rtol=1e-5)

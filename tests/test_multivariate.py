"""The laws of vectors."""

import itertools
import math
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jax_stateful_rng import stateful_rng

DRAWS = 50_000
COV = np.array([[2.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 0.5]])


def chance(draws, masses):
    """The p-value of vectors of counts against a function of their masses."""
    seen, counts = np.unique(draws, axis=0, return_counts=True)
    expected = np.array([masses(x) for x in seen]) * len(draws)
    large = expected > 8
    observed = np.append(counts[large], len(draws) - counts[large].sum())
    expected = np.append(expected[large], len(draws) - expected[large].sum())
    return stats.chisquare(observed, expected).pvalue


# --- Dirichlet ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "alpha", [[1.0, 2.0, 3.0], [0.3, 0.3, 0.4], [1e-3, 1e-3, 2e-3], [100.0, 1.0, 1e4]]
)
def test_shares_of_a_dirichlet_draw_are_beta(alpha):
    draws = np.asarray(stateful_rng(0).dirichlet(alpha, size=DRAWS), float)
    np.testing.assert_allclose(draws.sum(-1), 1, rtol=0, atol=5e-7)
    total = sum(alpha)
    for share, a in zip(draws.T, alpha, strict=True):
        law = stats.beta(a, total - a)
        if a > 0.1:
            assert stats.kstest(share, law.cdf).pvalue > 1e-4
        else:  # 0 or 1 but for rounding, in their right proportion
            high = int((share > 0.5).sum())
            assert stats.binomtest(high, DRAWS, law.sf(0.5)).pvalue > 1e-4


def test_tiny_and_zero_concentrations():
    rng = stateful_rng(0)
    for alpha in ([1e-4] * 4, [1e-30] * 3, [2e-38, 6e-38], [1e-30, 1.0]):
        draws = np.asarray(rng.dirichlet(alpha, size=1000), float)
        np.testing.assert_allclose(draws.sum(-1), 1, rtol=0, atol=1e-6)
    share = np.asarray(rng.dirichlet([2e-38, 6e-38], size=4000))[:, 0]
    assert abs((share > 0.5).mean() - 0.25) < 0.03
    draws = np.asarray(rng.dirichlet([0.09, 0.085, 0, -0.0, 0], size=1000))
    assert (draws[:, 2:] == 0).all()
    assert np.isfinite(draws).all()
    np.testing.assert_array_equal(rng.dirichlet([0.0, 0.0]), [0, 0])
    np.testing.assert_array_equal(rng.dirichlet([0.0, 1e-5]), [0, 1])
    assert rng.dirichlet([], size=2).shape == (2, 0)


def test_dirichlet_refuses():
    rng = stateful_rng(0)
    with pytest.raises(TypeError, match=r"rng\.dirichlet: alpha must be a vector"):
        rng.dirichlet(1)
    for alpha in ([[1.0, 2.0]], jnp.ones((2, 2))):
        with pytest.raises(ValueError, match="alpha must have one axis"):
            rng.dirichlet(alpha)
    for alpha in ([-1, 1], [0.54, -1e-16]):
        with pytest.raises(ValueError, match="alpha must be >= 0"):
            rng.dirichlet(alpha)
    assert rng.state().counter[1] == 0
    for alpha in ([-1.0, 1.0], [math.nan, 1.0]):
        assert np.isnan(rng.dirichlet(jnp.array(alpha))).all()


def test_the_gradient_of_a_dirichlet_mean():
    alpha = jnp.array([0.5, 1.5, 3.0])

    def mean(alpha):
        return stateful_rng(0).dirichlet(alpha, size=20_000).mean(0)

    total = float(alpha.sum())
    exact = np.eye(3) / total - np.asarray(alpha)[:, None] / total**2
    np.testing.assert_allclose(jax.jacrev(mean)(alpha), exact, atol=0.02)


# --- Multinomial -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "pvals"),
    [(5, [0.2, 0.3, 0.5]), (40, [0.7, 0.1, 0.2]), (3, [0.0, 1e-3, 0.5, 0.499])],
)
def test_multinomial_law(n, pvals):
    draws = np.asarray(stateful_rng(0).multinomial(n, pvals, size=DRAWS))
    assert (draws.sum(-1) == n).all()
    law = stats.multinomial(n, pvals)
    assert chance(draws, law.pmf) > 1e-4


def test_multinomial_of_large_numbers():
    n, pvals = 2**31 - 1, np.array([0.3, 1e-9, 0.2, 0.5 - 1e-9])
    draws = np.asarray(stateful_rng(0).multinomial(n, pvals, size=5000), np.int64)
    assert (draws.sum(-1) == n).all()
    for category, p in zip(draws.T, pvals, strict=True):
        if p > 1e-3:
            scaled = (category - n * p) / math.sqrt(n * p * (1 - p))
            # The parameters are rounded to float32, which moves the mean.
            assert abs(scaled.mean()) < 1
            assert scaled.std() == pytest.approx(1, rel=0.05)
        else:
            assert category.mean() == pytest.approx(n * p, rel=0.05)


def test_the_last_category_takes_the_rest():
    rng = stateful_rng(0)
    fixed = [
        ([0.0, 0.0, 0.0], [0, 0, 10]),
        ([0.3], [10]),
        ([1, 0, 0], [10, 0, 0]),
        ([0, 1.0, 0], [0, 10, 0]),
        ([0, 0, 1.0], [0, 0, 10]),
    ]
    for pvals, expected in fixed:
        np.testing.assert_array_equal(rng.multinomial(10, pvals), expected)
    draws = np.asarray(rng.multinomial(1000, [0.2, 0.9], size=5000))
    assert draws[:, 0].mean() == pytest.approx(200, rel=0.01)


def test_the_last_entry_keeps_its_digits():
    """1 minus the others has lost them in float32."""
    pvals = np.array([1 - 3e-7, 1e-7, 2e-7])
    draws = np.asarray(stateful_rng(0).multinomial(10**8, pvals, size=4000))
    assert draws[:, 2].mean() / draws[:, 1].mean() == pytest.approx(2, rel=0.03)


def test_multinomial_broadcasts_as_numpy_does():
    rng, theirs = stateful_rng(0), np.random.default_rng(0)
    counts = (10, [10, 20], [[10], [20]], np.zeros(0, int))
    tables = ([0.2, 0.8], [[0.2, 0.8], [0.5, 0.5]], np.full((3, 1, 2), 0.5))
    sizes = (None, (), 2, (3, 2), (2, 2), (2, 1), 0, (3, 2, 2))
    for n, pvals, size in itertools.product(counts, tables, sizes):
        try:
            expected = theirs.multinomial(n, pvals, size).shape
        except ValueError:
            with pytest.raises(ValueError, match=r"rng\.multinomial"):
                rng.multinomial(n, pvals, size)
            continue
        got = jax.eval_shape(lambda rng, a=(n, pvals, size): rng.multinomial(*a), rng)
        assert got.shape == expected
    draws = rng.multinomial([[10], [200]], [[0.2, 0.8], [1.0, 0.0]])
    np.testing.assert_array_equal(draws.sum(-1), [[10, 10], [200, 200]])
    np.testing.assert_array_equal(draws[:, 1], [[10, 0], [200, 0]])


def test_multinomial_refuses():
    rng = stateful_rng(0)
    for pvals in ([], 0.5, np.zeros((2, 0)), jnp.zeros((2, 0)), jnp.float32(1)):
        with pytest.raises(ValueError, match="pvals must have a last axis"):
            rng.multinomial(5, pvals)
    for pvals in ([1.1, -0.1], [math.nan, 0.1], [0.1, math.nan], [-0.1, 0.1]):
        with pytest.raises(ValueError, match=r"pvals must lie in \[0, 1\]"):
            rng.multinomial(5, pvals)
    for pvals in ([0.7, 0.5, 0], [[1 / 6] * 6, [1 / 4] * 6]):
        with pytest.raises(ValueError, match="must sum to at most 1"):
            rng.multinomial(5, pvals)
    with pytest.raises(ValueError, match="n must be an integer >= 0"):
        rng.multinomial(-1, [0.5, 0.5])
    assert rng.state().counter[1] == 0
    for dtype in (np.float32, np.float16):  # their sums are off by their own rounding
        pvals = np.array([0.1] * 10 + [0.0], dtype)
        assert rng.multinomial(100, pvals).sum() == 100
    traced = rng.multinomial(jnp.array([5, -1]), jnp.array([[0.5, 0.5], [0.5, 0.5]]))
    assert traced[0].sum() == 5
    assert (traced[1] == -1).all()
    assert (rng.multinomial(5, jnp.array([jnp.nan, 0.5, 0.5])) == -1).all()
    above = rng.multinomial(5, jnp.array([0.9, 0.9, 0.9]))
    assert above.sum() == 5
    assert (above >= 0).all()


# --- Multivariate hypergeometric ---------------------------------------------------


@pytest.mark.parametrize("method", ["marginals", "count"])
@pytest.mark.parametrize(("colors", "sample"), [([3, 4, 5], 5), ([20, 0, 7, 3], 25)])
def test_multivariate_hypergeometric_law(colors, sample, method):
    rng = stateful_rng(0)
    draws = np.asarray(
        rng.multivariate_hypergeometric(colors, sample, DRAWS, method=method)
    )
    assert (draws.sum(-1) == sample).all()
    law = stats.multivariate_hypergeom(colors, sample)
    assert chance(draws, law.pmf) > 1e-4


@pytest.mark.parametrize("method", ["marginals", "count"])
def test_fixed_multivariate_hypergeometric_draws(method):
    rng = stateful_rng(0)
    fixed = [
        ([3, 4, 5], 12, [3, 4, 5]),
        ([3, 4, 5], 0, [0, 0, 0]),
        ([9, 0, 0], 3, [3, 0, 0]),
        ([1, 1, 0, 1, 1], 4, [1, 1, 0, 1, 1]),
        ([5], 3, [3]),
        ([], 0, []),
        ([0, 0], 0, [0, 0]),
    ]
    for colors, sample, expected in fixed:
        got = rng.multivariate_hypergeometric(colors, sample, 2, method)
        np.testing.assert_array_equal(got, [expected] * 2)


def test_multivariate_hypergeometric_of_large_numbers():
    colors = [2**30, 10**9, 7 * 10**7, 12]
    draws = np.asarray(
        stateful_rng(0).multivariate_hypergeometric(colors, 10**9, 2000), np.int64
    )
    assert (draws.sum(-1) == 10**9).all()
    assert (draws <= colors).all()
    share, total = np.array(colors) / sum(colors), sum(colors)
    variance = 1e9 * share * (1 - share) * (total - 1e9) / (total - 1)
    error = (draws.mean(0) - 1e9 * share) / np.sqrt(variance / 2000)
    assert np.abs(error).max() < 4.5


def test_multivariate_hypergeometric_refuses():
    rng = stateful_rng(0)
    for colors in (10, [[3, 4]], [3.5, 4], [3, -4, 5]):
        with pytest.raises(ValueError, match=r"hypergeometric: colors must"):
            rng.multivariate_hypergeometric(colors, 1)
    for sample in (4.5, [4, 2], -1, 8, None):
        with pytest.raises(ValueError, match=r"hypergeometric: nsample must"):
            rng.multivariate_hypergeometric([3, 4], sample)
    with pytest.raises(ValueError, match="colors must sum to at most"):
        rng.multivariate_hypergeometric([2**30, 2**30], 5)
    with pytest.raises(ValueError, match="method must be"):
        rng.multivariate_hypergeometric([3, 4], 5, 2, "foo")
    with pytest.raises(TypeError, match="known on the host for method='count'"):
        rng.multivariate_hypergeometric(jnp.array([3, 4]), 5, method="count")
    assert rng.state().counter[1] == 0
    assert rng.multivariate_hypergeometric(jnp.array([3, 4]), 5).sum() == 5
    for colors, sample in (([3, -4], 1), ([3, 4], 8), ([2**30, 2**30], 5)):
        got = rng.multivariate_hypergeometric(jnp.array(colors), sample)
        assert (got == -1).all()


# --- Multivariate normal -----------------------------------------------------------


@pytest.mark.parametrize("method", ["svd", "eigh", "cholesky"])
@pytest.mark.parametrize("on_device", [False, True])
def test_multivariate_normal_law(method, on_device):
    cov = jnp.asarray(COV, jnp.float32) if on_device else COV
    mean = [1.0, -2.0, 100.0]
    draws = stateful_rng(0).multivariate_normal(mean, cov, DRAWS, method=method)
    white = np.linalg.solve(np.linalg.cholesky(COV), (np.asarray(draws) - mean).T)
    for axis in white:
        assert stats.kstest(axis, "norm").pvalue > 1e-4
    np.testing.assert_allclose(np.cov(white), np.eye(3), atol=0.03)


@pytest.mark.parametrize("method", ["svd", "eigh", "cholesky"])
def test_the_host_and_the_device_give_the_same_draws(method):
    def draw(cov):
        return stateful_rng(3).multivariate_normal(np.zeros(3), cov, 5, method=method)

    host, device = draw(COV), draw(jnp.asarray(COV))
    np.testing.assert_allclose(host, device, atol=1e-5)
    np.testing.assert_allclose(jax.jit(draw)(COV), device, atol=1e-5)


def test_equal_and_zero_eigenvalues():
    rng = stateful_rng(0)
    for method in ("svd", "eigh"):
        for zero in (np.zeros((2, 2)), jnp.zeros((2, 2))):
            got = rng.multivariate_normal([3, 4], zero, 2, method=method)
            np.testing.assert_array_equal(got, [[3, 4], [3, 4]])
        x = rng.multivariate_normal([0, 0], [[1, 1], [1, 1]], 100, method=method)
        np.testing.assert_allclose(x[:, 0], x[:, 1], atol=1e-5)


@pytest.mark.parametrize("method", ["svd", "eigh", "cholesky"])
@pytest.mark.parametrize("cov", [np.eye(3), COV])
def test_the_gradient_in_the_covariance(method, cov):
    """Of the mean square, whose expectation is the diagonal."""
    cov = jnp.asarray(cov, jnp.float32)

    def squares(cov, size=50_000):
        zero = jnp.zeros(3)
        x = stateful_rng(0).multivariate_normal(zero, cov, size, method=method)
        return (x * x).mean(0)

    jacobian = jax.jacrev(squares)(cov)
    symmetric = (jacobian + jacobian.swapaxes(1, 2)) / 2
    expected = np.einsum("ij,ik->ijk", np.eye(3), np.eye(3))
    np.testing.assert_allclose(symmetric, expected, atol=0.05)
    forward = jax.jvp(squares, (cov,), (jnp.eye(3),))[1]
    np.testing.assert_allclose(forward, np.ones(3), atol=0.05)


def test_check_valid():
    rng = stateful_rng(0)
    bad = ([[1, 2], [2, 1]], [[1, 2], [1, 2]], [[-1, 0], [0, 1]])
    for cov in bad:
        with pytest.warns(RuntimeWarning, match="positive semidefinite"):
            rng.multivariate_normal([0, 0], cov)
        with pytest.raises(ValueError, match="positive semidefinite"):
            rng.multivariate_normal([0, 0], cov, check_valid="raise")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            rng.multivariate_normal([0, 0], cov, check_valid="ignore")
    with pytest.raises(ValueError, match="positive semidefinite"):
        rng.multivariate_normal([0, 0], bad[0], check_valid="raise", method="eigh")
    for cov in (bad[0], [[1, 1], [1, 1]]):
        with pytest.raises(np.linalg.LinAlgError, match=r"definite.*'eigh'"):
            rng.multivariate_normal([0, 0], cov, method="cholesky")
        traced = rng.multivariate_normal([0, 0], jnp.array(bad[0]), method="cholesky")
        assert np.isnan(traced).any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rng.multivariate_normal([0, 0], [[1, 1.1], [1.1, 1]], tol=1.0)
        narrow = np.cov(np.random.default_rng(0).normal(size=(5, 100))).astype("f")
        rng.multivariate_normal(np.zeros(5), narrow)


def test_multivariate_normal_refuses():
    rng = stateful_rng(0)
    wrong = [
        ([0, 0], np.eye(3), "as many rows"),
        ([0, 0], np.ones((2, 3)), "square matrix"),
        ([0, 0], jnp.zeros((3, 2, 2)), "square matrix"),
        ([[0, 0]], np.eye(2), "mean must have one axis"),
        (0, [[1]], "mean must have one axis"),
        ([0], 1, "square matrix; got 1"),
        ([0, 0], [[1, math.nan], [math.nan, 1]], "cov must be finite"),
        ([0, 0], [[math.inf, 0], [0, 1]], "cov must be finite"),
        ([0, 0], [["a", "b"], ["c", "d"]], "cov must be real numbers"),
        ([0, 0], [[1, 0], [0]], "rows have one length"),
    ]
    for mean, cov, text in wrong:
        with pytest.raises(ValueError, match=text):
            rng.multivariate_normal(mean, cov)
    for mean, cov in (([0j, 0], np.eye(2)), ([0, 0], np.eye(2) + 0j)):
        for given in (cov, jnp.asarray(cov)):
            with pytest.raises(TypeError, match="must be real numbers"):
                rng.multivariate_normal(mean, given)
    with pytest.raises(TypeError, match="tol must be a number"):
        rng.multivariate_normal([0, 0], np.eye(2), tol="small")
    with pytest.raises(ValueError, match="method must be"):
        rng.multivariate_normal([0, 0], np.eye(2), method="foo")
    with pytest.raises(ValueError, match="check_valid must be"):
        rng.multivariate_normal([0, 0], np.eye(2), check_valid="foo")
    assert rng.state().counter[1] == 0


# --- All of them -------------------------------------------------------------------

CALLS = {
    "dirichlet": ([0.5, 1.0, 2.0],),
    "multinomial": (30, [0.2, 0.3, 0.5]),
    "multivariate_hypergeometric": ([10, 20, 30], 25),
    "multivariate_normal": ([0.0, 1.0, 2.0], COV),
}
each = pytest.mark.parametrize("name", CALLS)


def draw(rng, name, **options):
    return getattr(rng, name)(*CALLS[name], **options)


@each
def test_sizes(name):
    rng, theirs = stateful_rng(0), np.random.default_rng(0)
    for size in (None, (), 0, 2, np.uint32(2), [2, 3], np.array([2, 2]), (0, 2)):
        expected = np.shape(draw(theirs, name, size=size))
        got = jax.eval_shape(lambda rng, size=size: draw(rng, name, size=size), rng)
        assert got.shape == expected
    assert draw(rng, name).shape == (3,)
    for size, error in ((-1, ValueError), (2.0, TypeError), ("2", TypeError)):
        with pytest.raises(error, match="size must"):
            draw(rng, name, size=size)


@each
def test_dtypes(name):
    real = name in ("dirichlet", "multivariate_normal")
    rng = stateful_rng(0)
    assert draw(rng, name).dtype == ("float32" if real else "int32")
    for dtype in ("float16", "bfloat16") if real else ("int8", "uint32"):
        got = jax.eval_shape(lambda rng, d=dtype: draw(rng, name, dtype=d), rng)
        assert got.dtype == dtype
    assert draw(rng, name, dtype=dtype).dtype == dtype
    with pytest.raises(TypeError, match="dtype must be"):
        draw(rng, name, dtype="int32" if real else "float32")


@each
@pytest.mark.usefixtures("x64")
def test_64_bits(name):
    draws = np.asarray(draw(stateful_rng(0), name, size=20_000))
    real = name in ("dirichlet", "multivariate_normal")
    assert draws.dtype == (np.float64 if real else np.int64)
    theirs = draw(np.random.default_rng(0), name, size=20_000)
    scale = theirs.std(0) / math.sqrt(10_000)
    assert (np.abs(draws.mean(0) - theirs.mean(0)) < 4.5 * scale).all()


@each
def test_eager_is_jit_is_a_lane_of_vmap(name):
    same = comparison(name)
    eager = draw(stateful_rng(5), name, size=4)
    same(jax.jit(lambda rng: draw(rng, name, size=4))(stateful_rng(5)), eager)
    lanes = jax.vmap(lambda rng: draw(rng, name, size=4))(stateful_rng(2).split(3))
    for lane, child in zip(lanes, stateful_rng(2).spawn(3), strict=True):
        same(lane, draw(child, name, size=4))


def comparison(name):
    if name in ("dirichlet", "multivariate_normal"):
        return lambda a, b: np.testing.assert_allclose(a, b, rtol=4e-6, atol=1e-6)
    return np.testing.assert_array_equal


@each
@pytest.mark.parametrize(
    "impl",
    [
        "philox4x32",
        pytest.param("rbg", marks=pytest.mark.slow),
        pytest.param("threefry4x32", marks=pytest.mark.slow),
    ],
)
def test_every_impl(name, impl):
    draws = np.asarray(draw(stateful_rng(0, impl=impl), name, size=4000))
    theirs = draw(np.random.default_rng(0), name, size=4000)
    scale = theirs.std(0) / math.sqrt(2000)
    assert (np.abs(draws.mean(0) - theirs.mean(0)) < 4.5 * scale).all()


@each
def test_under_strict_promotion(name):
    arrays = [jnp.asarray(arg) for arg in CALLS[name]]
    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"):
        assert getattr(stateful_rng(0), name)(*arrays, size=2).shape == (2, 3)

"""Categorical draws and orthogonal matrices."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from jax_stateful_rng import stateful_rng

LOGITS = np.array([0.3, -np.inf, 2.0, -1.0, 1.2, -np.inf])


def p_value(cells, p):
    cells = np.asarray(cells).reshape(-1)
    counts = np.bincount(cells, minlength=len(p))
    assert counts[p == 0].sum() == 0
    return stats.chisquare(counts[p > 0], p[p > 0] * cells.size).pvalue


# --- Categorical -------------------------------------------------------------------


@pytest.mark.parametrize("shift", [0.0, 300.0, -300.0])
def test_categorical_law_by_table(shift):
    x = stateful_rng(1).categorical(LOGITS + shift, size=40_000)
    assert x.dtype == np.int32
    assert p_value(x, special.softmax(LOGITS)) > 1e-4


@pytest.mark.parametrize("shift", [0.0, 300.0, -300.0])
def test_categorical_law_by_clocks(shift):
    rows = jnp.broadcast_to(jnp.asarray(LOGITS + shift), (40_000, 6))
    x = stateful_rng(2).categorical(rows)
    assert p_value(x, special.softmax(LOGITS)) > 1e-4
    by_column = stateful_rng(2).categorical(rows.T, axis=0)
    assert (x == by_column).all()


def test_categorical_many_categories():
    n = 1000
    logits = jnp.broadcast_to(jnp.log(jnp.arange(n, dtype=float)), (20_000, n))
    x = stateful_rng(3).categorical(logits)
    assert int(x.min()) > 0
    assert stats.kstest((np.asarray(x) + 0.5) / n, stats.beta(2, 1).cdf).pvalue > 1e-4


def test_categorical_shapes():
    rng = stateful_rng(0)
    logits = np.zeros((3, 4, 5))
    assert rng.categorical(logits).shape == (3, 4)
    assert rng.categorical(logits, 1).shape == (3, 5)
    assert rng.categorical(logits, -1, (2, 3, 4)).shape == (2, 3, 4)
    assert rng.categorical([0.0, jnp.float32(1.0)], size=()).shape == ()
    assert rng.categorical(jnp.zeros(3, int), size=(2, 0)).shape == (2, 0)
    assert np.asarray(rng.state().counter).tolist() == [0, 5]


def test_categorical_batch_rows_are_independent():
    logits = jnp.log(jnp.array([[0.1, 0.9], [0.6, 0.4]]))
    x = np.asarray(stateful_rng(5).categorical(logits, size=(50_000, 2)))
    p = np.array([0.06, 0.04, 0.54, 0.36])
    assert p_value(x[:, 0] * 2 + x[:, 1], p) > 1e-4


def test_categorical_64_bits(x64):
    x = stateful_rng(1).categorical(jnp.asarray(LOGITS)[None], size=(40_000, 1))
    assert x.dtype == np.int64
    assert p_value(x, special.softmax(LOGITS)) > 1e-4


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda r: r.categorical([]), ValueError, "must have a category"),
        (lambda r: r.categorical(1.0), np.exceptions.AxisError, "rng.categorical"),
        (lambda r: r.categorical([0.0], 1), np.exceptions.AxisError, "axis 1"),
        (lambda r: r.categorical([0.0, math.nan]), ValueError, "not nan"),
        (lambda r: r.categorical([0.0, math.inf]), ValueError, "below inf"),
        (lambda r: r.categorical([-math.inf] * 2), ValueError, "above -inf"),
        (lambda r: r.categorical(["a"]), ValueError, "real numbers"),
        (lambda r: r.categorical(np.zeros((2, 3)), size=3), ValueError, "size must"),
        (lambda r: r.orthogonal(-1), ValueError, "n and m must be >= 0"),
        (lambda r: r.orthogonal(2.0), TypeError, "n must be an int"),
        (lambda r: r.orthogonal(2, dtype=int), TypeError, "dtype must be"),
    ],
)
def test_errors_leave_the_counter(call, error, text):
    rng = stateful_rng(0)
    with pytest.raises(error, match=text):
        call(rng)
    assert np.asarray(rng.state().counter).tolist() == [0, 0]


def test_categorical_illegal_logits_on_the_device():
    rng = stateful_rng(0)
    bad = jnp.array([jnp.nan, -jnp.inf, 1.0, jnp.inf])
    none = jnp.full(4, -jnp.inf)
    for size in (None, 100):
        assert (rng.categorical(bad, size=size) == 2).all()
        assert (rng.categorical(none, size=size) == 0).all()


def test_categorical_under_transformations():
    logits = jnp.asarray(LOGITS)

    def draws(rng):
        return rng.categorical(logits), rng.categorical(logits, size=20)

    found = jax.jit(jax.vmap(draws))(stateful_rng(5).split(3))
    for i, child in enumerate(stateful_rng(5).spawn(3)):
        for lane, alone in zip(found, draws(child), strict=True):
            assert (lane[i] == alone).all()


# --- Orthogonal --------------------------------------------------------------------


@pytest.mark.parametrize(("n", "m"), [(3, None), (4, 2), (2, 5), (1, 1), (0, 0)])
def test_orthogonal_matrices(n, m):
    rng = stateful_rng(0)
    q = np.asarray(rng.orthogonal(n, (5,), m))
    columns = n if m is None else m
    assert q.shape == (5, n, columns)
    assert np.asarray(rng.state().counter).tolist() == [0, 1]
    product = q.swapaxes(1, 2) @ q if columns <= n else q @ q.swapaxes(1, 2)
    np.testing.assert_allclose(
        product, np.broadcast_to(np.eye(min(n, columns)), product.shape), atol=1e-5
    )


def test_orthogonal_law():
    q = np.asarray(stateful_rng(1).orthogonal(3, 20_000))
    for i, j in ((0, 0), (2, 1), (1, 2)):  # a coordinate of a point on the sphere
        assert stats.kstest(q[:, i, j], stats.uniform(-1, 2).cdf).pvalue > 1e-4
    turns = int((np.linalg.det(q) > 0).sum())
    assert stats.binomtest(turns, 20_000).pvalue > 1e-4


def test_orthogonal_dtypes(x64):
    assert stateful_rng(0).orthogonal(3).dtype == np.float64
    assert stateful_rng(0).orthogonal(3, dtype="bfloat16").dtype == jnp.bfloat16

"""Laws of vectors."""

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import _errors
from .._draw import (
    Draws,
    Known,
    Law,
    Param,
    as_arrays,
    count,
    default_dtype,
    host_reals,
    interval,
    law,
    real,
)
from .._typing import Array, DTypeLike, OutSharding, RealLike, Shape, Size, SVDMethod
from . import _noise
from ._choice import random_order
from ._counts import INVALID, largest_of, saturated
from .discrete import binomial, hypergeometric
from .gamma import gamma_factors


class Multivariate(Draws):
    """The methods of a generator that draw vectors."""

    def dirichlet(
        self,
        alpha: RealLike,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the Dirichlet distribution: shares that sum to 1.

        The density on the simplex is

        .. math:: p(x) = \frac{\Gamma(\sum_i \alpha_i)}{\prod_i \Gamma(\alpha_i)}
            \prod_i x_i^{\alpha_i - 1}.

        Tiny ``alpha`` give vectors that are 1 in one place, in the right proportion.
        Differentiable in ``alpha``, by implicit reparameterisation.

        Args:
            alpha: concentrations, one axis; >= 0. A share whose ``alpha`` is 0 is 0.
            size: result shape without the axis of ``alpha``; ``None`` gives one
                vector.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``(*size, k)``. All zeros where every ``alpha`` is 0.
            ``nan`` where a traced or device ``alpha`` is negative or nan.

        Raises:
            TypeError: if ``alpha`` is a single number.
            ValueError: if ``alpha`` has two or more axes, or, known on the host, is
                negative.

        Examples:
            >>> rng = stateful_rng(0)
            >>> x = rng.dirichlet([1.0, 0.0, 5.0], size=4)
            >>> x.shape, bool((x[:, 1] == 0).all())
            ((4, 3), True)

        References:
            Gammas divided by their sum, kept as logarithms where they are tiny.
        """
        alpha = as_arrays("rng.dirichlet", "alpha", alpha)
        if alpha.ndim == 0:
            fix = "Write alpha=[a, b, ...]."
            _errors.type_error("rng.dirichlet", "alpha must be a vector", alpha, fix)
        _one_axis("rng.dirichlet", "alpha", alpha)
        return self._draw(_dirichlet, size, dtype, alpha, out_sharding=out_sharding)

    def multinomial(
        self,
        n: RealLike,
        pvals: RealLike,
        size: Size = None,
        *,
        dtype: DTypeLike = int,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the multinomial distribution: ``n`` trials over ``k`` categories.

        The mass function is

        .. math:: P(x) = \frac{n!}{x_1! \cdots x_k!} p_1^{x_1} \cdots p_k^{x_k},
            \quad \sum_i x_i = n.

        As in NumPy the last category takes what the others leave: its probability is
        one minus the sum of theirs, whatever the last entry says.

        Args:
            n: number of trials; an integer >= 0, floats are truncated. Broadcasts
                with ``pvals`` without its last axis.
            pvals: probabilities along the last axis, which must not be empty; in
                [0, 1]. All but the last may sum to 1 at most, with a tolerance of
                1e-12, or of the root of the machine epsilon for narrower floats than
                float64.
            size: result shape without the last axis; ``None`` gives that of the
                parameters.
            dtype: an integer dtype; ``int`` is int32, or int64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``(*size, k)``, whose last axis sums to ``n``. -1 in the
            whole vector where a traced or device value breaks the domain (a sum
            above 1 is not looked for: then the last categories get less).

        Raises:
            ValueError: if ``pvals`` has no last axis or an empty one, or, known on
                the host, a value breaks the domain.

        Examples:
            >>> rng = stateful_rng(0)
            >>> x = rng.multinomial([10, 100], [0.2, 0.3, 0.5], size=(4, 2))
            >>> x.shape, x.sum(-1)[0].tolist()
            ((4, 2, 3), [10, 100])

        References:
            A binomial for each category of what the ones before it have left; Davis,
            "The computer generation of multinomial random variates" (1993).
        """
        pvals = as_arrays("rng.multinomial", "pvals", pvals)
        if pvals.ndim == 0 or pvals.shape[-1] == 0:
            must = "pvals must have a last axis with one entry or more"
            _errors.value_error("rng.multinomial", must, pvals)
        return self._draw(
            _multinomial, size, dtype, n, pvals, out_sharding=out_sharding
        )

    def multivariate_hypergeometric(
        self,
        colors: RealLike,
        nsample: RealLike,
        size: Size = None,
        method: Literal["marginals", "count"] = "marginals",
        *,
        dtype: DTypeLike = int,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw the colours in a sample that is taken without replacement.

        With :math:`c_i` items of colour i and a sample of :math:`s`, the mass
        function is

        .. math:: P(x) = \prod_i \binom{c_i}{x_i} \Big/ \binom{\sum_i c_i}{s},
            \quad \sum_i x_i = s.

        Args:
            colors: number of items of each colour, one axis of integers >= 0. Their
                sum must fit JAX's default integer.
            nsample: size of the sample; an integer from 0 to ``sum(colors)``.
            size: result shape without the axis of ``colors``; ``None`` gives one
                vector.
            method: ``"marginals"`` draws colour by colour. ``"count"`` shuffles all
                items, for few items of many colours: it needs memory for
                ``sum(colors)`` numbers a draw, and ``colors`` known on the host.
            dtype: an integer dtype; ``int`` is int32, or int64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``(*size, k)``, whose last axis sums to ``nsample``. -1
            in the whole vector where a traced or device value breaks the domain.

        Raises:
            TypeError: if ``colors`` is a JAX array with ``method="count"``.
            ValueError: if ``colors`` is no vector of integers or ``nsample`` no
                integer, if ``method`` is another one, or if values known on the host
                break the domain.

        Examples:
            >>> rng = stateful_rng(0)
            >>> x = rng.multivariate_hypergeometric([16, 8, 4], 6, size=5)
            >>> x.shape, x.sum(-1).tolist()
            ((5, 3), [6, 6, 6, 6, 6])

        References:
            As `hypergeometric`, for each colour against those that come after it.
        """
        who = "rng.multivariate_hypergeometric"
        if method not in ("marginals", "count"):
            _errors.value_error(who, "method must be 'marginals' or 'count'", method)
        colors = as_arrays(who, "colors", colors)
        _one_axis(who, "colors", colors)
        if colors.size and not jnp.issubdtype(colors.dtype, jnp.integer):
            _errors.value_error(who, "colors must be integers", colors)
        sample = as_arrays(who, "nsample", nsample)
        if sample.ndim or not jnp.issubdtype(sample.dtype, jnp.integer):
            _errors.value_error(who, "nsample must be one integer", nsample)
        if method == "marginals":
            return self._draw(
                _multivariate_hypergeometric,
                size,
                dtype,
                colors,
                sample,
                out_sharding=out_sharding,
            )
        if isinstance(colors, jax.Array):
            must = "colors must be known on the host for method='count'"
            fix = "Write method='marginals', or pass a list or a NumPy array."
            _errors.type_error(who, must, colors, fix)
        law = _by_count(max(0, sum(colors.tolist())))
        return self._draw(law, size, dtype, colors, sample, out_sharding=out_sharding)

    def multivariate_normal(
        self,
        mean: RealLike,
        cov: RealLike,
        size: Size = None,
        check_valid: Literal["warn", "raise", "ignore"] = "warn",
        tol: float = 1e-8,
        *,
        method: SVDMethod = "svd",
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the multivariate normal distribution.

        The density is

        .. math:: p(x) = \frac{1}{\sqrt{(2\pi)^k \det\Sigma}}
            e^{-(x-\mu)^T \Sigma^{-1} (x-\mu) / 2}.

        A draw is ``mean + root @ z`` with standard normals ``z``. The root is the
        symmetric one, or with ``method="cholesky"`` the lower triangular one; both
        are unique, so that a covariance gives the same draws from the host and from
        the device (to rounding). Differentiable in ``mean`` and in ``cov``, also
        where eigenvalues coincide.

        Args:
            mean: the mean :math:`\mu`; one axis.
            cov: the covariance :math:`\Sigma`; two axes, symmetric and positive
                semidefinite, for ``"cholesky"`` positive definite.
            size: result shape without the axis of ``mean``; ``None`` gives one
                vector.
            check_valid: what to do if ``cov`` is known on the host and not positive
                semidefinite: ``"warn"``, ``"raise"`` or ``"ignore"``. The check is in
                float64. ``"cholesky"`` always raises.
            tol: the tolerance of the check.
            method: ``"svd"``, ``"eigh"`` (faster) or ``"cholesky"`` (the fastest).
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``(*size, k)``. A traced or device ``cov`` is not
            checked; ``"cholesky"`` gives ``nan`` where it is not positive definite.

        Raises:
            TypeError: if a parameter does not hold real numbers.
            ValueError: if the shapes do not fit, for an unknown ``method`` or
                ``check_valid``, or with ``check_valid="raise"``.
            numpy.linalg.LinAlgError: if ``cov``, known on the host, is not positive
                definite with ``method="cholesky"``, or not finite with ``"svd"``.

        Examples:
            >>> rng = stateful_rng(0)
            >>> cov = [[2.0, 1.0], [1.0, 2.0]]
            >>> rng.multivariate_normal([0.0, 10.0], cov, size=3).shape
            (3, 2)
        """
        who = "rng.multivariate_normal"
        if method not in ("svd", "eigh", "cholesky"):
            must = "method must be 'svd', 'eigh' or 'cholesky'"
            _errors.value_error(who, must, method)
        if check_valid not in ("warn", "raise", "ignore"):
            must = "check_valid must be 'warn', 'raise' or 'ignore'"
            _errors.value_error(who, must, check_valid)
        mean, cov = as_arrays(who, "mean", mean), as_arrays(who, "cov", cov)
        _one_axis(who, "mean", mean)
        if cov.ndim != 2 or cov.shape[0] != cov.shape[1]:
            _errors.value_error(who, "cov must be a square matrix", cov)
        if cov.shape[0] != mean.shape[0]:
            must = f"cov must have as many rows as mean has entries, {mean.shape[0]}"
            _errors.value_error(who, must, cov)
        if isinstance(cov, jax.Array):
            return self._draw(
                _BY_COVARIANCE[method],
                size,
                dtype,
                mean,
                cov,
                out_sharding=out_sharding,
            )
        cov = host_reals(who, "cov", cov).astype(float)
        root = _host_root(who, cov, check_valid, tol, method)
        return self._draw(_BY_ROOT, size, dtype, mean, root, out_sharding=out_sharding)


# --- What arguments may be ---------------------------------------------------------


def _one_axis(who: str, name: str, value: Array | np.ndarray) -> None:
    if value.ndim != 1:
        _errors.value_error(who, f"{name} must have one axis", value)


# --- Dirichlet ---------------------------------------------------------------------

_ALPHA = Param("alpha", "must be >= 0", lambda x: x < 0, lambda x: x < 0, core=1)


@law(_ALPHA)
def _dirichlet(key: Array, shape: Shape, dtype: np.dtype, alpha: Array) -> Array:
    if not alpha.size:
        return jnp.zeros((*shape, 0), dtype)
    legal = jnp.all(alpha >= 0)
    # Where all are this small only their proportion matters, and the logarithms of
    # the gammas would overflow.
    lift = jnp.where(jnp.max(alpha) < 2.0**-60, dtype.type(2.0**60), 1)
    alpha = jnp.broadcast_to(alpha * lift, (*shape, alpha.size))
    positive = alpha > 0
    v, b = gamma_factors(key, alpha.shape, dtype, jnp.where(positive, alpha, 1))
    exponent = jnp.where(positive, b, -np.inf)
    largest = jnp.max(exponent, -1, keepdims=True)
    largest = lax.stop_gradient(jnp.where(largest > -np.inf, largest, 0))
    gammas = v * jnp.exp(exponent - largest)
    total = jnp.sum(gammas, -1, keepdims=True)
    shares = gammas / jnp.where(total > 0, total, 1)
    return jnp.where(legal, shares, np.nan)


# --- Multinomial -------------------------------------------------------------------


def _sum_fits(who: str, dtype: np.dtype, n: Known, pvals: Known) -> None:
    if not isinstance(pvals, np.ndarray):
        return
    epsilon = np.finfo(pvals.dtype).eps
    tolerance = 1e-12 if pvals.dtype == np.float64 else float(epsilon) ** 0.5
    if (pvals[..., :-1].sum(-1, dtype=float) > 1 + tolerance).any():
        must = "pvals without the last entry must sum to at most 1"
        fix = "Write pvals / pvals.sum(-1, keepdims=True), in float64."
        _errors.value_error(who, must, pvals, fix)


@law(
    count("n"),
    interval("pvals", "[0", "1]", core=1),
    result="integer",
    check=_sum_fits,
)
def _multinomial(
    key: Array, shape: Shape, dtype: np.dtype, n: Array, pvals: Array
) -> Array:
    sound = jnp.all((pvals >= 0) & (pvals <= 1), -1)
    legal = jnp.broadcast_to((n >= 0) & sound, shape)
    chances = jnp.moveaxis(jnp.where(sound[..., None], _chances(pvals), 0), -1, 0)

    def take(key: Array, left: Array, chance: Array) -> Array:
        return binomial(key, shape, left, chance)

    counts = _one_by_one(key, jnp.where(legal, n, 0), take, (chances,))
    return saturated(jnp.where(legal[..., None], counts, INVALID), dtype)


def _one_by_one(
    key: Array, total: Array, take: Callable[..., Array], params: Sequence[Array]
) -> Array:
    """Distributes ``total`` over categories, the last of which takes what is left.

    Args:
        key: a key of which nothing else is taken.
        total: what there is, of the batch shape.
        take: ``(key, left, *params) -> taken`` by one category.
        params: arrays whose first axis is that of the categories.
    """

    def step(left: Array, given: tuple[Array, ...]) -> tuple[Array, Array]:
        number, *own = given
        taken = take(jax.random.fold_in(key, number), left, *own)
        return left - taken, taken

    numbers = lax.iota(jnp.uint32, len(params[0]) - 1)
    left, taken = lax.scan(step, total, (numbers, *(param[:-1] for param in params)))
    return jnp.moveaxis(jnp.concatenate([taken, left[None]]), 0, -1)


def _chances(pvals: Array) -> Array:
    """Returns the probability of each category among those not before it."""
    rest = 1 - jnp.sum(pvals[..., :-1], -1, keepdims=True)
    # The last entry is the rest. As given it has more digits, if the sum is 1.
    slack = 4 * pvals.shape[-1] * np.finfo(pvals.dtype).eps
    last = pvals[..., -1:]
    last = jnp.where(jnp.abs(rest - last) < slack, last, jnp.maximum(rest, 0))
    pvals = jnp.concatenate([pvals[..., :-1], last], -1)
    through = lax.cumsum(pvals, pvals.ndim - 1, reverse=True)
    ratio = pvals / jnp.where(through > 0, through, 1)
    return jnp.minimum(ratio, 1)


# --- Multivariate hypergeometric ---------------------------------------------------


def _items_fit(who: str, dtype: np.dtype, colors: Known, nsample: Known) -> None:
    if not isinstance(colors, np.ndarray):
        return
    total, largest = sum(colors.tolist()), largest_of(default_dtype(int))
    if total > largest:
        must = f"colors must sum to at most {largest}"
        fix = "" if largest > 2**31 else _errors.WIDER_INTS
        _errors.value_error(who, must, colors, fix)
    if nsample is not None and nsample > total:
        must = f"nsample must be at most sum(colors), {total}"
        _errors.value_error(who, must, nsample)


_COLORS = (count("colors", core=1), count("nsample"))


def _legal_items(colors: Array, nsample: Array) -> Array:
    # The first sum that does not fit wraps below 0.
    through = jnp.cumsum(colors)
    fits = jnp.all(colors >= 0) & jnp.all(through >= 0)
    return fits & (nsample >= 0) & (nsample <= jnp.sum(colors))


@law(*_COLORS, result="integer", check=_items_fit)
def _multivariate_hypergeometric(
    key: Array, shape: Shape, dtype: np.dtype, colors: Array, nsample: Array
) -> Array:
    if not colors.size:
        return jnp.zeros((*shape, 0), dtype)
    legal = _legal_items(colors, nsample)
    colors = jnp.where(legal, colors, 0)
    after = jnp.sum(colors) - jnp.cumsum(colors)

    def take(key: Array, left: Array, own: Array, other: Array) -> Array:
        return hypergeometric(key, shape, own, other, left)

    sample = jnp.broadcast_to(jnp.where(legal, nsample, 0), shape)
    counts = _one_by_one(key, sample, take, (colors, after))
    return saturated(jnp.where(legal, counts, INVALID), dtype)


@functools.lru_cache(maxsize=256)
def _by_count(total: int) -> Law:
    """Returns the law that shuffles ``total`` items."""

    def sampler(
        key: Array, shape: Shape, dtype: np.dtype, colors: Array, nsample: Array
    ) -> Array:
        order = random_order(key, (*shape, total), len(shape))
        taken = jnp.cumsum((order < nsample).astype(colors.dtype), -1)
        taken = jnp.concatenate([jnp.zeros((*shape, 1), taken.dtype), taken], -1)
        through = taken[..., jnp.cumsum(colors)]
        before = taken[..., jnp.cumsum(colors) - colors]
        return saturated(
            jnp.where(_legal_items(colors, nsample), through - before, INVALID), dtype
        )

    name = "multivariate_hypergeometric"
    return Law(name, sampler, _COLORS, "integer", _items_fit)


# --- Multivariate normal -----------------------------------------------------------


def _host_root(
    who: str, cov: np.ndarray, check_valid: str, tol: float, method: str
) -> np.ndarray:
    """Returns the root of a covariance in float64, after NumPy's checks."""
    try:
        tol = float(tol)
    except (TypeError, ValueError):
        _errors.type_error(who, "tol must be a number", tol)
    if method == "cholesky":
        try:
            root: np.ndarray = np.linalg.cholesky(cov)
        except np.linalg.LinAlgError:
            must = "cov must be positive definite for method='cholesky'"
            fix = "Write method='eigh', for which semidefinite is enough."
            _errors.linalg_error(who, must, cov, fix)
        return root
    if method == "svd":
        if not np.isfinite(cov).all():  # svd would not converge, or not say so
            _errors.linalg_error(who, "cov must be finite", cov)
        _, values, right = np.linalg.svd(cov)
        valid = np.allclose((right.T * values) @ right, cov, rtol=tol, atol=tol)
    values, vectors = np.linalg.eigh((cov + cov.T) / 2)
    if method == "eigh":
        valid = not (values < -tol).any()
    if check_valid != "ignore" and not valid:
        text = _errors.message(
            who,
            "cov must be symmetric and positive semidefinite",
            _errors.describe(cov),
            "Write cov = a @ a.T, or check_valid='ignore'.",
        )
        if check_valid == "raise":
            raise ValueError(text)
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    root = (vectors * np.sqrt(np.abs(values))) @ vectors.T
    return root


@jax.custom_jvp
def _symmetric_root(cov: Array) -> Array:
    values, vectors = jnp.linalg.eigh(cov)
    return _matmul(vectors * jnp.sqrt(jnp.abs(values))[None], vectors.T)


@_symmetric_root.defjvp
def _symmetric_root_jvp(
    primals: tuple[Array], tangents: tuple[Array]
) -> tuple[Array, Array]:
    # From d(R R) = dR R + R dR, which in the basis of the eigenvectors is a division:
    # unlike the eigenvectors, the root has a derivative where eigenvalues coincide.
    values, vectors = jnp.linalg.eigh(primals[0])
    roots = jnp.sqrt(jnp.abs(values))
    change = (tangents[0] + tangents[0].T) / 2
    sums = roots[:, None] + roots[None, :]
    turned = _matmul(vectors.T, _matmul(change, vectors))
    turned = jnp.where(sums > 0, turned / jnp.where(sums > 0, sums, 1), 0)
    root = _matmul(vectors * roots[None], vectors.T)
    return root, _matmul(vectors, _matmul(turned, vectors.T))


_matmul = functools.partial(jnp.matmul, precision=lax.Precision.HIGHEST)


def _given_root(root: Array) -> Array:
    return root


def _normal_law(root_of: Callable[[Array], Array], second: str) -> Law:
    def sampler(
        key: Array, shape: Shape, dtype: np.dtype, mean: Array, matrix: Array
    ) -> Array:
        (word,) = _noise.words(key, (*shape, mean.shape[-1]), dtype, 1)
        noise = _noise.normal(word)
        return jnp.broadcast_to(mean, noise.shape) + _matmul(noise, root_of(matrix).T)

    params = (real("mean", core=1), real(second, core=2))
    return Law("multivariate_normal", sampler, params, "real")


_BY_ROOT = _normal_law(_given_root, "root")
_BY_COVARIANCE = {
    "svd": _normal_law(_symmetric_root, "cov"),
    "eigh": _normal_law(_symmetric_root, "cov"),
    "cholesky": _normal_law(jnp.linalg.cholesky, "cov"),
}

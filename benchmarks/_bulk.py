"""Many draws in one call: the cost of a law."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from jax_stateful_rng import StatefulPRNG, stateful_rng

from ._peers import NUMPY
from ._timing import OURS, Effort, Row, first_call, run_time

JAX = "jax.random"
IN_JIT = f"{OURS}, in jit"

Shape = tuple[int, ...]
WithKey: TypeAlias = Callable[..., jax.Array]

ARRAYS = (10**3, 10**6, 10**7)
LAWS = (1, 10**3, 10**6)
_DISPATCH_COUNTS = 1000  # below this many draws the dispatch is worth a look


@dataclasses.dataclass(frozen=True)
class Law:
    """One law at one point, as each peer draws it.

    Attributes:
        method: of our generator and of NumPy's.
        params: the arguments before ``size``.
        key: ``(key, shape, *params) -> Array`` with ``jax.random``, or ``None`` where
            that has no such law; ``params`` are arrays, passed as arguments.
        sizes: how many numbers to draw.
        each: how many numbers one draw has, of an event axis or of ``lanes``.
        lanes: the shape of the parameters, if not scalars or vectors.
        numpy_dtype: where NumPy's method can be asked for float32, since ours is.
        label: how the table shows the parameters, where they are long.
    """

    method: str
    params: tuple[Any, ...] = ()
    key: WithKey | None = None
    sizes: tuple[int, ...] = LAWS
    each: int = 1
    lanes: Shape = ()
    numpy_dtype: bool = False
    label: str | None = None

    @property
    def case(self) -> str:
        shown = ", ".join(map(str, self.params)) if self.label is None else self.label
        return f"{self.method}({shown})"

    def shape(self, size: int) -> Shape:
        return (max(1, size // self.each), *self.lanes)


@dataclasses.dataclass(frozen=True)
class Arrangement:
    """A choice or a permutation, whose arguments set the number of results.

    Attributes:
        case: as the table shows it.
        method: of our generator and of NumPy's.
        args: the arguments of both, for ``n`` results.
        key: the same with ``jax.random``: ``(key, n)``.
        sizes: values of ``n``.
    """

    case: str
    method: str
    args: Callable[[int], tuple[tuple[Any, ...], dict[str, Any]]]
    key: Callable[[jax.Array, int], jax.Array]
    sizes: tuple[int, ...] = ARRAYS


def _scaled(
    standard: Callable[..., jax.Array], parameters: int = 0
) -> Callable[..., jax.Array]:
    """Gives a law of ``jax.random`` without location and scale its two."""

    def draw(key: jax.Array, shape: Shape, *params: jax.Array) -> jax.Array:
        own, (loc, scale) = params[:parameters], params[parameters:]
        return loc + scale * standard(key, *own, shape=shape)

    return draw


def _plain(function: Callable[..., jax.Array]) -> WithKey:
    return lambda key, shape, *params: function(key, *params, shape=shape)


_R = jax.random
_RATES = np.linspace(1.0, 200.0, 1000, dtype=np.float32)
_ALPHA = (0.5,) * 10
_PVALS = (0.1,) * 10
_COV = ((2.0, 0.5, 0.0), (0.5, 1.0, 0.3), (0.0, 0.3, 1.0))
_WEIGHTS = np.linspace(1.0, 3.0, 1000)
_WEIGHTS /= _WEIGHTS.sum()

LAW_TABLE = (
    Law("random", (), _plain(_R.uniform), ARRAYS, numpy_dtype=True),
    Law(
        "uniform",
        (-1.0, 1.0),
        lambda key, shape, low, high: _R.uniform(key, shape, minval=low, maxval=high),
        ARRAYS,
    ),
    Law("normal", (1.0, 2.0), _scaled(_R.normal), ARRAYS),
    Law(
        "integers",
        (0, 1_000_003),
        lambda key, shape, low, high: _R.randint(key, shape, low, high),
        ARRAYS,
    ),
    Law("standard_normal", (), _plain(_R.normal), numpy_dtype=True),
    Law("standard_exponential", (), _plain(_R.exponential), numpy_dtype=True),
    Law(
        "exponential",
        (2.0,),
        lambda key, shape, s: s * _R.exponential(key, shape=shape),
    ),
    Law("standard_gamma", (2.5,), _plain(_R.gamma), numpy_dtype=True),
    Law("gamma", (2.5, 2.0), lambda key, shape, a, s: s * _R.gamma(key, a, shape)),
    Law("gamma", (0.3, 2.0), lambda key, shape, a, s: s * _R.gamma(key, a, shape)),
    Law("beta", (2.0, 3.0), _plain(_R.beta)),
    Law("chisquare", (3.0,), _plain(_R.chisquare)),
    Law("f", (3.0, 5.0), _plain(_R.f)),
    Law("standard_t", (3.0,), _plain(_R.t)),
    Law("standard_cauchy", (), _plain(_R.cauchy)),
    Law("noncentral_chisquare", (3.0, 2.0)),
    Law("noncentral_f", (3.0, 5.0, 2.0)),
    Law("gumbel", (0.0, 2.0), _scaled(_R.gumbel)),
    Law("laplace", (0.0, 2.0), _scaled(_R.laplace)),
    Law("logistic", (0.0, 2.0), _scaled(_R.logistic)),
    Law(
        "lognormal",
        (0.0, 0.5),
        lambda key, shape, m, s: jnp.exp(m) * _R.lognormal(key, s, shape),
    ),
    Law("pareto", (3.0,), lambda key, shape, a: _R.pareto(key, a, shape) - 1),
    Law("power", (3.0,)),
    Law("rayleigh", (2.0,), _plain(_R.rayleigh)),
    Law("triangular", (-1.0, 0.5, 2.0), _plain(_R.triangular)),
    Law("vonmises", (0.0, 2.0)),
    Law(
        "wald",
        (2.0, 3.0),
        lambda key, shape, mean, scale: scale * _R.wald(key, mean / scale, shape),
    ),
    Law("weibull", (1.5,), lambda key, shape, a: _R.weibull_min(key, 1.0, a, shape)),
    Law("poisson", (4.0,), _plain(_R.poisson)),
    Law("poisson", (100.0,), _plain(_R.poisson)),
    Law(
        "poisson",
        (_RATES,),
        _plain(_R.poisson),
        (10**3, 10**6),
        each=1000,
        lanes=(1000,),
        label="1 to 200",
    ),
    Law("binomial", (20, 0.3), _plain(_R.binomial)),
    Law("binomial", (1000, 0.3), _plain(_R.binomial)),
    Law("negative_binomial", (5.0, 0.3)),
    Law("geometric", (0.2,), _plain(_R.geometric)),
    Law("hypergeometric", (60, 40, 30)),
    Law("logseries", (0.8,)),
    Law("zipf", (2.0,)),
    Law("dirichlet", (_ALPHA,), _plain(_R.dirichlet), each=10, label="[0.5] * 10"),
    Law(
        "multinomial",
        (100, _PVALS),
        lambda key, shape, n, p: _R.multinomial(
            key, n.astype(p.dtype), p, shape=(*shape, *p.shape)
        ),
        each=100,
        label="100, [0.1] * 10",
    ),
    Law("multivariate_hypergeometric", ((20, 30, 50), 40), each=30),
    Law(
        "multivariate_normal",
        ((0.0, 1.0, 2.0), _COV),
        lambda key, shape, mean, cov: _R.multivariate_normal(key, mean, cov, shape),
        each=3,
        label="3 means, covariance",
    ),
)

ARRANGEMENTS = (
    Arrangement(
        "choice(1000, n)",
        "choice",
        lambda n: ((1000, n), {}),
        lambda key, n: _R.choice(key, 1000, (n,)),
    ),
    Arrangement(
        "choice(1000, n, p=weights)",
        "choice",
        lambda n: ((1000, n), {"p": _WEIGHTS}),
        lambda key, n: _R.choice(key, 1000, (n,), p=jnp.asarray(_WEIGHTS)),
    ),
    Arrangement(
        "choice(10**6, n, replace=False)",
        "choice",
        lambda n: ((10**6, n), {"replace": False}),
        lambda key, n: _R.choice(key, 10**6, (n,), replace=False),
        (10, 10**5),
    ),
    Arrangement("permutation(n)", "permutation", lambda n: ((n,), {}), _R.permutation),
)


def skipped() -> list[str]:
    """Returns the methods in the tables that are missing here."""
    return [
        f"rng.{method} (no such method)"
        for method in dict.fromkeys(row.method for row in (*LAW_TABLE, *ARRANGEMENTS))
        if not hasattr(StatefulPRNG, method)
    ]


def _keeping(
    step: Callable[..., Any], state: Any, args: tuple[Any, ...]
) -> Callable[[], Any]:
    """Returns the call that keeps the state of a jitted ``(state, *args)``."""
    jitted = jax.jit(step)

    def call() -> Any:
        nonlocal state
        state, drawn = jitted(state, *args)
        return drawn

    return call


def _functional(draw: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    """Returns the jitted split-and-draw, which returns the new key too."""

    def step(key: jax.Array, *args: Any) -> tuple[jax.Array, Any]:
        key, sub = jax.random.split(key)
        return key, draw(sub, *args)

    return _keeping(step, jax.random.key(0), args)


def _ours_in_jit(
    method: str, params: tuple[Any, ...], shape: Shape
) -> Callable[[], Any]:
    def step(state: Any, *params: Any) -> tuple[Any, Any]:
        rng = stateful_rng(state)
        drawn = getattr(rng, method)(*params, size=shape)
        return rng.state(), drawn

    return _keeping(step, stateful_rng(0).state(), params)


def law_calls(law: Law, size: int) -> dict[str, Callable[[], Any]]:
    """Returns one call a peer that draws ``size`` numbers."""
    shape = law.shape(size)
    rng, gen = stateful_rng(0), np.random.default_rng(0)
    ours, theirs = getattr(rng, law.method), getattr(gen, law.method)
    asked: dict[str, Any] = {"dtype": np.float32} if law.numpy_dtype else {}
    arrays = tuple(jnp.asarray(param) for param in law.params)
    calls = {OURS: lambda: ours(*law.params, size=shape)}
    if size < _DISPATCH_COUNTS:
        calls[IN_JIT] = _ours_in_jit(law.method, arrays, shape)
    if law.key is not None:
        with_key = law.key
        calls[JAX] = _functional(lambda key, *p: with_key(key, shape, *p), *arrays)
    calls[NUMPY] = lambda: theirs(*law.params, size=shape, **asked)
    return calls


def arrangement_calls(row: Arrangement, n: int) -> dict[str, Callable[[], Any]]:
    """Returns one call a peer that gives ``n`` results."""
    rng, gen = stateful_rng(0), np.random.default_rng(0)
    ours, theirs = getattr(rng, row.method), getattr(gen, row.method)
    args, options = row.args(n)
    return {
        OURS: lambda: ours(*args, **options),
        JAX: _functional(lambda key: row.key(key, n)),
        NUMPY: lambda: theirs(*args, **options),
    }


def rows(
    effort: Effort, *, quick: bool, only: str = "", size: int | None = None
) -> Iterator[Row]:
    """Yields the rows of the bulk table.

    The time of the first call, which traces and compiles, then that of a call whose
    result is waited for.

    Args:
        effort: how long.
        quick: a few rows only.
        only: what the name of a case must begin with.
        size: the only size, if any.
    """
    work: list[tuple[str, int, dict[str, Callable[[], Any]]]] = []
    for law in LAW_TABLE[2:5] if quick else LAW_TABLE:
        if hasattr(StatefulPRNG, law.method):
            sizes = law.sizes[:1] if quick else law.sizes
            work += [(law.case, n, law_calls(law, n)) for n in sizes]
    for row in ARRANGEMENTS[:1] if quick else ARRANGEMENTS:
        if hasattr(StatefulPRNG, row.method):
            sizes = row.sizes[:1] if quick else row.sizes
            work += [(row.case, n, arrangement_calls(row, n)) for n in sizes]
    for case, n, calls in work:
        if not case.startswith(only) or size not in (None, n):
            continue
        compiled = {peer: call for peer, call in calls.items() if peer != NUMPY}
        samples = first_call(compiled, effort)
        yield samples.row("bulk", case, str(n), "first call")
        samples = run_time(calls, effort, dispatch=False)
        yield samples.row("bulk", case, str(n), "run")

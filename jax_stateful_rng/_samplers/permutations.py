"""Choices and permutations."""

import collections.abc
import math
from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np

from .. import _errors
from .._draw import (
    Draws,
    as_arrays,
    default_dtype,
    device_param,
    host_reals,
    parse_size,
    program,
    step,
)
from .._typing import Array, OutSharding, RealLike, Shape, Size
from . import _choice
from .simple import refuse_out, refuse_trace, static_int


class Permutations(Draws):
    """The methods of a generator that choose and shuffle."""

    def choice(
        self,
        a: RealLike,
        size: Size = None,
        replace: bool = True,
        p: RealLike | None = None,
        axis: int = 0,
        shuffle: bool = True,
    ) -> Array:
        r"""Draw elements of an array, or integers below ``a``.

        With replacement each draw is element :math:`i` with probability :math:`p_i`
        (:math:`1/n` without ``p``). Without replacement all ordered tuples of distinct
        elements have the same probability, or with ``p`` that of drawing one after the
        other, each in proportion to the :math:`p_i` of those that are left. An element
        of probability zero is never drawn.

        Args:
            a: an array, of whose slices along ``axis`` to choose, or an int that
                stands for ``arange(a)`` and must be known before tracing.
            size: the shape of the choice; ``None`` gives one element.
            replace: whether an element may be drawn more than once.
            p: the probabilities, 1-d, one an element; their sum must be 1 to within
                the square root of the precision of their dtype.
            axis: the axis of ``a`` along which to choose.
            shuffle: may be ``False`` where the order of a choice without replacement
                does not matter. Only the choice of all ``n`` elements is then
                another: the elements in their own order.

        Returns:
            An array of the dtype of ``a`` (JAX's default integer for an int) and of
            its shape, with ``axis`` replaced by the axes of ``size``. Where ``p`` is
            traced or on the device it is taken in proportion: what is negative, nan
            or infinite counts as zero; with nothing else, all draws with replacement
            are the first element. Without replacement the elements of probability
            zero then come after all others.

        Raises:
            ValueError: if ``a`` is empty, or a single number that is no int; if ``p``
                is of the wrong size; if it is negative or nan, does not sum to 1 or
                has fewer entries above zero than are to be drawn without replacement,
                known on the host; if more elements than there are shall be drawn
                without replacement.
            TypeError: if ``a`` is a traced int, or holds strings, dates or objects.

        Examples:
            >>> rng = stateful_rng(0)
            >>> rng.choice(5, 3).shape
            (3,)
            >>> hand = rng.choice(52, 5, replace=False)
            >>> len(set(hand.tolist()))
            5
            >>> rng.choice([1.0, 2.0, 4.0], p=[0.0, 0.0, 1.0])
            Array(4., dtype=float32)

        References:
            Walker, "An efficient method for generating discrete random variables with
            general distributions" (1977); Hübschle-Schneider and Sanders, "Parallel
            weighted random sampling" (2022); Efraimidis and Spirakis, "Weighted random
            sampling with a reservoir" (2006).
        """
        who = "rng.choice"
        shape = parse_size(who, size) or ()
        number = math.prod(shape)
        population = _population(who, "a", a)
        if isinstance(population, int):
            n = population
        elif population.ndim == 0:
            must = "a must be a sequence or an integer"
            _errors.value_error(who, must, a)
        else:
            axis = axis_of(who, axis, population.ndim)
            n = population.shape[axis]
        if n < 0 or (n == 0 and number):
            must = "a must not be empty, nor negative, unless no samples are taken"
            _errors.value_error(who, must, a)
        if not replace and number > n:
            must = f"size must not be larger than the {n} items, without replacement"
            got = f"size={_errors.describe(size)}"
            raise ValueError(_errors.message(who, must, got, "Pass replace=True."))
        if p is not None:
            p = _weights(who, p, n, 0 if replace else number)
        sampler, static, params = _plan(shape, n, replace, p, shuffle)
        if isinstance(population, int):
            chosen: Array = step(self, who, program(sampler, *static), *params)
        else:
            taken = program(_taken, sampler, static, axis)
            chosen = step(self, who, taken, population, *params)
        return chosen

    def permutation(
        self, x: RealLike, axis: int = 0, *, out_sharding: OutSharding = None
    ) -> Array:
        """Return a random permutation of an array, or of the integers below ``x``.

        The slices along ``axis`` change places as wholes; each of the n! orders has
        the same probability. `permuted` gives every line an order of its own.

        Args:
            x: an array, or an int that stands for ``arange(x)`` and must be known
                before tracing.
            axis: the axis along which to permute.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of the shape and dtype of ``x``. Differentiable in ``x``.

        Raises:
            TypeError: if ``x`` is a traced int, or holds strings, dates or objects.
            ValueError: if ``x`` is a negative int.
            numpy.exceptions.AxisError: if ``x`` has no such axis, as a single number
                that is no int.

        Examples:
            >>> rng = stateful_rng(0)
            >>> sorted(rng.permutation(4).tolist())
            [0, 1, 2, 3]
            >>> rng.permutation(jnp.ones((3, 2)), axis=1).shape
            (3, 2)
        """
        who = "rng.permutation"
        population = _population(who, "x", x)
        if isinstance(population, int):
            if population < 0:
                _errors.value_error(who, "x must be >= 0", population)
            order: Array = step(
                self,
                who,
                program(_choice.random_order, (population,)),
                out_sharding=out_sharding,
            )
            return order
        if population.ndim == 0:
            must = "x must be an array, or an int that stands for its range"
            text = _errors.message(who, must, _errors.describe(x))
            raise np.exceptions.AxisError(text)
        axis = axis_of(who, axis, population.ndim)
        permuted: Array = step(
            self,
            who,
            program(_permutation, axis),
            population,
            out_sharding=out_sharding,
        )
        return permuted

    def permuted(
        self, x: RealLike, *, axis: int | None = None, out: None = None
    ) -> Array:
        """Return an array with every line along an axis permuted by itself.

        Each line gets an independent order, and each of the n! orders of a line has
        the same probability. `permutation` moves whole slices.

        Args:
            x: an array.
            axis: the axis along which to permute; ``None`` permutes all elements.
            out: only for NumPy's signature; must be ``None``.

        Returns:
            An array of the shape and dtype of ``x``. Differentiable in ``x``.

        Raises:
            TypeError: if ``x`` is a scalar, or holds strings or objects.
            numpy.exceptions.AxisError: if ``x`` has no such axis.
            NotImplementedError: if ``out`` is given: JAX arrays do not change.

        Examples:
            >>> rng = stateful_rng(0)
            >>> x = rng.permuted(jnp.arange(6).reshape(2, 3), axis=1)
            >>> x.sum(axis=1)
            Array([ 3, 12], dtype=int32)
        """
        who = "rng.permuted"
        refuse_out(who, out)
        population = _population(who, "x", x)
        ndim = 0 if isinstance(population, int) else population.ndim
        if axis is not None:
            axis = axis_of(who, axis, ndim)
        elif not ndim:
            _errors.type_error(who, "x must be an array", x, "Use rng.permutation(n).")
        permuted: Array = step(self, who, program(_permuted, axis), population)
        return permuted

    def shuffle(self, x: Any, axis: int = 0) -> None:
        """Permute an array, a list or a Ref in place.

        What ``x`` then holds is what `permutation` would have returned.

        Args:
            x: a NumPy array or a mutable sequence, outside of traced code, or a JAX
                Ref, in traced code too. A JAX array cannot change.
            axis: the axis along which to permute; 0 for a sequence.

        Raises:
            TypeError: if ``x`` cannot be written to, as a JAX array or a tuple, or
                the call is traced and ``x`` is no Ref.
            ValueError: if ``x`` is a NumPy array that is read-only.
            NotImplementedError: if ``axis`` is not 0 and ``x`` a sequence.
            numpy.exceptions.AxisError: if ``x`` has no such axis.

        Examples:
            >>> rng = stateful_rng(0)
            >>> deck = ["ace", "king", "queen"]
            >>> rng.shuffle(deck)
            >>> sorted(deck)
            ['ace', 'king', 'queen']
            >>> ref = jax.new_ref(jnp.arange(10))
            >>> jax.jit(lambda ref: rng.shuffle(ref))(ref)
            >>> int(ref[...].sum())
            45
        """
        who = "rng.shuffle"
        instead = "Write x = rng.permutation(x)."
        if isinstance(x, jax.Ref):
            axis = axis_of(who, axis, len(x.shape))
            x[...] = step(self, who, program(_permutation, axis), x[...])
            return
        if isinstance(x, jax.Array):
            must = "x must be a NumPy array, a list or a Ref: a JAX array cannot change"
            _errors.type_error(who, must, x, instead)
        if not isinstance(x, (np.ndarray, collections.abc.MutableSequence)):
            must = "x must be an array or a sequence that can be written to"
            _errors.type_error(who, must, x, instead)
        refuse_trace(who, self, "Shuffle a Ref, or write x = rng.permutation(x).")
        if isinstance(x, np.ndarray):
            axis = axis_of(who, axis, x.ndim)
            if not x.flags.writeable:
                _errors.value_error(who, "x must not be read-only", x, instead)
            x[...] = x[(slice(None),) * axis + (self._order(who, x.shape[axis]),)]
        else:
            if axis != 0:
                must = "axis must be 0 for a sequence"
                raise NotImplementedError(_errors.message(who, must, f"axis={axis}"))
            x[:] = [x[i] for i in self._order(who, len(x))]

    def _order(self, who: str, n: int) -> np.ndarray:
        order = step(self, who, program(_choice.random_order, (n,)))
        return np.asarray(order)


# --- Arguments ---------------------------------------------------------------------


def _population(who: str, name: str, value: Any) -> int | np.ndarray | Array:
    """Returns an int that stands for its range, or an array that JAX can hold."""
    array = as_arrays(who, name, value)
    if isinstance(array, np.ndarray) and array.ndim:
        if array.dtype.kind in "OUSmM":
            must = f"{name} must hold numbers: JAX has no strings, dates or objects"
            fix = f"Draw indices: np.asarray({name})[{who}(len({name}))]."
            _errors.type_error(who, must, value, fix)
        _refuse_lossy(who, name, array)
    if array.ndim == 0 and jnp.issubdtype(array.dtype, jnp.integer):
        return _indexable(who, name, static_int(who, name, value))
    return array


def _refuse_lossy(who: str, name: str, array: np.ndarray) -> None:
    """Refuses numbers that JAX would wrap or make infinite on the way to 32 bits."""
    narrow = jax.dtypes.canonicalize_dtype(array.dtype)
    if narrow == array.dtype or array.dtype.kind not in "iuf":
        return
    info = np.finfo(narrow) if array.dtype.kind == "f" else np.iinfo(narrow)
    known = array[np.isfinite(array)]
    if known.size and not (info.min <= known.min() and known.max() <= info.max):
        fix = f"{_errors.WIDER_INTS} Or draw indices: "
        fix += f"np.asarray({name})[{who}(len({name}))]."
        _errors.value_error(who, f"{name} must fit {narrow}", array, fix)


def _indexable(who: str, name: str, n: int) -> int:
    if n - 1 > np.iinfo(default_dtype(int)).max:
        must = f"{name} must fit {default_dtype(int)}"
        _errors.value_error(who, must, n, _errors.WIDER_INTS)
    return n


def axis_of(who: str, axis: Any, ndim: int) -> int:
    number = static_int(who, "axis", axis)
    if not -ndim <= number < ndim:
        raise np.exceptions.AxisError(number, ndim, who)
    return number % ndim


def _weights(who: str, p: Any, n: int, distinct: int) -> Array | np.ndarray:
    """Checks ``p`` and returns it as `_choice.weighted` takes it.

    Args:
        who: the call.
        p: the probabilities.
        n: how many there must be.
        distinct: how many of them must be above zero; where it is not 0, the result
            is as `_choice.weighted_distinct` takes it.
    """
    array = as_arrays(who, "p", p)
    if isinstance(array, jax.Array):
        _check_shape(who, array, n)
        return device_param(who, "p", array)
    precision = 2.0**-52
    if isinstance(p, np.ndarray) and jnp.issubdtype(p.dtype, jnp.floating):
        info = jnp.finfo(p.dtype)  # type: ignore[no-untyped-call]
        precision = max(precision, float(info.eps))
    exact = host_reals(who, "p", p).astype(np.float64)
    _check_shape(who, exact, n)
    if np.isnan(exact).any():
        _errors.value_error(who, "p must not be nan", p)
    if (exact < 0).any():
        _errors.value_error(who, "p must be >= 0", p)
    total = float(exact.sum())
    if not abs(total - 1) <= math.sqrt(precision):
        fix = "Write p / p.sum() with an array in float64."
        _errors.value_error(who, "p must sum to 1", total, fix)
    if distinct > np.count_nonzero(exact):
        must = f"p must have {distinct} or more entries above zero"
        _errors.value_error(who, must, p)
    if distinct:
        with np.errstate(divide="ignore"):
            exact = np.log(exact)
    return _choice.parts(exact)


def _check_shape(who: str, p: Array | np.ndarray, n: int) -> None:
    if p.ndim == 0:
        _errors.type_error(who, "p must be 1-dimensional", p)
    if p.ndim != 1:
        _errors.value_error(who, "p must be 1-dimensional", p)
    if p.shape[0] != n:
        _errors.value_error(who, f"p must have the {n} entries of a", p)


# --- Programs ----------------------------------------------------------------------

_Plan: TypeAlias = tuple[Callable[..., Array], tuple[Any, ...], tuple[Any, ...]]


def _plan(
    shape: Shape, n: int, replace: bool, p: Array | np.ndarray | None, shuffle: bool
) -> _Plan:
    """Returns the sampler of indices, its static arguments and its arrays."""
    number = math.prod(shape)
    if not number or (number == n and not replace and not shuffle):
        return _choice.in_order, (shape,), ()
    if p is not None:
        sampler = _choice.weighted if replace else _choice.weighted_distinct
        return sampler, (shape,), (p,)
    last = _choice.span_dtype(n - 1).type(n - 1)
    if replace:
        return _choice.repeated, (shape,), (last,)
    if _choice.table_pays(number, n):
        return _choice.many_distinct, (shape, n), ()
    return _choice.few_distinct, (shape,), (last,)


def _taken(
    key: Array,
    sampler: Callable[..., Array],
    static: tuple[Any, ...],
    axis: int,
    array: Array,
    *params: Array,
) -> Array:
    return _along(array, sampler(key, *static, *params), axis)


def _along(array: Array, index: Array, axis: int) -> Array:
    return jnp.take(array, index, axis, mode="clip")


def _permutation(key: Array, axis: int, array: Array) -> Array:
    return _along(array, _choice.random_order(key, (array.shape[axis],)), axis)


def _permuted(key: Array, axis: int | None, array: Array) -> Array:
    if axis is None:
        return _permutation(key, 0, array.reshape(-1)).reshape(array.shape)
    order = _choice.random_order(key, array.shape, axis)
    return jnp.take_along_axis(array, order, axis, mode="promise_in_bounds")

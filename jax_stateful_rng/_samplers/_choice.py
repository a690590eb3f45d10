"""Indices: random orders, distinct indices, and indices with weights.

All of it is exact integer arithmetic of 64 bits, which is there inside
``jax.enable_x64`` whether the user has switched 64-bit types on or not; only the
indices leave it, in JAX's default integer dtype.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._draw import default_dtype
from .._typing import Array, Shape
from . import _bits
from .simple import at_most

_U64 = np.dtype(np.uint64)
_F64 = np.dtype(np.float64)

# A table of all items is filled in less time than the draws are sorted where the draws
# are many and not much fewer than the items.
_TABLE_FROM = 2048
_ITEMS_PER_DRAW = 32


def span_dtype(last: int) -> np.dtype:
    """Returns the word that holds ``last``: uint32 if it can."""
    return np.dtype(np.uint32 if last < 2**32 else np.uint64)


def bit_length(n: int) -> int:
    """Returns how many bits the indices 0, …, n - 1 need."""
    return max(n - 1, 0).bit_length()


# --- Orders ------------------------------------------------------------------------


def random_order(key: Array, shape: Shape, axis: int = 0) -> Array:
    """Returns indices that permute an array of ``shape`` along ``axis``.

    Every line along the axis gets an order of its own, each of the n! with the same
    probability. One sort of words whose low bits are the index and whose high bits are
    random; runs of equal random bits are sorted once more by fresh ones, until there
    are none. So the lines are in the order of infinite sequences of random bits.

    Args:
        key: whose words are taken.
        shape: of the result.
        axis: along which to permute; its length is below 2**31.
    """
    n = shape[axis]
    result = default_dtype(int)
    if n < 2 or 0 in shape:
        return lax.broadcasted_iota(result, shape, axis)
    with jax.enable_x64(True):
        bits = bit_length(n)
        low, low2, top = (np.uint64(x) for x in (bits, 2 * bits, 64 - bits))
        place = lax.broadcasted_iota(_U64, shape, axis)
        mask = np.uint64(2**bits - 1)

        def words(turn: Array | int) -> Array:
            return _bits.words(key, shape, 1, turn, width=64)[0]

        def tied(packed: Array) -> Array:
            random = packed >> low
            return lax.slice_in_dim(random, 1, n, axis=axis) == lax.slice_in_dim(
                random, 0, n - 1, axis=axis
            )

        def again(state: tuple[Array, Array]) -> tuple[Array, Array]:
            turn, packed = state
            first = lax.slice_in_dim(place, 0, 1, axis=axis)
            later = lax.slice_in_dim(place, 1, n, axis=axis)
            starts = jnp.where(tied(packed), np.uint64(0), later)
            run = lax.cummax(jnp.concatenate([first, starts], axis), axis)
            random = (words(turn) >> low2) << low
            packed = (run << top) | random | (packed & mask)
            return turn + np.uint32(1), lax.sort(packed, dimension=axis)

        packed = lax.sort((words(0) << low) | place, dimension=axis)
        _, packed = lax.while_loop(
            lambda state: jnp.any(tied(state[1])), again, (jnp.uint32(1), packed)
        )
        return (packed & mask).astype(result)


# --- Equal weights -----------------------------------------------------------------


def repeated(key: Array, shape: Shape, last: Array) -> Array:
    """Returns independent indices, uniform on 0, …, ``last``."""
    return at_most(key, shape, last).astype(default_dtype(int))


def in_order(key: Array, shape: Shape) -> Array:
    """Returns all indices as they come; ``key`` is not needed."""
    del key
    return lax.iota(default_dtype(int), math.prod(shape)).reshape(shape)


def few_distinct(key: Array, shape: Shape, last: Array) -> Array:
    """Returns distinct indices, uniform over the ordered tuples of 0, …, ``last``.

    Draws all, then those again that repeat another, until none does. No step treats
    one index in another way than any other, so that each set has the same
    probability; then a random order. For at most half as many draws as items.
    """
    k = math.prod(shape)
    values, order = jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)

    def draw(turn: Array | int) -> Array:
        return at_most(values, (k,), last, turn)

    def repeats(found: Array) -> Array:
        return jnp.concatenate([jnp.zeros(min(k, 1), bool), found[1:] == found[:-1]])

    def again(state: tuple[Array, Array]) -> tuple[Array, Array]:
        turn, found = state
        found = lax.sort(jnp.where(repeats(found), draw(turn), found))
        return turn + np.uint32(1), found

    _, found = lax.while_loop(
        lambda state: jnp.any(repeats(state[1])),
        again,
        (jnp.uint32(1), lax.sort(draw(0))),
    )
    found = found.at[random_order(order, (k,))].get(mode="promise_in_bounds")
    return found.astype(default_dtype(int)).reshape(shape)


def many_distinct(key: Array, shape: Shape, n: int) -> Array:
    """Returns distinct indices, uniform over the ordered tuples of ``n`` items."""
    k = math.prod(shape)
    if 2 * k <= n:
        return _by_table(key, k, n).reshape(shape)
    return random_order(key, (n,))[:k].reshape(shape)


def _by_table(key: Array, k: int, n: int) -> Array:
    """Draws for all places; a place whose item another has taken draws again.

    Of the places that draw the same free item, the first one takes it: no rule looks
    at what the items are, so that all ordered tuples have the same probability.
    """
    place = lax.iota(jnp.int32, k)
    free, last = np.int32(k), np.uint32(n - 1)

    def again(
        state: tuple[Array, Array, Array, Array],
    ) -> tuple[Array, Array, Array, Array]:
        turn, found, owner, waits = state
        drawn = at_most(key, (k,), jnp.asarray(last), turn).astype(jnp.int32)
        found = jnp.where(waits, drawn, found)
        asks = waits & (owner.at[found].get(mode="promise_in_bounds") == free)
        owner = owner.at[jnp.where(asks, found, np.int32(n))].min(place, mode="drop")
        waits = owner.at[found].get(mode="promise_in_bounds") != place
        return turn + np.uint32(1), found, owner, waits

    start = (
        jnp.uint32(0),
        jnp.zeros(k, jnp.int32),
        jnp.full(n, free),
        jnp.ones(k, bool),
    )
    # The first turn stands before the loop, since inside jax.shard_map what the loop
    # carries must vary with the key from the start.
    _, found, _, _ = lax.while_loop(
        lambda state: jnp.any(state[3]), again, again(start)
    )
    return found.astype(default_dtype(int))


def table_pays(k: int, n: int) -> bool:
    """Whether `many_distinct` is the one to call, and not `few_distinct`."""
    return 2 * k > n or (k >= _TABLE_FROM and n <= _ITEMS_PER_DRAW * k)


# --- Weights -----------------------------------------------------------------------


def parts(x: np.ndarray) -> np.ndarray:
    """Splits float64 numbers into float32 pairs, which JAX passes on as they are."""
    high = x.astype(np.float32)
    low = np.where(np.isfinite(high), x, 0) - np.where(np.isfinite(high), high, 0)
    return np.stack([high, low.astype(np.float32)])


def _double(p: Array) -> Array:
    p = lax.stop_gradient(p).astype(_F64)
    return p[0] + p[1] if p.ndim == 2 else p


def _whole_weights(p: Array, total: int) -> Array:
    """Returns integer weights in proportion to ``p`` whose sum is ``total``.

    What is not positive and finite has the weight 0. What rounding leaves over goes to
    the greatest, and all to the first item where there is nothing else.
    """
    p = _double(p)
    p = jnp.where((p > 0) & (p < np.inf), p, 0.0)
    sum_ = jnp.sum(p)
    share = p / jnp.where(sum_ > 0, sum_, 1.0)
    weights = jnp.rint(share * float(total)).astype(_U64)
    rest = np.uint64(total) - jnp.sum(weights)  # modulo 2**64, like the sum below
    # Not argmax, which is lowered where 64-bit types are off again.
    place = lax.iota(jnp.int32, p.shape[0])
    greatest = jnp.min(jnp.where(weights == jnp.max(weights), place, p.shape[0]))
    return jnp.where(place == greatest, weights + rest, weights)


def weighted(key: Array, shape: Shape, p: Array) -> Array:
    """Returns independent indices, each with its weight's share of probability.

    To within 2**-62, and never one of weight 0. Many draws of few items by the alias
    method, few draws of many by inversion of the cumulated weights.

    Args:
        key: whose words are taken, two a draw.
        shape: of the result.
        p: the weights, or their `parts`; they need not sum to 1.
    """
    n = p.shape[-1]
    result = default_dtype(int)
    with jax.enable_x64(True):
        draw = _by_alias if math.prod(shape) >= 2 * n else _by_inversion
        return draw(key, shape, p).astype(result)


def _by_inversion(key: Array, shape: Shape, p: Array) -> Array:
    through = jnp.cumsum(_whole_weights(p, 2**62))
    (word,) = _bits.words(key, shape, 1, width=64)
    return jnp.searchsorted(through, word >> np.uint64(2), side="right")


def _by_alias(key: Array, shape: Shape, p: Array) -> Array:
    """Walker's method (1977): n buckets, each shared by its item and one alias."""
    n = p.shape[-1]
    tables = _alias_tables(p)
    high, low = (word.astype(_U64) for word in _bits.words(key, shape, 2))
    half, count = np.uint64(32), np.uint64(n)
    tail = low * count
    product = high * count + (tail >> half)
    bucket = (product >> half).astype(jnp.uint32)
    inside = (product << half) | (tail & np.uint64(2**32 - 1))
    # Tables of 32 bits, each looked up for one use only, leave XLA one fused loop; one
    # table of 64 bits takes three times as long on the CPU.
    first, second, alias = (
        table.at[bucket].get(mode="promise_in_bounds") for table in tables
    )
    share = (first.astype(_U64) << half) | second.astype(_U64)
    return jnp.where(inside < share, bucket, alias)


def _alias_tables(p: Array) -> tuple[Array, Array, Array]:
    """Returns for each bucket its item's share of 2**64, as two words, and the alias.

    The light items (no more than a bucket's worth) are filled up by the heavy ones in
    their order, and a heavy one that has given more than it can spare by the next:
    all of it follows from the cumulated deficits and surpluses. After
    Hübschle-Schneider and Sanders, "Parallel weighted random sampling" (2022).
    """
    n = p.shape[-1]
    bits = 62 - bit_length(n)
    full, zero = np.uint64(2**bits), np.uint64(0)
    weight = _whole_weights(p, n * 2**bits)
    item = lax.iota(jnp.uint32, n)

    def shared() -> tuple[Array, Array, Array]:
        light = weight <= full
        lacks = jnp.where(light, full - weight, zero)
        spares = jnp.where(light, zero, weight - full)
        deficit, surplus = jnp.cumsum(lacks), jnp.cumsum(spares)
        # On the line of all surpluses: who gives at the place where this item's need
        # begins, and how far the need of the last one that it fills goes beyond it.
        begins = jnp.where(light, deficit - lacks, surplus)
        alias = jnp.searchsorted(surplus, begins, side="right").astype(jnp.uint32)
        last = jnp.searchsorted(deficit, surplus, side="left")
        over = deficit.at[last].get(mode="clip") - surplus
        share = jnp.where(light, weight, full - over)
        # Who keeps all of the bucket, 2**64 and so 0 in the words, is the alias too.
        alias = jnp.where(share == full, item, alias)
        share <<= np.uint64(64 - bits)
        first = (share >> np.uint64(32)).astype(jnp.uint32)
        return first, share.astype(jnp.uint32), alias

    def single() -> tuple[Array, Array, Array]:
        nothing = jnp.zeros(n, jnp.uint32)
        return nothing, nothing, item

    # A branch also keeps XLA from fusing this into each of the lookups.
    tables: tuple[Array, Array, Array]
    tables = lax.cond(jnp.any(weight != full), shared, single)
    return tables


def weighted_distinct(key: Array, shape: Shape, p: Array) -> Array:
    """Returns distinct indices, drawn one after the other by their weights.

    The k least of E / p with exponential E: the first is i with probability p_i, the
    next one in proportion to what is left, and so on. Items of weight 0 come after all
    others. After Efraimidis and Spirakis, "Weighted random sampling with a reservoir"
    (2006).

    Args:
        key: whose words are taken, two an item.
        shape: of the result; no more elements than items.
        p: the weights, or the `parts` of their logarithms.
    """
    n = p.shape[-1]
    result = default_dtype(int)
    with jax.enable_x64(True):
        bits = bit_length(n)
        log_p = _double(p)
        if p.ndim == 1:
            usable = (log_p > 0) & (log_p < np.inf)
            log_p = jnp.log(jnp.where(usable, log_p, 0.0))
        (word,) = _bits.words(key, (n,), 1, width=64)
        unit = ((word >> np.uint64(11)).astype(_F64) + 0.5) * 2.0**-53
        # In (0, 2047), since E lies in (2**-54, 38) and p in (2**-1075, 2**1024).
        score = jnp.log(-jnp.log1p(-unit)) - log_p + 768.0
        score = jnp.where(log_p == -np.inf, 2047.0, score)
        fixed = (score * 2.0 ** min(42, 53 - bits)).astype(_U64)
        packed = lax.sort((fixed << np.uint64(bits)) | lax.iota(_U64, n))
        order = (packed & np.uint64(2**bits - 1)).astype(result)
    return order[: math.prod(shape)].reshape(shape)

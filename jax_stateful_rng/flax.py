"""Between generators and ``flax.nnx``. Needs flax: the extra ``flax``.

A `StatefulPRNG` and an ``nnx.RngStream`` are the same stream in two forms: draw ``n``
of both is ``jax.random.fold_in(base key, n)``, so that `to_nnx` and `from_nnx` carry
over the key and the count.

A generator can also be an attribute of an ``nnx.Module``, below ``nnx.jit``,
``nnx.grad`` and ``nnx.split``. Importing this module tells flax that a generator and a
state are data; without the import write ``self.rng = nnx.data(rng)``.

Examples:
    >>> from flax import nnx
    >>> import jax_stateful_rng.flax
    >>> class Noisy(nnx.Module):
    ...     def __init__(self, rng):
    ...         self.rng = rng
    ...     def __call__(self, x):
    ...         return x + self.rng.normal(size=x.shape)
    >>> noisy = Noisy(stateful_rng(0))
    >>> y = nnx.jit(lambda model, x: model(x))(noisy, jnp.zeros(3))
    >>> noisy.rng
    StatefulPRNG(impl='threefry2x32', count=1)
"""

from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np

try:
    from flax import nnx
except ModuleNotFoundError as _error:
    raise ModuleNotFoundError(
        "jax_stateful_rng.flax needs flax: pip install 'jax-stateful-rng[flax]'.",
        name=_error.name,
    ) from _error

from . import _counter, _errors
from ._generator import StatefulPRNG, stateful_rng
from ._state import PRNGState
from ._streams import rngs_from_seed as rngs_from_seed

Rngs = nnx.Rngs

__all__ = ["from_nnx", "rngs_from_seed", "to_nnx"]

nnx.register_data_type(StatefulPRNG)
nnx.register_data_type(PRNGState)


def to_nnx(source: StatefulPRNG | Mapping[str, StatefulPRNG]) -> nnx.Rngs:
    """Return the ``nnx.Rngs`` that goes on where generators are.

    Both forms now stand at the same place of the same stream: go on with one of them
    only, or they draw the same keys. To keep the generator, give the model a child:
    ``to_nnx(rng.fold_in("model"))``.

    Args:
        source: a generator, which becomes the stream ``default`` that serves every
            name, or a mapping of named generators. Batched ones become split
            streams.

    Returns:
        An ``nnx.Rngs`` whose draws are those that the generators would have made
        next. Its count has 32 bits, and starts again after 2**32 draws.

    Raises:
        TypeError: if ``source`` is neither, or a name is no string.

    Examples:
        >>> from flax import nnx
        >>> rng = stateful_rng(0)
        >>> model = nnx.Linear(2, 3, rngs=to_nnx(rng.fold_in("model")))
        >>> bool(to_nnx(rng).params() == rng.key())
        True
    """
    named = {"default": source} if isinstance(source, StatefulPRNG) else source
    must = "source must be a StatefulPRNG or a mapping from names to StatefulPRNG"
    if not isinstance(named, Mapping):
        _errors.type_error("to_nnx", must, named)
    for name, rng in named.items():
        if not isinstance(name, str) or not isinstance(rng, StatefulPRNG):
            _errors.type_error("to_nnx", must, {name: rng})
    states = {name: rng.state() for name, rng in named.items()}
    # What the high word changes in the keys goes into the base key.
    keys = {
        name: _counter.mix(state.base_key, state.counter[..., 0])
        for name, state in states.items()
    }
    rngs = nnx.Rngs(keys)
    for name, stream in streams_of(rngs).items():
        stream.count.set_value(states[name].counter[..., 1])
    return rngs


def from_nnx(rngs: nnx.Rngs) -> dict[str, StatefulPRNG]:
    """Return the generators that go on where the streams of an ``nnx.Rngs`` are.

    As after `to_nnx`, go on with one of the two forms only.

    Args:
        rngs: its streams may be split.

    Returns:
        A dict of generators by name, whose keys are those that the streams would
        have given next.

    Raises:
        TypeError: if it is no ``nnx.Rngs``.

    Examples:
        >>> from flax import nnx
        >>> rngs = nnx.Rngs(params=0, dropout=1)
        >>> key = rngs.dropout()
        >>> from_nnx(rngs)["dropout"]
        StatefulPRNG(impl='threefry2x32', count=1)
    """
    if not isinstance(rngs, nnx.Rngs):
        _errors.type_error("from_nnx", "rngs must be an nnx.Rngs", rngs)
    generators = {}
    for name, stream in streams_of(rngs).items():
        low = stream.count.get_value().astype(np.uint32)
        counter = jnp.stack([jnp.zeros_like(low), low], axis=-1)
        generators[name] = stateful_rng(PRNGState(stream.key.get_value(), counter))
    return generators


def streams_of(rngs: nnx.Rngs) -> dict[str, nnx.RngStream]:
    """Return the streams that an ``nnx.Rngs`` holds itself, by name."""
    return {name: rngs[name] for name in rngs}

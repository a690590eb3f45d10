"""The von Mises law, on the circle."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import i0e, i1e

from .._draw import Draws, law, nonnegative, real
from .._typing import Array, DTypeLike, OutSharding, RealLike, Shape, Size
from . import _bits, _bulk, _noise
from ._noise import fit


class Circular(Draws):
    """The method of a generator that draws angles."""

    def vonmises(
        self,
        mu: RealLike,
        kappa: RealLike,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
        out_sharding: OutSharding = None,
    ) -> Array:
        r"""Draw from the von Mises distribution, the normal law of the circle.

        The density, for :math:`-\pi \le x \le \pi`, is

        .. math:: p(x) = \frac{e^{\kappa\cos(x-\mu)}}{2\pi I_0(\kappa)}.

        Exact for any ``kappa``, from the uniform law at 0 to a point at infinity.
        Differentiable in ``mu``, and in ``kappa`` by implicit reparameterisation
        (the integral by Gauss's rule).

        Args:
            mu: the mode :math:`\mu`; any real number. Whole turns are taken off before
                the draw, of a number known on the host in float64.
            kappa: the concentration :math:`\kappa`; >= 0.
            size: result shape; ``None`` gives the shape of the parameters.
            dtype: a float dtype; ``float`` is float32, or float64 under x64.
            out_sharding: where the result is to lie, each part made where it lies.

        Returns:
            An array of shape ``size``, of angles in :math:`[-\pi, \pi]`. ``nan`` where
            a traced or device ``kappa`` is negative.

        Raises:
            ValueError: if ``kappa`` is negative or ``-0.0``, known on the host.

        Examples:
            >>> rng = stateful_rng(0)
            >>> x = rng.vonmises(7.0, [0.0, 1.0, 1e15])
            >>> bool((abs(x) <= np.pi).all())
            True

        References:
            Best and Fisher, "Efficient simulation of the von Mises distribution"
            (1979), with the angles by the half-angle's tangent, which keeps its digits
            at any concentration.
        """
        return self._draw(_vonmises, size, dtype, mu, kappa, out_sharding=out_sharding)


_WHOLE_TURN = 2 * math.pi
_TURN_IN_FEW_BITS = 6.28125
"""So that its product with some thousand turns is exact."""
_STRAIGHT = 1e12
"""Beyond this concentration the circle is straight to the last place of a float."""


@law(real("mu", period=_WHOLE_TURN), nonnegative("kappa"))
def _vonmises(
    key: Array, shape: Shape, dtype: np.dtype, mu: Array, kappa: Array
) -> Array:
    # First the turns of mu, and only then the noise, which would be rounded beside it.
    turns = jnp.round(mu / _WHOLE_TURN)
    mu = mu - turns * _TURN_IN_FEW_BITS - turns * (_WHOLE_TURN - _TURN_IN_FEW_BITS)
    mu = fit(shape, mu)
    legal = kappa >= 0
    safe = jnp.clip(jnp.where(legal, kappa, 1), 1e-30, _STRAIGHT)
    shrink = jnp.where(kappa > _STRAIGHT, jnp.sqrt(safe / kappa), 1)
    angle = mu + fit(shape, shrink) * _circular(key, safe, shape, dtype)
    turns = jnp.round(angle / _WHOLE_TURN)
    angle = jnp.where(abs(angle) > math.pi, angle - _WHOLE_TURN * turns, angle)
    # The largest angle that is below pi: float32's pi is above it.
    limit = np.nextafter(dtype.type(math.pi), dtype.type(0))
    return jnp.where(fit(shape, legal), jnp.clip(angle, -limit, limit), np.nan)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2, 3))
def _circular(key: Array, kappa: Array, shape: Shape, dtype: np.dtype) -> Array:
    """Returns angles of mode 0 in [-pi, pi], for 0 < kappa <= 1e12.

    Best and Fisher propose from a wrapped Cauchy law: tan(angle / 2) is a Cauchy
    variate times sqrt((r - 1) / (r + 1)).
    """
    tangent = _bulk.reject(
        key,
        shape,
        (kappa,),
        _propose_tangent,
        derive=_envelope,
        refused=np.inf,
        otherwise=0,
        dtype=dtype,
        width=dtype.itemsize * 8,
        spare=0.36,
    )
    return 2 * jnp.arctan(tangent)


def _envelope(kappa: Array) -> tuple[Array, Array, Array]:
    """Returns kappa, r - 1 and the Cauchy scale, without cancellation."""
    tau = jnp.sqrt(1 + 4 * kappa * kappa)
    whole = tau + 1 + jnp.sqrt(2 * (tau + 1))
    rho = 2 * kappa / whole
    one_minus_rho = (whole - tau + 1 / (tau + 2 * kappa)) / whole
    excess = one_minus_rho**2 / (2 * rho)
    return kappa, excess, jnp.sqrt(excess / (excess + 2))


def _propose_tangent(
    bits: list[Array], kappa: Array, excess: Array, width: Array
) -> Array:
    tangent = width * _noise.cauchy(bits[0])
    square = tangent * tangent
    c = kappa * (excess + 2 * square / (1 + square))
    accepted = jnp.log(c / _bits.open_unit(bits[1])) + 1 >= c
    return jnp.where(accepted, tangent, np.inf)


@_circular.defjvp
def _circular_jvp(
    shape: Shape, dtype: np.dtype, primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[Array, Array]:
    """The implicit derivative, -dF/dkappa / p.

    It is the integral of (A - cos t) exp(kappa (cos t - cos x)) from 0 to x, where A
    is the mean of cos; beyond the angle of that mean, of (cos t - A) … from x to pi,
    so that nothing cancels. Gauss's rule with 32 nodes, over as much of the interval
    as matters.
    """
    key, kappa = primals
    angle = _circular(key, kappa, shape, dtype)
    kappa = jnp.broadcast_to(kappa, shape)
    x = abs(angle)
    # 1 - A, whose asymptotic series is exact to 1e-7 from 30 and 1e-13 from 1000 on.
    large = jnp.maximum(kappa, 30 if dtype == np.float32 else 1000)
    series = (1 / 2 + (1 / 8 + (1 / 8 + 25 / 128 / large) / large) / large) / large
    small = jnp.minimum(kappa, large)
    gap = jnp.where(kappa < large, 1 - i1e(small) / i0e(small), series)
    inside = 2 * jnp.sin(x / 2) ** 2 < gap
    reach = jnp.minimum(math.pi - x, jnp.sqrt(2 * 20 / kappa))
    length = jnp.where(inside, -x, reach)
    nodes, weights = np.polynomial.legendre.leggauss(32)
    total = jnp.zeros(shape, dtype)
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        t = x + length * dtype.type(node)
        height = gap - 2 * jnp.sin(t / 2) ** 2
        rise = 2 * jnp.sin((x + t) / 2) * jnp.sin((x - t) / 2)
        total += dtype.type(weight) * height * jnp.exp(kappa * rise)
    slope = jnp.sign(angle) * length * total
    return angle, slope * jnp.broadcast_to(tangents[1], shape)

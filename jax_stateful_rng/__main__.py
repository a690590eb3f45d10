"""A tour of ten seconds that checks what it shows: ``python -m jax_stateful_rng``.

The tour is a session as one would type it. Each line is run, what it gives is
printed, and that is compared with what is written here (``...`` stands for anything).
"""

import copy
import doctest
import itertools
import os
import sys
import textwrap
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from . import __version__
from ._generator import stateful_rng

TOUR = """
NumPy's methods. A draw moves the generator on.

    >>> rng = stateful_rng(1701)
    >>> rng.random(4)
    Array([...)
    >>> dice = rng.integers(1, 6, size=12, endpoint=True)
    >>> dice
    Array([...)
    >>> bool(jnp.all((dice >= 1) & (dice <= 6)))
    True
    >>> rng
    StatefulPRNG(impl=..., count=2)

Inside jit. New noise at every call.

    >>> noisy = jax.jit(lambda x: x + rng.normal())
    >>> a, b = noisy(1.0), noisy(1.0)
    >>> float(a), float(b)
    (...)
    >>> bool(a != b)
    True
    >>> rng
    StatefulPRNG(impl=..., count=4)

Inside grad, with rematerialization. The gradient is taken at the noise of the value.

    >>> @jax.value_and_grad
    ... @jax.checkpoint
    ... def loss(weight):
    ...     return weight * jnp.sin(rng.uniform())
    >>> value, gradient = loss(1.0)
    >>> float(value), float(gradient)
    (...)
    >>> bool(value == gradient)
    True
    >>> rng
    StatefulPRNG(impl=..., count=5)

Under vmap. Split first: each lane draws what its child draws alone.

    >>> twin = copy.copy(rng)
    >>> lanes = jax.vmap(lambda rng: rng.random(2))(rng.split(3))
    >>> lanes
    Array([[...)
    >>> alone = jnp.stack([child.random(2) for child in twin.spawn(3)])
    >>> bool(jnp.all(lanes == alone))
    True

What could go wrong is an error that names the way out.

    >>> rng.split(3).normal()
    Traceback (most recent call last):
    ValueError: rng.normal: a batched generator does not draw by itself; ...

A key for jax.random. The n-th is fold_in(base key, n).

    >>> key = rng.key()
    >>> jax.random.ball(key, 2)
    Array([...)
    >>> bool(key == jax.random.fold_in(jax.random.key(1701), 7))
    True
"""

_NAMES = {"copy": copy, "jax": jax, "jnp": jnp, "stateful_rng": stateful_rng}
_WIDTH = 88
_BOLD, _RED, _GREEN = 1, 31, 32


def _colored(code: int, text: str) -> str:
    return f"\033[{code}m{text}\033[0m"


def _plain(code: int, text: str) -> str:
    return text


class _Runner(doctest.DocTestRunner):
    """Shows a session while it runs, and stops at the first line that is not so."""

    def __init__(
        self, headings: Mapping[int, str], style: Callable[[int, str], str]
    ) -> None:
        super().__init__(
            optionflags=doctest.ELLIPSIS
            | doctest.NORMALIZE_WHITESPACE
            | doctest.FAIL_FAST
        )
        self._headings = headings
        self._style = style

    def report_start(
        self,
        out: Callable[[str], object],
        test: doctest.DocTest,
        example: doctest.Example,
    ) -> None:
        if heading := self._headings.get(example.lineno):
            out(f"\n{self._style(_BOLD, heading)}\n\n")
        prompt = "    >>> "
        for line in example.source.splitlines():
            out(f"{prompt}{line}\n")
            prompt = "    ... "

    def report_success(
        self,
        out: Callable[[str], object],
        test: doctest.DocTest,
        example: doctest.Example,
        got: str,
    ) -> None:
        if example.exc_msg is not None:
            # The message alone: the frames are those of doctest.
            message = got.rstrip().splitlines()[-1]
            got = textwrap.fill(message, _WIDTH - 4, break_on_hyphens=False) + "\n"
        out(textwrap.indent(got, "    "))

    def report_failure(
        self,
        out: Callable[[str], object],
        test: doctest.DocTest,
        example: doctest.Example,
        got: str,
    ) -> None:
        out(textwrap.indent(got, "    "))
        wanted = example.want.strip() or "nothing"
        out(self._style(_RED, f"    NOT SO. It should be: {wanted}") + "\n")

    def report_unexpected_exception(
        self,
        out: Callable[[str], object],
        test: doctest.DocTest,
        example: doctest.Example,
        exc_info: Any,
    ) -> None:
        raised = "".join(traceback.format_exception(*exc_info))
        self.report_failure(out, test, example, raised)


def main(tour: str = TOUR, names: Mapping[str, Any] = _NAMES) -> int:
    """Runs the tour.

    Args:
        tour: a session in doctest's form, with headings.
        names: what it may use.

    Returns:
        The exit status: 0, or 1 if anything shown is not what the tour says.
    """
    start = time.perf_counter()
    # Asked here, since doctest puts its own stdout in place while it runs.
    terminal = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    style = _colored if terminal else _plain
    device = jax.devices()[0].platform
    print(f"jax_stateful_rng {__version__} with jax {jax.__version__} on {device}")
    parts = doctest.DocTestParser().parse(tour)
    headings = {
        example.lineno: text.strip()
        for text, example in itertools.pairwise(parts)
        if isinstance(text, str) and not isinstance(example, str) and text.strip()
    }
    examples = [part for part in parts if isinstance(part, doctest.Example)]
    test = doctest.DocTest(examples, dict(names), "tour", None, 0, tour)
    failed, tried = _Runner(headings, style).run(test)
    took = time.perf_counter() - start
    if failed:
        print(f"\n{style(_RED, 'FAILED')}: the tour stopped at line {tried}.")
        return 1
    print(f"\n{style(_GREEN, 'OK')}: {tried} lines, each checked, in {took:.1f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

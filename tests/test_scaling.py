"""The page *Scaling out*: its code runs, and its training is that of one device."""

import re
from pathlib import Path

import jax
import numpy as np
import pytest

PAGE = Path(__file__).parents[1] / "docs" / "scaling.md"

pytestmark = [
    pytest.mark.skipif(not PAGE.exists(), reason="the pages are not packed"),
    pytest.mark.skipif(jax.device_count() < 8, reason="needs 8 devices"),
]


def blocks():
    text = PAGE.read_text(encoding="utf-8")
    found = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    return [block for block in found if "(seed, " not in block]


def run(*sources):
    names = {}
    for source in sources:
        exec(compile(source, str(PAGE), "exec"), names)
    return names


def test_the_pieces_on_meshes():
    *pieces, _training = blocks()
    names = run(*pieces)
    one = jax.vmap(lambda rng: rng.normal(size=4))
    rng = names["stateful_rng"](0)
    rng.normal()
    rng.normal()
    rng.split(16)
    np.testing.assert_allclose(names["x"], one(rng.split(16)), rtol=1e-6, atol=1e-6)
    assert len(names["noise"].addressable_shards) == 8


def test_training_on_eight_devices_is_training_on_one():
    names = run(blocks()[-1])
    losses, masks = names["losses"], names["masks"]
    assert losses[-1] < losses[0] / 4
    # Every device has rows of its own, and no two have the same mask.
    assert len(masks) == 8
    assert all(mask.shape == (8, 16) for mask in masks)
    assert len({np.asarray(mask).tobytes() for mask in masks}) == 8
    alone, keep = names["train"](jax.devices()[:1])
    np.testing.assert_allclose(losses, alone, rtol=1e-5)
    np.testing.assert_array_equal(np.concatenate(masks), keep)

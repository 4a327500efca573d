"""The space of UTF-8 texts."""

from __future__ import annotations

import pickle

import pytest
from gymnasium.vector.utils import batch_space

from provegym.spaces import Utf8


def test_samples_are_members(seed: int) -> None:
    for most in (0, 1, 2, 3, 7, 100):
        space = Utf8(most, seed=seed)
        for _ in range(200):
            sample = space.sample()
            assert sample in space and len(sample.encode()) <= most
    lengths = {len(space.sample().encode()) for _ in range(100)}
    assert len(lengths) > 10


def test_samples_follow_the_seed(seed: int) -> None:
    a, b = Utf8(100, seed=seed), Utf8(100)
    b.seed(seed)
    assert [a.sample() for _ in range(9)] == [b.sample() for _ in range(9)]


@pytest.mark.parametrize(
    ("text", "member"),
    [
        ("", True),
        ("abcdef", True),
        ("abcdefg", False),
        ("žžž", True),
        ("žžža", False),
        ("🜁🜁", False),
        ("\ud800", False),
        (b"a", False),
        (3, False),
    ],
)
def test_contains_counts_bytes(text: object, member: bool) -> None:
    assert (text in Utf8(6)) is member


def test_equality_pickle_repr_and_json() -> None:
    space = Utf8(6)
    assert space == pickle.loads(pickle.dumps(space)) and space != Utf8(7) and hash(space) == hash(Utf8(6))
    assert repr(space) == "Utf8(6)" and eval(repr(space), {"Utf8": Utf8}) == space
    assert space.from_jsonable(space.to_jsonable(["a", "ž"])) == ["a", "ž"]
    assert ("a", "b") in batch_space(space, 2)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="negative"):
        Utf8(-1)
    with pytest.raises(ValueError, match="mask"):
        Utf8(3).sample(mask=1)

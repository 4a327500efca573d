"""The space of UTF-8 texts, which Gymnasium's ``Text`` (a fixed set of single characters) cannot describe."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

__all__ = ["Utf8"]

# What samples are made of: one, two, three and four bytes of UTF-8 each, a quote and a backslash among them.
_ALPHABET = 'abcxyz 019{}[]":\\,éßл字🜁'
_SAMPLE_CHARACTERS = 32


class Utf8(gym.Space[str]):
    """Strings whose UTF-8 encoding has at most ``max_bytes`` bytes.

    Args:
        max_bytes: The longest encoding, in bytes; not negative.
        seed: Seed or generator of ``sample``.

    Raises:
        ValueError: If ``max_bytes`` is negative.

    >>> space = Utf8(8)
    >>> "žluťák" in space, "žluťáček" in space, b"bytes" in space
    (False, False, False)
    >>> "žlutak" in space
    True
    """

    def __init__(self, max_bytes: int, *, seed: int | np.random.Generator | None = None) -> None:
        """Makes the space."""
        if max_bytes < 0:
            raise ValueError(f"max_bytes must not be negative, got {max_bytes}")
        self.max_bytes = int(max_bytes)
        super().__init__(None, None, seed)

    @property
    def is_np_flattenable(self) -> bool:
        """Whether the space can be flattened to an array: no."""
        return False

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """Returns a random valid text, mostly short.

        Args:
            mask: Not supported.
            probability: Not supported.

        Raises:
            ValueError: If a mask or probabilities are given.
        """
        if mask is not None or probability is not None:
            raise ValueError("Utf8 samples take no mask and no probabilities")
        length = int(self.np_random.integers(0, _SAMPLE_CHARACTERS + 1))
        text = "".join(_ALPHABET[i] for i in self.np_random.integers(0, len(_ALPHABET), size=length))
        return text.encode()[: self.max_bytes].decode(errors="ignore")

    def contains(self, x: Any) -> bool:
        """Whether ``x`` is a string that encodes to at most ``max_bytes`` bytes of UTF-8."""
        if not isinstance(x, str) or len(x) > self.max_bytes:
            return False
        try:
            return len(x.encode()) <= self.max_bytes
        except UnicodeEncodeError:  # a lone surrogate
            return False

    def to_jsonable(self, sample_n: Any) -> list[str]:
        """Returns the samples as a list of strings."""
        return list(sample_n)

    def from_jsonable(self, sample_n: list[Any]) -> list[str]:
        """The inverse of ``to_jsonable``."""
        return [str(s) for s in sample_n]

    def __eq__(self, other: object) -> bool:
        """Whether ``other`` is the same space."""
        return isinstance(other, Utf8) and self.max_bytes == other.max_bytes

    def __hash__(self) -> int:
        """Hashes what ``__eq__`` compares."""
        return hash((Utf8, self.max_bytes))

    def __repr__(self) -> str:
        """Returns ``Utf8(max_bytes)``."""
        return f"Utf8({self.max_bytes})"

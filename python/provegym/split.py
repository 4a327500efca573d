"""Splits: which conditions each mode may see, frozen and hashed before training."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provegym import _lib
from provegym.errors import BadInputError, StoreError

__all__ = ["Split"]


class Split:
    """A frozen split manifest.

    A draft is a dict with ``pack`` and what it holds out: ``families``, ``graphs`` and ``mechanisms`` (name to region, "eval"
    or "test"), ``combinations`` of dial settings, ``train_dials``. Freezing it checks it and gives it its hash.
    """

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        """Takes a manifest as it is; whoever uses it checks it. Most callers want ``freeze`` or ``of``."""
        self.manifest: dict[str, Any] = dict(manifest)

    @classmethod
    def freeze(cls, draft: Mapping[str, Any]) -> Split:
        """Checks and hashes a draft; a manifest that has its hash is verified.

        Raises:
            UnknownNameError: If it names a pack, family or dial that does not exist.
            BadInputError: If it is malformed, or was changed after it was frozen.
        """
        return cls(_lib.request("split.freeze", {"split": dict(draft)})["split"])

    @classmethod
    def of(cls, value: Split | Mapping[str, Any] | str | Path) -> Split:
        """Returns a split from itself, its manifest, or the path of its JSON file.

        Raises:
            StoreError: If the file cannot be read.
            BadInputError: If it is not a JSON object.
        """
        if isinstance(value, Split):
            return value
        if isinstance(value, Mapping):
            return cls(value)
        if not isinstance(value, str | Path):
            raise BadInputError(f"a split is a Split, a manifest or the path of one, not {type(value).__name__}")
        try:
            manifest = json.loads(Path(value).read_text(encoding="utf-8"))
        except OSError as err:
            raise StoreError(f"split {value}: {err.strerror}") from err
        except ValueError as err:
            raise BadInputError(f"split {value} is not JSON: {err}") from err
        if not isinstance(manifest, dict):
            raise BadInputError(f"split {value} is not a JSON object")
        return cls(manifest)

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical manifest, in hex; empty for a draft."""
        return str(self.manifest.get("sha256", ""))

    def save(self, path: str | Path) -> None:
        """Writes the manifest as JSON, by a temporary file and rename."""
        path = Path(path)
        temporary = path.with_name(path.name + ".tmp")
        temporary.write_text(json.dumps(self.manifest, indent=2) + "\n", encoding="utf-8")
        temporary.replace(path)

    def region(self, condition: str) -> tuple[str, str]:
        """Returns the region of a condition id (train, eval or test) and, if it is held out, by what.

        Raises:
            UnknownNameError: If the id names a pack, family or dial that does not exist.
        """
        answer = _lib.request("split.region", {"split": self.manifest, "condition": condition})
        return answer["region"], answer.get("why", "")

    def __eq__(self, other: object) -> bool:
        """Whether both are the same manifest."""
        return isinstance(other, Split) and self.manifest == other.manifest

    def __hash__(self) -> int:
        """Hashes the manifest's own hash."""
        return hash(self.hash)

    def __repr__(self) -> str:
        """Returns pack and hash."""
        return f"Split({self.manifest.get('pack')!r}, sha256={self.hash[:12]!r})"

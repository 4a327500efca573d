"""Writes python/provegym/manifest.json, from which importing the package registers its ids, by asking the built library.

With --check it writes nothing and fails if the file is stale.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from provegym import _lib

TARGET = Path(__file__).resolve().parent.parent / "provegym" / "manifest.json"


def text() -> str:
    """Returns what the file must hold."""
    packs = [
        {
            "name": p["name"],
            "title": p["title"],
            "version": p["version"],
            "doc": p["doc"],
            "views": p["views"],
            "families": [f["name"] for f in p["families"]],
            "dials": [d["name"] for d in p["dials"]],
            "presets": [s["name"] for s in p["presets"]],
        }
        for p in _lib.request("packs")["packs"]
    ]
    return json.dumps({"packs": packs}, indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    """Writes or checks it."""
    fresh = text()
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == fresh:
        return 0
    if "--check" in sys.argv[1:]:
        print(f"{TARGET.name} is stale; run: make generate", file=sys.stderr)
        return 1
    TARGET.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

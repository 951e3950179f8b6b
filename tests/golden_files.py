"""Files that hold what an answer has to be. `UPDATE_GOLDEN=1` writes them; the diff is reviewed."""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def check(name: str, text: str) -> None:
    """Compare with the file, or write it when that was asked for."""
    path = FOLDER / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")

    assert text == path.read_text(encoding="utf-8")

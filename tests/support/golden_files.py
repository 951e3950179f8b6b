"""Golden files with the expected answers. `UPDATE_GOLDEN=1` writes them; the diff is reviewed."""

import os

from tests.support.paths import TESTS_FOLDER

GOLDEN_FOLDER = TESTS_FOLDER / "golden"


def compare_golden_file(name: str, text: str) -> None:
    """Compare a text with its golden file, or write the file if UPDATE_GOLDEN is set."""
    path = GOLDEN_FOLDER / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")

    assert text == path.read_text(encoding="utf-8")

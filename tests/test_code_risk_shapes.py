"""Shapes of code that people write with each framework: what is vulnerable is found, and why.

A case in `fixtures/risk_shapes` begins with the category of the flow, or `safe`, and a title. A
line `@@ path` begins another file of the same case.
"""

from pathlib import Path

import pytest

from tests.risk_world import risks

FOLDER = Path(__file__).parent / "fixtures" / "risk_shapes"
NAMES = {
    "python": "a.py",
    "javascript": "a.js",
    "typescript": "a.ts",
    "tsx": "a.tsx",
    "java": "A.java",
    "go": "a.go",
    "php": "a.php",
}


def cases() -> list[object]:
    found: list[object] = []
    for file in sorted(FOLDER.glob("*.txt")):
        lang = file.stem
        for block in f"\n{file.read_text('utf-8')}".split("\n=== ")[1:]:
            head, _, text = block.partition("\n")
            category, _, title = head.partition(" | ")
            files = _files(text, NAMES[lang])
            found.append(pytest.param(lang, category, files, id=f"{lang}: {title}: {category}"))
    return found


def _files(text: str, name: str) -> dict[str, str]:
    files: dict[str, str] = {}
    for line in text.splitlines(keepends=True):
        if line.startswith("@@ "):
            name = line[3:].strip()
        else:
            files[name] = files.get(name, "") + line
    return files


@pytest.mark.parametrize(("lang", "category", "files"), cases())
def test_a_shape_has_a_flow_of_its_category_or_none(
    lang: str, category: str, files: dict[str, str]
) -> None:
    found = {flow.category for risk in risks(files, lang).values() for flow in risk.flows}

    if category == "safe":
        assert found == set()
    else:
        assert category in found

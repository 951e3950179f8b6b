"""Typical code with each framework: vulnerable code is found, with the right category.

A case in `fixtures/risk_shapes` begins with the category of the flow, or `safe`, and a title. A
line `@@ path` begins another file of the same case.
"""

import pytest

from tests.support.paths import TESTS_FOLDER
from tests.support.risk import link_risks

CASES_FOLDER = TESTS_FOLDER / "fixtures" / "risk_shapes"
FILE_NAME_BY_LANGUAGE = {
    "python": "a.py",
    "javascript": "a.js",
    "typescript": "a.ts",
    "tsx": "a.tsx",
    "java": "A.java",
    "go": "a.go",
    "php": "a.php",
}


def read_cases() -> list[object]:
    parameters: list[object] = []
    for file in sorted(CASES_FOLDER.glob("*.txt")):
        lang = file.stem
        for block in f"\n{file.read_text('utf-8')}".split("\n=== ")[1:]:
            head, _, text = block.partition("\n")
            category, _, title = head.partition(" | ")
            files = _split_files(text, FILE_NAME_BY_LANGUAGE[lang])
            parameters.append(pytest.param(lang, category, files, id=f"{lang}: {title}: {category}"))
    return parameters


def _split_files(text: str, name: str) -> dict[str, str]:
    files: dict[str, str] = {}
    for line in text.splitlines(keepends=True):
        if line.startswith("@@ "):
            name = line[3:].strip()
        else:
            files[name] = files.get(name, "") + line
    return files


@pytest.mark.parametrize(("lang", "category", "files"), read_cases())
def test_a_shape_has_a_flow_of_its_category_or_none(lang: str, category: str, files: dict[str, str]) -> None:
    categories = {flow.category for risk in link_risks(files, lang).values() for flow in risk.flows}

    if category == "safe":
        assert categories == set()
    else:
        assert category in categories

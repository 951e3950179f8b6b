"""Real code, vulnerable and with its safe twin: the one has the flow, the other has none.

A case in `fixtures/risk` is a title, the flow, the vulnerable text and the safe text.
"""

from pathlib import Path

import pytest

from cleats.toolsets.code.languages.registry import LANGUAGES
from tests.risk_world import flows

FOLDER = Path(__file__).parent / "fixtures" / "risk"


def cases() -> list[object]:
    found: list[object] = []
    for file in sorted(FOLDER.glob("*.txt")):
        lang = file.stem
        for block in file.read_text("utf-8").split("=== ")[1:]:
            title, flow, vulnerable, safe = _parts(block)
            found.append(pytest.param(lang, flow, vulnerable, safe, id=f"{lang}: {title}"))
    return found


def _parts(block: str) -> tuple[str, str, str, str]:
    head, vulnerable, safe = block.split("\n---\n")
    title, _, flow = head.partition("\n")
    return title, flow.strip(), vulnerable, safe


@pytest.mark.parametrize(("lang", "flow", "vulnerable", "safe"), cases())
def test_what_is_vulnerable_has_a_flow_and_its_safe_twin_has_none(
    lang: str, flow: str, vulnerable: str, safe: str
) -> None:
    assert lang in LANGUAGES

    assert flow in flows({"code": vulnerable}, lang)
    assert flows({"code": safe}, lang) == set()

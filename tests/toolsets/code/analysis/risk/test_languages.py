"""Real code, vulnerable and with a safe twin: the first has the flow, the second has none.

A case in `fixtures/risk` is a title, the flow, the vulnerable text and the safe text.
"""

import pytest

from cleats.toolsets.code.analysis.languages.engine import LANGUAGES
from tests.support.paths import TESTS_FOLDER
from tests.support.risk import list_flows

CASES_FOLDER = TESTS_FOLDER / "fixtures" / "risk"


def read_cases() -> list[object]:
    parameters: list[object] = []
    for file in sorted(CASES_FOLDER.glob("*.txt")):
        lang = file.stem
        for block in file.read_text("utf-8").split("=== ")[1:]:
            title, flow, vulnerable, safe = _split_case(block)
            parameters.append(pytest.param(lang, flow, vulnerable, safe, id=f"{lang}: {title}"))
    return parameters


def _split_case(block: str) -> tuple[str, str, str, str]:
    head, vulnerable, safe = block.split("\n---\n")
    title, _, flow = head.partition("\n")
    return title, flow.strip(), vulnerable, safe


@pytest.mark.parametrize(("lang", "flow", "vulnerable", "safe"), read_cases())
def test_what_is_vulnerable_has_a_flow_and_its_safe_twin_has_none(
    lang: str, flow: str, vulnerable: str, safe: str
) -> None:
    assert lang in LANGUAGES

    assert flow in list_flows({"code": vulnerable}, lang)
    assert list_flows({"code": safe}, lang) == set()

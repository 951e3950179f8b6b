"""Tests of how much a launch writes: tiers, quotas, and optional pages that are worth adding."""

from collections.abc import Mapping
from typing import Any

import pytest

from cleats.toolsets.launch.drafting.api_overview import render_symbols
from cleats.toolsets.launch.drafting.material import LaunchMaterial
from cleats.toolsets.launch.drafting.page_context import LinkedPage, PageContext
from cleats.toolsets.launch.drafting.tasks import render_tasks
from cleats.toolsets.launch.drafting.token_renderers import TOKEN_RENDERERS
from cleats.toolsets.launch.planning import page_candidates
from cleats.toolsets.launch.planning.page_candidates import list_mandatory_pages, list_optional_pages
from cleats.toolsets.launch.profiles import model


def build_claim(number: int, text: str = "kit reads text.") -> dict[str, Any]:
    return {
        "claim_id": f"{number:064x}",
        "claim_text": text,
        "claim_kind": "feature",
        "truth_status": "fact",
        "citations": [{"path": "README.md", "start_line": 1, "end_line": 1}],
    }


def build_snippet(number: int, *tags: str) -> dict[str, Any]:
    return {
        "snippet_id": f"snip_{number}",
        "language": "python",
        "tags": list(tags),
        "source": {"type": "repo_file", "path": f"e{number}.py", "start_line": 1, "end_line": 1},
        "code": f"x = {number}\n",
        "validation": {"syntax_ok": True, "runnable_ok": "unknown"},
    }


def build_symbol(number: int, path: str, summary: str) -> dict[str, Any]:
    return {
        "name": f"kit.Name{number}",
        "kind": "class",
        "path": path,
        "line": 1,
        "signature": f"Name{number}(a)",
        "summary": summary,
        "claim_id": f"{number:064x}",
    }


def build_material(
    claims: int = 10,
    snippets: int = 3,
    *,
    symbols: int = 0,
    facts: Mapping[str, Any] | None = None,
    contradictions: int = 0,
    tier: str = "",
) -> LaunchMaterial:
    texts = {number: f"`kit.Name{number}` is a thing of kind {number}." for number in range(claims)}
    class_symbols = [
        build_symbol(number, f"src/kit/part{number % 2}.py", f"A thing of kind {number}.") for number in range(symbols)
    ]
    modules = [{"name": f"kit.part{number}", "path": f"src/kit/part{number}.py"} for number in range(2)]
    contradiction = {"claim_a_id": "f" * 64, "claim_b_id": "e" * 64, "winning_claim_id": "f" * 64}
    return LaunchMaterial(
        facts={
            "product_name": "kit",
            "claim_groups": {"key_features": []},
            "workflows": [],
            "example_inventory": [],
            "api_surface_summary": {"classes": class_symbols, "functions": [], "constants": [], "modules": modules},
            "repository_health": {"ci_present": True, "tests_present": True},
            **(facts or {}),
        },
        evidence={
            "claims": [build_claim(number, texts[number]) for number in range(claims)],
            "contradictions": [{**contradiction, "resolution": "manual_review"}] * contradictions,
        },
        catalogue={"snippets": [build_snippet(number, "example") for number in range(snippets)]},
        config={"target_platform": "python", **({"launch_tier": tier} if tier else {})},
    )


def choose_tier(material: LaunchMaterial, **inventory: Any) -> tuple[str, list[dict[str, str]]]:
    return page_candidates.choose_tier(material, inventory, page_candidates.EvidenceVolume.from_material(material))


@pytest.mark.parametrize(("claims", "snippets", "expected"), [(6, 2, "minimal"), (10, 4, "standard"), (80, 20, "rich")])
def test_the_tier_follows_from_the_evidence(claims: int, snippets: int, expected: str) -> None:
    assert choose_tier(build_material(claims, snippets))[0] == expected


def test_a_tier_that_was_asked_for_is_taken() -> None:
    assert choose_tier(build_material(6, 2, tier="rich"))[0] == "rich"


@pytest.mark.parametrize(
    ("material", "inventory", "signal", "expected"),
    [
        (
            build_material(80, 20, facts={"repository_health": {"ci_present": False}}),
            {},
            "no_ci_no_tests",
            "standard",
        ),
        (build_material(80, 20),
         {"phantom_paths": ["examples/none.py"]}, "phantom_paths", "standard"),
        (build_material(80, 20, contradictions=1), {}, "contradictions", "standard"),
        (build_material(4, 100), {}, "few_claims", "minimal"),
    ],
)  # fmt: skip
def test_doubts_about_the_source_lower_the_tier_and_are_recorded(
    material: LaunchMaterial, inventory: dict[str, Any], signal: str, expected: str
) -> None:
    tier, adjustments = choose_tier(material, **inventory)

    assert tier == expected
    assert [adjustment["signal"] for adjustment in adjustments] == [signal]
    assert adjustments[0]["adjustment"] == "reduced"
    assert adjustments[0]["from_tier"] == "rich"


def test_doubts_add_up_and_nothing_is_below_minimal() -> None:
    material = build_material(80, 20, contradictions=1, facts={"repository_health": {"ci_present": False}})

    tier, adjustments = choose_tier(material, phantom_paths=["x"])

    assert tier == "minimal"
    assert [adjustment["adjustment"] for adjustment in adjustments] == ["reduced", "reduced", "unchanged"]


@pytest.mark.parametrize(
    ("tier", "target", "expected"),
    [("minimal", 30, 15), ("standard", 30, 30), ("rich", 90, 50), ("minimal", 1, 5)],
)
def test_a_section_gets_its_target_within_what_tier_and_profile_allow(tier: str, target: int, expected: int) -> None:
    docs = model.load_named_profile("aspose").get_section("docs")

    assert page_candidates.compute_quota(docs, tier, target) == expected


def test_mandatory_pages_are_those_of_the_profile_in_its_order() -> None:
    docs = model.load_named_profile("aspose").get_section("docs")

    assert [page.slug for page in list_mandatory_pages(docs)] == [
        "_index",
        "overview",
        "installation",
        "getting-started",
        "developer-guide",
    ]


def build_section(title: str, *snippets: int, topic: str = "task") -> dict[str, Any]:
    parts = [{"kind": "code", "snippet_id": f"snip_{number}"} for number in snippets]
    claim = {"kind": "text", "claim_id": f"{1:064x}"}
    names = {"section_id": title.lower(), "title": title, "topic": topic, "path": "README.md", "level": 1}
    return {**names, "parts": [claim, *parts]}


def test_a_section_has_a_page_when_it_has_more_code_than_the_guide_shows() -> None:
    sections = [build_section("Few", *range(5)), build_section("Many, `code`", *range(5, 11))]
    material = build_material(snippets=11, facts={"document_sections": sections})

    (page,) = list_optional_pages("docs", material)

    assert (page.slug, page.role, page.score) == ("many-code", "workflow_page", 19)
    assert page.subject is not None
    assert page.subject.title == "Many, code"


def test_the_guide_shows_a_section_in_its_own_words_and_leaves_the_code_of_a_big_one_to_its_page() -> None:
    sections = [build_section("Few", 1), build_section("Many", *range(5, 11))]
    material = build_material(snippets=11, facts={"document_sections": sections})
    child = LinkedPage("Many", "/many/", "Explanation and code.")

    text = render_tasks(PageContext(material=material, children=(child,)))

    few, many = text.split("## Many")
    assert "## Few\n\n`kit.Name1` is a thing of kind 1." in few
    assert "x = 1" in few
    assert "[Many](/many/) has the code." in many
    assert "x = 5" not in many


def test_modules_have_pages_only_when_the_surface_is_big() -> None:
    assert list_optional_pages("reference", build_material(60, symbols=20)) == []

    pages = list_optional_pages("reference", build_material(60, symbols=60))

    assert [page.slug for page in pages] == ["kit-part0", "kit-part1"]


def test_private_modules_have_no_pages() -> None:
    material = build_material(60, symbols=60)
    for module in material.facts["api_surface_summary"]["modules"]:
        module["name"] = module["name"].replace("part", "_part")

    assert list_optional_pages("reference", material) == []


def test_a_name_is_described_only_in_words_that_its_claim_holds() -> None:
    material = build_material(3, symbols=3)
    symbols = [*material.symbols[:2], {**material.symbols[2], "summary": "Does something unheard of."}]

    text = render_symbols(material, symbols, 10, "What it is")

    assert text.splitlines()[0] == "| Name | What it is |"
    assert "| `kit.Name0(a)` | A thing of kind 0. <!-- claims: 0000" in text
    assert "unheard" not in text
    assert "Also public: `kit.Name2(a)`. <!-- claims:" in text
    assert render_symbols(material, symbols, 1, "x").count("| `kit") == 1


def test_a_description_begins_with_a_capital_unless_it_begins_with_a_name() -> None:
    material = build_material(2, symbols=2)
    small = [{**material.symbols[0], "summary": "a thing of kind 0"}]
    name = [{**material.symbols[1], "summary": "kit thing of kind 1"}]

    text = render_symbols(material, [*small, *name], 10, "What it is")

    assert "| A thing of kind 0. <!--" in text
    assert "| kit thing of kind 1. <!--" in text


@pytest.mark.parametrize(
    ("description", "is_described"),
    [("Not a serious example.", False), ("A small example.", True)],
)
def test_what_an_example_says_of_itself_is_said_where_its_claim_does_not_deny_it(
    description: str, is_described: bool
) -> None:
    flow = {
        "workflow_tag": "sums",
        "title": "Sums",
        "claim_ids": [f"{0:064x}"],
        "snippet_tags": ["example"],
        "description": description,
    }
    material = build_material(facts={"workflows": [flow]})
    material.evidence["claims"][0]["claim_text"] = "The repository of kit includes the example `e.py`."

    text = render_tasks(PageContext(material=material))

    assert (description in text) is is_described
    assert "x = 0" in text


def test_names_without_a_description_share_one_line_with_one_marker() -> None:
    material = build_material(30, symbols=30)
    symbols = [{**symbol, "summary": ""} for symbol in material.symbols]

    text = render_symbols(material, symbols, 100, "What it is")

    assert text.startswith("Public: `kit.Name0(a)`, `kit.Name1(a)`, ")
    assert text.count("`kit.Name") == 30
    assert text.count("<!--") == 1


@pytest.mark.parametrize(
    ("features", "scope"),
    [
        ([], "The pages that show how to use kit."),
        ([f"{0:064x}"], "What kit does, and the pages that show how to use it."),
    ],
)
def test_the_first_page_promises_what_the_product_does_only_when_it_says_so(features: list[str], scope: str) -> None:
    material = build_material(facts={"claim_groups": {"key_features": features}, "positioning": {}})
    material.evidence["claims"][0]["claim_text"] = "kit reads text."

    scope_text = TOKEN_RENDERERS["SCOPE"](PageContext(material=material))

    assert scope_text == scope


def test_words_of_a_name_do_not_prove_what_it_does() -> None:
    material = build_material(1, symbols=1)
    material.evidence["claims"][0]["claim_text"] = "`kit.wrap_text` is a public function of kit."
    named_symbol = {**material.symbols[0], "name": "kit.wrap_text", "summary": "Function that wraps text."}

    assert render_symbols(material, [named_symbol], 10, "What it does").startswith("Public: `kit.wrap_text`. <!--")

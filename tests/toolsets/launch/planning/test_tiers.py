"""Tests of how much a launch writes: tiers, quotas, and optional pages that are worth adding."""

from collections.abc import Mapping
from typing import Any

import pytest

from cleats.toolsets.launch.drafting.material import LaunchMaterial
from cleats.toolsets.launch.drafting.page_context import LinkedPage, PageContext, render_symbols
from cleats.toolsets.launch.drafting.token_renderers import BEGINNER_PAGE_SLUG, TOKEN_RENDERERS, render_workflows
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
            "api_surface_summary": {"classes": class_symbols, "functions": [], "modules": modules},
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


def build_workflow(tag: str, title: str, *claims: int) -> dict[str, Any]:
    return {
        "workflow_tag": tag,
        "title": title,
        "claim_ids": [f"{number:064x}" for number in claims],
        "snippet_tags": [tag],
    }


def test_a_task_has_a_page_when_it_has_more_code_than_the_guide_shows() -> None:
    material = build_material(
        facts={
            "workflows": [
                build_workflow("one", "One piece", 1),
                build_workflow("two", "Two pieces, `code`", 2, 3),
                build_workflow("quick-start", "Quick start", 4),
                build_workflow("none", "No claim"),
            ]
        }
    )
    material.catalogue["snippets"][:] = [
        build_snippet(1, "one"),
        *(build_snippet(n, "two") for n in (2, 3)),
        *(build_snippet(n, "quick-start") for n in (4, 5)),
        *(build_snippet(n, "none") for n in (6, 7)),
    ]

    (page,) = list_optional_pages("docs", material)

    assert (page.slug, page.role, page.score) == ("two-pieces-code", "workflow_page", 10)
    assert page.subject is not None
    assert page.subject.title == "Two pieces, code"


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
    assert "| `kit.Name0(a)` | A thing of kind 0. <!-- claim_id:" in text
    assert "unheard" not in text
    assert "Also public: `kit.Name2`. <!-- claim_id:" in text
    assert render_symbols(material, symbols, 1, "x").count("claim_id") == 1


def test_a_description_begins_with_a_capital_unless_it_begins_with_a_name() -> None:
    material = build_material(2, symbols=2)
    small = [{**material.symbols[0], "summary": "a thing of kind 0"}]
    name = [{**material.symbols[1], "summary": "kit thing of kind 1"}]

    text = render_symbols(material, [*small, *name], 10, "What it is")

    assert "| A thing of kind 0. <!--" in text
    assert "| kit thing of kind 1. <!--" in text


def test_a_guide_speaks_of_its_code_only_when_it_has_some() -> None:
    assert "All code" in TOKEN_RENDERERS["CODE_NOTE"](PageContext(material=build_material()))
    assert TOKEN_RENDERERS["CODE_NOTE"](PageContext(material=build_material(snippets=0))) == ""


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

    text = render_workflows(PageContext(material=material))

    assert (description in text) is is_described
    assert "x = 0" in text


def test_a_page_lists_only_the_first_of_many_names_without_a_description() -> None:
    material = build_material(30, symbols=30)
    symbols = [{**symbol, "summary": ""} for symbol in material.symbols]

    text = render_symbols(material, symbols, 100, "What it is")

    assert text.count("claim_id") == 12
    assert text.startswith("Public: `kit.Name0`, `kit.Name1`, ")
    assert text.endswith("This page lists only the first of the names without a description.")


def test_a_guide_whose_only_task_has_a_page_shows_the_rest_of_the_code() -> None:
    flow = {
        "workflow_tag": "quickstart",
        "title": "Basic usage",
        "claim_ids": [f"{0:064x}"],
        "snippet_tags": ["quickstart"],
    }
    begin = LinkedPage("Getting started", "/begin/", "A first program.")
    context = PageContext(material=build_material(facts={"workflows": [flow]}), section={BEGINNER_PAGE_SLUG: begin})

    text = render_workflows(context)

    assert "## Basic usage\n\n[Getting started](/begin/) goes through it.\n" in text
    assert "## Examples\n\nFrom `e1.py`:" in text


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

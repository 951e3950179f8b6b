"""How much a launch says: tiers, quotas, and which pages beyond the mandatory ones are worth it."""

from collections.abc import Mapping
from typing import Any

import pytest

from cleats.toolsets.launch.drafting.blocks import TOKENS
from cleats.toolsets.launch.drafting.context import Context, Neighbour
from cleats.toolsets.launch.drafting.material import Material
from cleats.toolsets.launch.drafting.symbols import table
from cleats.toolsets.launch.drafting.tasks import BEGIN, workflows
from cleats.toolsets.launch.planning import evidence
from cleats.toolsets.launch.planning.candidates import mandatory, optional
from cleats.toolsets.launch.profiles import model


def claim(number: int, text: str = "kit reads text.") -> dict[str, Any]:
    return {
        "claim_id": f"{number:064x}",
        "claim_text": text,
        "claim_kind": "feature",
        "truth_status": "fact",
        "citations": [{"path": "README.md", "start_line": 1, "end_line": 1}],
    }


def snippet(number: int, *tags: str) -> dict[str, Any]:
    return {
        "snippet_id": f"snip_{number}",
        "language": "python",
        "tags": list(tags),
        "source": {"type": "repo_file", "path": f"e{number}.py", "start_line": 1, "end_line": 1},
        "code": f"x = {number}\n",
        "validation": {"syntax_ok": True, "runnable_ok": "unknown"},
    }


def symbol(number: int, path: str, summary: str) -> dict[str, Any]:
    return {
        "name": f"kit.Name{number}",
        "path": path,
        "line": 1,
        "signature": f"Name{number}(a)",
        "summary": summary,
        "claim_id": f"{number:064x}",
    }


def material(
    claims: int = 10,
    snippets: int = 3,
    *,
    symbols: int = 0,
    facts: Mapping[str, Any] | None = None,
    contradictions: int = 0,
    tier: str = "",
) -> Material:
    texts = {n: f"`kit.Name{n}` is a thing of kind {n}." for n in range(claims)}
    listed = [symbol(n, f"src/kit/part{n % 2}.py", f"A thing of kind {n}.") for n in range(symbols)]
    modules = [{"name": f"kit.part{n}", "path": f"src/kit/part{n}.py"} for n in range(2)]
    pair = {"claim_a_id": "f" * 64, "claim_b_id": "e" * 64, "winning_claim_id": "f" * 64}
    return Material(
        facts={
            "product_name": "kit",
            "claim_groups": {"key_features": []},
            "workflows": [],
            "example_inventory": [],
            "api_surface_summary": {"classes": listed, "functions": [], "modules": modules},
            "repository_health": {"ci_present": True, "tests_present": True},
            **(facts or {}),
        },
        evidence={
            "claims": [claim(n, texts[n]) for n in range(claims)],
            "contradictions": [{**pair, "resolution": "manual_review"}] * contradictions,
        },
        catalogue={"snippets": [snippet(n, "example") for n in range(snippets)]},
        config={"target_platform": "python", **({"launch_tier": tier} if tier else {})},
    )


def chosen(given: Material, **inventory: Any) -> evidence.Tier:
    return evidence.tier(given, inventory, evidence.Volume.of(given))


@pytest.mark.parametrize(
    ("claims", "snippets", "expected"), [(6, 2, "minimal"), (10, 4, "standard"), (80, 20, "rich")]
)
def test_the_tier_follows_from_the_evidence(claims: int, snippets: int, expected: str) -> None:
    assert chosen(material(claims, snippets)).name == expected


def test_a_tier_that_was_asked_for_is_taken() -> None:
    assert chosen(material(6, 2, tier="rich")).name == "rich"


@pytest.mark.parametrize(
    ("given", "inventory", "signal", "expected"),
    [
        (
            material(80, 20, facts={"repository_health": {"ci_present": False}}),
            {},
            "no_ci_no_tests",
            "standard",
        ),
        (material(80, 20), {"phantom_paths": ["examples/none.py"]}, "phantom_paths", "standard"),
        (material(80, 20, contradictions=1), {}, "contradictions", "standard"),
        (material(4, 100), {}, "few_claims", "minimal"),
    ],
)  # fmt: skip
def test_doubts_about_the_source_lower_the_tier_and_are_recorded(
    given: Material, inventory: dict[str, Any], signal: str, expected: str
) -> None:
    tier = chosen(given, **inventory)

    assert tier.name == expected
    assert [each["signal"] for each in tier.adjustments] == [signal]
    assert tier.adjustments[0]["adjustment"] == "reduced"
    assert tier.adjustments[0]["from_tier"] == "rich"


def test_doubts_add_up_and_nothing_is_below_minimal() -> None:
    given = material(80, 20, contradictions=1, facts={"repository_health": {"ci_present": False}})

    tier = chosen(given, phantom_paths=["x"])

    assert tier.name == "minimal"
    assert [each["adjustment"] for each in tier.adjustments] == ["reduced", "reduced", "unchanged"]


@pytest.mark.parametrize(
    ("tier", "target", "expected"),
    [("minimal", 30, 15), ("standard", 30, 30), ("rich", 90, 50), ("minimal", 1, 5)],
)
def test_a_section_gets_its_target_within_what_tier_and_profile_allow(
    tier: str, target: int, expected: int
) -> None:
    docs = model.load("aspose").section("docs")

    assert evidence.quota(docs, tier, target) == expected


def test_mandatory_pages_are_those_of_the_profile_in_its_order() -> None:
    docs = model.load("aspose").section("docs")

    assert [page.slug for page in mandatory(docs)] == [
        "_index",
        "overview",
        "installation",
        "getting-started",
        "developer-guide",
    ]


def flow(tag: str, title: str, *claims: int) -> dict[str, Any]:
    return {
        "workflow_tag": tag,
        "title": title,
        "claim_ids": [f"{n:064x}" for n in claims],
        "snippet_tags": [tag],
    }


def test_a_task_has_a_page_when_it_has_more_code_than_the_guide_shows() -> None:
    given = material(
        facts={
            "workflows": [
                flow("one", "One piece", 1),
                flow("two", "Two pieces, `code`", 2, 3),
                flow("quick-start", "Quick start", 4),
                flow("none", "No claim"),
            ]
        }
    )
    given.catalogue["snippets"][:] = [
        snippet(1, "one"),
        *(snippet(n, "two") for n in (2, 3)),
        *(snippet(n, "quick-start") for n in (4, 5)),
        *(snippet(n, "none") for n in (6, 7)),
    ]

    (page,) = optional("docs", given)

    assert (page.slug, page.role, page.score) == ("two-pieces-code", "workflow_page", 10)
    assert page.subject is not None
    assert page.subject.title == "Two pieces, code"


def test_modules_have_pages_only_when_the_surface_is_big() -> None:
    assert optional("reference", material(60, symbols=20)) == []

    pages = optional("reference", material(60, symbols=60))

    assert [page.slug for page in pages] == ["kit-part0", "kit-part1"]


def test_private_modules_have_no_pages() -> None:
    given = material(60, symbols=60)
    for module in given.facts["api_surface_summary"]["modules"]:
        module["name"] = module["name"].replace("part", "_part")

    assert optional("reference", given) == []


def test_a_name_is_described_only_in_words_that_its_claim_holds() -> None:
    given = material(3, symbols=3)
    symbols = [*given.symbols[:2], {**given.symbols[2], "summary": "Does something unheard of."}]

    text = table(given, symbols, 10, "What it is")

    assert text.splitlines()[0] == "| Name | What it is |"
    assert "| `kit.Name0(a)` | A thing of kind 0. <!-- claim_id:" in text
    assert "unheard" not in text
    assert "Also public: `kit.Name2`. <!-- claim_id:" in text
    assert table(given, symbols, 1, "x").count("claim_id") == 1


def test_a_description_begins_with_a_capital_unless_it_begins_with_a_name() -> None:
    given = material(2, symbols=2)
    small = [{**given.symbols[0], "summary": "a thing of kind 0"}]
    name = [{**given.symbols[1], "summary": "kit thing of kind 1"}]

    text = table(given, [*small, *name], 10, "What it is")

    assert "| A thing of kind 0. <!--" in text
    assert "| kit thing of kind 1. <!--" in text


def test_a_guide_speaks_of_its_code_only_when_it_has_some() -> None:
    assert "All code" in TOKENS["CODE_NOTE"](Context(material=material()))
    assert TOKENS["CODE_NOTE"](Context(material=material(snippets=0))) == ""


@pytest.mark.parametrize(
    ("description", "said"),
    [("Not a serious example.", False), ("A small example.", True)],
)
def test_what_an_example_says_of_itself_is_said_where_its_claim_does_not_deny_it(
    description: str, said: bool
) -> None:
    flow = {
        "workflow_tag": "sums",
        "title": "Sums",
        "claim_ids": [f"{0:064x}"],
        "snippet_tags": ["example"],
        "description": description,
    }
    given = material(facts={"workflows": [flow]})
    given.evidence["claims"][0]["claim_text"] = "The repository of kit includes the example `e.py`."

    text = workflows(Context(material=given))

    assert (description in text) is said
    assert "x = 0" in text


def test_a_page_lists_only_the_first_of_many_names_without_a_description() -> None:
    given = material(30, symbols=30)
    symbols = [{**each, "summary": ""} for each in given.symbols]

    text = table(given, symbols, 100, "What it is")

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
    begin = Neighbour("Getting started", "/begin/", "A first program.")
    context = Context(material=material(facts={"workflows": [flow]}), section={BEGIN: begin})

    text = workflows(context)

    assert "## Basic usage\n\n[Getting started](/begin/) goes through it.\n" in text
    assert "## Examples\n\nFrom `e1.py`:" in text


@pytest.mark.parametrize(
    ("features", "scope"),
    [
        ([], "The pages that show how to use kit."),
        ([f"{0:064x}"], "What kit does, and the pages that show how to use it."),
    ],
)
def test_the_first_page_promises_what_the_product_does_only_when_it_says_so(
    features: list[str], scope: str
) -> None:
    given = material(facts={"claim_groups": {"key_features": features}, "positioning": {}})
    given.evidence["claims"][0]["claim_text"] = "kit reads text."

    made = TOKENS["SCOPE"](Context(material=given))

    assert made == scope


def test_words_of_a_name_do_not_prove_what_it_does() -> None:
    given = material(1, symbols=1)
    given.evidence["claims"][0]["claim_text"] = "`kit.wrap_text` is a public function of kit."
    named = {**given.symbols[0], "name": "kit.wrap_text", "summary": "Function that wraps text."}

    assert table(given, [named], 10, "What it does").startswith("Public: `kit.wrap_text`. <!--")

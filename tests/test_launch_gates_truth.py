"""Gates that compare pages with the evidence: truth, code, names, roles."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cleats.toolsets.launch.gates import consistency, statements, wording
from cleats.toolsets.launch.gates.truth_lock import found_formats
from tests.launch_gates_world import (
    CLAIMS,
    EXAMPLE,
    EXPORTS,
    GUIDE,
    INSTALLATION,
    PLAN,
    START,
    STORES,
    TOC,
    World,
    claim,
    documents,
    marked,
    page,
    world,
)


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world(tmp_path_factory.mktemp("launch"))


@pytest.fixture
def broken(launch: World) -> Iterator[World]:
    """The shared launch; what a test does to a page is undone."""
    pages = (GUIDE, START, INSTALLATION, TOC)
    before = {path: (launch.job.site / path).read_bytes() for path in pages}
    yield launch
    for path, data in before.items():
        launch.write(path, data)


UNKNOWN = "e" * 64

TRUTH: list[tuple[str, list[str]]] = [
    (marked("Stores records in an ordered index.", STORES), []),
    (marked("Records are stored in an index, which is ordered.", STORES), []),
    ("- [Installation](/docs/shelf/installation/): how to install it", []),
    ("- See [Installation](/docs/shelf/installation/).", []),
    ("- **[Installation](/docs/shelf/installation/)** - how to install it", []),
    ("Text between the facts.", []),
    ("```text\n- It is fast.\n```", []),
    ("- It stores everything in the cloud.", ["UNMARKED"]),
    ("1. It stores everything in the cloud.", ["UNMARKED"]),
    ("> - It stores everything in the cloud.", ["UNMARKED"]),
    (marked("Stores records in an ordered index.", UNKNOWN), ["UNKNOWN_CLAIM"]),
    (marked("Renders scenes with ray tracing hardware.", STORES), ["DRIFT"]),
    (marked("Stores 250 records in an ordered index.", STORES), ["FIGURE"]),
    (marked("Never stores records in an ordered index.", STORES), ["DRIFT"]),
    (marked("Exports records to CSV and PDF.", EXPORTS), ["FORMAT"]),
    (marked("Stores records in an ordered index, see `Shelf.flush()`.", STORES), ["NAME"]),
    (marked("Stores records in an ordered `shelf.index`.", STORES), []),
    (marked("Might store records in an ordered index.", STORES), ["SPECULATION"]),
    ("Nothing is as blazing fast.", ["TOPIC"]),
    ("Files are encrypted at rest.", ["TOPIC"]),
    ("All is GDPR compliant.", ["TOPIC"]),
    ("An export to PDF is there.", ["FORMAT"]),
    ("An export to CSV and JSON is there.", []),
    ("Shelf.Kit keeps 3 things in mind. Shelf.Kit supports all.", ["SENTENCE"]),
    ("Here it is. It can do all of it.", ["SENTENCE"]),
    ("The package runs anywhere.", ["SENTENCE"]),
    ("This page shows what Shelf.Kit is.", []),
    ("Version 2.5 holds 4000 records.", ["FIGURE"]),
    ("Version `2.5` is at <https://example.org/2.5>.", []),
    ("| Name | What |\n| --- | --- |\n| `a` | It keeps all of the records. |", ["UNMARKED+2"]),
    ("| Name | Where |\n| --- | --- |\n| `a` | [here](/docs/shelf/) |", []),
    ("The PDF of the manual is elsewhere.", []),
]


@pytest.mark.parametrize(("text", "codes"), TRUTH)
def test_every_statement_of_fact_is_proved(broken: World, text: str, codes: list[str]) -> None:
    broken.write(GUIDE, page("Guide", f"## Export\n\n{text}"))

    found = broken.codes("truth_lock")

    parts = [code.partition("+") for code in codes]
    assert found == [(f"GATE_TRUTH_{code}", GUIDE, 8 + int(n or 0)) for code, _, n in parts]


def evidence(*claims: Mapping[str, Any], contradictions: list[Any] | None = None) -> dict[str, Any]:
    document = documents()["evidence_map.json"]
    known = [*(each for each in CLAIMS if each["claim_id"] != EXPORTS), *claims]
    return {
        "evidence_map.json": {
            **document,
            "claims": known,
            "contradictions": contradictions or [],
        }
    }


EXPORTED = "Exports records to CSV and JSON."

CLAIMED: list[tuple[Mapping[str, Any], list[str]]] = [
    (claim(EXPORTS, EXPORTED, "README.md", 5), []),
    (claim(EXPORTS, EXPORTED, "README.md", 99), ["CITATION"]),
    (claim(EXPORTS, EXPORTED, "NOTHING.md", 1), ["CITATION"]),
    (claim(EXPORTS, EXPORTED, "../site/hugo.toml", 1), ["CITATION"]),
    (claim(EXPORTS, EXPORTED, "/etc/passwd", 1), ["CITATION"]),
    (claim(EXPORTS, EXPORTED, "examples/put.py", 2), ["UNSUPPORTED"]),
    (claim(EXPORTS, f"Shelf.Kit: {EXPORTED}", "README.md", 1), ["UNSUPPORTED"]),
    (claim(EXPORTS, f"`Shelf`: {EXPORTED}", "README.md", 1), []),
    (claim(EXPORTS, f"The readme says so. {EXPORTED}", "README.md", 1), []),
    (claim(EXPORTS, f"Nothing less, without more: {EXPORTED}", "pyproject.toml", 1), []),
    ({**claim(EXPORTS, EXPORTED, "README.md", 5), "citations": []}, ["UNCITED"]),
    (
        claim(EXPORTS, EXPORTED, "README.md", 5, claim_kind="format", truth_status="inference"),
        ["INFERENCE"],
    ),
    (claim(EXPORTS, EXPORTED, "README.md", 5, truth_status="inference"), []),
]


@pytest.mark.parametrize(("about", "codes"), CLAIMED)
def test_a_claim_rests_on_lines_that_are_there_and_speak_of_it(
    tmp_path: Path, about: Mapping[str, Any], codes: list[str]
) -> None:
    launch = world(tmp_path, artifacts=evidence(about))

    found = launch.codes("truth_lock")

    assert found == [(f"GATE_TRUTH_{code}", GUIDE, 8) for code in codes]


@pytest.mark.parametrize(
    ("winner", "code"), [(STORES, "CONTRADICTED"), (EXPORTS, ""), ("", "CONTRADICTION")]
)
def test_claims_that_contradict_each_other_do_not_stand_on_pages(
    tmp_path: Path, winner: str, code: str
) -> None:
    both = {
        "claim_a_id": EXPORTS,
        "claim_b_id": "f" * 64,
        "resolution": "x",
        "winning_claim_id": winner.replace(STORES, "f" * 64),
    }
    about = claim(EXPORTS, EXPORTED, "README.md", 5)
    launch = world(tmp_path, artifacts=evidence(about, contradictions=[both]))

    found = launch.codes("truth_lock")

    assert found == ([(f"GATE_TRUTH_{code}", GUIDE, 8)] if code else [])


def test_the_evidence_is_of_the_run_s_own_commit(tmp_path: Path) -> None:
    other = {**documents()["product_facts.json"], "repo_sha": "2" * 40, "repo_url": "local:other"}
    launch = world(tmp_path, artifacts={"product_facts.json": other})

    found = launch.verdict("truth_lock").issues

    assert [each.error_code for each in found] == ["GATE_TRUTH_IDENTITY"] * 2


def test_without_evidence_nothing_is_true(tmp_path: Path) -> None:
    launch = world(tmp_path)
    inputs = {name: sha for name, sha in launch.job.inputs.items() if name != "evidence_map.json"}
    bare = replace(launch, job=replace(launch.job, inputs=inputs))

    codes = {each.error_code for each in bare.verdict("truth_lock").issues}

    assert codes == {"GATE_TRUTH_NO_EVIDENCE", "GATE_TRUTH_UNKNOWN_CLAIM"}


def test_a_run_that_may_infer_may_also_guess(tmp_path: Path) -> None:
    guess = claim(EXPORTS, EXPORTED, "README.md", 5, claim_kind="format", truth_status="inference")
    launch = world(tmp_path, config={"allow_inference": True}, artifacts=evidence(guess))
    launch.edit(GUIDE, EXPORTED, "Might export records to CSV and JSON.")

    assert launch.codes("truth_lock") == []


def test_words_support_each_other_by_stem_and_by_their_parts() -> None:
    assert wording.share("Loading scenes", "def loadScene(path):") == 1.0
    assert wording.share("Serializes records", "class RecordSerializer") == 1.0
    assert wording.share("Draws pictures", "def load_scene(path):") == 0.0
    assert wording.share("the of and", "") == 1.0
    assert wording.share("Shelf loads", "loads", free="Shelf") == 1.0
    assert wording.numbers("Python 3.11, 250 records, 2 ways, v1.2.3-rc") == {"3.11", "250"}
    assert found_formats("Export to PDF, glTF and the API, not to pdfs.") == {"PDF", "GLTF"}


def test_a_word_of_every_claim_tells_less_than_a_word_of_one() -> None:
    weights = wording.Weights(["features include sorting", "features include merging"])

    assert weights.of("includ") < weights.of("merg") < weights.of("unheard")
    one, other = "features include sorting", "features include merging"
    assert wording.share(one, other, weights=weights) < wording.share(one, other)


def test_two_denials_are_none_and_code_denies_nothing() -> None:
    assert wording.negated("It doesn't fail.")
    assert not wording.negated("It never does nothing.")
    assert not wording.negated("It returns `None`, `not` that.")


def test_a_name_in_code_is_known_by_its_last_part() -> None:
    known = "def load_scene(path): ...  # shelf.py"

    assert wording.unknown_names("`shelf.load_scene(path)` and `pip install shelf`", known) == []
    assert wording.unknown_names("`shelf.save()` and `x`", known) == ["shelf.save()"]
    assert wording.unknown_names('`"5 ft"`', known) == ['"5 ft"']


def test_a_bullet_that_only_leads_on_states_nothing() -> None:
    assert statements.leads_on("[A](/a/)")
    assert statements.leads_on("{{< ref `a.md` >}}: about it")
    assert not statements.leads_on("[A](/a/) is the fastest way")
    assert not statements.leads_on("It is described in [A](/a/)")


SNIPPETS: list[tuple[str, list[str]]] = [
    (f"```python\n{EXAMPLE}   \n```", []),
    ("```python\nprint(1)\n```", ["UNKNOWN"]),
    ("```py\nprint(1\n```", ["SYNTAX", "UNKNOWN"]),
    ('```json\n{"a": }\n```', ["SYNTAX", "UNKNOWN"]),
    ("```bash\nshelf --help\n```", []),
    ("```bash\nif then (\n```", ["SYNTAX"]),
    ("```text\nno code (\n```", []),
]


@pytest.mark.parametrize(("text", "codes"), SNIPPETS)
def test_code_comes_from_the_catalogue_and_parses(
    broken: World, text: str, codes: list[str]
) -> None:
    broken.write(GUIDE, page("Guide", text))

    found = sorted(code for code, _, line in broken.codes("snippet_syntax") if line == 6)

    assert found == [f"GATE_SNIPPET_{code}" for code in codes]


CONSISTENT: list[tuple[str, str, list[str]]] = [
    (GUIDE, "About Shelf.Kit and `shelf.kit` at https://x.org/shelf-kit/.", []),
    (GUIDE, "About Shelf Kit.", ["NAME"]),
    (GUIDE, "About shelf.kit.", ["NAME"]),
    (GUIDE, "About SHELF-KIT here.", ["NAME"]),
    (GUIDE, "[source](https://github.com/acme/Shelf.Kit/blob/main/README.md)", []),
    (GUIDE, "[source](https://github.com/acme/other)", []),
    (GUIDE, "[source](https://github.com/someone/Shelf.Kit)", ["REPOSITORY"]),
    (GUIDE, "[source](https://github.com/acme/shelf.kit/issues)", ["REPOSITORY"]),
    (GUIDE, "```bash\npip install shelf-kit\n```", []),
    (GUIDE, "```bash\n$ pip install shelf-kit==9\n```", ["INSTALL"]),
    (GUIDE, "```console\nnpm install shelf\n```", ["INSTALL"]),
    (GUIDE, "```python\n# pip install other\n```", []),
    (INSTALLATION, "## Requirements\n\nText.", ["HEADING"]),
    (INSTALLATION, "### requirements\n\n## INSTALL\n\nText.", []),
]


@pytest.mark.parametrize(("path", "text", "codes"), CONSISTENT)
def test_pages_agree_with_the_run(broken: World, path: str, text: str, codes: list[str]) -> None:
    broken.write(path, page("A page", text))

    found = [code for code, _, _ in broken.codes("consistency")]

    assert found == [f"GATE_CONSISTENCY_{code}" for code in codes]


FRONTED: list[tuple[str, list[str]]] = [
    ("url: /docs/shelf/developer-guide/", []),
    ("url: /docs/other/", ["ADDRESS"]),
    ("canonical: https://docs.example.org/docs/shelf/developer-guide", []),
    ("canonical: https://docs.example.org/other/", ["ADDRESS"]),
    ("canonical: http://[", ["ADDRESS"]),
    ("repo_url: https://github.com/acme/Shelf.Kit.git", []),
    ("repo_url: https://github.com/acme/Other", ["REPOSITORY"]),
    ("description: About shelf.kit", ["NAME"]),
]


@pytest.mark.parametrize(("line", "codes"), FRONTED)
def test_front_matter_agrees_with_the_run(broken: World, line: str, codes: list[str]) -> None:
    broken.write(GUIDE, page(f"Guide\n{line}", "Text."))

    found = [code for code, _, _ in broken.codes("consistency")]

    assert found == [f"GATE_CONSISTENCY_{code}" for code in codes]


HOMES: list[tuple[dict[str, str], list[str]]] = [
    ({"docs": "https://docs.example.org/docs/shelf/"}, []),
    ({"docs": "https://docs.example.org/docs/shelves/"}, ["GATE_CONSISTENCY_ADDRESS"]),
    ({"product": "https://docs.example.org/nowhere/"}, []),
]


@pytest.mark.parametrize(("addresses", "codes"), HOMES)
def test_a_section_begins_where_the_run_says(
    tmp_path: Path, addresses: dict[str, str], codes: list[str]
) -> None:
    launch = world(tmp_path, config={"canonical_urls": addresses})

    assert [code for code, _, _ in launch.codes("consistency")] == codes


def test_a_name_that_is_a_word_is_not_looked_for() -> None:
    assert consistency.misnamed("shelf", "Put the Shelf up.") == []
    assert consistency.misnamed("Aspose.3D", "With aspose 3d and Aspose.3D.") == ["aspose 3d"]


def test_a_name_that_is_a_word_may_stand_beside_that_word() -> None:
    assert consistency.misnamed("Rich", "Rich is a library for rich text.") == []
    assert consistency.misnamed("Rich", "RICH is a library.") == ["RICH"]
    assert consistency.misnamed("NumPy", "With numpy arrays.") == ["numpy"]


CONTENTS: list[tuple[str, str, str, list[str]]] = [
    (TOC, "- [Developer guide](/docs/shelf/developer-guide/)\n", "", ["TOC_CHILD"]),
    (TOC, "## Contents", "```python\nx = 1\n```\n\n## Contents", ["TOC_CODE"]),
    (TOC, "(/docs/shelf/installation/)", "(installation)", []),
    (GUIDE, marked(EXPORTED, EXPORTS), "Nothing.", ["QUOTA"]),
    (GUIDE, "## Export", "## Pricing", ["TOPIC"]),
]


@pytest.mark.parametrize(("path", "old", "new", "codes"), CONTENTS)
def test_pages_play_their_roles(
    tmp_path: Path, path: str, old: str, new: str, codes: list[str]
) -> None:
    plan = [
        {**each, "forbidden_topics": ["pricing"]} if each["output_path"] == GUIDE else each
        for each in PLAN
    ]
    document = {**documents()["page_plan.json"], "pages": plan}
    launch = world(tmp_path, artifacts={"page_plan.json": document})
    launch.edit(path, old, new)

    found = [code for code, _, _ in launch.codes("content_distribution")]

    assert found == [f"GATE_CONTENT_{code}" for code in codes]


def test_a_planned_page_that_is_not_there_is_a_blocker(tmp_path: Path) -> None:
    launch = world(tmp_path)
    (launch.job.site / START).unlink()

    verdict = launch.verdict("content_distribution")

    assert [(each.error_code, each.severity, each.path) for each in verdict.issues] == [
        ("GATE_CONTENT_PAGE_MISSING", "blocker", START)
    ]


def test_sections_have_their_mandatory_pages_and_their_number(tmp_path: Path) -> None:
    plan = [each for each in PLAN if each["output_path"] != START]
    document = {**documents()["page_plan.json"], "pages": plan}
    launch = world(tmp_path, artifacts={"page_plan.json": document})

    codes = [code for code, _, _ in launch.codes("content_distribution")]

    assert codes == ["GATE_CONTENT_MANDATORY", "GATE_CONTENT_SECTION"]


def test_a_guide_that_covers_everything_covers_every_workflow(tmp_path: Path) -> None:
    facts = documents()["product_facts.json"]
    workflow = {"workflow_tag": "x", "title": "Merging", "claim_ids": [], "snippet_tags": []}
    facts = {**facts, "workflows": [*facts["workflows"], workflow]}
    launch = world(tmp_path, artifacts={"product_facts.json": facts})

    assert launch.codes("content_distribution") == [("GATE_CONTENT_COVERAGE", GUIDE, 0)]


def test_what_the_plan_promises_is_on_the_page(tmp_path: Path) -> None:
    plan = [
        {**each, "required_claim_ids": [STORES, EXPORTS], "required_snippet_tags": ["quickstart"]}
        if each["output_path"] in (START, GUIDE)
        else each
        for each in PLAN
    ]
    document = {**documents()["page_plan.json"], "pages": plan}
    launch = world(tmp_path, artifacts={"page_plan.json": document})

    assert launch.codes("content_distribution") == [
        ("GATE_CONTENT_CLAIM", GUIDE, 0),
        ("GATE_CONTENT_SNIPPET", GUIDE, 0),
        ("GATE_CONTENT_CLAIM", START, 0),
    ]


def test_a_limitation_that_is_known_is_told(tmp_path: Path) -> None:
    facts = documents()["product_facts.json"]
    groups = {**facts["claim_groups"], "limitations": [STORES, "f" * 64]}
    launch = world(tmp_path, artifacts={"product_facts.json": {**facts, "claim_groups": groups}})

    found = launch.verdict("content_distribution").issues

    assert [each.message for each in found] == [f"no page tells of the limitation {'f' * 64}"]


def test_an_artifact_that_does_not_fit_its_schema_is_a_blocker(tmp_path: Path) -> None:
    bad = {**documents()["evidence_map.json"], "repo_sha": 7}
    launch = world(tmp_path, artifacts={"evidence_map.json": bad, "page_plan.json": b"{"})

    found = launch.verdict("schema").issues

    assert [(each.error_code, each.severity, each.path) for each in found] == [
        ("GATE_SCHEMA_INVALID", "blocker", "evidence_map.json"),
        ("GATE_SCHEMA_UNREADABLE", "blocker", "page_plan.json"),
    ]
    assert "/repo_sha" in found[0].message

"""Tests of the gates that compare pages with the evidence: truth, code, names, roles."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cleats.toolsets.launch.gates import consistency, page_text
from cleats.toolsets.launch.gates.page_text import find_formats
from tests.support.gates import (
    EVIDENCE_CLAIMS,
    EXAMPLE_CODE,
    EXPORTS_CLAIM_ID,
    GUIDE_PATH,
    INSTALLATION_PATH,
    PAGE_PLAN,
    START_PATH,
    STORES_CLAIM_ID,
    TOC_PATH,
    GateRun,
    build_artifacts,
    build_claim,
    create_gate_run,
    mark_claim,
    render_page,
)


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> GateRun:
    return create_gate_run(tmp_path_factory.mktemp("launch"))


@pytest.fixture
def editable_launch(launch: GateRun) -> Iterator[GateRun]:
    """Yield the shared launch; afterwards undo what the test did to a page."""
    pages = (GUIDE_PATH, START_PATH, INSTALLATION_PATH, TOC_PATH)
    before = {path: (launch.job.site / path).read_bytes() for path in pages}
    yield launch
    for path, data in before.items():
        launch.write_file(path, data)


UNKNOWN_CLAIM_ID = "e" * 8

TRUTH_CASES: list[tuple[str, list[str]]] = [
    (mark_claim("Stores records in an ordered index.", STORES_CLAIM_ID), []),
    (mark_claim("Records are stored in an index, which is ordered.", STORES_CLAIM_ID), []),
    ("- [Installation](/docs/shelf/installation/): how to install it", []),
    ("- See [Installation](/docs/shelf/installation/).", []),
    ("- **[Installation](/docs/shelf/installation/)** - how to install it", []),
    ("Text between the facts.", []),
    ("```text\n- It is fast.\n```", []),
    ("- It stores everything in the cloud.", ["UNMARKED"]),
    ("1. It stores everything in the cloud.", ["UNMARKED"]),
    ("> - It stores everything in the cloud.", ["UNMARKED"]),
    (mark_claim("Stores records in an ordered index.", UNKNOWN_CLAIM_ID), ["UNKNOWN_CLAIM"]),
    (mark_claim("Renders scenes with ray tracing hardware.", STORES_CLAIM_ID), ["DRIFT"]),
    (mark_claim("Stores 250 records in an ordered index.", STORES_CLAIM_ID), ["FIGURE"]),
    (mark_claim("Never stores records in an ordered index.", STORES_CLAIM_ID), ["DRIFT"]),
    (mark_claim("Exports records to CSV and PDF.", EXPORTS_CLAIM_ID), ["FORMAT"]),
    (mark_claim("Stores records in an ordered index, see `Shelf.flush()`.", STORES_CLAIM_ID), ["NAME"]),
    (mark_claim("Stores records in an ordered `shelf.index`.", STORES_CLAIM_ID), []),
    (mark_claim("Might store records in an ordered index.", STORES_CLAIM_ID), ["SPECULATION"]),
    ("Nothing is as blazing fast.", ["TOPIC"]),
    ("Files are encrypted at rest.", ["TOPIC"]),
    ("All is GDPR compliant.", ["TOPIC"]),
    ("An export to PDF is there.", ["FORMAT"]),
    ("An export to CSV and JSON is there.", []),
    ("Shelf.Kit keeps 3 things in mind. Shelf.Kit supports all.", ["SENTENCE"]),
    ("Here it is. It can do all of it.", ["SENTENCE"]),
    ("The package runs anywhere.", ["SENTENCE"]),
    ("This page shows what Shelf.Kit is.", []),
    (f"Also public: `Shelf`. <!-- claims: {STORES_CLAIM_ID} -->", ["NAME"]),
    (f"Also public: `shelf.index`, `ordered`. <!-- claims: {STORES_CLAIM_ID} -->", []),
    ("Version 2.5 holds 4000 records.", ["FIGURE"]),
    ("Version `2.5` is at <https://example.org/2.5>.", []),
    ("| Name | What |\n| --- | --- |\n| `a` | It keeps all of the records. |", ["UNMARKED+2"]),
    ("| Name | Where |\n| --- | --- |\n| `a` | [here](/docs/shelf/) |", []),
    ("The PDF of the manual is elsewhere.", []),
]


@pytest.mark.parametrize(("text", "codes"), TRUTH_CASES)
def test_every_statement_of_fact_is_proved(editable_launch: GateRun, text: str, codes: list[str]) -> None:
    editable_launch.write_file(GUIDE_PATH, render_page("Guide", f"## Export\n\n{text}"))

    findings = editable_launch.list_issues("truth_lock")

    parts = [code.partition("+") for code in codes]
    assert findings == [(f"GATE_TRUTH_{code}", GUIDE_PATH, 8 + int(n or 0)) for code, _, n in parts]


STORES_STATEMENT = mark_claim("Stores records in an ordered index.", STORES_CLAIM_ID)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (f"\n{STORES_CLAIM_ID} README.md:4\n", "\n", "does not list the evidence"),
        (f"\n{STORES_CLAIM_ID} README.md:4\n", f"\n{STORES_CLAIM_ID} README.md:5\n", "lists other evidence"),
        ("-->\n", f"{EXPORTS_CLAIM_ID} README.md:5\n-->\n", "which no statement names"),
        (f"<!-- evidence {'1' * 40}", f"<!-- evidence {'2' * 40}", "another commit"),
    ],
)
def test_the_list_of_evidence_says_what_the_evidence_map_says(
    editable_launch: GateRun, old: str, new: str, message: str
) -> None:
    page = render_page("Guide", f"## Export\n\n{STORES_STATEMENT}")
    head, mark, tail = page.rpartition("\n<!-- evidence")
    assert old in mark + tail
    editable_launch.write_file(GUIDE_PATH, head + (mark + tail).replace(old, new, 1))

    (issue,) = editable_launch.run_gate("truth_lock").issues

    assert issue.error_code == "GATE_TRUTH_LIST"
    assert message in issue.message


def build_evidence(*claims: Mapping[str, Any], contradictions: list[Any] | None = None) -> dict[str, Any]:
    document = build_artifacts()["evidence_map.json"]
    all_claims = [*(entry for entry in EVIDENCE_CLAIMS if entry["claim_id"] != EXPORTS_CLAIM_ID), *claims]
    return {
        "evidence_map.json": {
            **document,
            "claims": all_claims,
            "contradictions": contradictions or [],
        }
    }


EXPORTED_TEXT = "Exports records to CSV and JSON."

CLAIM_CASES: list[tuple[Mapping[str, Any], list[str]]] = [
    (build_claim(EXPORTS_CLAIM_ID, EXPORTED_TEXT, "README.md", 5), []),
    (build_claim(EXPORTS_CLAIM_ID, EXPORTED_TEXT, "README.md", 99), ["CITATION"]),
    (build_claim(EXPORTS_CLAIM_ID, EXPORTED_TEXT, "NOTHING.md", 1), ["CITATION"]),
    (build_claim(EXPORTS_CLAIM_ID, EXPORTED_TEXT, "../site/hugo.toml", 1), ["CITATION"]),
    (build_claim(EXPORTS_CLAIM_ID, EXPORTED_TEXT, "/etc/passwd", 1), ["CITATION"]),
    (build_claim(EXPORTS_CLAIM_ID, EXPORTED_TEXT, "examples/put.py", 2), ["UNSUPPORTED"]),
    (build_claim(EXPORTS_CLAIM_ID, f"Shelf.Kit: {EXPORTED_TEXT}", "README.md", 1), ["UNSUPPORTED"]),
    (build_claim(EXPORTS_CLAIM_ID, f"`Shelf`: {EXPORTED_TEXT}", "README.md", 1), []),
    (build_claim(EXPORTS_CLAIM_ID, f"The readme says so. {EXPORTED_TEXT}", "README.md", 1), []),
    (build_claim(EXPORTS_CLAIM_ID, f"Nothing less, without more: {EXPORTED_TEXT}", "pyproject.toml", 1), []),
    ({**build_claim(EXPORTS_CLAIM_ID, EXPORTED_TEXT, "README.md", 5), "citations": []}, ["UNCITED"]),
    (
        build_claim(EXPORTS_CLAIM_ID, EXPORTED_TEXT, "README.md", 5, claim_kind="format", truth_status="inference"),
        ["INFERENCE"],
    ),
    (build_claim(EXPORTS_CLAIM_ID, EXPORTED_TEXT, "README.md", 5, truth_status="inference"), []),
]


@pytest.mark.parametrize(("about", "codes"), CLAIM_CASES)
def test_a_claim_rests_on_lines_that_are_there_and_speak_of_it(
    tmp_path: Path, about: Mapping[str, Any], codes: list[str]
) -> None:
    launch = create_gate_run(tmp_path, artifacts=build_evidence(about))

    findings = launch.list_issues("truth_lock")

    assert findings == [(f"GATE_TRUTH_{code}", GUIDE_PATH, 8) for code in codes]


@pytest.mark.parametrize(
    ("winner", "code"), [(STORES_CLAIM_ID, "CONTRADICTED"), (EXPORTS_CLAIM_ID, ""), ("", "CONTRADICTION")]
)
def test_claims_that_contradict_each_other_do_not_stand_on_pages(tmp_path: Path, winner: str, code: str) -> None:
    both = {
        "claim_a_id": EXPORTS_CLAIM_ID,
        "claim_b_id": "f" * 8,
        "resolution": "x",
        "winning_claim_id": winner.replace(STORES_CLAIM_ID, "f" * 8),
    }
    about = build_claim(EXPORTS_CLAIM_ID, EXPORTED_TEXT, "README.md", 5)
    launch = create_gate_run(tmp_path, artifacts=build_evidence(about, contradictions=[both]))

    findings = launch.list_issues("truth_lock")

    assert findings == ([(f"GATE_TRUTH_{code}", GUIDE_PATH, 8)] if code else [])


def test_the_evidence_is_of_the_run_s_own_commit(tmp_path: Path) -> None:
    other = {**build_artifacts()["product_facts.json"], "repo_sha": "2" * 40, "repo_url": "local:other"}
    launch = create_gate_run(tmp_path, artifacts={"product_facts.json": other})

    issues = launch.run_gate("truth_lock").issues

    assert [issue.error_code for issue in issues] == ["GATE_TRUTH_IDENTITY"] * 2


def test_without_evidence_nothing_is_true(tmp_path: Path) -> None:
    launch = create_gate_run(tmp_path)
    inputs = {name: sha for name, sha in launch.job.inputs.items() if name != "evidence_map.json"}
    bare = replace(launch, job=replace(launch.job, inputs=inputs))

    codes = {issue.error_code for issue in bare.run_gate("truth_lock").issues}

    assert codes == {"GATE_TRUTH_NO_EVIDENCE", "GATE_TRUTH_UNKNOWN_CLAIM"}


def test_a_run_that_may_infer_may_also_guess(tmp_path: Path) -> None:
    guess = build_claim(EXPORTS_CLAIM_ID, EXPORTED_TEXT, "README.md", 5, claim_kind="format", truth_status="inference")
    launch = create_gate_run(tmp_path, config={"allow_inference": True}, artifacts=build_evidence(guess))
    launch.edit_file(GUIDE_PATH, EXPORTED_TEXT, "Might export records to CSV and JSON.")

    assert launch.list_issues("truth_lock") == []


def test_words_support_each_other_by_stem_and_by_their_parts() -> None:
    assert page_text.measure_overlap("Loading scenes", "def loadScene(path):") == 1.0
    assert page_text.measure_overlap("Serializes records", "class RecordSerializer") == 1.0
    assert page_text.measure_overlap("Draws pictures", "def load_scene(path):") == 0.0
    assert page_text.measure_overlap("the of and", "") == 1.0
    assert page_text.measure_overlap("Shelf loads", "loads", ignored="Shelf") == 1.0
    assert page_text.find_numbers("Python 3.11, 250 records, 2 ways, v1.2.3-rc") == {"3.11", "250"}
    assert find_formats("Export to PDF, glTF and the API, not to pdfs.") == {"PDF", "GLTF"}


def test_a_word_of_every_claim_tells_less_than_a_word_of_one() -> None:
    weigh = page_text.weigh_words(["features include sorting", "features include merging"])

    assert weigh("includ") < weigh("merg") < weigh("unheard")
    one, other = "features include sorting", "features include merging"
    assert page_text.measure_overlap(one, other, weigh=weigh) < page_text.measure_overlap(one, other)


def test_two_denials_are_none_and_code_denies_nothing() -> None:
    assert page_text.is_negated("It doesn't fail.")
    assert not page_text.is_negated("It never does nothing.")
    assert not page_text.is_negated("It returns `None`, `not` that.")


def test_a_name_in_code_is_known_by_its_last_part() -> None:
    known_text = "def load_scene(path): ...  # shelf.py"

    assert page_text.find_unknown_names("`shelf.load_scene(path)` and `pip install shelf`", known_text) == []
    assert page_text.find_unknown_names("`shelf.save()` and `x`", known_text) == ["shelf.save()"]
    assert page_text.find_unknown_names('`"5 ft"`', known_text) == ['"5 ft"']


def test_a_bullet_that_only_leads_on_states_nothing() -> None:
    assert page_text.is_navigation_item("[A](/a/)")
    assert page_text.is_navigation_item("{{< ref `a.md` >}}: about it")
    assert not page_text.is_navigation_item("[A](/a/) is the fastest way")
    assert not page_text.is_navigation_item("It is described in [A](/a/)")


SNIPPET_CASES: list[tuple[str, list[str]]] = [
    (f"```python\n{EXAMPLE_CODE}   \n```", []),
    ("```python\nprint(1)\n```", ["UNKNOWN"]),
    ("```py\nprint(1\n```", ["SYNTAX", "UNKNOWN"]),
    ('```json\n{"a": }\n```', ["SYNTAX", "UNKNOWN"]),
    ("```bash\nshelf --help\n```", []),
    ("```bash\nif then (\n```", ["SYNTAX"]),
    ("```text\nno code (\n```", []),
]


@pytest.mark.parametrize(("text", "codes"), SNIPPET_CASES)
def test_code_comes_from_the_catalogue_and_parses(editable_launch: GateRun, text: str, codes: list[str]) -> None:
    editable_launch.write_file(GUIDE_PATH, render_page("Guide", text))

    found_codes = sorted(code for code, _, line in editable_launch.list_issues("snippet_syntax") if line == 6)

    assert found_codes == [f"GATE_SNIPPET_{code}" for code in codes]


CONSISTENCY_CASES: list[tuple[str, str, list[str]]] = [
    (GUIDE_PATH, "About Shelf.Kit and `shelf.kit` at https://x.org/shelf-kit/.", []),
    (GUIDE_PATH, "About Shelf Kit.", ["NAME"]),
    (GUIDE_PATH, "About shelf.kit.", ["NAME"]),
    (GUIDE_PATH, "About SHELF-KIT here.", ["NAME"]),
    (GUIDE_PATH, "[source](https://github.com/acme/Shelf.Kit/blob/main/README.md)", []),
    (GUIDE_PATH, "[source](https://github.com/acme/other)", []),
    (GUIDE_PATH, "[source](https://github.com/someone/Shelf.Kit)", ["REPOSITORY"]),
    (GUIDE_PATH, "[source](https://github.com/acme/shelf.kit/issues)", ["REPOSITORY"]),
    (GUIDE_PATH, "```bash\npip install shelf-kit\n```", []),
    (GUIDE_PATH, "```bash\n$ pip install shelf-kit==9\n```", ["INSTALL"]),
    (GUIDE_PATH, "```console\nnpm install shelf\n```", ["INSTALL"]),
    (GUIDE_PATH, "```python\n# pip install other\n```", []),
    (INSTALLATION_PATH, "## Requirements\n\nText.", ["HEADING"]),
    (INSTALLATION_PATH, "### requirements\n\n## INSTALL\n\nText.", []),
]


@pytest.mark.parametrize(("path", "text", "codes"), CONSISTENCY_CASES)
def test_pages_agree_with_the_run(editable_launch: GateRun, path: str, text: str, codes: list[str]) -> None:
    editable_launch.write_file(path, render_page("A page", text))

    found_codes = [code for code, _, _ in editable_launch.list_issues("consistency")]

    assert found_codes == [f"GATE_CONSISTENCY_{code}" for code in codes]


FRONT_MATTER_CASES: list[tuple[str, list[str]]] = [
    ("url: /docs/shelf/developer-guide/", []),
    ("url: /docs/other/", ["ADDRESS"]),
    ("canonical: https://docs.example.org/docs/shelf/developer-guide", []),
    ("canonical: https://docs.example.org/other/", ["ADDRESS"]),
    ("canonical: http://[", ["ADDRESS"]),
    ("repo_url: https://github.com/acme/Shelf.Kit.git", []),
    ("repo_url: https://github.com/acme/Other", ["REPOSITORY"]),
    ("description: About shelf.kit", ["NAME"]),
]


@pytest.mark.parametrize(("line", "codes"), FRONT_MATTER_CASES)
def test_front_matter_agrees_with_the_run(editable_launch: GateRun, line: str, codes: list[str]) -> None:
    editable_launch.write_file(GUIDE_PATH, render_page(f"Guide\n{line}", "Text."))

    found_codes = [code for code, _, _ in editable_launch.list_issues("consistency")]

    assert found_codes == [f"GATE_CONSISTENCY_{code}" for code in codes]


HOME_CASES: list[tuple[dict[str, str], list[str]]] = [
    ({"docs": "https://docs.example.org/docs/shelf/"}, []),
    ({"docs": "https://docs.example.org/docs/shelves/"}, ["GATE_CONSISTENCY_ADDRESS"]),
    ({"product": "https://docs.example.org/nowhere/"}, []),
]


@pytest.mark.parametrize(("addresses", "codes"), HOME_CASES)
def test_a_section_begins_where_the_run_says(tmp_path: Path, addresses: dict[str, str], codes: list[str]) -> None:
    launch = create_gate_run(tmp_path, config={"canonical_urls": addresses})

    assert [code for code, _, _ in launch.list_issues("consistency")] == codes


def test_a_name_that_is_a_word_is_not_looked_for() -> None:
    assert consistency.find_misspellings("shelf", "Put the Shelf up.") == []
    assert consistency.find_misspellings("Aspose.3D", "With aspose 3d and Aspose.3D.") == ["aspose 3d"]


def test_a_name_that_is_a_word_may_stand_beside_that_word() -> None:
    assert consistency.find_misspellings("Rich", "Rich is a library for rich text.") == []
    assert consistency.find_misspellings("Rich", "RICH is a library.") == ["RICH"]
    assert consistency.find_misspellings("NumPy", "With numpy arrays.") == ["numpy"]


CONTENT_CASES: list[tuple[str, str, str, list[str]]] = [
    (TOC_PATH, "- [Developer guide](/docs/shelf/developer-guide/)\n", "", ["TOC_CHILD"]),
    (TOC_PATH, "## Contents", "```python\nx = 1\n```\n\n## Contents", ["TOC_CODE"]),
    (TOC_PATH, "(/docs/shelf/installation/)", "(installation)", []),
    (GUIDE_PATH, mark_claim(EXPORTED_TEXT, EXPORTS_CLAIM_ID), "Nothing.", ["QUOTA"]),
    (GUIDE_PATH, "## Export", "## Pricing", ["TOPIC"]),
]


@pytest.mark.parametrize(("path", "old", "new", "codes"), CONTENT_CASES)
def test_pages_play_their_roles(tmp_path: Path, path: str, old: str, new: str, codes: list[str]) -> None:
    plan = [
        {**planned_page, "forbidden_topics": ["pricing"]} if planned_page["output_path"] == GUIDE_PATH else planned_page
        for planned_page in PAGE_PLAN
    ]
    document = {**build_artifacts()["page_plan.json"], "pages": plan}
    launch = create_gate_run(tmp_path, artifacts={"page_plan.json": document})
    launch.edit_file(path, old, new)

    found_codes = [code for code, _, _ in launch.list_issues("content_distribution")]

    assert found_codes == [f"GATE_CONTENT_{code}" for code in codes]


def test_a_planned_page_that_is_not_there_is_a_blocker(tmp_path: Path) -> None:
    launch = create_gate_run(tmp_path)
    (launch.job.site / START_PATH).unlink()

    verdict = launch.run_gate("content_distribution")

    assert [(issue.error_code, issue.severity, issue.path) for issue in verdict.issues] == [
        ("GATE_CONTENT_PAGE_MISSING", "blocker", START_PATH)
    ]


def test_sections_have_their_mandatory_pages_and_their_number(tmp_path: Path) -> None:
    plan = [planned_page for planned_page in PAGE_PLAN if planned_page["output_path"] != START_PATH]
    document = {**build_artifacts()["page_plan.json"], "pages": plan}
    launch = create_gate_run(tmp_path, artifacts={"page_plan.json": document})

    codes = [code for code, _, _ in launch.list_issues("content_distribution")]

    assert codes == ["GATE_CONTENT_MANDATORY", "GATE_CONTENT_SECTION"]


def test_a_guide_that_covers_everything_covers_every_workflow(tmp_path: Path) -> None:
    facts = build_artifacts()["product_facts.json"]
    workflow = {"workflow_tag": "x", "title": "Merging", "claim_ids": [], "snippet_tags": []}
    facts = {**facts, "workflows": [*facts["workflows"], workflow]}
    launch = create_gate_run(tmp_path, artifacts={"product_facts.json": facts})

    assert launch.list_issues("content_distribution") == [("GATE_CONTENT_COVERAGE", GUIDE_PATH, 0)]


def test_what_the_plan_promises_is_on_the_page(tmp_path: Path) -> None:
    plan = [
        {
            **planned_page,
            "required_claim_ids": [STORES_CLAIM_ID, EXPORTS_CLAIM_ID],
            "required_snippet_tags": ["quickstart"],
        }
        if planned_page["output_path"] in (START_PATH, GUIDE_PATH)
        else planned_page
        for planned_page in PAGE_PLAN
    ]
    document = {**build_artifacts()["page_plan.json"], "pages": plan}
    launch = create_gate_run(tmp_path, artifacts={"page_plan.json": document})

    assert launch.list_issues("content_distribution") == [
        ("GATE_CONTENT_CLAIM", GUIDE_PATH, 0),
        ("GATE_CONTENT_SNIPPET", GUIDE_PATH, 0),
        ("GATE_CONTENT_CLAIM", START_PATH, 0),
    ]


def test_a_limitation_that_is_known_is_told(tmp_path: Path) -> None:
    facts = build_artifacts()["product_facts.json"]
    groups = {**facts["claim_groups"], "limitations": [STORES_CLAIM_ID, "f" * 8]}
    launch = create_gate_run(tmp_path, artifacts={"product_facts.json": {**facts, "claim_groups": groups}})

    issues = launch.run_gate("content_distribution").issues

    assert [issue.message for issue in issues] == [f"no page mentions the limitation {'f' * 8}"]


def test_an_artifact_that_does_not_fit_its_schema_is_a_blocker(tmp_path: Path) -> None:
    bad = {**build_artifacts()["evidence_map.json"], "repo_sha": 7}
    launch = create_gate_run(tmp_path, artifacts={"evidence_map.json": bad, "page_plan.json": b"{"})

    issues = launch.run_gate("schema").issues

    assert [(issue.error_code, issue.severity, issue.path) for issue in issues] == [
        ("GATE_SCHEMA_INVALID", "blocker", "evidence_map.json"),
        ("GATE_SCHEMA_UNREADABLE", "blocker", "page_plan.json"),
    ]
    assert "/repo_sha" in issues[0].message

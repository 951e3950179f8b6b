"""Tests of drafts: every statement has its evidence, nothing is left over, nothing comes twice."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system import front_matter
from cleats.toolsets.launch.drafting.material import LaunchMaterial
from cleats.toolsets.launch.drafting.page import BASE_TEMPLATES_DIR, TOKEN_PATTERN, PageTemplate, build_front_matter
from cleats.toolsets.launch.drafting.token_renderers import TOKEN_RENDERERS
from cleats.toolsets.launch.drafting.used_names import find_used_names
from cleats.toolsets.launch.profiles import model
from cleats.toolsets.launch.site import claim_markers, pages
from tests.support import launch_sites
from tests.support.launch_pipeline import SOURCE_STEPS, Pipeline

FIVE_SECTIONS = ["products", "docs", "reference", "kb", "blog"]
CLAIM_ID = "a" * 64
OTHER_CLAIM_ID = "b" * 64


@pytest.fixture(scope="module", params=["plain", "aspose"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """Launch the bundled package on both kinds of site."""
    root = tmp_path_factory.mktemp(request.param)
    launch_sites.copy_sample(root / "source", "source")
    run_config: dict[str, Any] = {"profile": "plain", "family": "measurekit"}
    if request.param == "plain":
        launch_sites.copy_sample(root / "site", "site")
        run_config["required_sections"] = ["docs", "reference"]
    else:
        launch_sites.write_aspose_site(root / "site", "cells")
        run_config = {"profile": "aspose", "family": "cells", "required_sections": FIVE_SECTIONS}
    launch_sites.commit_folder(root / "site")
    return Pipeline(root, root / "source", root / "site", **run_config).run_all()


def parse_pages(run: Pipeline) -> dict[str, front_matter.ParsedPage]:
    return {path: front_matter.parse_page(text) for path, text in run.read_pages().items()}


def list_prose_lines(page: front_matter.ParsedPage) -> list[str]:
    code = pages.find_code_lines(page.body)
    body = claim_markers.strip_evidence_list(page.body)
    return [line for number, line in enumerate(body.splitlines(), 1) if number not in code]


def test_every_bullet_has_its_claim_or_leads_to_a_page(run: Pipeline) -> None:
    known_ids = {claim["claim_id"] for claim in run.read_json("evidence_map.json")["claims"]}
    for path, page in parse_pages(run).items():
        for line in list_prose_lines(page):
            if re.match(r"\s*(?:[-*]|\d+[.)])\s", line):
                ids = claim_markers.find_claim_ids(line)
                assert ids or line.lstrip("- ").startswith("["), (path, line)
                assert set(ids) <= known_ids


def test_a_page_lists_the_evidence_of_its_claims_and_of_no_others(run: Pipeline) -> None:
    claims = {claim["claim_id"]: claim for claim in run.read_json("evidence_map.json")["claims"]}
    commit = run.read_json("evidence_map.json")["repo_sha"]
    for path, page in parse_pages(run).items():
        stated_ids = {marker.claim_id for marker in claim_markers.list_claim_markers(page.body)}
        evidence_list = claim_markers.parse_evidence_list(page.body)
        assert evidence_list.places_by_claim.keys() == stated_ids, path
        assert evidence_list.commit == (commit if stated_ids else ""), path
        for claim_id, places in evidence_list.places_by_claim.items():
            assert len(claim_id) == 8
            first = claims[claim_id]["citations"][0]
            assert places.startswith(f"{first['path']}:{first['start_line']}"), path


def test_nothing_of_a_template_is_left_over(run: Pipeline) -> None:
    for path, text in run.read_pages().items():
        assert not TOKEN_PATTERN.search(text), path
        assert "{{" not in text, path
        assert not re.search(r"\n{3,}", text), path
        assert text.endswith("\n"), path
        assert not text.endswith("\n\n"), path


def test_every_heading_has_something_under_it(run: Pipeline) -> None:
    for path, page in parse_pages(run).items():
        headings = pages.list_headings(page.body)
        lines = page.body.splitlines()
        for heading, after in zip(headings, [*headings[1:], None], strict=True):
            between = lines[heading.line : after.line - 1 if after else None]
            below = after is not None and after.level > heading.level
            assert below or any(line.strip() for line in between), (path, heading.text)
        assert page.body.strip(), path
        assert not page.body.lstrip().startswith("#"), f"{path} begins without an introduction"


def test_a_page_has_the_headings_claims_and_links_of_its_plan(run: Pipeline) -> None:
    pages_by_path = parse_pages(run)
    for entry in run.read_json("page_plan.json")["pages"]:
        page = pages_by_path[entry["output_path"]]
        headings = [heading.text for heading in pages.list_headings(page.body) if heading.level == 2]
        assert headings == entry["required_headings"]
        ids = dict.fromkeys(claim.claim_id for claim in claim_markers.list_claim_markers(page.body))
        assert list(ids) == entry["required_claim_ids"]
        assert page.front["title"] == entry["title"]


def test_code_comes_from_the_catalogue_and_commands_from_the_manifest(run: Pipeline) -> None:
    catalogue = {s["code"].strip("\n") for s in run.read_json("snippet_catalog.json")["snippets"]}
    shells = {"pip install measurekit", 'python -c "import measurekit"'}
    shown_count = 0
    for path, page in parse_pages(run).items():
        for fence in pages.list_code_blocks(page.body):
            known_codes = shells if fence.language == "bash" else catalogue
            assert fence.code.strip("\n") in known_codes, (path, fence.code)
            shown_count += fence.language == "python"
    assert shown_count >= 5


def test_a_page_says_nothing_twice(run: Pipeline) -> None:
    for path, page in parse_pages(run).items():
        statements = [line for line in list_prose_lines(page) if claim_markers.find_claim_ids(line)]
        assert len(statements) == len(set(statements)), path
        codes = [fence.code for fence in pages.list_code_blocks(page.body)]
        assert len(codes) == len(set(codes)), path


def test_links_name_the_host_only_of_another_host(run: Pipeline) -> None:
    plan = run.read_json("page_plan.json")["pages"]
    known_targets = {(page["token_mappings"]["ORIGIN"], page["url_path"]) for page in plan}
    pages_by_path = parse_pages(run)
    for entry in plan:
        own_host = entry["token_mappings"]["ORIGIN"]
        for link in pages.list_links(pages_by_path[entry["output_path"]].body):
            parts = urlsplit(link.target)
            host = f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""
            assert (host or own_host, parts.path) in known_targets, link.target
            assert host != own_host, "a link on the same host needs no host"


def test_front_matter_keeps_to_the_contract_of_the_section(run: Pipeline) -> None:
    contract = run.read_json("frontmatter_contract.json")["sections"]
    pages_by_path = parse_pages(run)
    for entry in run.read_json("page_plan.json")["pages"]:
        front = pages_by_path[entry["output_path"]].front
        rules = contract.get(entry["section"])
        if rules:
            assert set(rules["required_keys"]) <= front.keys()
            assert front.keys() <= {*rules["required_keys"], *rules["optional_keys"]}


def test_new_pages_come_after_the_ones_that_are_there(run: Pipeline) -> None:
    indexes = {
        "content/docs/measurekit/_index.md": 20,  # beside content/docs/greetings
        "content/docs.aspose.org/cells/en/python/_index.md": 20,  # beside java
    }
    pages_by_path = parse_pages(run)
    index_weights = {path: indexes[path] for path in indexes if path in pages_by_path}

    assert {path: pages_by_path[path].front["weight"] for path in index_weights} == index_weights
    order = [page.front["weight"] for path, page in pages_by_path.items() if "/docs" in path]
    assert len(index_weights) == 1
    assert len(set(order)) >= len(order) - 1


def test_the_report_outlines_new_pages(run: Pipeline) -> None:
    report = run.read_text("reports/diff_report.md")

    for path in run.read_pages():
        assert f"| {path} | new |" in report


@pytest.mark.parametrize("profile", list(model.load_all_profiles()), ids=lambda value: value.name)
def test_every_template_uses_known_tokens_and_has_what_a_page_needs(profile: Any) -> None:
    for folder in (BASE_TEMPLATES_DIR, profile.templates_folder):
        for file in sorted(folder.rglob("*.md")) if folder.exists() else ():
            page = front_matter.parse_page(file.read_text(encoding="utf-8"))
            tokens = TOKEN_PATTERN.findall("\n".join([page.body, *map(str, page.front.values())]))
            assert set(tokens) <= TOKEN_RENDERERS.keys(), file
            assert {"title", "description", "purpose"} == page.front.keys(), file


def test_no_template_promises_what_a_product_may_not_have() -> None:
    for file in sorted(BASE_TEMPLATES_DIR.rglob("*.md")):
        page = front_matter.parse_page(file.read_text(encoding="utf-8"))
        lines = [line for line in page.body.split("\n") if not line.startswith("#")]
        fixed_text = " ".join([*map(str, page.front.values()), *lines])
        promise = r"its features|first program|what (it|__\w+__) (does\b(?! not)|is\b)"
        promised = re.search(promise, fixed_text, re.IGNORECASE)
        assert promised is None, (file, promised)


def test_every_token_is_explained_to_those_who_write_templates() -> None:
    text = (launch_sites.EXAMPLES_FOLDER.parent.parent / "docs/writing-a-profile.md").read_text("utf-8")

    assert {name for name in TOKEN_PATTERN.findall(text) if f"`__{name}__`" in text} == TOKEN_RENDERERS.keys()


def fill_template(body: str, **values: str) -> str:
    return PageTemplate("t", {}, body).fill_body(values)


@pytest.mark.parametrize(
    ("body", "values", "expected"),
    [
        ("Use __A__ here.\n\nEnd.", {"A": ""}, "End.\n"),
        ("Use __A__ here.", {"A": "it"}, "Use it here.\n"),
        ("x\n\n## H\n\nLead.\n\n__A__\n\n## I\n\ny", {"A": ""}, "x\n\n## I\n\ny\n"),
        ("## H\n\n__A__\n\n__B__\n", {"A": "", "B": "b"}, "## H\n\nb\n"),
        ("## H\n\n### I\n\n__A__\n", {"A": "a"}, "## H\n\n### I\n\na\n"),
        ("x\n\n## H\n\n### I\n\n__A__\n", {"A": ""}, "x\n"),
        ("## About __A__\n\ny\n\n## Z\n\nz", {"A": ""}, "## Z\n\nz\n"),
        ("__A__", {"A": "- a __B__ b\n- c"}, "- a __B__ b\n- c\n"),
    ],
)
def test_what_has_no_value_leaves_no_trace(body: str, values: dict[str, str], expected: str) -> None:
    assert fill_template(body, **values) == expected


def test_code_keeps_its_empty_lines() -> None:
    code = "```python\na = 1\n\n\nb = 2\n```"

    assert fill_template("A\n\n__X__\n\n__Y__\n\nB\n", X="", Y=code) == f"A\n\n{code}\n\nB\n"


def build_material(**fields: Any) -> LaunchMaterial:
    def build_claim(claim_id: str, text: str, status: str, kind: str) -> Mapping[str, Any]:
        return {
            "claim_id": claim_id,
            "claim_text": text,
            "claim_kind": kind,
            "truth_status": status,
            "citations": [{"path": "README.md", "start_line": 1, "end_line": 1}],
        }

    claims = [build_claim(*row) for row in fields.pop("claims", ())]
    return LaunchMaterial(
        facts={"product_name": "kit", "claim_groups": {}, "workflows": [], **fields},
        evidence={"claims": claims, "contradictions": fields.pop("contradictions", [])},
        catalogue={"snippets": fields.pop("snippets", [])},
        config={"allow_inference": fields.pop("allow_inference", False), "target_platform": "python"},
        forbidden_topics=fields.pop("forbidden", ()),
    )


@pytest.mark.parametrize(
    ("text", "status", "kind", "is_claimed"),
    [
        ("kit reads text.", "inference", "feature", True),
        ("kit is blazing fast.", "inference", "feature", False),
        ("kit is blazing fast.", "fact", "feature", True),
        ("kit reads PDF.", "inference", "format", False),
        ("kit stores data securely.", "inference", "feature", False),
        ("kit fills {{ name }}.", "fact", "feature", False),
    ],
)
def test_what_is_never_guessed_is_never_said(text: str, status: str, kind: str, is_claimed: bool) -> None:
    drafted_material = build_material(claims=[(CLAIM_ID, text, status, kind)])

    assert (CLAIM_ID in drafted_material.claims) is is_claimed


@pytest.mark.parametrize(
    ("text", "is_claimed"),
    [("kit reads text.", True), ("kit is fast.", False), ("kit has a pricing page.", False)],
)
def test_a_topic_that_the_profile_forbids_is_never_spoken_of(text: str, is_claimed: bool) -> None:
    topics = ("performance", "pricing")
    drafted_material = build_material(claims=[(CLAIM_ID, text, "fact", "feature")], forbidden=topics)

    assert (CLAIM_ID in drafted_material.claims) is is_claimed


@pytest.mark.parametrize(("resolution", "winner"), [("automatic", OTHER_CLAIM_ID), ("unresolved", CLAIM_ID)])
def test_a_claim_that_lost_is_never_said(resolution: str, winner: str) -> None:
    drafted_material = build_material(
        claims=[(CLAIM_ID, "kit needs 1.", "fact", "other"), (OTHER_CLAIM_ID, "kit needs 2.", "fact", "other")],
        contradictions=[
            {
                "claim_a_id": CLAIM_ID,
                "claim_b_id": OTHER_CLAIM_ID,
                "resolution": resolution,
                "winning_claim_id": winner,
            }
        ],
    )

    assert list(drafted_material.claims) == ([OTHER_CLAIM_ID] if resolution == "automatic" else [])


def test_code_that_does_not_parse_or_that_hugo_would_read_is_never_shown() -> None:
    def build_snippet(name: str, code: str, ok: bool) -> dict[str, Any]:
        return {
            "snippet_id": name,
            "language": "python",
            "tags": ["example"],
            "source": {"type": "repo_file", "path": "e.py", "start_line": 1, "end_line": 1},
            "code": code,
            "validation": {"syntax_ok": ok, "runnable_ok": "unknown"},
        }

    drafted_material = build_material(
        snippets=[
            build_snippet("good", "x = 1\n", ok=True),
            build_snippet("bad", "x =\n", ok=False),
            build_snippet("shortcode", 'x = "{{< ref >}}"\n', ok=True),
        ]
    )

    assert [shown_snippet.snippet_id for shown_snippet in drafted_material.snippets] == ["good"]


@pytest.mark.parametrize(
    ("command", "is_shown"),
    [
        ("pip install kit", True),
        ("$ pip install  kit", True),
        ("pip install kit[extra]", False),
        ("python -m pip install other", False),
        ("kit --help", True),
    ],
)
def test_commands_that_install_in_another_way_are_never_shown(command: str, is_shown: bool) -> None:
    drafted_material = build_material(
        distribution=[{"method": "pip", "identifier": "kit", "install_commands": ["pip install kit"]}],
        snippets=[
            {
                "snippet_id": "s",
                "language": "bash",
                "tags": ["readme"],
                "source": {
                    "type": "repo_file",
                    "path": "README.md",
                    "start_line": 1,
                    "end_line": 1,
                },
                "code": f"{command}\n",
                "validation": {"syntax_ok": True, "runnable_ok": "unknown"},
            }
        ],
    )

    assert bool(drafted_material.snippets) is is_shown


PAGE_ENTRY = {
    "title": "T",
    "purpose": "P.",
    "url_path": "/docs/kit/",
    "weight": 30,
    "date": "2026-01-15",
    "locale": "en",
    "family": "kit",
    "platform": "python",
    "keywords": ["kit"],
}


def test_keys_that_a_site_requires_are_filled_and_unknown_ones_left_out() -> None:
    contract = {
        "required_keys": ["date", "draft", "layout", "linktitle", "tags", "title", "url"],
        "optional_keys": ["description"],
        "key_types": {"date": "date", "tags": "array_string", "layout": "string"},
        "default_values": {"layout": "doc", "draft": True},
    }

    front = build_front_matter(PAGE_ENTRY, {"title": "T", "description": "D."}, contract)

    assert list(front) == [
        "title",
        "description",
        "date",
        "draft",
        "layout",
        "linktitle",
        "tags",
        "url",
    ]
    assert front["draft"] is False
    assert front["layout"] == "doc"
    assert front["url"] == "/docs/kit/"
    assert front_matter.parse_page(front_matter.render_page(front, "x")).front["date"].isoformat() == "2026-01-15"


def test_a_section_that_says_nothing_gets_our_own_keys() -> None:
    assert list(build_front_matter(PAGE_ENTRY, {"title": "T", "description": "D."}, {})) == [
        "title",
        "description",
        "weight",
    ]


def build_pipeline(tmp_path: Path, **changes: Any) -> Pipeline:
    launch_sites.copy_sample(tmp_path / "source", "source")
    if not (tmp_path / "site").exists():
        launch_sites.copy_sample(tmp_path / "site", "site")
    launch_sites.commit_folder(tmp_path / "site")
    config = {"profile": "plain", "family": "measurekit", "required_sections": ["reference"]}
    return Pipeline(tmp_path, tmp_path / "source", tmp_path / "site", **{**config, **changes})


def test_a_page_that_is_there_and_differs_is_a_conflict(tmp_path: Path) -> None:
    launch_sites.copy_sample(tmp_path / "site", "site")
    mine = tmp_path / "site/content/reference/measurekit/_index.md"
    mine.parent.mkdir()
    mine.write_text("---\ntitle: Mine\n---\n\nMine.\n")
    run = build_pipeline(tmp_path).run_steps(*SOURCE_STEPS, "plan", "draft:reference")

    with pytest.raises(ToolError) as caught:
        run.run_steps("link")

    assert caught.value.details["error_code"] == "LINKER_PATCHER_CONFLICT_UNRESOLVABLE"
    assert caught.value.details["conflicts"][0]["reason"] == "FILE_EXISTS_CONFLICT"
    assert caught.value.message == (
        "Cannot apply content/reference/measurekit/_index.md: another file already exists there."
    )
    assert caught.value.hint.startswith("A launch does not overwrite pages.")
    assert not caught.value.retryable
    assert (run.site / "content/reference/measurekit/_index.md").read_text().endswith("Mine.\n")


def test_a_page_above_that_may_change_gets_a_link(tmp_path: Path) -> None:
    run = build_pipeline(tmp_path, allowed_paths=["content/reference"]).run_steps(*SOURCE_STEPS, "plan")

    run.run_steps("draft:reference", "link", "apply", "link:2", "apply:2")

    index = (run.site / "content/reference/_index.md").read_text()
    assert index.endswith("Choose a package.\n\n## See also\n\n- [measurekit API overview](/reference/measurekit/)\n")


@pytest.mark.parametrize(
    ("budget", "allowed"),
    [("max_files_changed", 1), ("max_lines_per_file", 20), ("max_file_writes", 1)],
)
def test_a_launch_over_its_budget_changes_nothing(tmp_path: Path, budget: str, allowed: int) -> None:
    run = build_pipeline(tmp_path, required_sections=["docs", "reference"], budgets={budget: allowed})
    run.run_steps(*SOURCE_STEPS, "plan", "draft:docs", "draft:reference")

    with pytest.raises(ToolError) as caught:
        run.run_steps("link")

    assert caught.value.details["error_code"] == "LINKER_PATCHER_BUDGET_EXCEEDED"
    assert caught.value.details["over"][0]["budget"] == budget
    assert not (run.site / "content/docs/measurekit").exists()


def test_a_bundle_is_never_applied_outside_the_allowed_paths(tmp_path: Path) -> None:
    run = build_pipeline(tmp_path).run_steps(*SOURCE_STEPS, "plan", "draft:reference", "link")
    run.config["allowed_paths"] = ["content/reference/other"]

    with pytest.raises(ToolError) as caught:
        run.run_steps("apply")

    assert caught.value.code is ErrorCode.ALLOWED_PATHS_VIOLATION
    assert not (run.site / "content/reference/measurekit").exists()


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("from rich.console import Console\nconsole = Console()\nconsole.print(1)",
         {"rich.console.Console"}),
        ("import humanize as h\nh.intcomma(1)\nprint('Box Office')",
         {"humanize", "humanize.intcomma"}),
        ("import os.path\nos.path.join('a')", {"os", "os.path", "os.path.join"}),
        ("from . import x\nfrom a import b as c\nc.d()", {"a.b", "a.b.d"}),
        ("not python (", set()),
    ],
)  # fmt: skip
def test_a_name_is_used_only_where_it_was_imported(code: str, names: set[str]) -> None:
    assert find_used_names(code) == names

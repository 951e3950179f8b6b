"""What is written: every statement with its evidence, nothing left over, nothing twice."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch import pages
from cleats.toolsets.launch.drafting.blocks import TOKENS
from cleats.toolsets.launch.drafting.front import front_matter
from cleats.toolsets.launch.drafting.material import Material
from cleats.toolsets.launch.drafting.tasks import used_names
from cleats.toolsets.launch.drafting.templates import BASE, TOKEN, Template
from cleats.toolsets.launch.profiles import model
from tests import launch_sites
from tests.launch_pipeline import READING, Pipeline

FIVE = ["products", "docs", "reference", "kb", "blog"]
CLAIM = "a" * 64
OTHER = "b" * 64


@pytest.fixture(scope="module", params=["plain", "aspose"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    """The bundled package, launched on both kinds of site."""
    root = tmp_path_factory.mktemp(request.param)
    launch_sites.sample(root / "source", "source")
    given: dict[str, Any] = {"profile": "plain", "family": "measurekit"}
    if request.param == "plain":
        launch_sites.sample(root / "site", "site")
        given["required_sections"] = ["docs", "reference"]
    else:
        launch_sites.aspose(root / "site", "cells")
        given = {"profile": "aspose", "family": "cells", "required_sections": FIVE}
    launch_sites.committed(root / "site")
    return Pipeline(root, root / "source", root / "site", **given).all()


def bodies(run: Pipeline) -> dict[str, pages.Page]:
    return {path: pages.parse(text) for path, text in run.pages().items()}


def prose(page: pages.Page) -> list[str]:
    code = pages.code_lines(page.body)
    return [line for n, line in enumerate(page.body.splitlines(), 1) if n not in code]


def test_every_bullet_has_its_claim_or_leads_to_a_page(run: Pipeline) -> None:
    known = {claim["claim_id"] for claim in run.json("evidence_map.json")["claims"]}
    for path, page in bodies(run).items():
        for line in prose(page):
            if re.match(r"\s*[-*\d]+[.)]?\s", line):
                ids = pages.MARKER.findall(line)
                assert ids or line.lstrip("- ").startswith("["), (path, line)
                assert set(ids) <= known


def test_no_bullet_is_a_line_of_the_source(run: Pipeline) -> None:
    lines = {
        line.strip(" -*#\"'`.")
        for file in run.folder.repo.rglob("*")
        if file.is_file() and ".git" not in file.parts
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines()
    }
    for path, page in bodies(run).items():
        for line in prose(page):
            if line.startswith("- "):
                assert pages.MARKER.sub("", line).strip(" -*#\"'`.") not in lines, (path, line)


def test_nothing_of_a_template_is_left_over(run: Pipeline) -> None:
    for path, text in run.pages().items():
        assert not TOKEN.search(text), path
        assert "{{" not in text, path
        assert not re.search(r"\n{3,}", text), path
        assert text.endswith("\n"), path
        assert not text.endswith("\n\n"), path


def test_every_heading_has_something_under_it(run: Pipeline) -> None:
    for path, page in bodies(run).items():
        headings = pages.headings(page.body)
        lines = page.body.splitlines()
        for heading, after in zip(headings, [*headings[1:], None], strict=True):
            between = lines[heading.line : after.line - 1 if after else None]
            below = after is not None and after.level > heading.level
            assert below or any(line.strip() for line in between), (path, heading.text)
        assert page.body.strip(), path
        assert not page.body.lstrip().startswith("#"), f"{path} begins without an introduction"


def test_a_page_has_the_headings_claims_and_links_of_its_plan(run: Pipeline) -> None:
    written = bodies(run)
    for entry in run.json("page_plan.json")["pages"]:
        page = written[entry["output_path"]]
        assert [h.text for h in pages.headings(page.body)] == entry["required_headings"]
        ids = dict.fromkeys(claim.claim_id for claim in pages.claims(page.body))
        assert list(ids) == entry["required_claim_ids"]
        assert page.front["title"] == entry["title"]


def test_code_comes_from_the_catalogue_and_commands_from_the_manifest(run: Pipeline) -> None:
    catalogue = {s["code"].strip("\n") for s in run.json("snippet_catalog.json")["snippets"]}
    shells = {"pip install measurekit", 'python -c "import measurekit"'}
    shown = 0
    for path, page in bodies(run).items():
        for fence in pages.fences(page.body):
            known = shells if fence.language == "bash" else catalogue
            assert fence.code.strip("\n") in known, (path, fence.code)
            shown += fence.language == "python"
    assert shown >= 5


def test_a_page_says_nothing_twice(run: Pipeline) -> None:
    for path, page in bodies(run).items():
        statements = [line for line in prose(page) if pages.MARKER.search(line)]
        assert len(statements) == len(set(statements)), path
        codes = [fence.code for fence in pages.fences(page.body)]
        assert len(codes) == len(set(codes)), path


def test_links_name_the_host_only_of_another_host(run: Pipeline) -> None:
    plan = run.json("page_plan.json")["pages"]
    known = {(page["token_mappings"]["ORIGIN"], page["url_path"]) for page in plan}
    written = bodies(run)
    for entry in plan:
        here = entry["token_mappings"]["ORIGIN"]
        for link in pages.links(written[entry["output_path"]].body):
            parts = urlsplit(link.target)
            host = f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""
            assert (host or here, parts.path) in known, link.target
            assert host != here, "a link on the same host needs no host"


def test_front_matter_keeps_to_the_contract_of_the_section(run: Pipeline) -> None:
    contract = run.json("frontmatter_contract.json")["sections"]
    written = bodies(run)
    for entry in run.json("page_plan.json")["pages"]:
        front = written[entry["output_path"]].front
        rules = contract.get(entry["section"])
        if rules:
            assert set(rules["required_keys"]) <= front.keys()
            assert front.keys() <= {*rules["required_keys"], *rules["optional_keys"]}


def test_new_pages_come_after_the_ones_that_are_there(run: Pipeline) -> None:
    indexes = {
        "content/docs/measurekit/_index.md": 20,  # beside content/docs/greetings
        "content/docs.aspose.org/cells/en/python/_index.md": 20,  # beside java
    }
    written = bodies(run)
    found = {path: indexes[path] for path in indexes if path in written}

    assert {path: written[path].front["weight"] for path in found} == found
    order = [page.front["weight"] for path, page in written.items() if "/docs" in path]
    assert len(found) == 1
    assert len(set(order)) >= len(order) - 1


def test_the_report_outlines_new_pages(run: Pipeline) -> None:
    report = run.text("reports/diff_report.md")

    for path in run.pages():
        assert f"| {path} | new |" in report


@pytest.mark.parametrize("profile", list(model.every()), ids=lambda each: each.name)
def test_every_template_uses_known_tokens_and_has_what_a_page_needs(profile: Any) -> None:
    for folder in (BASE, profile.templates):
        for file in sorted(folder.rglob("*.md")) if folder.exists() else ():
            page = pages.parse(file.read_text(encoding="utf-8"))
            template = Template(file.name, page.front, page.body)
            assert template.tokens <= TOKENS.keys(), file
            assert {"title", "description", "purpose"} == page.front.keys(), file


def test_no_template_promises_what_a_product_may_not_have() -> None:
    for file in sorted(BASE.rglob("*.md")):
        page = pages.parse(file.read_text(encoding="utf-8"))
        lines = [line for line in page.body.split("\n") if not line.startswith("#")]
        fixed = " ".join([*map(str, page.front.values()), *lines])
        promise = r"its features|first program|what (it|__\w+__) (does\b(?! not)|is\b)"
        promised = re.search(promise, fixed, re.IGNORECASE)
        assert promised is None, (file, promised)


def test_every_token_is_explained_to_those_who_write_templates() -> None:
    text = (launch_sites.EXAMPLES.parent.parent / "docs/writing-a-profile.md").read_text("utf-8")

    assert {name for name in TOKEN.findall(text) if f"`__{name}__`" in text} == TOKENS.keys()


def filled(body: str, **values: str) -> str:
    return Template("t", {}, body).filled(values)


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
def test_what_has_no_value_leaves_no_trace(
    body: str, values: dict[str, str], expected: str
) -> None:
    assert filled(body, **values) == expected


def test_code_keeps_its_empty_lines() -> None:
    code = "```python\na = 1\n\n\nb = 2\n```"

    assert filled("A\n\n__X__\n\n__Y__\n\nB\n", X="", Y=code) == f"A\n\n{code}\n\nB\n"


def material(**more: Any) -> Material:
    def claim(claim_id: str, text: str, status: str, kind: str) -> Mapping[str, Any]:
        return {
            "claim_id": claim_id,
            "claim_text": text,
            "claim_kind": kind,
            "truth_status": status,
            "citations": [{"path": "README.md", "start_line": 1, "end_line": 1}],
        }

    claims = [claim(*each) for each in more.pop("claims", ())]
    return Material(
        facts={"product_name": "kit", "claim_groups": {}, "workflows": [], **more},
        evidence={"claims": claims, "contradictions": more.pop("contradictions", [])},
        catalogue={"snippets": more.pop("snippets", [])},
        config={"allow_inference": more.pop("allow_inference", False), "target_platform": "python"},
        forbidden=more.pop("forbidden", ()),
    )


@pytest.mark.parametrize(
    ("text", "status", "kind", "said"),
    [
        ("kit reads text.", "inference", "feature", True),
        ("kit is blazing fast.", "inference", "feature", False),
        ("kit is blazing fast.", "fact", "feature", True),
        ("kit reads PDF.", "inference", "format", False),
        ("kit stores data securely.", "inference", "feature", False),
        ("kit fills {{ name }}.", "fact", "feature", False),
    ],
)
def test_what_is_never_guessed_is_never_said(text: str, status: str, kind: str, said: bool) -> None:
    made = material(claims=[(CLAIM, text, status, kind)])

    assert (CLAIM in made.claims) is said


@pytest.mark.parametrize(
    ("text", "said"),
    [("kit reads text.", True), ("kit is fast.", False), ("kit has a pricing page.", False)],
)
def test_a_topic_that_the_profile_forbids_is_never_spoken_of(text: str, said: bool) -> None:
    topics = ("performance", "pricing")
    made = material(claims=[(CLAIM, text, "fact", "feature")], forbidden=topics)

    assert (CLAIM in made.claims) is said


@pytest.mark.parametrize(("resolution", "winner"), [("automatic", OTHER), ("unresolved", CLAIM)])
def test_a_claim_that_lost_is_never_said(resolution: str, winner: str) -> None:
    made = material(
        claims=[(CLAIM, "kit needs 1.", "fact", "other"), (OTHER, "kit needs 2.", "fact", "other")],
        contradictions=[
            {
                "claim_a_id": CLAIM,
                "claim_b_id": OTHER,
                "resolution": resolution,
                "winning_claim_id": winner,
            }
        ],
    )

    assert list(made.claims) == ([OTHER] if resolution == "automatic" else [])


def test_code_that_does_not_parse_or_that_hugo_would_read_is_never_shown() -> None:
    def snippet(name: str, code: str, ok: bool) -> dict[str, Any]:
        return {
            "snippet_id": name,
            "language": "python",
            "tags": ["example"],
            "source": {"type": "repo_file", "path": "e.py", "start_line": 1, "end_line": 1},
            "code": code,
            "validation": {"syntax_ok": ok, "runnable_ok": "unknown"},
        }

    made = material(
        snippets=[
            snippet("good", "x = 1\n", ok=True),
            snippet("bad", "x =\n", ok=False),
            snippet("shortcode", 'x = "{{< ref >}}"\n', ok=True),
        ]
    )

    assert [each.snippet_id for each in made.snippets] == ["good"]


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("pip install kit", True),
        ("$ pip install  kit", True),
        ("pip install kit[extra]", False),
        ("python -m pip install other", False),
        ("kit --help", True),
    ],
)
def test_commands_that_install_in_another_way_are_never_shown(command: str, shown: bool) -> None:
    made = material(
        distribution=[
            {"method": "pip", "identifier": "kit", "install_commands": ["pip install kit"]}
        ],
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

    assert bool(made.snippets) is shown


PAGE = {
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

    front = front_matter(PAGE, {"title": "T", "description": "D."}, contract)

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
    assert pages.parse(pages.render(front, "x")).front["date"].isoformat() == "2026-01-15"


def test_a_section_that_says_nothing_gets_our_own_keys() -> None:
    assert list(front_matter(PAGE, {"title": "T", "description": "D."}, {})) == [
        "title",
        "description",
        "weight",
    ]


def small(tmp_path: Path, **given: Any) -> Pipeline:
    launch_sites.sample(tmp_path / "source", "source")
    if not (tmp_path / "site").exists():
        launch_sites.sample(tmp_path / "site", "site")
    launch_sites.committed(tmp_path / "site")
    config = {"profile": "plain", "family": "measurekit", "required_sections": ["reference"]}
    return Pipeline(tmp_path, tmp_path / "source", tmp_path / "site", **{**config, **given})


def test_a_page_that_is_there_and_differs_is_a_conflict(tmp_path: Path) -> None:
    launch_sites.sample(tmp_path / "site", "site")
    mine = tmp_path / "site/content/reference/measurekit/_index.md"
    mine.parent.mkdir()
    mine.write_text("---\ntitle: Mine\n---\n\nMine.\n")
    run = small(tmp_path).do(*READING, "plan", "draft:reference")

    with pytest.raises(ToolError) as caught:
        run.do("link")

    assert caught.value.details["error_code"] == "LINKER_PATCHER_CONFLICT_UNRESOLVABLE"
    assert caught.value.details["conflicts"][0]["reason"] == "FILE_EXISTS_CONFLICT"
    assert caught.value.message == (
        "The site does not take content/reference/measurekit/_index.md: "
        "another file is there already."
    )
    assert caught.value.hint.startswith("A launch overwrites no page.")
    assert not caught.value.retryable
    assert (run.site / "content/reference/measurekit/_index.md").read_text().endswith("Mine.\n")


def test_a_page_above_that_may_change_gets_a_link(tmp_path: Path) -> None:
    run = small(tmp_path, allowed_paths=["content/reference"]).do(*READING, "plan")

    run.do("draft:reference", "link", "apply", "link:2", "apply:2")

    index = (run.site / "content/reference/_index.md").read_text()
    assert index.endswith(
        "Choose a package.\n\n## See also\n\n- [measurekit API overview](/reference/measurekit/)\n"
    )


@pytest.mark.parametrize(
    ("budget", "allowed"),
    [("max_files_changed", 1), ("max_lines_per_file", 20), ("max_file_writes", 1)],
)
def test_a_launch_over_its_budget_changes_nothing(
    tmp_path: Path, budget: str, allowed: int
) -> None:
    run = small(tmp_path, required_sections=["docs", "reference"], budgets={budget: allowed})
    run.do(*READING, "plan", "draft:docs", "draft:reference")

    with pytest.raises(ToolError) as caught:
        run.do("link")

    assert caught.value.details["error_code"] == "LINKER_PATCHER_BUDGET_EXCEEDED"
    assert caught.value.details["over"][0]["budget"] == budget
    assert not (run.site / "content/docs/measurekit").exists()


def test_a_bundle_is_never_applied_outside_the_allowed_paths(tmp_path: Path) -> None:
    run = small(tmp_path).do(*READING, "plan", "draft:reference", "link")
    run.config["allowed_paths"] = ["content/reference/other"]

    with pytest.raises(ToolError) as caught:
        run.do("apply")

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
    assert used_names(code) == names

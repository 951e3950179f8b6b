"""Tests of fix attempts: which issue is chosen, what each rule does, and what no rule may do."""

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.gates import registry
from cleats.toolsets.launch.gates.model import FileRemoval, FixCase, apply_fix_rule
from cleats.toolsets.launch.gates.page_text import edit_around, find_unknown_commands, remove_lines
from cleats.toolsets.launch.gates.registry import run_gate
from cleats.toolsets.launch.gates.site import LaunchSite, WorktreeChange
from cleats.toolsets.launch.gates.worktree import MANUAL_EDIT
from cleats.toolsets.launch.patching.patches import apply_bundle, apply_patch_to_text
from cleats.toolsets.launch.patching.path_guard import WorktreeGuard
from cleats.toolsets.launch.profiles.model import load_named_profile
from cleats.toolsets.launch.runs.issues import BLOCKING_SEVERITIES, Issue, Severity
from cleats.toolsets.launch.runs.job import WorkerJob
from cleats.toolsets.launch.site.claim_markers import find_claim_ids
from cleats.toolsets.launch.workers import fix, validate
from cleats.toolsets.launch.workers.fix import (
    build_patches,
    list_tried_issues,
    select_issue,
)
from tests.support.gates import (
    EVIDENCE_CLAIMS,
    EXAMPLE_CODE,
    EXPORTS_CLAIM_ID,
    FAILED_CODE,
    GUIDE_PATH,
    INSTALLATION_PATH,
    PAGE_TEXTS,
    REFERENCE_PATH,
    START_PATH,
    STORES_CLAIM_ID,
    TOC_PATH,
    GateRun,
    build_artifacts,
    create_gate_run,
    mark_claim,
    render_page,
)
from tests.support.requirements import requirement

FIX_RULES = registry.load_fixes(registry.GATE_NAMES)
FIXABLE_CODES = FIX_RULES.keys() | {MANUAL_EDIT.code}
QUICK_GATES = [name for name in load_named_profile("plain").gates.prod if name not in ("hugo_build", "external_links")]
DRAFT_PAGES = {f"drafts/{path.split('/')[1]}/{path}": text for path, text in PAGE_TEXTS.items()}
STORES_STATEMENT = mark_claim("Stores records in an ordered index.", STORES_CLAIM_ID)
EXPORTS_STATEMENT = mark_claim("Exports records to CSV and JSON.", EXPORTS_CLAIM_ID)
FAKE_TOKEN = "ghp" + "_" + "a1B2" * 9


@pytest.fixture(scope="module")
def shared_launch(tmp_path_factory: pytest.TempPathFactory) -> GateRun:
    return create_gate_run(
        tmp_path_factory.mktemp("launch"), config={"allow_manual_edits": True}, artifacts=DRAFT_PAGES
    )


@pytest.fixture
def launch(shared_launch: GateRun) -> GateRun:
    """Return the shared launch with its pages as the run wrote them."""
    for path, text in PAGE_TEXTS.items():
        shared_launch.write_file(path, text)
    return shared_launch


def build_site(launch: GateRun) -> LaunchSite:
    """Return the site as it is now; the changes are known, so git is not needed."""
    present_paths = [path for path in PAGE_TEXTS if (launch.job.site / path).exists()]
    return LaunchSite(
        job=launch.job,
        profile=load_named_profile("plain"),
        level="local",
        scratch=launch.job.root,
        changes=tuple(WorktreeChange(path, "file", 0o644) for path in sorted(present_paths)),
    )


def list_issues(launch: GateRun, *gates: str) -> list[Issue]:
    """Return the issues of the gates, warnings as errors; of all gates but the build by default."""

    async def run_gates() -> list[Issue]:
        site = build_site(launch)
        verdicts = [await run_gate(registry.load_gate(name), site, strict=True) for name in gates or QUICK_GATES]
        issues = [issue for verdict in verdicts for issue in verdict.issues]
        return sorted(issues, key=lambda issue: issue.sort_key)

    return anyio.run(run_gates)


def fix_issues(launch: GateRun, code: str) -> tuple[str | None, list[Issue], list[Issue]]:
    """Fix the issues of one code; return the new text, its issues before, and all issues after."""
    gates = next(names for prefix, names in GATES_BY_PREFIX.items() if code.startswith(f"GATE_{prefix}"))
    before = [candidate for candidate in list_issues(launch, *gates) if candidate.error_code == code]
    issue = before[0]
    text = launch.read_file(issue.path) if (launch.job.site / issue.path).exists() else None
    page_issues = [candidate for candidate in before if candidate.path == issue.path]
    answer = apply_fix_rule(FIX_RULES[code], FixCase(build_site(launch), issue, page_issues, text))
    assert not isinstance(answer, FileRemoval)
    fence = WorktreeGuard(launch.job.site, launch.job.config["allowed_paths"])
    apply_bundle({"patches": build_patches(issue.path, text, answer)}, fence)
    return answer, page_issues, list_issues(launch)


GATES_BY_PREFIX = {
    "TOKEN": ["template_tokens"],
    "FRONT": ["front_matter"],
    "LINT": ["markdown_lint"],
    "READABILITY": ["readability"],
    "LINK": ["internal_links"],
    "TRUTH": ["truth_lock"],
    "SNIPPET": ["snippet_syntax"],
    "CONSISTENCY": ["consistency"],
    "CONTENT": ["content_distribution"],
    "CONFLICT": ["conflict_markers"],
    "SECRET": ["secrets"],
    "HOST_PATH": ["secrets"],
}


class PageDefect(NamedTuple):
    """A defect: a text of a page replaced by another, and what the page says once repaired."""

    code: str
    path: str
    old: str
    new: str
    says: str


SEVEN_WORDS = ("all", "old", "new", "many", "some", "more", "most")
EXPORTS_MARK = f"<!-- claims: {EXPORTS_CLAIM_ID} -->"
LONG_SENTENCE = (
    f"{'Records and their fields are kept, ' * 6}in a file; all of them can be read again at any later time."
)

PAGE_DEFECTS = [
    PageDefect(
        "GATE_READABILITY_SENTENCE",
        GUIDE_PATH,
        "## Export",
        f"## Export\n\n{LONG_SENTENCE}",
        "in a file. All of them can be read again at any later time.",
    ),
    PageDefect(
        "GATE_READABILITY_OPENING",
        GUIDE_PATH,
        "## Export\n\n",
        "## Export\n\n" + "".join(f"- It can export {word} records to CSV. {EXPORTS_MARK}\n" for word in SEVEN_WORDS),
        f"- Export all records to CSV. {EXPORTS_MARK}\n- Export old records to CSV.",
    ),
    PageDefect("GATE_READABILITY_EMPTY", GUIDE_PATH, "## Export", "## Nothing\n\n## Export", "---\n\n## Export"),
    PageDefect("GATE_READABILITY_HEADING", GUIDE_PATH, "## Export", "## Export:", "## Export\n"),
    PageDefect("GATE_READABILITY_HEADING", GUIDE_PATH, "## Export", "## HOW TO EXPORT", "## How to export\n"),
    PageDefect(
        "GATE_READABILITY_SOURCE",
        GUIDE_PATH,
        "## Export",
        "## Export\n\n:param path: the file",
        "## Export\n\n- Exports",
    ),
    PageDefect("GATE_TOKEN_LEAKED", GUIDE_PATH, "## Export", "## Export __TOKEN__", "## Export\n"),
    PageDefect(
        "GATE_TOKEN_LEAKED",
        GUIDE_PATH,
        "title: Developer guide",
        "title: __T__",
        "title: Developer guide",
    ),
    PageDefect(
        "GATE_TOKEN_LEAKED",
        GUIDE_PATH,
        "## Export\n",
        "## Export\n\n__BODY_MORE__\n",
        "## Export\n\n- Ex",
    ),
    PageDefect(
        "GATE_FRONTMATTER_KEY_MISSING",
        GUIDE_PATH,
        "weight: 10\n",
        "other: 1\n",
        "other: 1\nweight: 10\n",
    ),
    PageDefect("GATE_FRONTMATTER_KEY_TYPE", GUIDE_PATH, "weight: 10", "weight: '12'", "weight: 12\n"),
    PageDefect("GATE_FRONTMATTER_KEY_TYPE", GUIDE_PATH, "weight: 10", "weight: heavy", "weight: 10\n"),
    PageDefect("GATE_FRONTMATTER_KEY_TYPE", GUIDE_PATH, "title: Developer guide", "title: ''", "Developer guide"),
    PageDefect("GATE_FRONTMATTER_DRAFT", GUIDE_PATH, "weight: 10", "weight: 10\ndraft: true", "weight: 10\n---"),
    PageDefect(
        "GATE_FRONTMATTER_MISSING",
        GUIDE_PATH,
        "---\ntitle: Developer guide\nweight: 10\n---\n",
        "",
        "title: D",
    ),
    PageDefect("GATE_FRONTMATTER_INVALID", GUIDE_PATH, "weight: 10", "weight: [\nkept: yes", "kept: yes"),
    PageDefect("GATE_FRONTMATTER_INVALID", GUIDE_PATH, "weight: 10", "weight: 1\nweight: 2", "weight: 1\n---"),
    PageDefect("GATE_LINT_TRAILING_SPACE", GUIDE_PATH, "## Export", "## Export ", "## Export\n"),
    PageDefect("GATE_LINT_TAB", GUIDE_PATH, "![The", "A\tB.\n\n![The", "A   B."),
    PageDefect("GATE_LINT_BLANK_LINES", GUIDE_PATH, "## Export\n", "## Export\n\n\n", "## Export\n\n- "),
    PageDefect("GATE_LINT_FINAL_NEWLINE", REFERENCE_PATH, "guide/).\n", "guide/).", "guide/).\n"),
    PageDefect("GATE_LINT_FINAL_NEWLINE", REFERENCE_PATH, "guide/).\n", "guide/).\n\n\n", "guide/).\n"),
    PageDefect("GATE_LINT_LINE_ENDS", GUIDE_PATH, "## Export\n", "## Export\r\n", "## Export\n"),
    PageDefect("GATE_LINT_BYTE_ORDER", GUIDE_PATH, "---\ntitle", "\ufeff---\ntitle", "---\ntitle"),
    PageDefect("GATE_LINT_HEADING_SPACE", GUIDE_PATH, "## Export\n\n", "## Export\n", "## Export\n\n- "),
    PageDefect("GATE_LINT_HEADING_MARK", GUIDE_PATH, "## Export", "##Export", "## Export"),
    PageDefect("GATE_LINT_HEADING_SKIP", GUIDE_PATH, "![The", "#### Deep\n\n![The", "### Deep"),
    PageDefect("GATE_LINT_SECOND_TITLE", GUIDE_PATH, "## Export", "# Export", "## Export"),
    PageDefect("GATE_LINT_EMPTY_HEADING", GUIDE_PATH, "## Export", "##\n\n## Export", "---\n\n## Export"),
    PageDefect("GATE_LINT_FENCE_LANGUAGE", START_PATH, "```python", "```", "```python"),
    PageDefect("GATE_LINT_FENCE_LANGUAGE", INSTALLATION_PATH, "```bash", "```", "```bash"),
    PageDefect("GATE_LINT_FENCE_LANGUAGE", GUIDE_PATH, "![The", "```\nsome output\n```\n\n![The", "```text"),
    PageDefect("GATE_LINT_OPEN_FENCE", INSTALLATION_PATH, "shelf-kit\n```", "shelf-kit", "shelf-kit\n```"),
    PageDefect(
        "GATE_LINT_BARE_URL",
        GUIDE_PATH,
        "![The",
        "At https://x.org/a.\n\n![The",
        "At <https://x.org/a>.",
    ),
    PageDefect("GATE_LINT_IMAGE_ALT", GUIDE_PATH, "![The logo]", "![]", "![Logo](/logo.svg)"),
    PageDefect("GATE_LINT_EMPTY_LINK", GUIDE_PATH, "![The", "See [this]().\n\n![The", "See this."),
    PageDefect("GATE_LINT_UNSAFE_HTML", GUIDE_PATH, "![The", "<script>x()</script>\n\n![The", "-->\n\n![The"),
    PageDefect("GATE_LINK_BROKEN", GUIDE_PATH, "![The", "[i](/x/installation/)\n\n![The", "[i](/docs/shelf/inst"),
    PageDefect(
        "GATE_LINK_BROKEN",
        GUIDE_PATH,
        "![The",
        "[Getting started](/x/y/)\n\n![The",
        "](/docs/shelf/gett",
    ),
    PageDefect("GATE_LINK_BROKEN", GUIDE_PATH, "![The", "Go [there](/x/y/) now.\n\n![The", "Go there now."),
    PageDefect("GATE_LINK_BROKEN", GUIDE_PATH, "![The", "<a href='/x/y/'>there</a>\n\n![The", "\nthere\n"),
    PageDefect("GATE_LINK_BROKEN", GUIDE_PATH, "![The", "[i](installation.md)\n\n![The", "[i](/docs/shelf/inst"),
    PageDefect("GATE_LINK_ANCHOR", START_PATH, "#requirements", "#requirement", "../installation/#requirements"),
    PageDefect("GATE_LINK_BROKEN", START_PATH, "- [Inst", "- [Other](/x/y/)\n- [Inst", "also\n\n- [Inst"),
    PageDefect("GATE_LINK_BROKEN", GUIDE_PATH, "![The", "[i](/x/instalation/)\n\n![The", "[i](/docs/shelf/inst"),
    PageDefect("GATE_LINK_ANCHOR", START_PATH, "#requirements", "#quite-else", "../installation/)"),
    PageDefect("GATE_LINK_IMAGE", GUIDE_PATH, "/logo.svg", "/none.svg", f"{EXPORTS_STATEMENT}\n"),
    PageDefect("GATE_LINK_REFERENCE", GUIDE_PATH, "![The", '[i]({{< ref "x.md" >}})\n\n![The', "\ni\n"),
    PageDefect("GATE_LINK_INSECURE", GUIDE_PATH, "![The", "[x](http://x.org/)\n\n![The", "[x](https://x.org/)"),
    PageDefect(
        "GATE_TRUTH_UNMARKED", START_PATH, STORES_STATEMENT, "- Stores records in an ordered index.", STORES_STATEMENT
    ),
    PageDefect(
        "GATE_TRUTH_UNMARKED",
        START_PATH,
        STORES_STATEMENT,
        f"{STORES_STATEMENT}\n- It flies.\n  Far.",
        f"{STORES_STATEMENT}\n\n```",
    ),
    PageDefect("GATE_TRUTH_UNKNOWN_CLAIM", START_PATH, f": {STORES_CLAIM_ID}", ": eeeeeeee", STORES_STATEMENT),
    PageDefect("GATE_TRUTH_LIST", START_PATH, f"{STORES_CLAIM_ID} README.md:4\n", "", f"{STORES_CLAIM_ID} README.md:4"),
    PageDefect(
        "GATE_TRUTH_UNKNOWN_CLAIM",
        START_PATH,
        STORES_STATEMENT,
        mark_claim("It flies.", "e" * 8),
        "First steps\n\n```",
    ),
    PageDefect(
        "GATE_TRUTH_DRIFT", START_PATH, "Stores records in an ordered index.", "Renders scenes.", STORES_STATEMENT
    ),
    PageDefect("GATE_TRUTH_FIGURE", START_PATH, "Stores records", "Stores 250 records", STORES_STATEMENT),
    PageDefect("GATE_TRUTH_SPECULATION", START_PATH, "Stores records", "Might store records", STORES_STATEMENT),
    PageDefect("GATE_TRUTH_NAME", START_PATH, "ordered index.", "ordered index, `Shelf.flush()`.", STORES_STATEMENT),
    PageDefect("GATE_TRUTH_FORMAT", GUIDE_PATH, "CSV and JSON", "CSV and PDF", EXPORTS_STATEMENT),
    PageDefect("GATE_TRUTH_SENTENCE", GUIDE_PATH, "![The", "It can fly.\n\n![The", "-->\n\n![The"),
    PageDefect("GATE_TRUTH_TOPIC", GUIDE_PATH, "![The", "Quite blazing fast.\n\n![The", "-->\n\n![The"),
    PageDefect("GATE_TRUTH_FORMAT", GUIDE_PATH, "![The", "An export to PDF.\n\n![The", "-->\n\n![The"),
    PageDefect("GATE_SNIPPET_UNKNOWN", START_PATH, 'shelf.put("a", 1)', 'shelf.put("b", 2)', EXAMPLE_CODE),
    PageDefect("GATE_SNIPPET_SYNTAX", START_PATH, 'shelf.put("a", 1)', 'shelf.put("a", 1', EXAMPLE_CODE),
    PageDefect("GATE_SNIPPET_UNKNOWN", GUIDE_PATH, "![The", "```python\nquite = 1\n```\n\n![The", "-->\n\n![The"),
    PageDefect("GATE_SNIPPET_FAILED", GUIDE_PATH, "![The", f"```python\n{FAILED_CODE}```\n\n![The", "-->\n\n![The"),
    PageDefect(
        "GATE_CONSISTENCY_NAME",
        GUIDE_PATH,
        "![The",
        "About shelf kit, `shelf kit`.\n\n![The",
        "Shelf.Kit, `shelf kit`",
    ),
    PageDefect("GATE_CONSISTENCY_NAME", TOC_PATH, "title: Shelf.Kit", "title: Shelf-Kit", "title: Shelf.Kit"),
    PageDefect(
        "GATE_CONSISTENCY_REPOSITORY",
        GUIDE_PATH,
        "![The",
        "[s](https://github.com/me/Shelf.Kit/issues)\n\n![The",
        "https://github.com/acme/Shelf.Kit/issues",
    ),
    PageDefect(
        "GATE_CONSISTENCY_ADDRESS",
        GUIDE_PATH,
        "weight: 10",
        "weight: 10\nurl: /x/",
        "/developer-guide/\n---",
    ),
    PageDefect(
        "GATE_CONSISTENCY_ADDRESS",
        GUIDE_PATH,
        "weight: 10",
        "weight: 10\ncanonical: http://[",
        "/developer-guide/\n---",
    ),
    PageDefect("GATE_CONSISTENCY_HEADING", INSTALLATION_PATH, "## Requirements", "## Needs", "## Requirements"),
    PageDefect(
        "GATE_CONSISTENCY_INSTALL",
        INSTALLATION_PATH,
        "\npip install shelf-kit",
        "\npip install x",
        "\npip install shelf-kit",
    ),
    PageDefect("GATE_CONSISTENCY_INSTALL", GUIDE_PATH, "![The", "```bash\nnpm i x\n```\n\n![The", "-->\n\n![The"),
    PageDefect(
        "GATE_CONTENT_TOC_CHILD",
        TOC_PATH,
        "- [Getting started](/docs/shelf/getting-started/)\n",
        "",
        "[Getting started](/docs/shelf/getting-started/)",
    ),
    PageDefect(
        "GATE_CONTENT_TOC_CODE",
        TOC_PATH,
        "## Contents",
        "```text\nx\n```\n\n## Contents",
        "Shelf.Kit.\n\n## Contents",
    ),
    PageDefect(
        "GATE_CONFLICT_MARKER",
        GUIDE_PATH,
        "## Export",
        "<<<<<<< a\n## Export\n=======\n## Out\n>>>>>>> b",
        "---\n\n## Export\n",
    ),
    PageDefect("GATE_SECRET", GUIDE_PATH, "![The", f"Use {FAKE_TOKEN}.\n\n![The", "-->\n\n![The"),
    PageDefect("GATE_HOST_PATH", GUIDE_PATH, "![The", "Use /home/carla/src/x.\n\n![The", "-->\n\n![The"),
    PageDefect("GATE_SECRET", GUIDE_PATH, "![The", f"```bash\nx {FAKE_TOKEN}\n```\n\n![The", "-->\n\n![The"),
    PageDefect("GATE_SECRET", GUIDE_PATH, "weight: 10", f"weight: 10\nkey: {FAKE_TOKEN}", "weight: 10\n---"),
]


def test_every_rule_is_tried_on_a_page() -> None:
    elsewhere = {
        *("GATE_CONTENT_PAGE_MISSING", "GATE_LINT_EMPTY_PAGE", "GATE_EXTERNAL_GONE"),
        *("GATE_LINK_CASE", "GATE_TRUTH_UNCITED", "GATE_TRUTH_CITATION", "GATE_TRUTH_UNSUPPORTED"),
        *("GATE_TRUTH_INFERENCE", "GATE_TRUTH_CONTRADICTED", "GATE_TRUTH_CONTRADICTION"),
    }

    assert {code for code, *_ in PAGE_DEFECTS} | elsewhere == set(FIX_RULES)


@pytest.mark.parametrize("broken", PAGE_DEFECTS, ids=lambda defect: defect.code.removeprefix("GATE_"))
def test_an_injected_defect_is_repaired_in_its_own_file_and_nothing_else_breaks(
    launch: GateRun, broken: PageDefect
) -> None:
    launch.edit_file(broken.path, broken.old, broken.new)

    text, mine, issues_after = fix_issues(launch, broken.code)

    assert text is not None
    assert broken.says in text
    assert [
        remaining_issue
        for remaining_issue in issues_after
        if remaining_issue.severity == "blocker" or remaining_issue.error_code == broken.code
    ] == []
    other_pages = {path: content for path, content in PAGE_TEXTS.items() if path != broken.path}
    assert {path: launch.read_file(path) for path in other_pages} == other_pages
    assert set(find_claim_ids(text)) <= set(find_claim_ids(PAGE_TEXTS[broken.path]))
    # Told again of what needs no line to be found, a rule has nothing more to do.
    if broken.code.startswith(TEXT_CODE_PREFIXES):
        assert FIX_RULES[broken.code](FixCase(build_site(launch), mine[0], mine, text)) in (None, text)


TEXT_CODE_PREFIXES = (
    *("GATE_TOKEN", "GATE_FRONTMATTER", "GATE_LINK", "GATE_CONSISTENCY", "GATE_CONFLICT"),
    *("GATE_LINT_T", "GATE_LINT_B", "GATE_LINT_F", "GATE_LINT_HEADING", "GATE_LINT_I"),
)


def test_a_page_that_is_gone_comes_back_as_it_was_drafted(launch: GateRun) -> None:
    (launch.job.site / START_PATH).unlink()

    text, _, issues_after = fix_issues(launch, "GATE_CONTENT_PAGE_MISSING")

    assert text == PAGE_TEXTS[START_PATH]
    assert issues_after == []


def test_a_page_that_says_nothing_is_drafted_anew(launch: GateRun) -> None:
    launch.write_file(GUIDE_PATH, "---\ntitle: Developer guide\nweight: 10\n---\n")

    text, _, issues_after = fix_issues(launch, "GATE_LINT_EMPTY_PAGE")

    assert text == PAGE_TEXTS[GUIDE_PATH]
    assert issues_after == []


def build_citation(path: str, line: int) -> dict[str, Any]:
    return {"path": path, "start_line": line, "end_line": line, "source_type": "source_code"}


def build_issue(code: str, severity: Severity = "error", path: str = "a.md", line: int = 1) -> Issue:
    prefixed_gates = (names[0] for prefix, names in GATES_BY_PREFIX.items() if code.startswith(f"GATE_{prefix}"))
    return Issue.create(
        gate=next(prefixed_gates, "g"),
        severity=severity,
        message="m",
        error_code=code,
        path=path,
        line=line,
    )


def build_report(*issues: Issue) -> dict[str, Any]:
    return {"issues": [issue.as_json() for issue in issues]}


def test_the_worst_open_issue_with_a_rule_is_taken_first() -> None:
    bad = build_issue("GATE_SECRET", "blocker", "z.md")
    plain, later = build_issue("GATE_LINK_BROKEN"), build_issue("GATE_LINK_BROKEN", line=2)
    issues = build_report(
        later,
        build_issue("GATE_HUGO_BUILD_FAILED", "blocker"),
        build_issue("GATE_LINT_TAB", "warn"),
        replace(bad, status="RESOLVED"),
        plain,
    )

    assert select_issue(issues, (), FIXABLE_CODES) == plain
    assert select_issue(build_report(plain, bad), (), FIXABLE_CODES) == bad
    assert select_issue(issues, {plain.issue_id}, FIXABLE_CODES) == later
    assert select_issue(issues, {plain.issue_id, later.issue_id}, FIXABLE_CODES) is None


def test_an_issue_is_tried_when_its_own_rule_was_or_nothing_could_be_done() -> None:
    facts: Mapping[str, Any] = {
        "clone": {"issue_id": "iss_0"},
        "fix:1": {"issue_id": "iss_1", "rule": "A", "error_code": "A", "patch_ids": ["p"]},
        "fix:2": {"issue_id": "iss_2", "rule": "B", "error_code": "A", "patch_ids": ["p"]},
        "fix:3": {"issue_id": "iss_3", "rule": "B", "error_code": "A", "patch_ids": []},
    }

    assert list_tried_issues(facts) == {"iss_1", "iss_3"}


TEXT_CHANGES = [
    ("a\nb\nc\n", "a\nx\nc\n"),
    ("a\nb\nc\n", "a\nc\n"),
    ("a\nc\n", "a\nb\nc\n"),
    ("a", "a\n"),
    ("a\n\n\n", "a\n"),
    ("a\n", "x\n"),
    ("a\r\nb\n", "a\nb\n"),
    ("a\na\na\n", "a\na\n"),
    ("", "a\n"),
    ("a\n", "a\n\nb\n"),
]


@pytest.mark.parametrize(("before", "wanted_text"), TEXT_CHANGES)
def test_the_patch_of_two_texts_leads_from_one_to_the_other(before: str, wanted_text: str) -> None:
    assert apply_patch_to_text(build_patches("a.md", before, wanted_text)[0], before) == wanted_text


@pytest.mark.parametrize(
    ("before", "wanted_text", "kind"),
    [
        ("---\ntitle: A\n---\n\nx\n", "---\ntitle: B\n---\n\nx\n", "update_frontmatter_keys"),
        ("---\na: 1\nb: 2\n---\nx\n", "---\na: 1\n---\nx\n", "update_frontmatter_keys"),
        ("---\n{a: 1, b: 2}\n---\nx\n", "---\n{a: 3, b: 2}\n---\nx\n", "update_file_range"),
        ("---\n? a\n: 1\n---\nx\n", "---\n? a\n: 2\n---\nx\n", "update_file_range"),
        ("+++\n'a.b' = 1\n+++\nx\n", "+++\n'a.b' = 2\n+++\nx\n", "update_file_range"),
        ("---\na: 1\n---\nx\n", "---\na: .inf\n---\nx\n", "update_file_range"),
        ("---\ntitle: A\n---\nx\n", "---\ntitle: B\n---\ny\n", "update_file_range"),
        ("---\nd: 2020-01-01\n---\n", "---\nd: 2021-01-01\n---\n", "update_file_range"),
        ("---\na: [\n---\nx\n", "---\na: 1\n---\nx\n", "update_file_range"),
    ],
)
def test_what_only_changes_keys_is_a_patch_of_those_keys(before: str, wanted_text: str, kind: str) -> None:
    (patch,) = build_patches("a.md", before, wanted_text)

    assert patch["type"] == kind
    assert apply_patch_to_text(patch, before) == wanted_text


def test_lines_that_go_leave_no_double_gap() -> None:
    assert remove_lines("a\n\nb\n\nc\n", [3]) == "a\n\nc\n"
    assert remove_lines("a\nb\nc\n", [2]) == "a\nc\n"
    assert remove_lines("a\n\nb\n", [3]) == "a\n"
    assert remove_lines("a\n\n\nb", []) == "a\n\n\nb"


def test_what_a_pattern_protects_is_not_edited() -> None:
    assert edit_around(re.compile("`[^`]*`"), "a `a` a`a`", str.upper) == "A `a` A`a`"
    assert edit_around(re.compile("`[^`]*`"), "a", str.upper) == "A"


def test_an_install_command_is_unknown_when_no_manifest_has_it() -> None:
    facts = {"distribution": [{"install_commands": ["pip install shelf-kit"]}, {}]}
    code = "$ pip  install shelf-kit\nls\nnpm install shelf\n"

    assert list(find_unknown_commands(code, "bash", facts)) == [(3, "npm install shelf")]
    assert list(find_unknown_commands(code, "python", facts)) == []


def build_fix_job(launch: GateRun, issues: list[Issue], facts: Mapping[str, Any] | None = None) -> WorkerJob:
    job = launch.job
    job.write(
        "validation_report.json",
        {
            "schema_version": "1.0",
            "ok": False,
            "profile": "local",
            "gates": [],
            "issues": [issue.as_json() for issue in issues],
        },
    )
    return replace(
        job,
        step="fix:1",
        inputs={**job.inputs, **job.outputs},
        outputs={},
        facts={**job.facts, **(facts or {})},
    )


def list_blocking_issues(launch: GateRun) -> list[Issue]:
    return [issue for issue in list_issues(launch) if issue.severity in BLOCKING_SEVERITIES]


def test_an_attempt_plans_patches_and_changes_nothing(launch: GateRun) -> None:
    launch.edit_file(GUIDE_PATH, "## Export", "## Export __TOKEN__")
    broken = launch.read_file(GUIDE_PATH)
    job = build_fix_job(launch, list_blocking_issues(launch))

    facts = anyio.run(fix.run_fix, job)

    delta = job.read_json("patch_bundle.delta.1.json")
    assert [patch["patch_id"] for patch in delta["patches"]] == facts["patch_ids"]
    assert {patch["path"] for patch in delta["patches"]} == {GUIDE_PATH}
    assert launch.read_file(GUIDE_PATH) == broken
    fix_report = job.read("reports/fix_1.md").decode()
    assert facts["issue_id"] in fix_report
    assert "-## Export __TOKEN__\n+## Export\n" in fix_report


def test_the_same_attempt_gives_the_same_bytes(launch: GateRun) -> None:
    launch.edit_file(GUIDE_PATH, "## Export", "## Export __TOKEN__")
    job = build_fix_job(launch, list_blocking_issues(launch))

    outputs = []
    for _ in range(2):
        anyio.run(fix.run_fix, job)
        outputs.append(dict(job.outputs))

    assert outputs[0] == outputs[1]


@requirement("e:fix")
def test_an_attempt_takes_one_issue_and_the_next_one_takes_another(launch: GateRun) -> None:
    launch.edit_file(GUIDE_PATH, "## Export", "## Export __TOKEN__")
    launch.edit_file(START_PATH, STORES_STATEMENT, f"{STORES_STATEMENT}\n- It flies.")
    issues = list_blocking_issues(launch)

    first = anyio.run(fix.run_fix, build_fix_job(launch, issues))
    second = anyio.run(fix.run_fix, build_fix_job(launch, issues, {"fix:1": first}))

    assert (first["path"], second["path"]) == (GUIDE_PATH, START_PATH)


def test_without_a_rule_there_is_nothing_left_to_try(launch: GateRun) -> None:
    job = build_fix_job(launch, [build_issue("GATE_HUGO_BUILD_FAILED", "blocker", GUIDE_PATH)])

    with pytest.raises(ToolError) as refused:
        anyio.run(fix.run_fix, job)

    assert refused.value.code is ErrorCode.FIX_EXHAUSTED
    assert refused.value.details == {"reason": "no_fixable_issue"}


def test_a_rule_that_finds_nothing_uses_up_the_attempt(launch: GateRun) -> None:
    stale = build_issue("GATE_TOKEN_LEAKED", "blocker", GUIDE_PATH, 6)

    facts = anyio.run(fix.run_fix, build_fix_job(launch, [stale]))

    assert facts["patch_ids"] == []
    assert facts["issue_id"] == stale.issue_id


def test_files_outside_the_fence_links_and_bytes_are_left_to_people(launch: GateRun) -> None:
    folder = Path(GUIDE_PATH).parent
    link, data = str(folder / "link.md"), str(folder / "bytes.md")
    (launch.job.site / link).symlink_to("/etc/hostname")
    (launch.job.site / data).write_bytes(b"\xff\xfe\x00")
    strange = [build_issue("GATE_LINT_TAB", "error", path) for path in ("hugo.toml", link, data)]
    launch.edit_file(GUIDE_PATH, "![The", "\t![The")
    own_issue = build_issue("GATE_LINT_TAB", "warn", GUIDE_PATH)

    with pytest.raises(ToolError) as refused:
        anyio.run(fix.run_fix, build_fix_job(launch, [*strange, own_issue]))
    mended = anyio.run(fix.run_fix, build_fix_job(launch, [*strange, replace(own_issue, severity="error")]))
    for path in (link, data):
        (launch.job.site / path).unlink()

    assert refused.value.code is ErrorCode.FIX_EXHAUSTED
    assert mended["path"] == GUIDE_PATH


def test_a_secret_does_not_get_into_the_report_of_its_fix(launch: GateRun) -> None:
    launch.edit_file(GUIDE_PATH, "![The", f"Use {FAKE_TOKEN}.\n\n![The")
    job = build_fix_job(launch, list_blocking_issues(launch))

    anyio.run(fix.run_fix, job)

    assert all(FAKE_TOKEN.encode() not in job.read(name) for name in job.outputs)


def test_an_edit_by_hand_that_is_not_allowed_is_undone_and_kept_in_the_report(
    tmp_path: Path,
) -> None:
    launch = create_gate_run(tmp_path, artifacts=DRAFT_PAGES)
    launch.edit_file(GUIDE_PATH, "## Export", "## Export\n\nMine, and __TOKEN__.")
    launch.write_file("content/docs/shelf/note.md", render_page("A note", "Mine."))
    edits = [build_issue("GATE_MANUAL_EDIT", "error", edited_path, 0) for edited_path in (GUIDE_PATH, NOTE_PATH)]
    token = build_issue("GATE_TOKEN_LEAKED", "blocker", GUIDE_PATH, 8)

    first = build_fix_job(launch, [token, *edits])
    facts = anyio.run(fix.run_fix, first)
    fence = WorktreeGuard(first.site, first.config["allowed_paths"])
    apply_bundle(first.read_json("patch_bundle.delta.1.json"), fence)
    second = build_fix_job(launch, edits[1:])
    anyio.run(fix.run_fix, second)
    apply_bundle(second.read_json("patch_bundle.delta.1.json"), fence)

    assert facts["rule"] == "GATE_MANUAL_EDIT"
    assert launch.read_file(GUIDE_PATH) == PAGE_TEXTS[GUIDE_PATH]
    assert not (launch.job.site / NOTE_PATH).exists()
    assert "-Mine, and __TOKEN__." in first.read("reports/fix_1.md").decode()
    assert "-Mine." in second.read("reports/fix_1.md").decode()


NOTE_PATH = "content/docs/shelf/note.md"


UNPROVED_CLAIMS: list[tuple[str, dict[str, Any]]] = [
    ("GATE_TRUTH_UNCITED", {"citations": []}),
    ("GATE_TRUTH_CITATION", {"citations": [build_citation("README.md", 99)]}),
    ("GATE_TRUTH_UNSUPPORTED", {"citations": [build_citation("examples/put.py", 2)]}),
    ("GATE_TRUTH_INFERENCE", {"truth_status": "inference"}),
]


@pytest.mark.parametrize(("code", "about"), UNPROVED_CLAIMS)
def test_a_statement_whose_claim_does_not_hold_goes(tmp_path: Path, code: str, about: dict[str, Any]) -> None:
    claims = [{**entry, **about} if entry["claim_id"] == EXPORTS_CLAIM_ID else entry for entry in EVIDENCE_CLAIMS]
    document = {**build_artifacts()["evidence_map.json"], "claims": claims}
    launch = create_gate_run(tmp_path, artifacts={"evidence_map.json": document})

    text, mine, _ = fix_issues(launch, code)

    assert [entry.path for entry in mine] == [GUIDE_PATH]
    assert text is not None
    assert EXPORTS_CLAIM_ID not in text


@pytest.mark.parametrize(
    ("winner", "code"),
    [(STORES_CLAIM_ID, "GATE_TRUTH_CONTRADICTED"), ("", "GATE_TRUTH_CONTRADICTION")],
)
def test_a_statement_that_was_contradicted_goes(tmp_path: Path, winner: str, code: str) -> None:
    both = {
        "claim_a_id": EXPORTS_CLAIM_ID,
        "claim_b_id": STORES_CLAIM_ID,
        "resolution": "x",
        "winning_claim_id": winner,
    }
    document = {**build_artifacts()["evidence_map.json"], "contradictions": [both]}
    launch = create_gate_run(tmp_path, artifacts={"evidence_map.json": document})

    text, mine, _ = fix_issues(launch, code)

    assert mine[0].path == GUIDE_PATH
    assert EXPORTS_CLAIM_ID not in (text or "")


def test_a_link_that_cannot_be_read_becomes_its_words(launch: GateRun) -> None:
    launch.edit_file(GUIDE_PATH, "![The", "[i](http://[x)\n\n![The")
    wrong = Issue.create(
        gate="internal_links",
        severity="error",
        message="the link leads nowhere: http://[x",
        error_code="GATE_LINK_BROKEN",
        path=GUIDE_PATH,
    )

    text = FIX_RULES["GATE_LINK_BROKEN"](FixCase(build_site(launch), wrong, [wrong], launch.read_file(GUIDE_PATH)))

    assert isinstance(text, str)
    assert "http://[x" not in text


def test_a_link_that_differs_in_case_gets_the_page_s_own(launch: GateRun) -> None:
    launch.edit_file(GUIDE_PATH, "![The", "[i](/docs/Shelf/Installation/)\n\n![The")
    message = "the link differs in case from the page: /docs/Shelf/Installation/"
    wrong = Issue.create(
        gate="internal_links",
        severity="error",
        message=message,
        error_code="GATE_LINK_CASE",
        path=GUIDE_PATH,
    )

    text = FIX_RULES["GATE_LINK_CASE"](FixCase(build_site(launch), wrong, [wrong], launch.read_file(GUIDE_PATH)))

    assert isinstance(text, str)
    assert "[i](/docs/shelf/installation/)" in text


def test_a_launch_with_many_faults_is_repaired_attempt_by_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = [registry.load_gate(name) for name in QUICK_GATES]
    monkeypatch.setattr(registry, "select_gates", lambda _names: quick)  # five builds would take long
    launch = create_gate_run(tmp_path, config={"allow_manual_edits": True}, artifacts=DRAFT_PAGES)
    launch.edit_file(GUIDE_PATH, "## Export", "## Export __TOKEN__")
    launch.edit_file(GUIDE_PATH, "weight: 10\n", "")
    launch.edit_file(START_PATH, STORES_STATEMENT, f"{STORES_STATEMENT}\n- It flies.\n- It swims.")
    (launch.job.site / INSTALLATION_PATH).unlink()
    job, attempts = launch.job, []
    for number in range(1, 9):
        job = build_next_job(job, f"validate:{number}")
        facts = anyio.run(validate.run_validate, job)
        if facts["ok"]:
            break
        job = build_next_job(job, f"fix:{number}")
        attempts.append(anyio.run(fix.run_fix, job))
        fence = WorktreeGuard(job.site, job.config["allowed_paths"])
        apply_bundle(job.read_json(f"patch_bundle.delta.{number}.json"), fence)
        done = {f"fix:{number}": attempts[-1], f"apply:fix:{number}": {}}
        job = replace(job, facts={**job.facts, **done})

    assert facts["ok"]
    assert [attempt_entry["error_code"] for attempt_entry in attempts] == [
        "GATE_CONTENT_PAGE_MISSING",
        "GATE_TOKEN_LEAKED",
        "GATE_TRUTH_UNMARKED",
        "GATE_FRONTMATTER_KEY_MISSING",
    ]
    assert {path: launch.read_file(path) for path in PAGE_TEXTS} == PAGE_TEXTS
    assert job.read_json("validation_report.json")["manual_edits"] is False


def build_next_job(job: WorkerJob, step: str) -> WorkerJob:
    """Return the job of the next step, with the outputs of the previous one."""
    return replace(job, step=step, inputs={**job.inputs, **job.outputs}, outputs={})

"""Fix attempts: which issue is taken, what each rule does, and what no rule may do."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.fixes.delta import between, patches
from cleats.toolsets.launch.fixes.model import Case, Gone, without
from cleats.toolsets.launch.fixes.selection import select, tried
from cleats.toolsets.launch.fixes.table import CODES, RULES
from cleats.toolsets.launch.gates import registry
from cleats.toolsets.launch.gates.runner import judge
from cleats.toolsets.launch.gates.site import Change, Site
from cleats.toolsets.launch.issues import BLOCKING, Issue, Severity
from cleats.toolsets.launch.pages import MARKER
from cleats.toolsets.launch.patching.fence import Fence
from cleats.toolsets.launch.patching.patches import after, apply
from cleats.toolsets.launch.profiles.model import load
from cleats.toolsets.launch.workers import fix, validate
from cleats.toolsets.launch.workers.job import Job
from tests.launch_gates_world import (
    CLAIMS,
    EXAMPLE,
    EXPORTS,
    GUIDE,
    INSTALLATION,
    PAGES,
    START,
    STORES,
    TOC,
    World,
    documents,
    marked,
    page,
    world,
)
from tests.requirements import requirement

QUICK = [name for name in registry.NAMES if name not in ("hugo_build", "external_links")]
DRAFTS = {f"drafts/{path.split('/')[1]}/{path}": text for path, text in PAGES.items()}
STORED = marked("Stores records in an ordered index.", STORES)
EXPORTED = marked("Exports records to CSV and JSON.", EXPORTS)
SECRET = "ghp" + "_" + "a1B2" * 9


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> World:
    return world(
        tmp_path_factory.mktemp("launch"), config={"allow_manual_edits": True}, artifacts=DRAFTS
    )


@pytest.fixture
def launch(shared: World) -> World:
    """The shared launch, its pages as the run wrote them."""
    for path, text in PAGES.items():
        shared.write(path, text)
    return shared


def site_of(launch: World) -> Site:
    """The site as it is now; what changed is known, so git need not be asked."""
    there = [path for path in PAGES if (launch.job.site / path).exists()]
    return Site(
        job=launch.job,
        profile=load("plain"),
        level="local",
        scratch=launch.job.root,
        changes=tuple(Change(path, "file", 0o644) for path in sorted(there)),
    )


def found(launch: World, *gates: str) -> list[Issue]:
    """What the gates have to say, warnings as errors; all but the build if none is named."""

    async def run() -> list[Issue]:
        site = site_of(launch)
        verdicts = [await judge(registry.load(name), site, strict=True) for name in gates or QUICK]
        issues = [issue for verdict in verdicts for issue in verdict.issues]
        return sorted(issues, key=lambda issue: issue.sort_key)

    return anyio.run(run)


def fixed(launch: World, code: str) -> tuple[str | None, list[Issue], list[Issue]]:
    """Repair the issues of one code; the new text, its issues before, all issues after."""
    gates = next(names for prefix, names in GATES.items() if code.startswith(f"GATE_{prefix}"))
    before = [each for each in found(launch, *gates) if each.error_code == code]
    issue = before[0]
    text = launch.read(issue.path) if (launch.job.site / issue.path).exists() else None
    mine = [each for each in before if each.path == issue.path]
    answer = RULES[code](Case(site_of(launch), issue, mine, text))
    assert not isinstance(answer, Gone)
    fence = Fence(launch.job.site, launch.job.config["allowed_paths"])
    apply({"patches": patches(issue.path, text, answer)}, fence)
    return answer, mine, found(launch)


GATES = {
    "TOKEN": ["template_tokens"],
    "FRONT": ["front_matter"],
    "LINT": ["markdown_lint"],
    "LINK": ["internal_links"],
    "TRUTH": ["truth_lock"],
    "SNIPPET": ["snippet_syntax"],
    "CONSISTENCY": ["consistency"],
    "CONTENT": ["content_distribution"],
    "CONFLICT": ["conflict_markers"],
    "SECRET": ["secrets"],
    "HOST_PATH": ["secrets"],
}


class Break(NamedTuple):
    """A defect: a text of a page replaced by another, and what the page says once repaired."""

    code: str
    path: str
    old: str
    new: str
    says: str


BREAKS = [
    Break("GATE_TOKEN_LEAKED", GUIDE, "## Export", "## Export __TOKEN__", "## Export\n"),
    Break(
        "GATE_TOKEN_LEAKED",
        GUIDE,
        "title: Developer guide",
        "title: __T__",
        "title: Developer guide",
    ),
    Break(
        "GATE_TOKEN_LEAKED",
        GUIDE,
        "## Export\n",
        "## Export\n\n__BODY_MORE__\n",
        "## Export\n\n- Ex",
    ),
    Break(
        "GATE_FRONTMATTER_KEY_MISSING",
        GUIDE,
        "weight: 10\n",
        "other: 1\n",
        "other: 1\nweight: 10\n",
    ),
    Break("GATE_FRONTMATTER_KEY_TYPE", GUIDE, "weight: 10", "weight: '12'", "weight: 12\n"),
    Break("GATE_FRONTMATTER_KEY_TYPE", GUIDE, "weight: 10", "weight: heavy", "weight: 10\n"),
    Break(
        "GATE_FRONTMATTER_KEY_TYPE", GUIDE, "title: Developer guide", "title: ''", "Developer guide"
    ),
    Break(
        "GATE_FRONTMATTER_DRAFT", GUIDE, "weight: 10", "weight: 10\ndraft: true", "weight: 10\n---"
    ),
    Break(
        "GATE_FRONTMATTER_MISSING",
        GUIDE,
        "---\ntitle: Developer guide\nweight: 10\n---\n",
        "",
        "title: D",
    ),
    Break("GATE_FRONTMATTER_INVALID", GUIDE, "weight: 10", "weight: [\nkept: yes", "kept: yes"),
    Break(
        "GATE_FRONTMATTER_INVALID", GUIDE, "weight: 10", "weight: 1\nweight: 2", "weight: 1\n---"
    ),
    Break("GATE_LINT_TRAILING_SPACE", GUIDE, "## Export", "## Export ", "## Export\n"),
    Break("GATE_LINT_TAB", GUIDE, "![The", "A\tB.\n\n![The", "A   B."),
    Break("GATE_LINT_BLANK_LINES", GUIDE, "## Export\n", "## Export\n\n\n", "## Export\n\n- "),
    Break("GATE_LINT_FINAL_NEWLINE", GUIDE, "logo.svg)\n", "logo.svg)", "logo.svg)\n"),
    Break("GATE_LINT_FINAL_NEWLINE", GUIDE, "logo.svg)\n", "logo.svg)\n\n\n", "logo.svg)\n"),
    Break("GATE_LINT_LINE_ENDS", GUIDE, "## Export\n", "## Export\r\n", "## Export\n"),
    Break("GATE_LINT_BYTE_ORDER", GUIDE, "---\ntitle", "\ufeff---\ntitle", "---\ntitle"),
    Break("GATE_LINT_HEADING_SPACE", GUIDE, "## Export\n\n", "## Export\n", "## Export\n\n- "),
    Break("GATE_LINT_HEADING_MARK", GUIDE, "## Export", "##Export", "## Export"),
    Break("GATE_LINT_HEADING_SKIP", GUIDE, "![The", "#### Deep\n\n![The", "### Deep"),
    Break("GATE_LINT_SECOND_TITLE", GUIDE, "## Export", "# Export", "## Export"),
    Break("GATE_LINT_EMPTY_HEADING", GUIDE, "## Export", "##\n\n## Export", "---\n\n## Export"),
    Break("GATE_LINT_FENCE_LANGUAGE", START, "```python", "```", "```python"),
    Break("GATE_LINT_FENCE_LANGUAGE", INSTALLATION, "```bash", "```", "```bash"),
    Break("GATE_LINT_FENCE_LANGUAGE", GUIDE, "![The", "```\nsome output\n```\n\n![The", "```text"),
    Break("GATE_LINT_OPEN_FENCE", INSTALLATION, "shelf-kit\n```", "shelf-kit", "shelf-kit\n```"),
    Break(
        "GATE_LINT_BARE_URL",
        GUIDE,
        "![The",
        "At https://x.org/a.\n\n![The",
        "At <https://x.org/a>.",
    ),
    Break("GATE_LINT_IMAGE_ALT", GUIDE, "![The logo]", "![]", "![Logo](/logo.svg)"),
    Break("GATE_LINT_EMPTY_LINK", GUIDE, "![The", "See [this]().\n\n![The", "See this."),
    Break("GATE_LINT_UNSAFE_HTML", GUIDE, "![The", "<script>x()</script>\n\n![The", "-->\n\n![The"),
    Break(
        "GATE_LINK_BROKEN", GUIDE, "![The", "[i](/x/installation/)\n\n![The", "[i](/docs/shelf/inst"
    ),
    Break(
        "GATE_LINK_BROKEN",
        GUIDE,
        "![The",
        "[Getting started](/x/y/)\n\n![The",
        "](/docs/shelf/gett",
    ),
    Break("GATE_LINK_BROKEN", GUIDE, "![The", "Go [there](/x/y/) now.\n\n![The", "Go there now."),
    Break("GATE_LINK_BROKEN", GUIDE, "![The", "<a href='/x/y/'>there</a>\n\n![The", "\nthere\n"),
    Break(
        "GATE_LINK_BROKEN", GUIDE, "![The", "[i](installation.md)\n\n![The", "[i](/docs/shelf/inst"
    ),
    Break(
        "GATE_LINK_ANCHOR", START, "#requirements", "#requirement", "../installation/#requirements"
    ),
    Break("GATE_LINK_BROKEN", START, "- [Inst", "- [Other](/x/y/)\n- [Inst", "also\n\n- [Inst"),
    Break(
        "GATE_LINK_BROKEN", GUIDE, "![The", "[i](/x/instalation/)\n\n![The", "[i](/docs/shelf/inst"
    ),
    Break("GATE_LINK_ANCHOR", START, "#requirements", "#quite-else", "../installation/)"),
    Break("GATE_LINK_IMAGE", GUIDE, "/logo.svg", "/none.svg", f"{EXPORTED}\n"),
    Break("GATE_LINK_REFERENCE", GUIDE, "![The", '[i]({{< ref "x.md" >}})\n\n![The', "\ni\n"),
    Break(
        "GATE_LINK_INSECURE", GUIDE, "![The", "[x](http://x.org/)\n\n![The", "[x](https://x.org/)"
    ),
    Break("GATE_TRUTH_UNMARKED", START, STORED, "- Stores records in an ordered index.", STORED),
    Break(
        "GATE_TRUTH_UNMARKED", START, STORED, f"{STORED}\n- It flies.\n  Far.", f"{STORED}\n\n```"
    ),
    Break("GATE_TRUTH_UNKNOWN_CLAIM", START, STORES, "e" * 64, STORED),
    Break(
        "GATE_TRUTH_UNKNOWN_CLAIM",
        START,
        STORED,
        marked("It flies.", "e" * 64),
        "First steps\n\n```",
    ),
    Break(
        "GATE_TRUTH_DRIFT", START, "Stores records in an ordered index.", "Renders scenes.", STORED
    ),
    Break("GATE_TRUTH_FIGURE", START, "Stores records", "Stores 250 records", STORED),
    Break("GATE_TRUTH_SPECULATION", START, "Stores records", "Might store records", STORED),
    Break("GATE_TRUTH_NAME", START, "ordered index.", "ordered index, `Shelf.flush()`.", STORED),
    Break("GATE_TRUTH_FORMAT", GUIDE, "CSV and JSON", "CSV and PDF", EXPORTED),
    Break("GATE_TRUTH_SENTENCE", GUIDE, "![The", "It can fly.\n\n![The", "-->\n\n![The"),
    Break("GATE_TRUTH_TOPIC", GUIDE, "![The", "Quite blazing fast.\n\n![The", "-->\n\n![The"),
    Break("GATE_TRUTH_FORMAT", GUIDE, "![The", "An export to PDF.\n\n![The", "-->\n\n![The"),
    Break("GATE_SNIPPET_UNKNOWN", START, 'shelf.put("a", 1)', 'shelf.put("b", 2)', EXAMPLE),
    Break("GATE_SNIPPET_SYNTAX", START, 'shelf.put("a", 1)', 'shelf.put("a", 1', EXAMPLE),
    Break(
        "GATE_SNIPPET_UNKNOWN", GUIDE, "![The", "```python\nquite = 1\n```\n\n![The", "-->\n\n![The"
    ),
    Break(
        "GATE_CONSISTENCY_NAME",
        GUIDE,
        "![The",
        "About shelf kit, `shelf kit`.\n\n![The",
        "Shelf.Kit, `shelf kit`",
    ),
    Break("GATE_CONSISTENCY_NAME", TOC, "title: Shelf.Kit", "title: Shelf-Kit", "title: Shelf.Kit"),
    Break(
        "GATE_CONSISTENCY_REPOSITORY",
        GUIDE,
        "![The",
        "[s](https://github.com/me/Shelf.Kit/issues)\n\n![The",
        "https://github.com/acme/Shelf.Kit/issues",
    ),
    Break(
        "GATE_CONSISTENCY_ADDRESS",
        GUIDE,
        "weight: 10",
        "weight: 10\nurl: /x/",
        "/developer-guide/\n---",
    ),
    Break(
        "GATE_CONSISTENCY_ADDRESS",
        GUIDE,
        "weight: 10",
        "weight: 10\ncanonical: http://[",
        "/developer-guide/\n---",
    ),
    Break(
        "GATE_CONSISTENCY_HEADING", INSTALLATION, "## Requirements", "## Needs", "## Requirements"
    ),
    Break(
        "GATE_CONSISTENCY_INSTALL",
        INSTALLATION,
        "\npip install shelf-kit",
        "\npip install x",
        "\npip install shelf-kit",
    ),
    Break(
        "GATE_CONSISTENCY_INSTALL", GUIDE, "![The", "```bash\nnpm i x\n```\n\n![The", "-->\n\n![The"
    ),
    Break(
        "GATE_CONTENT_TOC_CHILD",
        TOC,
        "- [Getting started](/docs/shelf/getting-started/)\n",
        "",
        "[Getting started](/docs/shelf/getting-started/)",
    ),
    Break(
        "GATE_CONTENT_TOC_CODE",
        TOC,
        "## Contents",
        "```text\nx\n```\n\n## Contents",
        "Shelf.Kit.\n\n## Contents",
    ),
    Break(
        "GATE_CONFLICT_MARKER",
        GUIDE,
        "## Export",
        "<<<<<<< a\n## Export\n=======\n## Out\n>>>>>>> b",
        "---\n\n## Export\n",
    ),
    Break("GATE_SECRET", GUIDE, "![The", f"Use {SECRET}.\n\n![The", "-->\n\n![The"),
    Break("GATE_HOST_PATH", GUIDE, "![The", "Use /home/carla/src/x.\n\n![The", "-->\n\n![The"),
    Break("GATE_SECRET", GUIDE, "![The", f"```bash\nx {SECRET}\n```\n\n![The", "-->\n\n![The"),
    Break("GATE_SECRET", GUIDE, "weight: 10", f"weight: 10\nkey: {SECRET}", "weight: 10\n---"),
]


def test_every_rule_is_tried_on_a_page() -> None:
    elsewhere = {
        *("GATE_CONTENT_PAGE_MISSING", "GATE_LINT_EMPTY_PAGE", "GATE_EXTERNAL_GONE"),
        *("GATE_LINK_CASE", "GATE_TRUTH_UNCITED", "GATE_TRUTH_CITATION", "GATE_TRUTH_UNSUPPORTED"),
        *("GATE_TRUTH_INFERENCE", "GATE_TRUTH_CONTRADICTED", "GATE_TRUTH_CONTRADICTION"),
    }

    assert {code for code, *_ in BREAKS} | elsewhere == set(RULES)


@pytest.mark.parametrize("broken", BREAKS, ids=lambda each: each.code.removeprefix("GATE_"))
def test_an_injected_defect_is_repaired_in_its_own_file_and_nothing_else_breaks(
    launch: World, broken: Break
) -> None:
    launch.edit(broken.path, broken.old, broken.new)

    text, mine, left = fixed(launch, broken.code)

    assert text is not None
    assert broken.says in text
    assert [
        each for each in left if each.severity == "blocker" or each.error_code == broken.code
    ] == []
    others = {path: content for path, content in PAGES.items() if path != broken.path}
    assert {path: launch.read(path) for path in others} == others
    assert set(MARKER.findall(text)) <= set(MARKER.findall(PAGES[broken.path]))
    # Told again of what needs no line to be found, a rule has nothing more to do.
    if broken.code.startswith(BY_TEXT):
        assert RULES[broken.code](Case(site_of(launch), mine[0], mine, text)) in (None, text)


BY_TEXT = (
    *("GATE_TOKEN", "GATE_FRONTMATTER", "GATE_LINK", "GATE_CONSISTENCY", "GATE_CONFLICT"),
    *("GATE_LINT_T", "GATE_LINT_B", "GATE_LINT_F", "GATE_LINT_HEADING", "GATE_LINT_I"),
)


def test_a_page_that_is_gone_comes_back_as_it_was_drafted(launch: World) -> None:
    (launch.job.site / START).unlink()

    text, _, left = fixed(launch, "GATE_CONTENT_PAGE_MISSING")

    assert text == PAGES[START]
    assert left == []


def test_a_page_that_says_nothing_is_drafted_anew(launch: World) -> None:
    launch.write(GUIDE, "---\ntitle: Developer guide\nweight: 10\n---\n")

    text, _, left = fixed(launch, "GATE_LINT_EMPTY_PAGE")

    assert text == PAGES[GUIDE]
    assert left == []


def cited(path: str, line: int) -> dict[str, Any]:
    return {"path": path, "start_line": line, "end_line": line, "source_type": "source_code"}


def issue(code: str, severity: Severity = "error", path: str = "a.md", line: int = 1) -> Issue:
    return Issue.make(
        gate="g",
        severity=severity,
        message="m",
        error_code=code,
        path=path,
        line=line,
    )


def report(*issues: Issue) -> dict[str, Any]:
    return {"issues": [each.as_json() for each in issues]}


def test_the_worst_open_issue_with_a_rule_is_taken_first() -> None:
    bad = issue("GATE_SECRET", "blocker", "z.md")
    plain, later = issue("GATE_LINK_BROKEN"), issue("GATE_LINK_BROKEN", line=2)
    issues = report(
        later,
        issue("GATE_HUGO_BUILD_FAILED", "blocker"),
        issue("GATE_LINT_TAB", "warn"),
        replace(bad, status="RESOLVED"),
        plain,
    )

    assert select(issues, (), CODES) == plain
    assert select(report(plain, bad), (), CODES) == bad
    assert select(issues, {plain.issue_id}, CODES) == later
    assert select(issues, {plain.issue_id, later.issue_id}, CODES) is None


def test_an_issue_is_tried_when_its_own_rule_was_or_nothing_could_be_done() -> None:
    facts: Mapping[str, Any] = {
        "clone": {"issue_id": "iss_0"},
        "fix:1": {"issue_id": "iss_1", "rule": "A", "error_code": "A", "patch_ids": ["p"]},
        "fix:2": {"issue_id": "iss_2", "rule": "B", "error_code": "A", "patch_ids": ["p"]},
        "fix:3": {"issue_id": "iss_3", "rule": "B", "error_code": "A", "patch_ids": []},
    }

    assert tried(facts) == {"iss_1", "iss_3"}


CHANGES = [
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


@pytest.mark.parametrize(("before", "wanted"), CHANGES)
def test_the_patch_of_two_texts_leads_from_one_to_the_other(before: str, wanted: str) -> None:
    assert after(between("a.md", before, wanted), before) == wanted


@pytest.mark.parametrize(
    ("before", "wanted", "kind"),
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
def test_what_only_changes_keys_is_a_patch_of_those_keys(
    before: str, wanted: str, kind: str
) -> None:
    patch = between("a.md", before, wanted)

    assert patch["type"] == kind
    assert after(patch, before) == wanted


def test_lines_that_go_leave_no_double_gap() -> None:
    assert without("a\n\nb\n\nc\n", [3]) == "a\n\nc\n"
    assert without("a\nb\nc\n", [2]) == "a\nc\n"
    assert without("a\n\nb\n", [3]) == "a\n"


def attempt(launch: World, issues: list[Issue], facts: Mapping[str, Any] | None = None) -> Job:
    job = launch.job
    job.write(
        "validation_report.json",
        {
            "schema_version": "1.0",
            "ok": False,
            "profile": "local",
            "gates": [],
            "issues": [each.as_json() for each in issues],
        },
    )
    return replace(
        job,
        step="fix:1",
        inputs={**job.inputs, **job.outputs},
        outputs={},
        facts={**job.facts, **(facts or {})},
    )


def blocking(launch: World) -> list[Issue]:
    return [each for each in found(launch) if each.severity in BLOCKING]


def test_an_attempt_plans_patches_and_changes_nothing(launch: World) -> None:
    launch.edit(GUIDE, "## Export", "## Export __TOKEN__")
    broken = launch.read(GUIDE)
    job = attempt(launch, blocking(launch))

    facts = anyio.run(fix.run, job)

    delta = job.json("patch_bundle.delta.1.json")
    assert [each["patch_id"] for each in delta["patches"]] == facts["patch_ids"]
    assert {each["path"] for each in delta["patches"]} == {GUIDE}
    assert launch.read(GUIDE) == broken
    said = job.read("reports/fix_1.md").decode()
    assert facts["issue_id"] in said
    assert "-## Export __TOKEN__\n+## Export\n" in said


def test_the_same_attempt_gives_the_same_bytes(launch: World) -> None:
    launch.edit(GUIDE, "## Export", "## Export __TOKEN__")
    job = attempt(launch, blocking(launch))

    outputs = []
    for _ in range(2):
        anyio.run(fix.run, job)
        outputs.append(dict(job.outputs))

    assert outputs[0] == outputs[1]


@requirement("e:fix")
def test_an_attempt_takes_one_issue_and_the_next_one_takes_another(launch: World) -> None:
    launch.edit(GUIDE, "## Export", "## Export __TOKEN__")
    launch.edit(START, STORED, f"{STORED}\n- It flies.")
    issues = blocking(launch)

    first = anyio.run(fix.run, attempt(launch, issues))
    second = anyio.run(fix.run, attempt(launch, issues, {"fix:1": first}))

    assert (first["path"], second["path"]) == (GUIDE, START)


def test_without_a_rule_there_is_nothing_left_to_try(launch: World) -> None:
    job = attempt(launch, [issue("GATE_HUGO_BUILD_FAILED", "blocker", GUIDE)])

    with pytest.raises(ToolError) as refused:
        anyio.run(fix.run, job)

    assert refused.value.code is ErrorCode.FIX_EXHAUSTED
    assert refused.value.details == {"reason": "no_fixable_issue"}


def test_a_rule_that_finds_nothing_uses_up_the_attempt(launch: World) -> None:
    stale = issue("GATE_TOKEN_LEAKED", "blocker", GUIDE, 6)

    facts = anyio.run(fix.run, attempt(launch, [stale]))

    assert facts["patch_ids"] == []
    assert facts["issue_id"] == stale.issue_id


def test_files_outside_the_fence_links_and_bytes_are_left_to_people(launch: World) -> None:
    folder = Path(GUIDE).parent
    link, data = str(folder / "link.md"), str(folder / "bytes.md")
    (launch.job.site / link).symlink_to("/etc/hostname")
    (launch.job.site / data).write_bytes(b"\xff\xfe\x00")
    strange = [issue("GATE_LINT_TAB", "error", path) for path in ("hugo.toml", link, data)]
    launch.edit(GUIDE, "![The", "\t![The")
    ours = issue("GATE_LINT_TAB", "warn", GUIDE)

    with pytest.raises(ToolError) as refused:
        anyio.run(fix.run, attempt(launch, [*strange, ours]))
    mended = anyio.run(fix.run, attempt(launch, [*strange, replace(ours, severity="error")]))
    for path in (link, data):
        (launch.job.site / path).unlink()

    assert refused.value.code is ErrorCode.FIX_EXHAUSTED
    assert mended["path"] == GUIDE


def test_a_secret_does_not_get_into_the_report_of_its_fix(launch: World) -> None:
    launch.edit(GUIDE, "![The", f"Use {SECRET}.\n\n![The")
    job = attempt(launch, blocking(launch))

    anyio.run(fix.run, job)

    assert all(SECRET.encode() not in job.read(name) for name in job.outputs)


def test_an_edit_by_hand_that_is_not_allowed_is_undone_and_kept_in_the_report(
    tmp_path: Path,
) -> None:
    launch = world(tmp_path, artifacts=DRAFTS)
    launch.edit(GUIDE, "## Export", "## Export\n\nMine, and __TOKEN__.")
    launch.write("content/docs/shelf/note.md", page("A note", "Mine."))
    edits = [issue("GATE_MANUAL_EDIT", "error", each, 0) for each in (GUIDE, NOTE)]
    token = issue("GATE_TOKEN_LEAKED", "blocker", GUIDE, 8)

    first = attempt(launch, [token, *edits])
    facts = anyio.run(fix.run, first)
    fence = Fence(first.site, first.config["allowed_paths"])
    apply(first.json("patch_bundle.delta.1.json"), fence)
    second = attempt(launch, edits[1:])
    anyio.run(fix.run, second)
    apply(second.json("patch_bundle.delta.1.json"), fence)

    assert facts["rule"] == "GATE_MANUAL_EDIT"
    assert launch.read(GUIDE) == PAGES[GUIDE]
    assert not (launch.job.site / NOTE).exists()
    assert "-Mine, and __TOKEN__." in first.read("reports/fix_1.md").decode()
    assert "-Mine." in second.read("reports/fix_1.md").decode()


NOTE = "content/docs/shelf/note.md"


UNPROVED: list[tuple[str, dict[str, Any]]] = [
    ("GATE_TRUTH_UNCITED", {"citations": []}),
    ("GATE_TRUTH_CITATION", {"citations": [cited("README.md", 99)]}),
    ("GATE_TRUTH_UNSUPPORTED", {"citations": [cited("examples/put.py", 2)]}),
    ("GATE_TRUTH_INFERENCE", {"truth_status": "inference"}),
]


@pytest.mark.parametrize(("code", "about"), UNPROVED)
def test_a_statement_whose_claim_does_not_hold_goes(
    tmp_path: Path, code: str, about: dict[str, Any]
) -> None:
    claims = [{**each, **about} if each["claim_id"] == EXPORTS else each for each in CLAIMS]
    document = {**documents()["evidence_map.json"], "claims": claims}
    launch = world(tmp_path, artifacts={"evidence_map.json": document})

    text, mine, _ = fixed(launch, code)

    assert [each.path for each in mine] == [GUIDE]
    assert text is not None
    assert EXPORTS not in text


@pytest.mark.parametrize(
    ("winner", "code"),
    [(STORES, "GATE_TRUTH_CONTRADICTED"), ("", "GATE_TRUTH_CONTRADICTION")],
)
def test_a_statement_that_was_contradicted_goes(tmp_path: Path, winner: str, code: str) -> None:
    both = {
        "claim_a_id": EXPORTS,
        "claim_b_id": STORES,
        "resolution": "x",
        "winning_claim_id": winner,
    }
    document = {**documents()["evidence_map.json"], "contradictions": [both]}
    launch = world(tmp_path, artifacts={"evidence_map.json": document})

    text, mine, _ = fixed(launch, code)

    assert mine[0].path == GUIDE
    assert EXPORTS not in (text or "")


def test_a_link_that_cannot_be_read_becomes_its_words(launch: World) -> None:
    launch.edit(GUIDE, "![The", "[i](http://[x)\n\n![The")
    wrong = Issue.make(
        gate="internal_links",
        severity="error",
        message="the link leads nowhere: http://[x",
        error_code="GATE_LINK_BROKEN",
        path=GUIDE,
    )

    text = RULES["GATE_LINK_BROKEN"](Case(site_of(launch), wrong, [wrong], launch.read(GUIDE)))

    assert isinstance(text, str)
    assert "http://[x" not in text


def test_a_link_that_differs_in_case_gets_the_page_s_own(launch: World) -> None:
    launch.edit(GUIDE, "![The", "[i](/docs/Shelf/Installation/)\n\n![The")
    message = "the link differs in case from the page: /docs/Shelf/Installation/"
    wrong = Issue.make(
        gate="internal_links",
        severity="error",
        message=message,
        error_code="GATE_LINK_CASE",
        path=GUIDE,
    )

    text = RULES["GATE_LINK_CASE"](Case(site_of(launch), wrong, [wrong], launch.read(GUIDE)))

    assert isinstance(text, str)
    assert "[i](/docs/shelf/installation/)" in text


def test_a_launch_with_many_faults_is_repaired_attempt_by_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = [registry.load(name) for name in QUICK]
    monkeypatch.setattr(registry, "chosen", lambda _names: quick)  # five builds would take long
    launch = world(tmp_path, config={"allow_manual_edits": True}, artifacts=DRAFTS)
    launch.edit(GUIDE, "## Export", "## Export __TOKEN__")
    launch.edit(GUIDE, "weight: 10\n", "")
    launch.edit(START, STORED, f"{STORED}\n- It flies.\n- It swims.")
    (launch.job.site / INSTALLATION).unlink()
    job, attempts = launch.job, []
    for number in range(1, 9):
        job = handed_on(job, f"validate:{number}")
        facts = anyio.run(validate.run, job)
        if facts["ok"]:
            break
        job = handed_on(job, f"fix:{number}")
        attempts.append(anyio.run(fix.run, job))
        fence = Fence(job.site, job.config["allowed_paths"])
        apply(job.json(f"patch_bundle.delta.{number}.json"), fence)
        done = {f"fix:{number}": attempts[-1], f"apply:fix:{number}": {}}
        job = replace(job, facts={**job.facts, **done})

    assert facts["ok"]
    assert [each["error_code"] for each in attempts] == [
        "GATE_CONTENT_PAGE_MISSING",
        "GATE_TOKEN_LEAKED",
        "GATE_TRUTH_UNMARKED",
        "GATE_FRONTMATTER_KEY_MISSING",
    ]
    assert {path: launch.read(path) for path in PAGES} == PAGES
    assert job.json("validation_report.json")["manual_edits"] is False


def handed_on(job: Job, step: str) -> Job:
    """The job of the next step, with what the one before it wrote."""
    return replace(job, step=step, inputs={**job.inputs, **job.outputs}, outputs={})

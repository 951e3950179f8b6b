"""Execution of one gate, which always ends in a verdict.

A gate that times out, crashes or lacks its tool has not passed: each of these is a blocker. Issues
are sorted, stripped of the folders of this machine, and get the same ids in every run over the same
site.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import Thread
from typing import Final, cast

import anyio

from cleats.toolsets.launch.gates.model import Gate, GateMessage, IssueDraft, LaunchSite, make_blocker
from cleats.toolsets.launch.runs.issues import BLOCKING_SEVERITIES, Issue, Severity

_FOLLOW_EVIDENCE_REMEDY = "Say what the cited lines say, or take the statement away."
_INSTALL_TOOL_REMEDY = "Install the tool; `cleats doctor` says how."

ISSUE_REMEDIES: Final[Mapping[str, str]] = {
    "GATE_TOOL_MISSING": _INSTALL_TOOL_REMEDY,
    "GATE_TIMEOUT": "Look into the log of the gate; try again when the machine is less busy.",
    "GATE_CRASHED": "Report it with the log of the gate.",
    "GATE_SCHEMA_INVALID": "Start the run again: an artifact was damaged, or a worker is wrong.",
    "GATE_SCHEMA_UNREADABLE": "Start the run again: an artifact was damaged.",
    "GATE_WORKTREE_MOVED": "Leave the worktree alone while it is validated, and validate again.",
    "GATE_MANUAL_EDIT": "Set allow_manual_edits in the run's configuration, or undo the edit.",
    "GATE_PATH_OUTSIDE": "Undo the change, or widen allowed_paths in the run's configuration.",
    "GATE_PATH_NOT_A_FILE": "Replace it by a plain file.",
    "GATE_PATH_EXECUTABLE": "Take the permission to execute away.",
    "GATE_PATH_BINARY": "Keep binary files out of a launch; text is UTF-8.",
    "GATE_BUDGET_FILES": "Launch fewer sections, or raise budgets.max_files_changed.",
    "GATE_BUDGET_LINES": "Split the page, or raise budgets.max_lines_per_file.",
    "GATE_BUDGET_BYTES": "Split the page.",
    "GATE_CONFLICT_MARKER": "Finish the merge.",
    "GATE_SECRET": "Take the line away, and revoke the secret: it has been written down.",
    "GATE_HOST_PATH": "Write a path that everybody has, or a name that stands for anybody.",
    "GATE_FRONTMATTER_INVALID": "Write front matter that parses.",
    "GATE_FRONTMATTER_MISSING": "Begin the page with front matter.",
    "GATE_FRONTMATTER_KEY_MISSING": "Add the key; the section's other pages have it.",
    "GATE_FRONTMATTER_KEY_TYPE": "Give the key a value of the type that other pages have.",
    "GATE_FRONTMATTER_DRAFT": "Take the key `draft` away.",
    "GATE_TOKEN_LEAKED": "Fill the token in, or take it away.",
    "GATE_LINT_HEADING_SKIP": "Raise the heading to one level below the one before it.",
    "GATE_LINT_SECOND_TITLE": "Lower the headings of the page by one level.",
    "GATE_LINT_EMPTY_HEADING": "Name the heading, or take it away.",
    "GATE_LINT_TWIN_HEADING": "Give one of the headings another name.",
    "GATE_LINT_HEADING_SPACE": "Put an empty line before and after the heading.",
    "GATE_LINT_HEADING_MARK": "Put a space after the marks of the heading.",
    "GATE_LINT_TRAILING_SPACE": "Take the spaces at the end of the line away.",
    "GATE_LINT_TAB": "Use spaces.",
    "GATE_LINT_BLANK_LINES": "Keep one empty line.",
    "GATE_LINT_FENCE_LANGUAGE": "Name the language after the fence; `text` for plain text.",
    "GATE_LINT_OPEN_FENCE": "Close the code block.",
    "GATE_LINT_BARE_URL": "Make a link of it, or put it in angle brackets.",
    "GATE_LINT_EMPTY_LINK": "Give the link a target, or keep only its words.",
    "GATE_LINT_IMAGE_ALT": "Say what the image shows.",
    "GATE_LINT_UNSAFE_HTML": "Take the HTML away; a shortcode of the site may do what it did.",
    "GATE_LINT_EMPTY_PAGE": "Write the page, or take it out of the plan.",
    "GATE_LINT_LINE_ENDS": "End lines with a line feed alone.",
    "GATE_LINT_BYTE_ORDER": "Save the file without a byte order mark.",
    "GATE_LINT_FINAL_NEWLINE": "End the file with one line feed.",
    "GATE_HUGO_CONFIG_MISSING": "Add the configuration to the site, or leave the section out.",
    "GATE_HUGO_CONFIG_INVALID": "Repair the configuration of the site.",
    "GATE_HUGO_CONFIG_BASE": "Set baseURL in the configuration of the site.",
    "GATE_HUGO_CONFIG_OUTSIDE": "Keep mounts and folders of the configuration inside the site.",
    "GATE_HUGO_BUILD_FAILED": "Read the message; the site itself may not build.",
    "GATE_HUGO_BUILD_REFUSED": "Take away what leads out of the site.",
    "GATE_HUGO_BUILD_WARNING": "Read the message; the log of the gate has all of them.",
    "GATE_HUGO_BUILD_ADDRESS": "Remove what changes the address: url, slug, permalinks, draft.",
    "GATE_LINK_BROKEN": "Link to a page that is there, or keep only the words.",
    "GATE_LINK_CASE": "Write the address as the page has it.",
    "GATE_LINK_ANCHOR": "Name a heading of the page, or link to the page alone.",
    "GATE_LINK_REFERENCE": "Refer to a page that is there.",
    "GATE_LINK_IMAGE": "Add the image to the site, or take it off the page.",
    "GATE_LINK_INSECURE": "Use https.",
    "GATE_EXTERNAL_GONE": "Link to a page that is there, or keep only the words.",
    "GATE_EXTERNAL_UNREACHABLE": "Follow the link by hand; it may only be slow.",
    "GATE_SNIPPET_UNKNOWN": "Show code from the repository as it stands there.",
    "GATE_SNIPPET_SYNTAX": "Show code that parses.",
    "GATE_CONSISTENCY_NAME": "Spell the product's name as the run does.",
    "GATE_CONSISTENCY_REPOSITORY": "Link to the repository of the run.",
    "GATE_CONSISTENCY_ADDRESS": "Use the planned address, or leave the key out.",
    "GATE_CONSISTENCY_HEADING": "Add the section that the plan asks for.",
    "GATE_CONSISTENCY_INSTALL": "Use a command that the package's manifest supports.",
    "GATE_CONTENT_PAGE_MISSING": "Bring the page back.",
    "GATE_CONTENT_QUOTA": "Say more or less on the page, or plan another role for it.",
    "GATE_CONTENT_CLAIM": "Say what the plan asks for, with its marker.",
    "GATE_CONTENT_SNIPPET": "Show code that has the tag.",
    "GATE_CONTENT_LIMITATION": "Tell of the limitation, with its marker.",
    "GATE_CONTENT_TOC_CODE": "Move the code to another page.",
    "GATE_CONTENT_TOC_CHILD": "List the page.",
    "GATE_CONTENT_COVERAGE": "Add a section about the workflow.",
    "GATE_CONTENT_TOPIC": "Move the section to a page that may have it.",
    "GATE_CONTENT_SECTION": "Plan more or fewer pages for the section.",
    "GATE_CONTENT_MANDATORY": "Plan the page; the profile asks for it.",
    "GATE_TRUTH_NO_EVIDENCE": "Start the run again: its evidence is missing.",
    "GATE_TRUTH_IDENTITY": "Start the run again: its evidence is of another commit.",
    "GATE_TRUTH_UNMARKED": "Name the claim that proves it at the end of the line, or remove it.",
    "GATE_TRUTH_UNKNOWN_CLAIM": "Name a claim of evidence_map.json, or remove the statement.",
    "GATE_TRUTH_DRIFT": _FOLLOW_EVIDENCE_REMEDY,
    "GATE_TRUTH_FIGURE": _FOLLOW_EVIDENCE_REMEDY,
    "GATE_TRUTH_FORMAT": _FOLLOW_EVIDENCE_REMEDY,
    "GATE_TRUTH_NAME": _FOLLOW_EVIDENCE_REMEDY,
    "GATE_TRUTH_SPECULATION": _FOLLOW_EVIDENCE_REMEDY,
    "GATE_TRUTH_SENTENCE": "Name the claim that proves it at the end of the line, or remove it.",
    "GATE_TRUTH_TOPIC": "Prove it with a claim, or say nothing about it.",
    "GATE_TRUTH_UNCITED": _FOLLOW_EVIDENCE_REMEDY,
    "GATE_TRUTH_CITATION": _FOLLOW_EVIDENCE_REMEDY,
    "GATE_TRUTH_UNSUPPORTED": _FOLLOW_EVIDENCE_REMEDY,
    "GATE_TRUTH_INFERENCE": "Remove it, or let the run infer (allow_inference).",
    "GATE_TRUTH_CONTRADICTED": "Remove it: a stronger source says otherwise.",
    "GATE_TRUTH_CONTRADICTION": "Remove both, or settle in the source which one is right.",
}


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """The result of a gate."""

    name: str
    ok: bool
    issues: tuple[Issue, ...]
    log: str


async def run_gate(gate: Gate, site: LaunchSite, *, strict: bool = False) -> GateVerdict:
    """Run a gate within its timeout. With `strict`, warnings count as errors."""
    missing = [tool for tool in gate.tools if tool not in site.programs]
    if missing:
        message = f"the gate needs {' and '.join(missing)}, which is not installed"
        return build_verdict(gate.name, [make_blocker("GATE_TOOL_MISSING", message)], site, strict=strict)
    seconds = gate.choose_timeout(site.level)
    try:
        with anyio.fail_after(seconds):
            gate_messages = await _run_check(gate, site)
    except TimeoutError:
        message = f"the gate did not end within {seconds:g} seconds"
        gate_messages = [make_blocker("GATE_TIMEOUT", message)]
    except Exception as crash:  # noqa: BLE001 - a gate that fails must not pass
        message = f"the gate failed: {type(crash).__name__}: {crash}"
        gate_messages = [make_blocker("GATE_CRASHED", message)]
    if gate.reads_pages:
        gate_messages = [
            gate_message
            for gate_message in gate_messages
            if isinstance(gate_message, str) or site.is_from_launch(gate_message.path, gate_message.line)
        ]
    return build_verdict(gate.name, gate_messages, site, strict=strict)


def build_verdict(name: str, gate_messages: Iterable[GateMessage], site: LaunchSite, *, strict: bool) -> GateVerdict:
    """Turn the messages of a gate into issues, a log and a verdict."""
    issues_by_id: dict[str, Issue] = {}
    lines = []
    for gate_message in gate_messages:
        if isinstance(gate_message, str):
            lines.append(site.scrub(gate_message))
        else:
            issue = _make_issue(name, gate_message, site, strict=strict)
            issues_by_id.setdefault(issue.issue_id, issue)
    issues = tuple(sorted(issues_by_id.values(), key=lambda issue: issue.sort_key))
    ok = not any(issue.severity in BLOCKING_SEVERITIES for issue in issues)
    lines.extend(_format_issue(issue) for issue in issues)
    log = "\n".join([f"gate {name}: {'passed' if ok else 'failed'}", *lines])
    return GateVerdict(name, ok, issues, log + "\n")


async def _run_check(gate: Gate, site: LaunchSite) -> list[GateMessage]:
    if gate.async_check is not None:
        return list(await gate.async_check(site))
    check = gate.check
    if check is None:
        raise NotImplementedError(gate.name)
    return await _run_in_thread(lambda: list(check(site)))


async def _run_in_thread(work: Callable[[], list[GateMessage]]) -> list[GateMessage]:
    """Run work in a daemon thread, which may be abandoned: the process exits without it."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[list[GateMessage]] = loop.create_future()

    def deliver_result(value: list[GateMessage] | None, error: BaseException | None) -> None:
        if result.done():  # nobody waits any more
            return
        if error is not None:
            result.set_exception(error)
        else:
            result.set_result(value or [])

    def run_work() -> None:
        value: list[GateMessage] | None = None
        error: BaseException | None = None
        try:
            value = work()
        except BaseException as crash:  # noqa: BLE001 - passed on to the waiting task
            error = crash
        try:
            loop.call_soon_threadsafe(deliver_result, value, error)
        except RuntimeError:  # the loop is closed: the validation has ended
            return

    Thread(target=run_work, name="gate", daemon=True).start()
    return await result


def _make_issue(gate: str, finding: IssueDraft, site: LaunchSite, *, strict: bool) -> Issue:
    severity = "error" if strict and finding.severity == "warn" else finding.severity
    return Issue.create(
        gate=gate,
        severity=cast("Severity", severity),
        message=site.scrub(finding.message),
        error_code=finding.code,
        path=finding.path,
        line=finding.line,
        suggested_fix=ISSUE_REMEDIES[finding.code],
        files=(finding.path,) if finding.path else (),
    )


def _format_issue(issue: Issue) -> str:
    location = f" {issue.path}:{issue.line}" if issue.line else f" {issue.path}" if issue.path else ""
    return f"{issue.severity} {issue.error_code}{location}: {issue.message}"

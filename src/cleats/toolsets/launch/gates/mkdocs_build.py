"""MkDocs must build the site in its strict mode, and every planned page must be in the output."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from cleats.system.processes import process
from cleats.system.processes.process import StartError
from cleats.toolsets.launch.gates.model import Gate, GateMessage, IssueDraft, IssueKind
from cleats.toolsets.launch.gates.site import BuiltSite, LaunchSite
from cleats.toolsets.launch.site import mkdocs_command
from cleats.toolsets.launch.site.mkdocs import MkDocsConfig, read_mkdocs_config
from cleats.toolsets.launch.site.mkdocs_urls import MkDocsUrlRules
from cleats.toolsets.launch.site.programs import describe_exit
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree

BUILD_FAILED = IssueKind("GATE_MKDOCS_BUILD_FAILED", "blocker", "Read the message; the site itself may not build.")
BUILD_REFUSED = IssueKind("GATE_MKDOCS_BUILD_REFUSED", "blocker", "Remove what MkDocs must not read or run.")
BUILD_WARNING = IssueKind("GATE_MKDOCS_BUILD_WARNING", "error", "Read the message; strict builds fail with warnings.")
WRONG_BUILD_ADDRESS = IssueKind(
    "GATE_MKDOCS_BUILD_ADDRESS", "error", "Remove what hides or replaces the page: exclude_docs, README.md."
)
HIDDEN_CODE = IssueKind(
    "GATE_MKDOCS_BUILD_CODE", "warn", "Begin the fence at the left margin; Python-Markdown has no fences in lists."
)

MAX_BUILD_ISSUES = 20
"""Maximum number of warnings and errors of one build that become issues; the log has all of them."""

STRICT_MODE_ENDING = "in strict mode!"
"""The end of the output of MkDocs when it fails only because of warnings, after it has built everything."""

_LOG_LINE_PATTERN = re.compile(r"^(WARNING|ERROR)\s+-\s+(.*)$")


async def check_mkdocs_build(site: LaunchSite) -> list[GateMessage]:
    config = read_mkdocs_config(CheckoutTree(site.job.site))
    if not config.path or config.fault:
        return [BUILD_REFUSED.draft("not built: the site has no configuration that can be read", config.path)]
    if config.refusals:
        first = config.refusals[0]
        return [BUILD_REFUSED.draft(f"not built: {first.message}", config.path, first.line)]
    if (unsafe_path := find_unsafe_file(site.job.site, config.docs_folder)) is not None:
        message = "not built: the pages have a pipe, socket or device, or a link to a folder or out of the site"
        return [BUILD_REFUSED.draft(message, unsafe_path)]
    try:
        return [f"build {config.path}", *await _run_build(site, config)]
    except StartError as start_error:
        return [BUILD_FAILED.draft(f"MkDocs does not start: {start_error}")]


def find_unsafe_file(root: Path, docs_folder: str) -> str | None:
    """Return the first file of the pages that MkDocs must not read, or None.

    MkDocs follows links and would publish what they lead to. A link to a file of the site, such as README.md, is fine.
    """
    site, docs = root.resolve(), root / docs_folder
    if docs.resolve() != site / docs_folder:
        return docs_folder
    for directory, folders, names in os.walk(docs):
        for path in (Path(directory, name) for name in sorted([*names, *folders])):
            target = path.resolve()
            is_own = target.is_relative_to(site) and not target.is_relative_to(site / ".git")
            is_plain = target.is_file() if path.is_symlink() else path.is_file() or path.is_dir()
            if not is_own or not is_plain:
                return path.relative_to(root).as_posix()
    return None


async def _run_build(site: LaunchSite, config: MkDocsConfig) -> list[GateMessage]:
    folder = site.scratch / "public" / "mkdocs"
    build_file = mkdocs_command.write_build_file(config, site.job.site, site.scratch)
    arguments = ["build", "--strict", "--config-file", str(build_file), "--site-dir", str(folder)]
    completed = await process.run(
        mkdocs_command.build_command(site.job.site, site.scratch, arguments),
        cwd=site.scratch,
        env=mkdocs_command.build_environment(site.scratch, site.job.settings.get("git_env", {})),
    )
    lines = site.scrub(completed.stderr.decode(errors="replace")).splitlines()
    drafts = list(_draft_issues(site, config, lines))
    messages: list[GateMessage] = [*sorted(line for line in lines if _LOG_LINE_PATTERN.match(line)), *drafts]
    is_complete = completed.stdout.decode(errors="replace").rstrip().endswith(STRICT_MODE_ENDING)
    if completed.exit_code != 0 and not is_complete:
        if not any(draft.severity == "blocker" for draft in drafts):
            messages.append(BUILD_FAILED.draft(f"MkDocs ended with {describe_exit(completed)}", config.path))
        return messages
    rules = MkDocsUrlRules.from_config(config)
    sections = tuple(dict.fromkeys(entry["section"] for entry in site.plan))
    hosts = frozenset(filter(None, (rules.resolve_origin("").partition("://")[2].lower(),)))
    built_site = site.built_sites["mkdocs"] = BuiltSite(folder, sections, hosts, rules.base_path)
    return [*messages, *_check_pages(site, built_site)]


def _check_pages(site: LaunchSite, built_site: BuiltSite) -> Iterator[IssueDraft]:
    for page in filter(lambda file: file.plan, site.files):
        file = built_site.find_file(page.plan["url_path"])
        if file is None:
            message = f"the page is not at its planned address {page.plan['url_path']}"
            yield WRONG_BUILD_ADDRESS.draft(message, page.path)
            continue
        html = (built_site.folder / file).read_bytes().decode("utf-8", "replace")
        if html.count("<pre") < len(page.fences):
            yield HIDDEN_CODE.draft("a code block is not shown as code", page.path)


def _draft_issues(site: LaunchSite, config: MkDocsConfig, lines: list[str]) -> Iterator[IssueDraft]:
    """Yield an issue for each warning and error; a warning about pages of others is not one of the launch."""
    prefix = f"{config.docs_folder}/"
    own_paths = {change.path for change in site.changes} | {entry["output_path"] for entry in site.plan}
    drafts = set()
    for log_match in filter(None, map(_LOG_LINE_PATTERN.match, lines)):
        message = " ".join(log_match.group(2).split())[:400]
        quoted = [f"{prefix}{name}" for name in re.findall(r"'([^']+)'", message)]
        path = next((it for it in quoted if site.read_text(it) is not None), "")
        if log_match.group(1) == "ERROR":
            drafts.add(BUILD_FAILED.draft(message, path))
        else:
            is_about_launch = path in own_paths or not own_paths.isdisjoint(quoted)
            drafts.add(BUILD_WARNING.draft(message, path, severity="error" if is_about_launch else "info"))
    yield from sorted(drafts, key=lambda item: (item.severity, item.path, item.line, item.message))[:MAX_BUILD_ISSUES]


GATE = Gate("mkdocs_build", __doc__, check_mkdocs_build, local_seconds=300.0, strict_seconds=600.0, tools=("mkdocs",))

"""Hugo must build the site, and every planned page must be in the output."""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from cleats.system.processes import process
from cleats.system.processes.process import StartError
from cleats.toolsets.launch.gates.model import Gate, GateMessage, IssueDraft, IssueKind
from cleats.toolsets.launch.gates.site import BuiltSite, LaunchSite
from cleats.toolsets.launch.runs.issues import Severity
from cleats.toolsets.launch.site.hugo_command import build_hugo_environment, list_source_options
from cleats.toolsets.launch.site.programs import describe_exit
from cleats.toolsets.launch.source.checkout import safe_parsing

BUILD_FAILED = IssueKind("GATE_HUGO_BUILD_FAILED", "blocker", "Read the message; the site itself may not build.")
BUILD_REFUSED = IssueKind("GATE_HUGO_BUILD_REFUSED", "blocker", "Remove what refers outside the site.")
BUILD_WARNING = IssueKind("GATE_HUGO_BUILD_WARNING", "warn", "Read the message; the log of the gate has all of them.")
WRONG_BUILD_ADDRESS = IssueKind(
    "GATE_HUGO_BUILD_ADDRESS", "error", "Remove what changes the address: url, slug, permalinks, draft."
)

_CONTROLLED_FOLDER_KEYS: Final = frozenset({"cachedir", "resourcedir", "publishdir", "workingdir"})
"""Folders that this module chooses; the values in the site's configuration are ignored."""


@dataclass(frozen=True, slots=True)
class HugoBuild:
    """One configuration of the site, and the sections it covers."""

    name: str
    config: str
    sections: tuple[str, ...]
    hosts: tuple[str, ...]


def plan_builds(site: LaunchSite) -> tuple[list[HugoBuild], list[str]]:
    """Return the builds that the planned pages need, and the sections without a configuration."""
    by_config: dict[str, list[str]] = {}
    uncovered = []
    for section in dict.fromkeys(entry["section"] for entry in site.plan):
        configs = site.profile.list_hugo_configs(section, site.config["family"])
        config_path = next((item for item in configs if site.read_text(item) is not None), None)
        if config_path is None:
            uncovered.append(section)
        else:
            by_config.setdefault(config_path, []).append(section)
    hugo_builds = []
    for config, sections in sorted(by_config.items()):
        hosts = (site.profile.get_section(item).host for item in sections)
        name = config.rsplit(".", 1)[0].replace("/", "_")
        hugo_builds.append(HugoBuild(name, config, tuple(sections), tuple(sorted(filter(None, hosts)))))
    return hugo_builds, uncovered


async def run_hugo(site: LaunchSite, build: HugoBuild, *arguments: str) -> process.CompletedCommand:
    """Run Hugo on the worktree; the gate's timeout terminates it.

    Raises:
        StartError: Hugo cannot be started.
    """
    env = build_hugo_environment(site.scratch, site.job.settings.get("git_env", {}))
    options = list_source_options(site.job.site, build.config, site.profile.site.environment)
    argv = [site.programs["hugo"], *arguments, *options]
    return await process.run(argv, cwd=site.scratch, env=env)


def find_outside_folders(hugo_settings: Mapping[str, Any], worktree: Path) -> list[str]:
    """Return the settings that would make Hugo read outside the worktree."""
    return sorted(
        {
            f"{name} = {'(absolute)' if Path(value).is_absolute() else value}"
            for name, value in _iterate_folders(hugo_settings)
            if not (worktree / value).resolve().is_relative_to(worktree.resolve())
        }
    )


def _iterate_folders(node: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    for item in node if isinstance(node, list) else ():
        yield from _iterate_folders(item, prefix)
    for key, value in node.items() if isinstance(node, dict) else ():
        name = f"{prefix}.{key}" if prefix else key
        if prefix == "caches" or key in _CONTROLLED_FOLDER_KEYS or name.startswith("params"):
            continue
        is_folder = key.endswith("dir") or name.endswith("mounts.source")
        values = value if isinstance(value, list) else [value]
        if is_folder and all(isinstance(item, str) for item in values):
            yield from ((name, item) for item in values)
        else:
            yield from _iterate_folders(value, name)


HUGO_BUILD_ARGUMENTS = ("build", "--noBuildLock", "--printPathWarnings", "--logLevel", "warn")
_LOG_LINE_PATTERN = re.compile(r"^(WARN|ERROR)\s+(.*)$")
_LOCATION_PATTERN = re.compile(r'"?(?P<path>[^\s":]+\.(?:md|html|toml|yaml|json))"?(?::(?P<line>\d+))?')
MAX_BUILD_ISSUES = 20
"""Maximum number of warnings and errors of one build that become issues; the log has all of
them."""


async def check_hugo_build(site: LaunchSite) -> list[GateMessage]:
    messages: list[GateMessage] = []
    if links := [change.path for change in site.changes if change.kind == "link"]:
        return [BUILD_REFUSED.draft("the site holds a link", links[0])]
    if (special_path := _find_special_file(site.job.site)) is not None:
        message = "the site contains a special file (a pipe, socket or device), which cannot be read"
        return [BUILD_REFUSED.draft(message, special_path)]
    for build in plan_builds(site)[0]:
        messages.append(f"build {build.config}")
        try:
            messages.extend(await _run_build(site, build))
        except StartError as start_error:
            messages.append(BUILD_FAILED.draft(f"Hugo does not start: {start_error}"))
    return messages


def _find_special_file(root: Path) -> str | None:
    for directory, folders, names in os.walk(root):
        folders[:] = sorted(folder for folder in folders if folder != ".git")
        for name in sorted(names):
            mode = Path(directory, name).lstat().st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
                return Path(directory, name).relative_to(root).as_posix()
    return None


async def _run_build(site: LaunchSite, build: HugoBuild) -> list[GateMessage]:
    completed = await run_hugo(site, build, "config", "--format", "json")
    hugo_settings = (
        safe_parsing.parse_table("config.json", completed.stdout.decode(errors="replace"))
        if completed.exit_code == 0
        else {}
    )
    if not hugo_settings:
        message = f"Hugo cannot read the configuration: {describe_exit(completed)}"
        return [BUILD_FAILED.draft(message, build.config)]
    if outside_folders := find_outside_folders(hugo_settings, site.job.site):
        message = f"not built: the configuration reads outside the site: {outside_folders[0]}"
        return [BUILD_REFUSED.draft(message, build.config)]
    folder = site.scratch / "public" / build.name
    completed = await run_hugo(site, build, *HUGO_BUILD_ARGUMENTS, "--destination", str(folder))
    lines = site.scrub(completed.stderr.decode(errors="replace")).splitlines()
    # Warnings and errors are the only lines of Hugo that are the same in every build.
    log_lines = sorted({f"{build.name}: {line}" for line in lines if _LOG_LINE_PATTERN.match(line)})
    messages: list[GateMessage] = [*log_lines, *_draft_issues(site, lines)]
    if completed.exit_code != 0:
        if not any(isinstance(entry, IssueDraft) and entry.severity == "blocker" for entry in messages):
            messages.append(BUILD_FAILED.draft(f"Hugo ended with {describe_exit(completed)}", build.config))
        return messages
    base = urlsplit(str(hugo_settings.get("baseurl", "")))
    hosts = frozenset(filter(None, (*build.hosts, base.hostname)))
    built_site = site.built_sites[build.name] = BuiltSite(folder, build.sections, hosts, base.path or "/")
    for entry in site.plan:
        is_built = entry["section"] in built_site.sections and site.read_text(entry["output_path"]) is not None
        if is_built and built_site.find_file(entry["url_path"]) is None:
            message = f"the page is not at its planned address {entry['url_path']}"
            messages.append(WRONG_BUILD_ADDRESS.draft(message, entry["output_path"]))
    return messages


def _draft_issues(site: LaunchSite, lines: list[str]) -> list[IssueDraft]:
    drafts = set()
    for log_match in filter(None, map(_LOG_LINE_PATTERN.match, lines)):
        message = re.sub(r"\s+", " ", log_match.group(2)).strip()[:400]
        locations = (it for it in _LOCATION_PATTERN.finditer(message) if site.read_text(it["path"]) is not None)
        location = next(locations, None)
        path, line_number = ("", 0) if location is None else (location["path"], int(location["line"] or 0))
        if log_match.group(1) == "ERROR":
            drafts.add(BUILD_FAILED.draft(message, path, line_number))
        else:
            is_about_launch = any(change.path == path for change in site.changes) or any(
                str(entry["url_path"]).rstrip("/") in message for entry in site.plan
            )
            severity: Severity = "warn" if is_about_launch else "info"  # the rest of the site may warn as well
            drafts.add(BUILD_WARNING.draft(message, path, line_number, severity))
    return sorted(drafts, key=lambda item: (item.severity, item.path, item.line, item.message))[:MAX_BUILD_ISSUES]


GATE = Gate("hugo_build", __doc__, check_hugo_build, local_seconds=300.0, strict_seconds=600.0, tools=("hugo",))

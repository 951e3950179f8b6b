"""The code on a page: its language, its lines, the install commands and the snippets of the catalogue."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cleats.toolsets.launch.gates.model import FixCase
from cleats.toolsets.launch.gates.page_edits import remove_lines
from cleats.toolsets.launch.gates.site import LaunchSite
from cleats.toolsets.launch.site.pages import CodeBlock

SHELL_LANGUAGES = frozenset({"", "bash", "bat", "cmd", "console", "powershell", "ps1", "sh", "shell", "zsh"})
INSTALL_COMMAND_PATTERN = re.compile(
    r"^\s*(?:[$>%#]\s+)?(?P<command>(?:python3?\s+-m\s+|py\s+-m\s+|sudo\s+)?"
    r"(?:pip3?\s+install|pipx\s+install|uv\s+(?:pip\s+install|add|tool\s+install)|poetry\s+add|"
    r"conda\s+install|npm\s+(?:install|i)|yarn\s+add|pnpm\s+(?:add|install)|"
    r"dotnet\s+add\s+package|nuget\s+install|Install-Package|cargo\s+(?:add|install)|"
    r"go\s+(?:get|install)|gem\s+install|composer\s+require|docker\s+pull)\s+\S.*?)\s*$"
)
LANGUAGE_ALIASES: Mapping[str, str] = {
    "py": "python",
    "python3": "python",
    "pycon": "python",
    "js": "javascript",
    "ts": "typescript",
    "cs": "csharp",
    "c#": "csharp",
    "c++": "cpp",
    "golang": "go",
    "rb": "ruby",
    "rs": "rust",
    "kt": "kotlin",
    "yml": "yaml",
    "sh": "bash",
    "zsh": "bash",
    "shell": "bash",
    "console": "bash",
}


def index_snippets(site: LaunchSite) -> dict[str, Mapping[str, Any]]:
    """Return the snippets of the catalogue, keyed by their normalised code."""
    snippets = site.load_document("snippet_catalog.json").get("snippets", ())
    return {normalise_code(snippet["code"]): snippet for snippet in snippets}


def normalise_code(code: str) -> str:
    """Strip trailing spaces and surrounding blank lines, so that code can be compared."""
    return "\n".join(line.rstrip() for line in code.splitlines()).strip("\n")


def normalise_language(fence: CodeBlock) -> str:
    """Return the language of a code block under the name that the catalogue uses."""
    return LANGUAGE_ALIASES.get(fence.language, fence.language)


def list_known_commands(facts: Mapping[str, Any]) -> list[str]:
    """Return the install commands that the manifests of the product support."""
    distributions = facts.get("distribution", ())
    return [command for distribution in distributions for command in distribution.get("install_commands", ())]


def find_unknown_commands(code: str, language: str, facts: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Yield the install commands in code of a shell that no manifest supports, with their lines in the code."""
    known_commands = {" ".join(command.split()) for command in list_known_commands(facts)}
    for number, line in enumerate(code.splitlines() if language in SHELL_LANGUAGES else (), start=1):
        match = INSTALL_COMMAND_PATTERN.match(line)
        if match and " ".join(match["command"].split()) not in known_commands:
            yield number, match["command"]


def is_install_block(fence: CodeBlock) -> bool:
    """Return whether a code block contains only install commands."""
    lines = [line for line in fence.code.splitlines() if line.strip()]
    return bool(lines) and all(INSTALL_COMMAND_PATTERN.match(line) for line in lines)


def remove_code_blocks(case: FixCase) -> str:
    """Remove the code blocks that the issues name."""
    text = case.text
    for fence in reversed(case.file.fences):
        lines = find_block_lines(text, fence)
        if case.lines & set(lines):
            text = remove_lines(text, lines)
    return text


def find_block_lines(text: str, fence: CodeBlock) -> range:
    """Return the line numbers of a code block, including its fences."""
    last = fence.line + fence.code.count("\n")
    lines = text.split("\n")
    is_closed = last < len(lines) and lines[last].strip()[:3] in ("```", "~~~")
    return range(fence.line, last + 1 + is_closed)

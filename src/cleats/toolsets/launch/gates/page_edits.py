"""The edits of a page that fixes share, and its code blocks: languages, install commands, snippets."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from cleats.toolsets.launch.gates.model import FixCase
from cleats.toolsets.launch.gates.site import LaunchSite, PageFile
from cleats.toolsets.launch.site import pages
from cleats.toolsets.launch.site.pages import CodeBlock
from cleats.toolsets.launch.source.text.documents import normalize_code


def edit_lines(text: str, edit_line: Callable[[int, str], str | None]) -> str:
    """Edit a text line by line, counted from 1; None removes a line."""
    edited_lines = (edit_line(number, line) for number, line in enumerate(text.split("\n"), start=1))
    return "\n".join(line for line in edited_lines if line is not None)


def edit_prose(case: FixCase, edit_line: Callable[[str], str | None]) -> str:
    """Edit each line of prose, and leave code and front matter alone; None removes a line."""
    prose = list_prose_lines(case.file)
    return edit_lines(case.text, lambda number, line: edit_line(line) if number in prose else line)


def edit_around(protected: re.Pattern[str], line: str, edit_piece: Callable[[str], str]) -> str:
    """Edit the pieces of a line that the pattern does not match."""
    pieces, end = [], 0
    for match in protected.finditer(line):
        pieces += [edit_piece(line[end : match.start()]), match.group()]
        end = match.end()
    return "".join([*pieces, edit_piece(line[end:])])


def remove_lines(text: str, lines: Iterable[int]) -> str:
    """Remove some lines of a text, and the double blank lines that this would leave."""
    removed_lines = set(lines)
    if not removed_lines:
        return text
    remaining_lines: list[str] = []
    after_removal = False
    for number, line in enumerate(text.split("\n"), start=1):
        if number in removed_lines:
            after_removal = True
            continue
        if after_removal and not line.strip() and remaining_lines and not remaining_lines[-1].strip():
            continue
        after_removal = after_removal and not line.strip()
        remaining_lines.append(line)
    return end_with_newline("\n".join(remaining_lines))


def remove_named_lines(case: FixCase) -> str:
    """Remove the lines that the issues name."""
    return remove_lines(case.text, case.lines)


def end_with_newline(text: str) -> str:
    """Return the text with exactly one line feed at its end."""
    return text.rstrip("\n") + "\n"


def list_prose_lines(file: PageFile) -> frozenset[int]:
    """Return the line numbers of the body that are neither front matter nor code."""
    return frozenset(number for number, _ in file.prose)


def list_code_lines(file: PageFile) -> frozenset[int]:
    """Return the line numbers of a file that are code, including fences."""
    return frozenset(file.body_line + number - 1 for number in pages.find_code_lines(file.body))


SHELL_LANGUAGES = frozenset({"", "bash", "bat", "cmd", "console", "powershell", "ps1", "sh", "shell", "zsh"})
INSTALL_COMMAND_PATTERN = re.compile(
    r"^\s*(?:[$>%#]\s+)?(?P<command>(?:python3?\s+-m\s+|py\s+-m\s+|sudo\s+)?"
    r"(?:pip3?\s+install|pipx\s+install|uv\s+(?:pip\s+install|add|tool\s+install)|poetry\s+add|"
    r"conda\s+install|npm\s+(?:install|i)|yarn\s+add|pnpm\s+(?:add|install)|"
    r"dotnet\s+add\s+package|nuget\s+install|Install-Package|cargo\s+(?:add|install)|"
    r"go\s+(?:get|install)|gem\s+install|composer\s+require|docker\s+pull)\s+\S.*?)\s*$"
)
LANGUAGE_ALIASES: Mapping[str, str] = {
    **dict.fromkeys(("py", "python3", "pycon"), "python"),
    **dict.fromkeys(("cs", "c#"), "csharp"),
    **dict.fromkeys(("sh", "zsh", "shell", "console"), "bash"),
    "js": "javascript",
    "ts": "typescript",
    "c++": "cpp",
    "golang": "go",
    "rb": "ruby",
    "rs": "rust",
    "kt": "kotlin",
    "yml": "yaml",
}


def index_snippets(site: LaunchSite) -> dict[str, Mapping[str, Any]]:
    """Return the snippets of the catalogue, keyed by their normalised code."""
    snippets = site.load_document("snippet_catalog.json").get("snippets", ())
    return {normalize_code(snippet["code"]): snippet for snippet in snippets}


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

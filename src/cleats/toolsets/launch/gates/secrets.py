"""No changed file may contain a password, a token or a key, not even in a code block.

A random-looking value counts only when it is assigned to something named like a secret, because
hashes and sample data are common. A path of one person's machine is a warning.
"""

import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cleats.system.front_matter import set_front_matter_keys
from cleats.toolsets.launch.gates.model import FixCase, FixResult, Gate, GateMessage, IssueKind
from cleats.toolsets.launch.gates.page_text import list_code_lines, remove_code_blocks, remove_lines
from cleats.toolsets.launch.gates.site import LaunchSite

_TABLES: Final = tomllib.loads(Path(__file__).with_name("secrets.toml").read_text(encoding="utf-8"))
_HOST_PATH_PATTERN, _GENERIC_USER_PATTERN, _ASSIGNED_SECRET_PATTERN, _PLACEHOLDER_PATTERN = (
    re.compile(_TABLES[name]) for name in ("host_path", "generic_user", "assigned_secret", "placeholder")
)
SECRET_PATTERNS: Final = {name: re.compile(shape) for name, shape in _TABLES["secrets"].items()}
_LOOSE_PATTERN_NAMES: Final = frozenset({"a password in an address", "an OpenAI key"})
"""Patterns that ordinary text can match."""


def has_host_path(line: str) -> bool:
    """Return whether a line contains a path of one person's machine."""
    return any(
        not _GENERIC_USER_PATTERN.fullmatch(match["linux"] or match["mac"] or match["windows"])
        for match in _HOST_PATH_PATTERN.finditer(line)
    )


def check_secrets(site: LaunchSite) -> Iterator[GateMessage]:
    for path, text in site.iterate_changed_texts():
        for number, line in enumerate(text.split("\n"), start=1):
            for name in find_secrets(line):
                yield LEAKED_SECRET.draft(f"the line looks like it contains {name}", path, number)
            if has_host_path(line) and site.is_from_launch(path, number):
                yield HOST_PATH.draft("the line contains a path that exists only on one person's machine", path, number)


def find_secrets(line: str) -> list[str]:
    """Return the kinds of secrets in a line; the secret itself is never repeated."""
    matches = [(name, match.group()) for name, shape in SECRET_PATTERNS.items() if (match := shape.search(line))]
    secret_kinds = [name for name, text in matches if name not in _LOOSE_PATTERN_NAMES or not _is_harmless(text)]
    values = [match["value"] for match in _ASSIGNED_SECRET_PATTERN.finditer(line)]
    if any(_is_random_looking(value) and not _PLACEHOLDER_PATTERN.search(value) for value in values):
        return secret_kinds or ["a secret that was written out"]
    return secret_kinds


def redact_lines(text: str) -> str:
    """Return a text in which a note replaces each line that looks like it contains a secret."""
    return "\n".join("(a line that looks like a secret)" if find_secrets(line) else line for line in text.split("\n"))


def _is_harmless(text: str) -> bool:
    return bool(_PLACEHOLDER_PATTERN.search(text)) or ("://" not in text and not _is_random_looking(text))


def _is_random_looking(value: str) -> bool:
    """Return whether a value looks random: letters and digits mixed, with high entropy."""
    if not any(map(str.isdigit, value)) or not any(map(str.isalpha, value)):  # a word, a path, a name
        return False
    counts = Counter(value)
    entropy_bits = -sum(count / len(value) * math.log2(count / len(value)) for count in counts.values())
    return entropy_bits >= 3.3


def fix_secrets(case: FixCase) -> FixResult:
    """Remove the line; in a code block, the whole block, which would not work without the line."""
    if case.lines & list_code_lines(case.file):
        return remove_code_blocks(case)
    if all(number >= case.file.body_line for number in case.lines):
        return remove_lines(case.text, case.lines)
    lines = [case.text.split("\n")[number - 1].lstrip() for number in case.lines]
    keys = {key: None for key in case.file.front if any(line.startswith(key) for line in lines)}
    return set_front_matter_keys(case.text, keys) if keys and "title" not in keys else None


LEAKED_SECRET = IssueKind(
    "GATE_SECRET", "blocker", "Remove the line and revoke the secret: it has been exposed.", fix_secrets
)
HOST_PATH = IssueKind(
    "GATE_HOST_PATH", "warn", "Use a path that exists on every machine, or a placeholder user name.", fix_secrets
)

GATE = Gate("secrets", __doc__, check_secrets)

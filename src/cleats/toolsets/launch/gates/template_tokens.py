"""No page may show a token that a template should have filled."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cleats.system.front_matter import set_front_matter_keys
from cleats.toolsets.launch.gates.model import FixCase, Gate, GateMessage, IssueKind
from cleats.toolsets.launch.gates.page_text import CODE_SPAN_PATTERN, edit_around, list_prose_lines, remove_lines
from cleats.toolsets.launch.gates.site import LaunchSite
from cleats.toolsets.launch.site.claim_markers import strip_claim_markers

TOKEN_PATTERN = re.compile(r"(?<![A-Za-z0-9_])__[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*__(?![A-Za-z0-9_])")
"""`__UPPER_SNAKE__`; Python's own `__init__` is lower case."""
TEMPLATE_VARIABLE_PATTERN = re.compile(r"\{\{(?![<%])\s*[-.$\w][^{}]*\}\}")
"""`{{ name }}`; Hugo's shortcodes are `{{< >}}` and `{{% %}}`."""
_PUNCTUATION_ONLY_PATTERN = re.compile(r"[\s>*+#|\d.:;,()\[\]_-]*")


def check_template_tokens(site: LaunchSite) -> Iterator[GateMessage]:
    for file in site.files:
        for key, value in _iterate_texts(file.front):
            for token in find_tokens(value):
                yield LEAKED_TOKEN.draft(f"the front matter key {key!r} still contains the token {token}", file.path, 1)
        for number, line in file.prose:
            for token in find_tokens(CODE_SPAN_PATTERN.sub("", line)):
                yield LEAKED_TOKEN.draft(f"the page still shows the token {token}", file.path, number)


def find_tokens(text: str) -> list[str]:
    """Return the tokens in a text that is not code, in order, without duplicates."""
    return list(dict.fromkeys(TOKEN_PATTERN.findall(text) + TEMPLATE_VARIABLE_PATTERN.findall(text)))


def _iterate_texts(front: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in front.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _iterate_texts(value, f"{name}.")
        else:
            items = value if isinstance(value, list) else [value]
            yield from ((name, item) for item in items if isinstance(item, str))


def fix_tokens(case: FixCase) -> str:
    """Fill in a token as the plan says; remove one that the plan does not know."""
    token_values = {str(key): str(value) for key, value in case.file.plan.get("token_mappings", {}).items()}
    lines = case.text.split("\n")
    empty_lines = set()
    for number in list_prose_lines(case.file):
        line = lines[number - 1]
        filled_line = lines[number - 1] = _fill_tokens(line, token_values)
        if filled_line != line and _PUNCTUATION_ONLY_PATTERN.fullmatch(strip_claim_markers(filled_line)):
            empty_lines.add(number)
    text = remove_lines("\n".join(lines), empty_lines)
    front_updates = _fill_front_matter(case.file.front, token_values)
    if "title" in front_updates and not front_updates["title"]:
        front_updates["title"] = case.file.plan.get("title") or None
    return set_front_matter_keys(text, front_updates) if front_updates else text


def _fill_tokens(line: str, token_values: Mapping[str, str]) -> str:
    def fill_piece(piece: str) -> str:
        for token in find_tokens(piece):
            value = token_values.get(token, token_values.get(token.strip("_{} "), ""))
            piece = piece.replace(token, value)
            if not value:
                piece = re.sub(r"(?<=\S) {2,}(?=\S)", " ", piece)
                piece = re.sub(r" +(?=[.,;:!?](?:\s|$))", "", piece)
        return piece

    has_tokens = find_tokens(CODE_SPAN_PATTERN.sub("", line))
    return edit_around(CODE_SPAN_PATTERN, line, fill_piece).rstrip() if has_tokens else line


def _fill_front_matter(front: Mapping[str, Any], token_values: Mapping[str, str]) -> dict[str, Any]:
    """Return the top-level keys that change; a key whose value was only a token is removed."""
    changes: dict[str, Any] = {}
    for key, value in front.items():
        if isinstance(value, str) and find_tokens(value):
            changes[key] = _fill_tokens(value, token_values).strip() or None
        elif isinstance(value, list) and any(isinstance(item, str) and find_tokens(item) for item in value):
            filled_items = [
                _fill_tokens(item, token_values).strip() if isinstance(item, str) else item for item in value
            ]
            changes[key] = [item for item in filled_items if item != ""]
    return changes


LEAKED_TOKEN = IssueKind("GATE_TOKEN_LEAKED", "blocker", "Replace the token with a value, or remove it.", fix_tokens)

GATE = Gate(
    "template_tokens", __doc__, check_template_tokens, reads_pages=True, local_seconds=30.0, strict_seconds=60.0
)

"""No page may show a token that a template should have filled."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cleats.toolsets.launch.gates.model import Gate, GateMessage, LaunchSite, PageFile, make_blocker

TOKEN_PATTERN = re.compile(r"(?<![A-Za-z0-9_])__[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*__(?![A-Za-z0-9_])")
"""`__UPPER_SNAKE__`; Python's own `__init__` is lower case."""
TEMPLATE_VARIABLE_PATTERN = re.compile(r"\{\{(?![<%])\s*[-.$\w][^{}]*\}\}")
"""`{{ name }}`; Hugo's shortcodes are `{{< >}}` and `{{% %}}`."""
_CODE_SPAN_PATTERN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")


def check_template_tokens(site: LaunchSite) -> Iterator[GateMessage]:
    for file in site.files:
        for key, value in _iterate_texts(file.front):
            for token in find_tokens(value):
                message = f"the front matter key {key!r} still holds the token {token}"
                yield make_blocker("GATE_TOKEN_LEAKED", message, file.path, 1)
        yield from _check_body(file)


def _check_body(file: PageFile) -> Iterator[GateMessage]:
    for number, line in file.prose:
        for token in find_tokens(_CODE_SPAN_PATTERN.sub("", line)):
            message = f"the page still shows the token {token}"
            yield make_blocker("GATE_TOKEN_LEAKED", message, file.path, number)


def find_tokens(text: str) -> list[str]:
    """Return the tokens in a text that is not code, in order, without duplicates."""
    return list(dict.fromkeys(TOKEN_PATTERN.findall(text) + TEMPLATE_VARIABLE_PATTERN.findall(text)))


def _iterate_texts(front: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in front.items():
        name = f"{prefix}{key}"
        if isinstance(value, str):
            yield name, value
        elif isinstance(value, dict):
            yield from _iterate_texts(value, f"{name}.")
        elif isinstance(value, list):
            for item in value:
                if isinstance(item, str):
                    yield name, item


GATE = Gate(
    name="template_tokens",
    purpose=__doc__,
    check=check_template_tokens,
    reads_pages=True,
    local_seconds=30.0,
    strict_seconds=60.0,
)

"""No page shows a token that a template should have filled."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cleats.toolsets.launch.gates.model import Gate, Said, blocker
from cleats.toolsets.launch.gates.site import PageFile, Site

TOKEN = re.compile(r"(?<![A-Za-z0-9_])__[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*__(?![A-Za-z0-9_])")
"""`__UPPER_SNAKE__`; Python's own `__init__` is lower case."""
VARIABLE = re.compile(r"\{\{(?![<%])\s*[-.$\w][^{}]*\}\}")
"""`{{ name }}`; Hugo's shortcodes are `{{< >}}` and `{{% %}}`."""
_CODE_SPAN = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")


def check(site: Site) -> Iterator[Said]:
    for file in site.files:
        for key, value in _texts(file.front):
            for token in found(value):
                message = f"the front matter key {key!r} still holds the token {token}"
                yield blocker("GATE_TOKEN_LEAKED", message, file.path, 1)
        yield from _body(file)


def _body(file: PageFile) -> Iterator[Said]:
    for number, line in file.prose:
        for token in found(_CODE_SPAN.sub("", line)):
            message = f"the page still shows the token {token}"
            yield blocker("GATE_TOKEN_LEAKED", message, file.path, number)


def found(text: str) -> list[str]:
    """The tokens in a text that is no code, in order, each once."""
    return list(dict.fromkeys(TOKEN.findall(text) + VARIABLE.findall(text)))


def _texts(front: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in front.items():
        name = f"{above}{key}"
        if isinstance(value, str):
            yield name, value
        elif isinstance(value, dict):
            yield from _texts(value, f"{name}.")
        elif isinstance(value, list):
            for each in value:
                if isinstance(each, str):
                    yield name, each


GATE = Gate(
    name="template_tokens", purpose=__doc__, check=check, reads_pages=True, local=30.0, strict=60.0
)

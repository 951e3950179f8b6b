"""The snippets of the catalogue, found by their code."""

from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch.gates.site import Site
from cleats.toolsets.launch.pages import Fence

ALIASES: Mapping[str, str] = {
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


def known(site: Site) -> dict[str, Mapping[str, Any]]:
    """The snippets of the catalogue by their code."""
    snippets = site.document("snippet_catalog.json").get("snippets", ())
    return {normal(snippet["code"]): snippet for snippet in snippets}


def normal(code: str) -> str:
    """Code as it is compared: no spaces at the ends of lines, no empty lines around it."""
    return "\n".join(line.rstrip() for line in code.splitlines()).strip("\n")


def language(fence: Fence) -> str:
    """The language of a code block, by the name that the catalogue has for it."""
    return ALIASES.get(fence.language, fence.language)

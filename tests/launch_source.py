"""Repositories in a few lines, and what the readers make of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cleats.toolsets.launch import artifacts
from cleats.toolsets.launch.snippets import catalog
from cleats.toolsets.launch.source import inventory
from cleats.toolsets.launch.source.facts import Built, build
from cleats.toolsets.launch.source.sources import language_of
from cleats.toolsets.launch.source.tree import Tree

SHA = "a" * 40
URL = "https://example.com/owner/kettle"

PYPROJECT = """\
[project]
name = "py-kettle"
version = "1.4.0"
description = "A library to boil water"
requires-python = ">=3.10"
license = "MIT"
dependencies = ["valve>=2", "tin; sys_platform == 'win32'"]

[project.optional-dependencies]
steam = ["turbine>=1"]
test = ["pytest"]

[project.scripts]
kettle = "kettle.cli:main"
"""


def tree(root: Path, files: Mapping[str, str | bytes]) -> Tree:
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
    return Tree(root)


def read(
    root: Path, files: Mapping[str, str | bytes], platform: str = "python", name: str = "Kettle"
) -> Built:
    """The facts of a repository; both artifacts fit their schemas."""
    source = tree(root, files)
    config = {"product_name": name, "product_slug": "kettle", "target_platform": platform}
    built = build(source, inventory.take(source, URL, SHA), config)
    artifacts.check("product_facts.json", built.product_facts)
    artifacts.check("evidence_map.json", built.evidence_map)
    return built


def claims(built: Built, kind: str = "") -> list[str]:
    """The texts of the claims of a kind."""
    return [
        claim["claim_text"]
        for claim in built.evidence_map["claims"]
        if kind in ("", claim["claim_kind"])
    ]


def snippets(
    root: Path, files: Mapping[str, str | bytes], platform: str = "python"
) -> list[dict[str, Any]]:
    source = tree(root, files)
    config = {"product_name": "Kettle", "product_slug": "kettle", "target_platform": platform}
    found = inventory.take(source, URL, SHA)
    built = build(source, found, config)
    made = catalog.build(source, found, built.product_facts, language_of(config, found))
    artifacts.check("snippet_catalog.json", made)
    listed: list[dict[str, Any]] = made["snippets"]
    return listed

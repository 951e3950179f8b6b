"""Small repositories, and the facts and snippets that are extracted from them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cleats.toolsets.launch.runs import artifacts
from cleats.toolsets.launch.snippets import catalogue
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.evidence import inventory
from cleats.toolsets.launch.source.evidence.facts import build_facts
from cleats.toolsets.launch.source.evidence.repository_sources import resolve_language

SOURCE_SHA = "a" * 40
SOURCE_URL = "https://example.com/owner/kettle"

PYPROJECT_TEXT = """\
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


def write_tree(root: Path, files: Mapping[str, str | bytes]) -> CheckoutTree:
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
    return CheckoutTree(root)


class ExtractedFacts(NamedTuple):
    product_facts: dict[str, Any]
    evidence_map: dict[str, Any]


def extract_facts(
    root: Path, files: Mapping[str, str | bytes], platform: str = "python", name: str = "Kettle"
) -> ExtractedFacts:
    """Extract the facts of a repository; both artifacts must match their schemas."""
    source = write_tree(root, files)
    config = {"product_name": name, "product_slug": "kettle", "target_platform": platform}
    built = ExtractedFacts(*build_facts(source, inventory.take_inventory(source, SOURCE_URL, SOURCE_SHA), config))
    artifacts.check_document("product_facts.json", built.product_facts)
    artifacts.check_document("evidence_map.json", built.evidence_map)
    return built


def list_claim_texts(built: ExtractedFacts, kind: str = "") -> list[str]:
    """Return the texts of the claims of one kind, or of all."""
    return [claim["claim_text"] for claim in built.evidence_map["claims"] if kind in ("", claim["claim_kind"])]


def extract_snippets(root: Path, files: Mapping[str, str | bytes], platform: str = "python") -> list[dict[str, Any]]:
    source = write_tree(root, files)
    config = {"product_name": "Kettle", "product_slug": "kettle", "target_platform": platform}
    source_inventory = inventory.take_inventory(source, SOURCE_URL, SOURCE_SHA)
    built = ExtractedFacts(*build_facts(source, source_inventory, config))
    snippet_catalog = catalogue.build_catalogue(
        source, source_inventory, built.product_facts, resolve_language(config, source_inventory)
    )
    artifacts.check_document("snippet_catalog.json", snippet_catalog)
    snippet_list: list[dict[str, Any]] = snippet_catalog["snippets"]
    return snippet_list

"""Small repositories, and the facts and snippets that are extracted from them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from cleats.toolsets.launch.drafting.material import LaunchMaterial
from cleats.toolsets.launch.drafting.page import WrittenPage, find_template, write_page
from cleats.toolsets.launch.drafting.page_context import LinkedPage, PageContext, PageSubject
from cleats.toolsets.launch.planning.page_candidates import list_optional_pages
from cleats.toolsets.launch.profiles import model
from cleats.toolsets.launch.runs import artifacts
from cleats.toolsets.launch.site import claim_markers
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


def extract_material(root: Path, files: Mapping[str, str | bytes], platform: str = "python") -> LaunchMaterial:
    """Return what pages about a repository can state; the product is called what the repository calls it."""
    source = write_tree(root, files)
    config = {"product_slug": "kettle", "target_platform": platform}
    source_inventory = inventory.take_inventory(source, SOURCE_URL, SOURCE_SHA)
    facts, evidence = build_facts(source, source_inventory, config)
    language = resolve_language(config, source_inventory)
    return LaunchMaterial(facts, evidence, catalogue.build_catalogue(source, source_inventory, facts, language), config)


def draft_pages(
    root: Path, files: Mapping[str, str | bytes], platform: str = "python", max_lines: int = 500
) -> dict[str, WrittenPage]:
    """Write the pages of a repository with the profile `plain`; return them by section and slug."""
    material = extract_material(root, files, platform)
    profile = model.load_named_profile("plain")
    written: dict[str, WrittenPage] = {}
    for section in profile.sections:
        optional = list_optional_pages(section.name, material)
        children = [LinkedPage(page.subject.title, f"/{page.slug}/", "code") for page in optional if page.subject]
        rows: list[tuple[str, str, PageSubject | None]] = [(page.slug, page.role, None) for page in section.pages]
        rows += [(page.slug, page.role, page.subject) for page in optional]
        links = {slug: LinkedPage(slug, f"/{slug}/", "text") for slug, _, _ in rows}
        for slug, role, subject in rows:
            context = PageContext(
                material=material,
                subject=subject,
                children=() if subject else tuple(children),
                section=links,
                max_lines=max_lines,
            )
            template = find_template(
                section.name, slug, role, folder=profile.templates_folder, locale="en", variant="standard"
            )
            assert template is not None, slug
            written[f"{section.name}/{slug}"] = write_page(template, context)
    return written


def strip_markers(body: str) -> str:
    """Return the text of a page as people read it."""
    return "\n".join(claim_markers.strip_claim_markers(line).rstrip() for line in body.split("\n"))

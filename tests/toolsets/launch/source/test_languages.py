"""Tests of the languages of packages: what a small package of each one declares, offers and installs with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cleats.toolsets.launch.source.api.public_names import Symbol
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.evidence import inventory
from cleats.toolsets.launch.source.evidence.install_claims import detect_install_language
from cleats.toolsets.launch.source.evidence.repository_sources import RepositorySources
from tests.support.golden_files import compare_golden_file
from tests.support.paths import TESTS_FOLDER

PACKAGES_FOLDER = TESTS_FOLDER / "fixtures/packages"
PLATFORMS_BY_FOLDER = {"csharp": "dotnet", "gradle": "java"}
FOLDERS = sorted(path.name for path in PACKAGES_FOLDER.iterdir())


def read_package(root: Path, platform: str) -> RepositorySources:
    tree = CheckoutTree(root)
    config = {"product_slug": "kettle", "target_platform": platform}
    return RepositorySources(tree, inventory.take_inventory(tree, "https://example.com/kettle", "a" * 40), config)


def describe_package(sources: RepositorySources) -> Iterator[str]:
    """Describe a package in lines that a reader can compare with its files."""
    manifest, distribution = sources.manifest, sources.distribution
    assert manifest is not None
    assert distribution is not None
    version = manifest.version.value if manifest.version else "none"
    yield f"{manifest.ecosystem} {distribution.identifier} {version}, code in {sources.language}"
    for command in distribution.commands:
        yield f"install as {detect_install_language(command)}: {' '.join(command.split())}"
    yield f"import {', '.join(value.value for value in distribution.imports)}"
    yield f"requires {manifest.requires.value if manifest.requires else 'nothing'}"
    for symbol in sources.surface.symbols:
        yield from _describe_symbol(symbol)


def _describe_symbol(symbol: Symbol, indent: str = "") -> Iterator[str]:
    deprecated = " (deprecated)" if symbol.deprecated else ""
    place = f"{symbol.path}:{symbol.line}" + (
        f", documented in {symbol.doc_line}-{symbol.doc_end}" if symbol.doc else ""
    )
    yield f"{indent}{symbol.label or symbol.kind} {symbol.name}: {symbol.signature}{deprecated} [{place}]"
    for text in (symbol.doc, *(f"note: {note.text}" for note in symbol.notes)):
        if text:
            yield f"{indent}    {text}"
    for member in symbol.members:
        yield from _describe_symbol(member, f"{indent}  ")


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_package_of_every_language_is_read_from_its_manifest_and_its_code(folder: str) -> None:
    sources = read_package(PACKAGES_FOLDER / folder, PLATFORMS_BY_FOLDER.get(folder, folder))

    compare_golden_file(f"launch_packages/{folder}.txt", "\n".join(describe_package(sources)) + "\n")

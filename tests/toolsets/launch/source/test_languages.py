"""Tests of the languages of packages: what a small package of each one declares, offers and installs with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cleats.toolsets.launch.profiles.model import load_named_profile
from cleats.toolsets.launch.snippets.doc_examples import find_doc_examples
from cleats.toolsets.launch.snippets.syntax import can_check, find_faults
from cleats.toolsets.launch.source.api.public_names import Symbol
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.evidence import inventory
from cleats.toolsets.launch.source.evidence.install_claims import detect_install_language
from cleats.toolsets.launch.source.evidence.repository_sources import RepositorySources
from cleats.toolsets.launch.source.languages import LANGUAGES
from tests.support.golden_files import compare_golden_file
from tests.support.launch_sources import extract_facts, extract_snippets, list_claim_texts
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
    paths = list(dict.fromkeys(symbol.path for symbol in sources.surface.symbols))
    paths += [path for _, path in sources.surface.modules if path not in paths]
    for example in find_doc_examples(sources.tree, paths, sources.language):
        yield f"example in {example.path}:{example.start}-{example.end} {example.title}"
        yield from (f"    {line}".rstrip() for line in example.code.rstrip().split("\n"))


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


def test_the_plain_profile_has_a_platform_for_every_language_with_an_api() -> None:
    names = {name for platform in load_named_profile("plain").platforms for name in platform.folded_names}
    families = {"python", *(language.family for language in LANGUAGES if language.read_surface)}

    assert families <= names | {"node"}
    assert {"javascript", "typescript", "dotnet", "csharp"} <= names


PROGRAMS_BY_LANGUAGE = {
    "python": ("x = 1", "x = = 1"),
    "javascript": ("const x = await f()", "const = 1"),
    "typescript": ("const x: number = 1", "const x: = 1"),
    "go": ("u := uuid.New()", "u := := 1"),
    "rust": ("let v = Version::parse(text)?;", "let let = 1"),
    "java": ("JSONObject object = new JSONObject();", "JSONObject = = ;"),
    "csharp": ("var kettle = new Kettle();", "var = = new"),
}


@pytest.mark.parametrize("language", PROGRAMS_BY_LANGUAGE)
def test_fragments_of_every_language_are_checked_and_damaged_ones_found(language: str) -> None:
    valid, damaged = find_faults((code, language) for code in PROGRAMS_BY_LANGUAGE[language])

    assert can_check(language)
    assert valid == ""
    assert damaged


def test_code_that_names_a_public_type_of_the_package_uses_it(tmp_path: Path) -> None:
    readme = (
        "# Kettle\n\n## Boil\n\n```go\nk := kettle.New()\nk.Boil()\n```\n\n## Other\n\n```go\nx := other.Thing()\n```\n"
    )
    files = {
        "go.mod": "module example.org/tea/kettle\n\ngo 1.21\n",
        "kettle.go": "package kettle\n\n// New makes one.\nfunc New() int { return 1 }\n",
        "README.md": readme,
    }

    tags = {snippet["code"]: snippet["tags"] for snippet in extract_snippets(tmp_path, files, "go")}

    assert "usage" in tags["k := kettle.New()\nk.Boil()\n"]
    assert "usage" not in tags["x := other.Thing()\n"]


def test_a_release_named_by_the_readme_is_the_evidence_of_an_unreleased_manifest(tmp_path: Path) -> None:
    files = {path.name: path.read_text() for path in (PACKAGES_FOLDER / "java").iterdir() if path.is_file()}

    built = extract_facts(tmp_path, files, "java")

    [claim] = [claim for claim in built.evidence_map["claims"] if claim["claim_kind"] == "install"]
    assert claim["claim_text"] == "Add Kettle to a Maven or Gradle project as the dependency `org.tea:kettle`."
    assert ("README.md", 7) in {(item["path"], item["start_line"]) for item in claim["citations"]}
    assert "The version of Kettle in this repository is 2.0.0-SNAPSHOT." in list_claim_texts(built)


@pytest.mark.parametrize(("folder", "name"), [("go", "kettle"), ("java", "Kettle"), ("gradle", "tea-kettle")])
def test_a_package_is_called_by_the_last_part_of_its_name(folder: str, name: str) -> None:
    assert read_package(PACKAGES_FOLDER / folder, PLATFORMS_BY_FOLDER.get(folder, folder)).subject.name == name

"""Everything in a repository that the facts are built from, read once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from cleats.toolsets.launch.source.api import node, python
from cleats.toolsets.launch.source.api.public_names import ApiSurface
from cleats.toolsets.launch.source.checkout.repository_layout import RepositoryRoots
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.evidence.document_claims import is_readme
from cleats.toolsets.launch.source.evidence.install_claims import Distribution, build_distribution
from cleats.toolsets.launch.source.manifests.model import PackageManifest
from cleats.toolsets.launch.source.manifests.readers import read_manifest
from cleats.toolsets.launch.source.text import documents
from cleats.toolsets.launch.source.text.documents import Block
from cleats.toolsets.launch.source.text.sentences import ProductSubject, find_proper_words

_OVERVIEW_PATH_PATTERN: Final = re.compile(
    r"(^|/)(index|readme|overview|introduction|features?|limitations?|known[-_]issues|caveats)\.\w+$",
    re.IGNORECASE,
)
"""Documents about the product as a whole."""

_GUIDE_PATH_PATTERN: Final = re.compile(
    r"(^|/)(getting[-_]?started|quick[-_]?start|tutorial|usage|basic\w*|first[-_]steps)[^/]*\.\w+$",
    re.IGNORECASE,
)
_LANGUAGE_BY_PLATFORM: Final = {"dotnet": "csharp", "node": "javascript", "nodejs": "javascript"}


def resolve_platform(config: Mapping[str, Any], inventory: Mapping[str, Any]) -> str:
    """Return the platform of the run, else the one detected in the repository."""
    return str(config.get("target_platform") or inventory["repo_profile"]["platform_family"])


def resolve_language(config: Mapping[str, Any], inventory: Mapping[str, Any]) -> str:
    """Return the language that code for the product is written in."""
    platform = resolve_platform(config, inventory)
    return _LANGUAGE_BY_PLATFORM.get(platform, platform)


@dataclass(frozen=True)
class RepositorySources:
    """The parsed sources of a repository, each read once."""

    tree: CheckoutTree
    inventory: Mapping[str, Any]
    config: Mapping[str, Any]

    @property
    def platform(self) -> str:
        return resolve_platform(self.config, self.inventory)

    @property
    def family(self) -> str:
        return str(self.inventory["repo_profile"]["platform_family"])

    @property
    def language(self) -> str:
        """The language that examples for the product are written in."""
        return resolve_language(self.config, self.inventory)

    @cached_property
    def roots(self) -> RepositoryRoots:
        keys = ("source_roots", "test_roots", "doc_roots", "example_roots")
        return RepositoryRoots(*(tuple(self.inventory[key]) for key in keys))

    @cached_property
    def manifest(self) -> PackageManifest | None:
        return read_manifest(self.tree, self.platform, self.family)

    @cached_property
    def distribution(self) -> Distribution | None:
        return build_distribution(self.tree, self.manifest, self.roots) if self.manifest else None

    @cached_property
    def blocks(self) -> dict[str, list[Block]]:
        """The readme and the documents about the whole product, not nested indexes, in order."""
        top_folders = {"", *(f"{root}{part}" for root in self.roots.doc for part in ("", "/source", "/src"))}
        return {
            path: documents.read_blocks(self.tree, path)
            for path in self.inventory["doc_entrypoints"]
            if path.rpartition("/")[0] in top_folders and _OVERVIEW_PATH_PATTERN.search(path)
        }

    @cached_property
    def guides(self) -> dict[str, list[Block]]:
        """Guides for beginners, which complement the documents in `blocks`."""
        return {
            path: documents.read_blocks(self.tree, path)
            for path in self.inventory["doc_entrypoints"]
            if _GUIDE_PATH_PATTERN.search(path) and path not in self.blocks
        }

    @cached_property
    def surface(self) -> ApiSurface:
        if self.distribution is None or self.manifest is None:
            return ApiSurface()
        if self.manifest.ecosystem == "pip":
            return python.read_surface(self.tree, {module.value: module.path for module in self.distribution.imports})
        if self.manifest.ecosystem == "npm":
            return node.read_surface(self.tree, self.distribution.identifier, self.manifest.entry_files)
        return ApiSurface()

    @cached_property
    def subject(self) -> ProductSubject:
        """The product with all of its names."""
        declared = self.manifest.name if self.manifest else None
        package = declared.value if declared else str(self.config.get("product_slug") or "")
        name = str(self.config.get("product_name") or "") or package
        imports = [module.value for module in self.distribution.imports] if self.distribution else []
        names = [name, package, *imports]
        readme_heads = [block for path, blocks in self.blocks.items() if is_readme(path) for block in blocks[:5]]
        title = next((block.text for block in readme_heads if block.kind == "heading"), "")
        if _is_product_name(_strip_to_letters(title), {_strip_to_letters(own_name) for own_name in names}):
            names.append(title)
        texts = [block.text for blocks in self.blocks.values() for block in blocks if block.kind == "paragraph"]
        aliases = frozenset(alias.lower() for alias in names if alias)
        return ProductSubject(name, aliases, find_proper_words(texts))


def _strip_to_letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", name.lower())


def _is_product_name(title: str, names: set[str]) -> bool:
    """Return whether a heading names the product: `python-tabulate`, but not `Quick start`."""
    return any(name and (name in title or title in name) for name in names) and len(title) < 40

"""Everything of a repository that the facts are made from, read once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from cleats.toolsets.launch.source import documents
from cleats.toolsets.launch.source.api import node, python
from cleats.toolsets.launch.source.api.model import Surface
from cleats.toolsets.launch.source.blocks import Block
from cleats.toolsets.launch.source.document_claims import is_readme
from cleats.toolsets.launch.source.install import Distribution, distribution
from cleats.toolsets.launch.source.manifests.model import Manifest
from cleats.toolsets.launch.source.manifests.reading import read
from cleats.toolsets.launch.source.roots import Roots
from cleats.toolsets.launch.source.statements import Subject, proper_words
from cleats.toolsets.launch.source.tree import Tree

_WHOLE: Final = re.compile(
    r"(^|/)(index|readme|overview|introduction|features?|limitations?|known[-_]issues|caveats)\.\w+$",
    re.IGNORECASE,
)
"""Documents that speak of the product as a whole."""

_GUIDE: Final = re.compile(
    r"(^|/)(getting[-_]?started|quick[-_]?start|tutorial|usage|basic\w*|first[-_]steps)[^/]*\.\w+$",
    re.IGNORECASE,
)
_LANGUAGES: Final = {"dotnet": "csharp", "node": "javascript", "nodejs": "javascript"}


def platform_of(config: Mapping[str, Any], inventory: Mapping[str, Any]) -> str:
    """The platform that the run is for, else the one that the repository has."""
    return str(config.get("target_platform") or inventory["repo_profile"]["platform_family"])


def language_of(config: Mapping[str, Any], inventory: Mapping[str, Any]) -> str:
    """The language that code for the product is written in."""
    platform = platform_of(config, inventory)
    return _LANGUAGES.get(platform, platform)


@dataclass(frozen=True)
class Sources:
    """Everything that is read, once."""

    tree: Tree
    inventory: Mapping[str, Any]
    config: Mapping[str, Any]

    @property
    def platform(self) -> str:
        return platform_of(self.config, self.inventory)

    @property
    def family(self) -> str:
        return str(self.inventory["repo_profile"]["platform_family"])

    @property
    def language(self) -> str:
        """The language that examples for the product are written in."""
        return language_of(self.config, self.inventory)

    @cached_property
    def roots(self) -> Roots:
        keys = ("source_roots", "test_roots", "doc_roots", "example_roots")
        return Roots(*(tuple(self.inventory[key]) for key in keys))

    @cached_property
    def manifest(self) -> Manifest | None:
        return read(self.tree, self.platform, self.family)

    @cached_property
    def distribution(self) -> Distribution | None:
        return distribution(self.tree, self.manifest, self.roots) if self.manifest else None

    @cached_property
    def blocks(self) -> dict[str, list[Block]]:
        """The readme and the documents about the whole, in order."""
        wanted = [path for path in self.inventory["doc_entrypoints"] if self._is_whole(path)]
        return {path: documents.blocks(self.tree, path) for path in wanted}

    @cached_property
    def guides(self) -> dict[str, list[Block]]:
        """Documents that show how to begin, for what the others do not show."""
        wanted = [
            path
            for path in self.inventory["doc_entrypoints"]
            if _GUIDE.search(path) and path not in self.blocks
        ]
        return {path: documents.blocks(self.tree, path) for path in wanted}

    def _is_whole(self, path: str) -> bool:
        """The readme, and the first pages of the documents: an index further down is of a part."""
        folder = path.rpartition("/")[0]
        tops = {
            "",
            *(f"{root}{part}" for root in self.roots.doc for part in ("", "/source", "/src")),
        }
        return folder in tops and bool(_WHOLE.search(path))

    @cached_property
    def surface(self) -> Surface:
        if self.distribution is None or self.manifest is None:
            return Surface()
        if self.manifest.ecosystem == "pip":
            return python.surface(
                self.tree, {each.value: each.path for each in self.distribution.imports}
            )
        if self.manifest.ecosystem == "npm":
            return node.surface(self.tree, self.distribution.identifier, self.manifest.entry_files)
        return Surface()

    @cached_property
    def subject(self) -> Subject:
        """The product by all of its names."""
        name = str(self.config.get("product_name") or "") or self._own_name()
        titles = [
            block.text
            for path, found in self.blocks.items()
            for block in found[:5]
            if is_readme(path) and block.kind == "heading"
        ]
        imports = [each.value for each in self.distribution.imports] if self.distribution else []
        own = {_letters(each) for each in (name, self._own_name(), *imports)}
        titles = [each for each in titles[:1] if _is_name(_letters(each), own)]
        known = [name, self._own_name(), *titles, *imports]
        texts = [
            block.text
            for found in self.blocks.values()
            for block in found
            if block.kind == "paragraph"
        ]
        aliases = frozenset(each.lower() for each in known if each)
        return Subject(name, aliases, proper_words(texts))

    def _own_name(self) -> str:
        said = self.manifest.name if self.manifest else None
        return said.value if said else str(self.config.get("product_slug") or "")


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", name.lower())


def _is_name(title: str, own: set[str]) -> bool:
    """Whether a heading is the product's name: `python-tabulate` is, `Quick start` is not."""
    return any(each and (each in title or title in each) for each in own) and len(title) < 40

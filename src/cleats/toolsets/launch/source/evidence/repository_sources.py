"""Everything in a repository that the facts are built from, read once."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from cleats.toolsets.launch.source.api import python
from cleats.toolsets.launch.source.api.public_names import ApiSurface
from cleats.toolsets.launch.source.checkout.repository_layout import RepositoryRoots
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.evidence.document_claims import infer_code_languages, is_readme
from cleats.toolsets.launch.source.evidence.documented_names import add_documented_purposes
from cleats.toolsets.launch.source.evidence.install_claims import Distribution, build_distribution
from cleats.toolsets.launch.source.languages import (
    FAMILY_BY_PLATFORM,
    LANGUAGES,
    LANGUAGES_BY_FAMILY,
    resolve_code_language,
)
from cleats.toolsets.launch.source.manifests import pyproject, setuptools
from cleats.toolsets.launch.source.manifests.model import PackageManifest, fill_gaps
from cleats.toolsets.launch.source.text.documents import Block, read_blocks
from cleats.toolsets.launch.source.text.sentences import ProductSubject, find_proper_words

_OVERVIEW_PATH_PATTERN: Final = re.compile(
    r"(^|/)(index|readme|overview|introduction|features?|limitations?|known[-_]issues|caveats)\.\w+$", re.IGNORECASE
)
"""Documents about the product as a whole."""

_GUIDE_PATH_PATTERN: Final = re.compile(
    r"(^|/)(getting[-_]?started|quick[-_]?start|tutorial|usage|basic\w*|first[-_]steps)[^/]*\.\w+$", re.IGNORECASE
)
_UNRELATED_PATH_PATTERN: Final = re.compile(
    r"(^|/)(change\w*|history|news|releas\w*|licen[sc]e|authors|contribut\w*|develop\w*|security|credits|copyright|todo"
    r"|roadmap|internals?|design|api|reference|modules?|code_of_conduct|conduct|migrat\w*|upgrad\w*|version\w*"
    r"|announc\w*|talks?|alternatives|index)([^/]*\.\w+$|/)",
    re.IGNORECASE,
)
"""Documents that are about the project or its API, not about how to use it."""

MIN_SPELLED_NAMES = 3
"""Times that documents spell the name of the product in the same way, from which that is its name."""

MIN_TITLE_LETTERS: Final = 4
"""Letters from which the title in a manifest is recognised in the name of its package."""

MAX_TASK_DOCUMENTS: Final = 15
"""Documents read for tasks besides the readme and the guides."""


def resolve_platform(config: Mapping[str, Any], inventory: Mapping[str, Any]) -> str:
    """Return the platform of the run, else the one detected in the repository."""
    return str(config.get("target_platform") or inventory["repo_profile"]["platform_family"])


def resolve_language(config: Mapping[str, Any], inventory: Mapping[str, Any]) -> str:
    """Return the language that code for the product is written in."""
    return resolve_code_language(resolve_platform(config, inventory))


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
    def language(self) -> str:
        """The language that examples for the product are written in."""
        return resolve_language(self.config, self.inventory)

    @cached_property
    def roots(self) -> RepositoryRoots:
        keys = ("source_roots", "test_roots", "doc_roots", "example_roots")
        return RepositoryRoots(*(tuple(self.inventory[key]) for key in keys))

    @cached_property
    def manifest(self) -> PackageManifest | None:
        return read_manifest(self.tree, self.platform, str(self.inventory["repo_profile"]["platform_family"]))

    @cached_property
    def distribution(self) -> Distribution | None:
        return build_distribution(self.tree, self.manifest, self.roots) if self.manifest else None

    @cached_property
    def blocks(self) -> dict[str, list[Block]]:
        """The readme and the documents about the whole product, not nested indexes, in order."""
        top_folders = {"", *(f"{root}{part}" for root in self.roots.doc for part in ("", "/source", "/src"))}
        paths = [path for path in self.inventory["doc_entrypoints"] if path.rpartition("/")[0] in top_folders]
        return {path: self._read_document(path) for path in paths if _OVERVIEW_PATH_PATTERN.search(path)}

    @cached_property
    def guides(self) -> dict[str, list[Block]]:
        """Guides for beginners, which complement the documents in `blocks`."""
        paths = [path for path in self.inventory["doc_entrypoints"] if _GUIDE_PATH_PATTERN.search(path)]
        return {path: self._read_document(path) for path in paths if path not in self.blocks}

    @cached_property
    def task_documents(self) -> dict[str, list[Block]]:
        """All documents whose sections may describe tasks: the readme, the overviews, the guides, then the others."""
        known = self.blocks | self.guides
        others = [
            path
            for path in self.inventory["doc_entrypoints"]
            if path not in known and not _UNRELATED_PATH_PATTERN.search(path) and self._is_linked(path)
        ]
        others.sort(key=self._find_mention)
        return known | {path: self._read_document(path) for path in others[:MAX_TASK_DOCUMENTS]}

    def _find_mention(self, path: str) -> int:
        """Return where the overviews name a document first, so that documents are read in the order of their index."""
        stem = re.escape(path.rpartition("/")[2].rpartition(".")[0])
        match = re.search(rf"(?m)(?:^|[\s(<`/]){stem}(?:\.\w+|\.html)?(?:[)>`#\s]|$)", self._overview_text)
        return match.start() if match else len(self._overview_text)

    @cached_property
    def _overview_text(self) -> str:
        return "\n".join(self.tree.read_text(path) or "" for path in self.blocks)

    def _read_document(self, path: str) -> list[Block]:
        names = [module.value for module in self.distribution.imports] if self.distribution else []
        return infer_code_languages(read_blocks(self.tree, path), self.language, names)

    def _is_linked(self, path: str) -> bool:
        """Return whether a document is in a folder of documents, or the readme at the top links to it."""
        readmes = (self.tree.read_text(name) or "" for name in self.blocks if is_readme(name))
        return "/" in path or any(re.search(rf"[(<./]{re.escape(path)}[)#>]", text) for text in readmes)

    @cached_property
    def surface(self) -> ApiSurface:
        """The public names, with what the source or else a document says about each."""
        return add_documented_purposes(self._read_surface(), self.task_documents.values())

    def _read_surface(self) -> ApiSurface:
        if self.distribution is None or self.manifest is None:
            return ApiSurface()
        if self.manifest.ecosystem == "pip":
            return python.read_surface(self.tree, {module.value: module.path for module in self.distribution.imports})
        language = next((row for row in LANGUAGES if row.ecosystem == self.manifest.ecosystem), None)
        return language.read_surface(self.tree, self.manifest) if language and language.read_surface else ApiSurface()

    @cached_property
    def subject(self) -> ProductSubject:
        """The product with all of its names."""
        declared = self.manifest.name if self.manifest else None
        package = declared.value if declared else str(self.config.get("product_slug") or "")
        imports = [module.value for module in self.distribution.imports] if self.distribution else []
        documents = sorted(self.blocks.items(), key=lambda item: not is_readme(item[0]))
        heads = (block for _, blocks in documents for block in blocks[:5] if block.kind == "heading")
        title = next((block.text for block in heads), "")
        short_name = _shorten_package_name(package, self.manifest.ecosystem if self.manifest else "")
        declared_title = self.manifest.title.value if self.manifest and self.manifest.title else ""
        texts = [block.text for blocks in self.blocks.values() for block in blocks if block.kind == "paragraph"]
        chosen = _choose_name(title, short_name, declared_title)
        name = str(self.config.get("product_name") or "") or _find_spelling(chosen, texts)
        names = [name, package, short_name, *imports]
        # A heading that names the product: `python-tabulate`, but not `Quick start`.
        letters, own_letters = _strip_to_letters(title), filter(None, map(_strip_to_letters, names))
        if len(letters) < 40 and any(own in letters or letters in own for own in own_letters):
            names.append(title)
        aliases = frozenset(alias.lower() for alias in names if alias)
        return ProductSubject(name, aliases, find_proper_words(texts))


def _shorten_package_name(package: str, ecosystem: str) -> str:
    """Return a name as people say it: `uuid` of `github.com/google/uuid/v2`, `gson` of `com.google.code.gson:gson`."""
    if ecosystem == "go":
        return re.sub(r"(/v\d+|\.v\d+)$", "", package).rpartition("/")[2]
    return package.rpartition(":")[2] if ecosystem == "maven" else package


def _choose_name(title: str, package: str, declared_title: str = "") -> str:
    """Return the name of the product as its readme spells it in the title, else that of the manifest or the package."""
    letters, declared_letters = _strip_to_letters(package), _strip_to_letters(declared_title)
    if package and _strip_to_letters(title) == letters:
        return title.strip("`")
    return declared_title if len(declared_letters) >= MIN_TITLE_LETTERS and declared_letters in letters else package


def _find_spelling(name: str, texts: list[str]) -> str:
    """Return how documents spell a name of lower-case letters, if they hardly ever spell it otherwise."""
    if not name.isalnum() or not name.islower():
        return name
    prose = re.sub(r"`[^`]*`", " ", " ".join(texts))
    counts = Counter(re.findall(rf"(?i)(?<![\w/@.-]){re.escape(name)}(?![\w/-]|\.\w)", prose))
    spelling, count = next(iter(counts.most_common(1)), (name, 0))
    is_usual = count >= MIN_SPELLED_NAMES and count * 3 > 2 * sum(counts.values())
    return spelling if is_usual and not spelling.isupper() else name


def _strip_to_letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", name.lower())


def read_manifest(tree: CheckoutTree, target_platform: str, family: str) -> PackageManifest | None:
    """Read the manifest of the requested platform, else of the detected family, else any."""
    target_family = FAMILY_BY_PLATFORM.get(target_platform, target_platform)
    for name in dict.fromkeys((target_family, family, *LANGUAGES_BY_FAMILY)):
        for reader in LANGUAGES_BY_FAMILY[name].manifest_readers if name in LANGUAGES_BY_FAMILY else ():
            if manifest := reader(tree):
                return _fill_from_setuptools(tree, manifest)
    return None


def _fill_from_setuptools(tree: CheckoutTree, manifest: PackageManifest) -> PackageManifest:
    """Fill gaps from `setup.cfg` and `setup.py`, which may still hold some of the metadata."""
    older = setuptools.read_setuptools(tree) if manifest.path == pyproject.PYPROJECT_PATH else None
    if older is None:
        return manifest
    if manifest.dependencies is None:
        manifest = replace(manifest, dependencies=older.dependencies)
    return fill_gaps(manifest, older, "version", "licence", "description", "requires", "imports")

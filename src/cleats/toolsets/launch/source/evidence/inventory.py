"""The inventory of a source repository: its files, their purposes, and entry points."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Final

from cleats.toolsets.launch.source.checkout import repository_layout
from cleats.toolsets.launch.source.checkout.repository_layout import RepositoryRoots
from cleats.toolsets.launch.source.checkout.safe_parsing import PLATFORM_TABLES
from cleats.toolsets.launch.source.checkout.tree import FULL_SCOPE, CheckoutTree, IngestionScope, is_below
from cleats.toolsets.launch.source.evidence import licences

PRIMARY_WEIGHT: Final = 3
SECONDARY_WEIGHT: Final = 1
MIN_CERTAIN_SCORE: Final = 2
"""Below this score the platform is unknown."""

_FAMILIES: Final = PLATFORM_TABLES["families"]
_FAMILY_ORDER: Final = tuple(_FAMILIES)
_PLATFORM_SIGNS: Final[tuple[tuple[str, str, int, str], ...]] = tuple(
    sign
    for family, row in _FAMILIES.items()
    for sign in (
        *((family, pattern, PRIMARY_WEIGHT, system) for system, pattern in row["manifests"].items()),
        (family, row["hints"], SECONDARY_WEIGHT, ""),
    )
)
"""Family, file name, weight, build system."""


@dataclass(frozen=True, slots=True)
class DetectedPlatform:
    """A detected platform. `family` is one of the families, `multi` or `unknown`."""

    family: str
    scores: dict[str, int]
    build_systems: tuple[str, ...]
    manifests: tuple[str, ...]
    archetype: str

    @property
    def test_command(self) -> str:
        """The usual command that runs its tests; "" without one."""
        if self.family == "java" and "maven" not in self.build_systems:
            return "gradle test"
        return str(_FAMILIES.get(self.family, {}).get("test", ""))


def detect_platform(tree: CheckoutTree) -> DetectedPlatform:
    """Score the manifests at the top; deeper ones count only when the top has none."""
    usable = [path for path in tree.paths if repository_layout.classify_path(path) not in ("test", "example", "doc")]
    top = [path for path in usable if "/" not in path]
    scores, systems, manifests = _score_manifests(top)
    if max(scores.values(), default=0) < PRIMARY_WEIGHT:
        scores, systems, manifests = _score_manifests(sorted(usable, key=lambda path: (path.count("/"), path)))
    best = sorted(scores, key=lambda family: (-scores[family], _FAMILY_ORDER.index(family)))
    family = best[0] if best and scores[best[0]] >= MIN_CERTAIN_SCORE else "unknown"
    rivals = [candidate for candidate in best if scores[candidate] >= PRIMARY_WEIGHT]
    if len(rivals) > 1 and scores[rivals[0]] == scores[rivals[1]]:
        family = "multi"
    return DetectedPlatform(family, scores, tuple(sorted(systems)), tuple(manifests), _name_archetype(tree, family))


def _score_manifests(paths: list[str]) -> tuple[dict[str, int], set[str], list[str]]:
    scores: dict[str, int] = {}
    matches = [
        (path, sign) for path in paths for sign in _PLATFORM_SIGNS if re.fullmatch(sign[1], PurePosixPath(path).name)
    ]
    signs = dict.fromkeys(sign for _, sign in matches)  # each counts once
    for family, _, weight, _ in signs:
        scores[family] = scores.get(family, 0) + weight
    manifests = sorted(path for path, sign in matches if sign[2] == PRIMARY_WEIGHT)
    return scores, {sign[3] for sign in signs} - {""}, manifests


def _name_archetype(tree: CheckoutTree, family: str) -> str:
    if family == "python":
        layout = "src" if any(path.startswith("src/") for path in tree.paths) else "flat"
        files = ("pyproject.toml", "setup.cfg", "setup.py")
        manifest = next((name for name in files if name in tree.path_set), "")
        return f"python_{layout}_{manifest.replace('.', '_').removesuffix('_toml')}".rstrip("_")
    if family == "node":
        return "node_typescript" if "tsconfig.json" in tree.path_set else "node_javascript"
    if family == "java":
        return "java_maven" if "pom.xml" in tree.path_set else "java_gradle"
    return f"{family}_standard" if family in _FAMILY_ORDER else family


_CI_PATH_PATTERN: Final = re.compile(
    r"\.github/workflows/[^/]+\.ya?ml|\.gitlab-ci\.yml|\.travis\.yml|azure-pipelines\.yml"
    r"|\.circleci/config\.yml|appveyor\.yml|Jenkinsfile|bitbucket-pipelines\.yml"
)
_README_NAME_PATTERN: Final = re.compile(r"readme([-._][\w-]+)?\.(md|rst|txt|markdown)|readme", re.IGNORECASE)
_DOCUMENT_SUFFIXES: Final = frozenset({".md", ".markdown", ".rst", ".mdx"})
_PATH_MENTION_PATTERN: Final = re.compile(
    r"(?<![\w./:-])(?:\./)?((?:examples?|samples?|demos?|docs?|documentation)/[\w/.-]+)"
)
_PATH_BODY_PATTERN: Final = re.compile(r"[\w/.-]*[\w/]")
_CHANGELOG_STEM_PATTERN: Final = re.compile(r"(change(s|log)|history|news|release[-_]?notes)\b.*", re.IGNORECASE)
_COMMUNITY_STEM_PATTERN: Final = re.compile(r"(code[-_]of[-_]conduct|contributing|security|authors).*", re.IGNORECASE)


def take_inventory(
    tree: CheckoutTree, repo_url: str, repo_sha: str, scope: IngestionScope = FULL_SCOPE
) -> dict[str, Any]:
    """Return the inventory of a checkout, as the artifact."""
    roots = apply_root_hints(repository_layout.find_roots(tree), tree, scope)
    detected = detect_platform(tree)
    entries = find_doc_entrypoints(tree, roots, scope)
    code = [path for path in tree.paths if repository_layout.classify_path(path) == "source"]
    primary_languages = repository_layout.find_primary_languages(
        tree, code
    ) or repository_layout.find_primary_languages(tree, list(tree.paths))
    licence = next(iter(licences.find_licence_files(tree)), "")
    examples = find_example_paths(tree, scope)
    packages = (
        repository_layout.find_python_packages(tree, roots.source) if detected.family in ("python", "multi") else []
    )
    api_files = [f"{path}/__init__.py" for path in packages if f"{path}/__init__.py" in tree.path_set]
    is_library = detected.family != "python" or repository_layout.find_python_packages(
        tree, repository_layout.find_roots(tree).source
    )
    has_tests = bool(roots.test)
    return {
        "schema_version": "1.0",
        "repo_url": repo_url,
        "repo_sha": repo_sha,
        "fingerprint": {
            "content_sha256": tree.fingerprint,
            "primary_languages": primary_languages,
            **({"license_path": licence} if licence else {}),
        },
        "repo_profile": {
            "platform_family": detected.family,
            "platform_scores": detected.scores,
            "repo_archetype": detected.archetype,
            "primary_languages": primary_languages,
            "build_systems": list(detected.build_systems),
            "package_manifests": list(detected.manifests),
            "recommended_test_commands": list(scope.test_commands)
            or (_choose_test_commands(tree, detected.test_command) if has_tests else []),
            "example_locator": "example_folders" if roots.example else "none",
            "doc_locator": "doc_folders" if roots.doc else "readme" if entries else "none",
            "source_layout": "src" if any(root.endswith("src") for root in roots.source) else "flat",
            "public_api_entrypoints": api_files or [path for path in packages if path in tree.path_set],
        },
        "paths": list(tree.paths),
        "doc_entrypoints": [entry["path"] for entry in entries],
        "doc_entrypoint_details": entries,
        "example_paths": examples,
        "source_roots": list(roots.source),
        "test_roots": list(roots.test),
        "doc_roots": list(roots.doc),
        "example_roots": list(roots.example),
        "binary_assets": [path for path in tree.paths if tree.is_binary(path)] if scope.binaries else [],
        "phantom_paths": find_phantom_paths(tree, [entry["path"] for entry in entries]) if scope.phantoms else [],
        "ci_paths": [path for path in tree.paths if _CI_PATH_PATTERN.fullmatch(path)],
        "tests_present": has_tests,
        "inferred_product_type": "library" if is_library and detected.family != "unknown" else "other",
    }


def find_readme(tree: CheckoutTree) -> str:
    """Return the top-level readme: Markdown first, and the plain name before translations."""
    candidates = [PurePosixPath(path) for path in tree.paths if _README_NAME_PATTERN.fullmatch(path)]
    order = (".md", ".markdown", ".rst", ".txt", "")  # the pattern allows no other
    keys = [(path.stem.lower() != "readme", order.index(path.suffix.lower()), str(path)) for path in candidates]
    return min(keys)[-1] if keys else ""


def apply_root_hints(roots: RepositoryRoots, tree: CheckoutTree, scope: IngestionScope) -> RepositoryRoots:
    """Return the roots with the hints of the run applied; missing folders are ignored."""
    sources, documents, examples = (
        [folder for folder in hints if folder in tree.folders]
        for hints in (scope.sources, scope.documents, scope.examples)
    )
    return replace(
        roots,
        source=tuple(sources) or roots.source,
        doc=tuple(dict.fromkeys((*documents, *roots.doc))),
        example=tuple(dict.fromkeys((*examples, *roots.example))),
    )


def find_doc_entrypoints(
    tree: CheckoutTree, roots: RepositoryRoots, scope: IngestionScope = FULL_SCOPE
) -> list[dict[str, str]]:
    """Return the documents to start with: the readme, then those at the top and in doc roots."""
    readme = find_readme(tree)
    entrypoints = [{"path": readme, "doc_type": "readme"}] if readme else []
    for path in tree.paths:
        pure_path = PurePosixPath(path)
        if path == readme or pure_path.suffix.lower() not in _DOCUMENT_SUFFIXES:
            continue
        in_docs = (repository_layout.classify_path(path) == "doc" and bool(roots.doc)) or is_below(
            path, scope.documents
        )
        if in_docs or "/" not in path:
            entrypoints.append({"path": path, "doc_type": _classify_document(pure_path)})
    return entrypoints


def find_example_paths(tree: CheckoutTree, scope: IngestionScope = FULL_SCOPE) -> list[str]:
    """Return the files in example folders that are code or documents about it.

    If there are none, programs in the example folders of tests are examples, but not the tests themselves.
    """
    candidates = [
        path
        for path in tree.paths
        if repository_layout.detect_file_language(path) or PurePosixPath(path).suffix in (".md", ".ipynb")
        if PurePosixPath(path).name != "__init__.py"
    ]
    chosen = [
        path
        for path in candidates
        if repository_layout.classify_path(path) == "example" or is_below(path, scope.examples)
    ]
    return chosen or [path for path in candidates if repository_layout.is_example_of_tests(path)]


def find_phantom_paths(tree: CheckoutTree, documents: list[str]) -> list[Mapping[str, Any]]:
    """Return the example and document paths that a document names but the repository lacks."""
    phantoms: dict[str, dict[str, Any]] = {}
    full_tree = CheckoutTree(tree.root)  # files that the run does not read exist all the same
    for document in documents:
        for number, line in enumerate((tree.read_text(document) or "").split("\n"), start=1):
            for match in _PATH_MENTION_PATTERN.finditer(line):
                path = (_PATH_BODY_PATTERN.match(match[1]) or match)[0].rstrip("/")
                if path.count("/") and not _has_path(full_tree, path, document) and path not in phantoms:
                    phantoms[path] = {"path": path, "named_in": document, "line": number}
    return [phantoms[path] for path in sorted(phantoms)]


def _has_path(tree: CheckoutTree, path: str, document: str) -> bool:
    candidates = (path, str(PurePosixPath(document).parent / path))
    stems = [candidate.removesuffix(".html").removesuffix("/index") for candidate in candidates]
    sources = [f"{stem}{suffix}" for stem in stems for suffix in _DOCUMENT_SUFFIXES]
    return any(path in tree.path_set for path in (*candidates, *sources)) or any(
        path in tree.folders for path in candidates
    )


def _classify_document(path: PurePosixPath) -> str:
    if _CHANGELOG_STEM_PATTERN.fullmatch(path.stem):
        return "changelog"
    if _COMMUNITY_STEM_PATTERN.fullmatch(path.stem):
        return "community"
    return "guide" if len(path.parts) > 1 else "document"


def _choose_test_commands(tree: CheckoutTree, default_command: str) -> list[str]:
    """Return the usual test command; Python tests that never name pytest use unittest."""
    if "pytest" not in default_command:
        return [default_command] if default_command else []
    files = [path for path in tree.paths if "/" not in path or repository_layout.classify_path(path) == "test"]
    uses_pytest = any("pytest" in (tree.read_text(path) or "") for path in files)
    return [default_command if uses_pytest else "python -m unittest discover"]

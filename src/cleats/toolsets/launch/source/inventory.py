"""What is in the source repository: every file, what it is for, and what leads a reader in."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from cleats.toolsets.launch.source import languages, licences, platform
from cleats.toolsets.launch.source.roots import Roots, find, kind_of, python_packages
from cleats.toolsets.launch.source.scope import EVERYTHING, Scope, below
from cleats.toolsets.launch.source.tree import Tree

_CI: Final = re.compile(
    r"\.github/workflows/[^/]+\.ya?ml|\.gitlab-ci\.yml|\.travis\.yml|azure-pipelines\.yml"
    r"|\.circleci/config\.yml|appveyor\.yml|Jenkinsfile|bitbucket-pipelines\.yml"
)
_README: Final = re.compile(r"readme([-._][\w-]+)?\.(md|rst|txt|markdown)|readme", re.IGNORECASE)
_DOCUMENT: Final = frozenset({".md", ".markdown", ".rst", ".mdx"})
_PHANTOM: Final = re.compile(
    r"(?<![\w./:-])(?:\./)?((?:examples?|samples?|demos?|docs?|documentation)/[\w/.-]+)"
)
_MARK: Final = re.compile(r"[\w/.-]*[\w/]")
_PYTEST: Final = "python -m pytest"
_CHANGES: Final = re.compile(r"(change(s|log)|history|news|release[-_]?notes)\b.*", re.IGNORECASE)
_CONDUCT: Final = re.compile(
    r"(code[-_]of[-_]conduct|contributing|security|authors).*", re.IGNORECASE
)


def take(tree: Tree, repo_url: str, repo_sha: str, scope: Scope = EVERYTHING) -> dict[str, Any]:
    """The inventory of a checkout, as the artifact."""
    roots = hinted(find(tree), tree, scope)
    found = platform.detect(tree)
    entries = doc_entrypoints(tree, roots, scope)
    code = [path for path in tree.paths if kind_of(path) == "source"]
    spoken = languages.primary(tree, code) or languages.primary(tree, list(tree.paths))
    licence = next(iter(licences.files(tree)), "")
    examples = example_paths(tree, scope)
    packages = python_packages(tree, roots.source) if found.family in ("python", "multi") else []
    tests = bool(roots.test)
    return {
        "schema_version": "1.0",
        "repo_url": repo_url,
        "repo_sha": repo_sha,
        "fingerprint": {
            "content_sha256": tree.fingerprint,
            "primary_languages": spoken,
            **({"license_path": licence} if licence else {}),
        },
        "repo_profile": {
            "platform_family": found.family,
            "platform_scores": found.scores,
            "repo_archetype": found.archetype,
            "primary_languages": spoken,
            "build_systems": list(found.build_systems),
            "package_manifests": list(found.manifests),
            "recommended_test_commands": list(scope.test_commands)
            or (_test_commands(tree, found.test_command) if tests else []),
            "example_locator": "example_folders" if roots.example else "none",
            "doc_locator": _locator(roots, entries),
            "source_layout": "src"
            if any(root.endswith("src") for root in roots.source)
            else "flat",
            "public_api_entrypoints": _entrypoints(tree, packages),
        },
        "paths": list(tree.paths),
        "doc_entrypoints": [entry["path"] for entry in entries],
        "doc_entrypoint_details": entries,
        "example_paths": examples,
        "source_roots": list(roots.source),
        "test_roots": list(roots.test),
        "doc_roots": list(roots.doc),
        "example_roots": list(roots.example),
        "binary_assets": [path for path in tree.paths if tree.is_binary(path)]
        if scope.binaries
        else [],
        "phantom_paths": phantom_paths(tree, [entry["path"] for entry in entries])
        if scope.phantoms
        else [],
        "ci_paths": [path for path in tree.paths if _CI.fullmatch(path)],
        "tests_present": tests,
        "inferred_product_type": _product_type(tree, found.family),
    }


def readme_of(tree: Tree) -> str:
    """The readme at the top: Markdown before others, the plain name before translations."""
    found = [path for path in tree.paths if "/" not in path and _README.fullmatch(path)]
    order = {".md": 0, ".markdown": 1, ".rst": 2, ".txt": 3, "": 4}
    ranked = sorted(
        found,
        key=lambda path: (
            PurePosixPath(path).stem.lower() != "readme",
            order.get(PurePosixPath(path).suffix.lower(), 5),
            path,
        ),
    )
    return ranked[0] if ranked else ""


def hinted(found: Roots, tree: Tree, scope: Scope) -> Roots:
    """The roots with what the run says about them; a folder that is not there is no root."""
    sources, documents, examples = (
        tuple(each for each in wanted if each in tree.folders)
        for wanted in (scope.sources, scope.documents, scope.examples)
    )
    return Roots(
        sources or found.source,
        found.test,
        tuple(dict.fromkeys((*documents, *found.doc))),
        tuple(dict.fromkeys((*examples, *found.example))),
    )


def doc_entrypoints(tree: Tree, roots: Roots, scope: Scope = EVERYTHING) -> list[dict[str, str]]:
    """Where a reader begins: the readme, then the documents at the top and below the doc roots."""
    found: list[dict[str, str]] = []
    if readme := readme_of(tree):
        found.append({"path": readme, "doc_type": "readme"})
    for path in tree.paths:
        place = PurePosixPath(path)
        if path == readme or place.suffix.lower() not in _DOCUMENT:
            continue
        in_docs = (kind_of(path) == "doc" and bool(roots.doc)) or below(path, scope.documents)
        if in_docs or "/" not in path:
            found.append({"path": path, "doc_type": _doc_type(place)})
    return found


def example_paths(tree: Tree, scope: Scope = EVERYTHING) -> list[str]:
    """The files below example folders that are code or pages about it."""
    return [
        path
        for path in tree.paths
        if (kind_of(path) == "example" or below(path, scope.examples))
        and (languages.of_path(path) or PurePosixPath(path).suffix in (".md", ".ipynb"))
        and PurePosixPath(path).name != "__init__.py"
    ]


def phantom_paths(tree: Tree, documents: list[str]) -> list[Mapping[str, Any]]:
    """Paths of examples and documents that a document names and the repository does not have."""
    found: dict[str, dict[str, Any]] = {}
    whole = Tree(tree.root)  # what the run does not read is there all the same
    for document in documents:
        for number, line in enumerate((tree.text(document) or "").split("\n"), start=1):
            for match in _PHANTOM.finditer(line):
                path = (_MARK.match(match[1]) or match)[0].rstrip("/")
                if path.count("/") and not _is_there(whole, path, document) and path not in found:
                    found[path] = {"path": path, "named_in": document, "line": number}
    return [found[path] for path in sorted(found)]


def _is_there(tree: Tree, path: str, document: str) -> bool:
    beside = str(PurePosixPath(document).parent / path)
    for each in (path, beside):
        if each in tree.known or each in tree.folders:
            return True
        stem = each.removesuffix(".html").removesuffix("/index")
        if any(f"{stem}{suffix}" in tree.known for suffix in _DOCUMENT):
            return True
    return False


def _doc_type(place: PurePosixPath) -> str:
    if _CHANGES.fullmatch(place.stem):
        return "changelog"
    if _CONDUCT.fullmatch(place.stem):
        return "community"
    return "guide" if len(place.parts) > 1 else "document"


def _test_commands(tree: Tree, usual: str) -> list[str]:
    """The usual way to run the tests; those of Python that never name pytest need none."""
    if usual != _PYTEST:
        return [usual] if usual else []
    files = [path for path in tree.paths if "/" not in path or kind_of(path) == "test"]
    told = any("pytest" in (tree.text(path) or "") for path in files)
    return [_PYTEST if told else "python -m unittest discover"]


def _locator(roots: Roots, entries: list[dict[str, str]]) -> str:
    if roots.doc:
        return "doc_folders"
    return "readme" if entries else "none"


def _entrypoints(tree: Tree, packages: list[str]) -> list[str]:
    found = [f"{package}/__init__.py" for package in packages]
    return [path for path in found if path in tree.known] or [
        path for path in packages if path in tree.known
    ]


def _product_type(tree: Tree, family: str) -> str:
    """A command line program only when its manifest gives commands and nothing to import."""
    if family == "python" and not python_packages(tree, find(tree).source):
        return "other"
    return "library" if family != "unknown" else "other"

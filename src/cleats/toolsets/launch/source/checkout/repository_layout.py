"""The folders of code, tests, documents and examples, found by their names and contents."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from cleats.toolsets.launch.source.checkout import safe_parsing
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree

_LANGUAGES: Final = safe_parsing.PLATFORM_TABLES["languages"]
LANGUAGE_BY_SUFFIX: Final = {
    suffix: language for language, row in _LANGUAGES.items() for suffix in row.get("suffixes", "").split()
}
LANGUAGE_ALIASES: Final = {
    alias: language for language, row in _LANGUAGES.items() for alias in row.get("aliases", "").split()
}
"""Other names of a language, as they occur after a fence."""

SCRIPT_LANGUAGES: Final = frozenset({"javascript", "typescript"})
_PROGRAMMING_LANGUAGES: Final = frozenset(LANGUAGE_BY_SUFFIX.values()) - {"shell"}


def resolve_language_name(word: str) -> str:
    """Return the language that a fence names; "unknown" for none, the word itself if not listed."""
    word = word.strip().lower().lstrip(".").removeprefix("{").removesuffix("}")
    return LANGUAGE_ALIASES.get(word, word) or "unknown"


def is_compatible_language(code_language: str, language: str) -> bool:
    """Return whether code in one language is usable for another, as JavaScript for TypeScript."""
    return code_language == language or {code_language, language} <= SCRIPT_LANGUAGES


def detect_file_language(path: str) -> str:
    """Return the programming language of a file, "" for any other file."""
    return LANGUAGE_BY_SUFFIX.get(PurePosixPath(path).suffix.lower(), "")


def find_primary_languages(tree: CheckoutTree, paths: list[str]) -> list[str]:
    """Return the languages that hold at least a tenth of the bytes of the code, largest first."""
    bytes_by_language: Counter[str] = Counter()
    for path in paths:
        if (language := detect_file_language(path)) in _PROGRAMMING_LANGUAGES:
            bytes_by_language[language] += tree.file_size(path)
    if "cpp" in bytes_by_language:  # count C headers as C++ where both occur
        bytes_by_language["cpp"] += bytes_by_language.pop("c", 0)
    total = sum(bytes_by_language.values())
    ranked = sorted(bytes_by_language.items(), key=lambda entry: (-entry[1], entry[0]))
    return [language for language, size in ranked if size * 10 >= total]


TEST_FOLDERS, DOC_FOLDERS, EXAMPLE_FOLDERS, _TOOLING_FOLDERS = (
    frozenset(safe_parsing.PLATFORM_TABLES["folders"][kind].split()) for kind in ("test", "doc", "example", "tool")
)
_TEST_FILE_PATTERN: Final = re.compile(
    r"(^|/)(test_[^/]*\.py|[^/]*_test\.(py|go|rb)|[^/]*\.(test|spec)\.[cm]?[jt]sx?|conftest\.py"
    r"|[^/]*Tests?\.(java|cs|kt|php|swift))$"
)


@dataclass(frozen=True, slots=True)
class RepositoryRoots:
    """The folders of each kind, sorted; "" stands for the top."""

    source: tuple[str, ...]
    test: tuple[str, ...]
    doc: tuple[str, ...]
    example: tuple[str, ...]


def classify_path(path: str) -> str:
    """Return the purpose of a file: `test`, `doc`, `example`, `tool`, else `source` or `other`.

    The outermost folder with a known name decides: `tests/examples/` holds tests.
    """
    folders = [part.lower() for part in PurePosixPath(path).parts[:-1]]
    for name in folders:
        if name in TEST_FOLDERS:
            return "test"
        if name in EXAMPLE_FOLDERS:
            return "example"
        if name in DOC_FOLDERS:
            return "example" if EXAMPLE_FOLDERS.intersection(folders) else "doc"
        if name in _TOOLING_FOLDERS or (name.startswith(".") and name != "."):
            return "tool"
    if _TEST_FILE_PATTERN.search(path):
        return "test"
    return "source" if detect_file_language(path) else "other"


def is_example_of_tests(path: str) -> bool:
    """Return whether a file is a program in an example folder of the tests, not a test itself."""
    folders = {part.lower() for part in PurePosixPath(path).parts[:-1]}
    is_test = _TEST_FILE_PATTERN.search(path) or re.search(r"tests?$", PurePosixPath(path).stem, re.IGNORECASE)
    return bool(folders & EXAMPLE_FOLDERS) and bool(folders & TEST_FOLDERS) and not is_test


def find_roots(tree: CheckoutTree) -> RepositoryRoots:
    """Return the roots of a checkout."""
    roots_by_kind: dict[str, set[str]] = {"source": set(), "test": set(), "doc": set(), "example": set()}
    for path in tree.paths:
        if (kind := classify_path(path)) in roots_by_kind:
            root = _find_source_root(tree, path) if kind == "source" else _find_named_root(path, kind)
            roots_by_kind[kind].add(root)
    return RepositoryRoots(*(tuple(sorted(roots)) for roots in roots_by_kind.values()))


def _find_source_root(tree: CheckoutTree, path: str) -> str:
    """Return the folder that a program would put on its search path: `src`, `lib`, or the top."""
    parts = PurePosixPath(path).parts[:-1]
    for number, part in enumerate(parts):
        if part.lower() in ("src", "lib", "source"):
            root = "/".join(parts[: number + 1])
            # A `lib` with an `__init__.py` is a package itself, not a place for packages.
            return root if f"{root}/__init__.py" not in tree.path_set else "/".join(parts[:number])
    return ""


def _find_named_root(path: str, kind: str) -> str:
    names = {"test": TEST_FOLDERS, "doc": DOC_FOLDERS, "example": EXAMPLE_FOLDERS}[kind]
    parts = PurePosixPath(path).parts[:-1]
    depth = next((number for number, part in enumerate(parts, start=1) if part.lower() in names), len(parts))
    return "/".join(parts[:depth])


def find_python_packages(tree: CheckoutTree, roots: tuple[str, ...]) -> list[str]:
    """Return the outermost folders and modules that `import` would find, the largest first.

    A module at the top counts only where there is no package: `setup.py` and `conftest.py` are not
    imported. Where no package is at the top, those in namespaces count: `zope` belongs to no single
    distribution, `zope/interface` does.
    """
    packages, namespaced, modules = set[str](), set[str](), set[str]()
    for root in roots:
        prefix = f"{root}/" if root else ""
        for path in tree.paths_below(root):
            inner = path.removeprefix(prefix)
            if classify_path(path) != "source" or not inner.endswith((".py", ".pyi")):
                continue
            package = _find_outermost_package(tree, prefix, inner)
            if package:
                (namespaced if "/" in package else packages).add(f"{prefix}{package}")
            elif "/" not in inner and inner.endswith(".py") and inner not in _NON_IMPORTED_FILES:
                modules.add(path)
    return _sort_by_size(tree, packages) or [*_sort_by_size(tree, namespaced), *sorted(modules)]


def derive_import_name(path: str, roots: tuple[str, ...]) -> str:
    """Return the name by which a program imports the package or module at a path."""
    prefixes = [f"{root}/" for root in roots if root and path.startswith(f"{root}/")]
    inner = path.removeprefix(max(prefixes, key=len, default=""))
    return inner.removesuffix(".py").replace("/", ".")


def _find_outermost_package(tree: CheckoutTree, prefix: str, inner: str) -> str:
    """Return the outermost package of a file, with its namespace; "" when it is in none."""
    *folders, file = inner.split("/")
    is_namespace = False
    for number in range(1, len(folders) + 1):
        folder = "/".join(folders[:number])
        start = f"{prefix}{folder}/__init__.py"
        if not folders[number - 1].isidentifier():
            return ""
        is_namespace = bool(_NAMESPACE_PATTERN.search(tree.read_text(start) or ""))
        if start in tree.path_set and not is_namespace:
            return folder
    is_module = is_namespace and file.endswith(".py") and file != "__init__.py"
    return inner if is_module else ""


def _sort_by_size(tree: CheckoutTree, packages: set[str]) -> list[str]:
    sizes = {package: sum(tree.file_size(path) for path in tree.paths_below(package)) for package in packages}
    return sorted(packages, key=lambda package: (-sizes[package], package))


_NAMESPACE_PATTERN: Final = re.compile(r"\bextend_path\(\s*__path__|\bdeclare_namespace\(\s*__name__")
"""Code in the `__init__.py` of a namespace that several distributions share."""

_NON_IMPORTED_FILES: Final = (
    "setup.py",
    "conftest.py",
    "noxfile.py",
    "fabfile.py",
    "tasks.py",
    "manage.py",
    "build.py",
)

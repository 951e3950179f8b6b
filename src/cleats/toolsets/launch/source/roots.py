"""Which folders hold code, tests, documents and examples, by their names and what is in them."""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from cleats.toolsets.launch.source import languages
from cleats.toolsets.launch.source.tree import Tree

TESTS: Final = frozenset(
    {"test", "tests", "testing", "spec", "specs", "__tests__", "unittests", "testsuite"}
)
DOCS: Final = frozenset({"doc", "docs", "documentation"})
EXAMPLES: Final = frozenset(
    {"example", "examples", "sample", "samples", "demo", "demos", "tutorial", "tutorials"}
)
_TOOLING: Final = frozenset(
    {
        *("tools", "scripts", "script", "bench", "benchmark", "benchmarks", "ci", "build", "dist"),
        *("vendor", "_vendor", "third_party", "node_modules", "fuzz", "fuzzer", "fuzzing"),
        *("docs_src", "website", "packaging", "profiling", "tasks", "assets", "scratch"),
    }
)
_TEST_FILE: Final = re.compile(
    r"(^|/)(test_[^/]*\.py|[^/]*_test\.(py|go|rb)|[^/]*\.(test|spec)\.[cm]?[jt]sx?|conftest\.py"
    r"|[^/]*Tests?\.(java|cs|kt|php|swift))$"
)


@dataclass(frozen=True, slots=True)
class Roots:
    """The folders of each kind, sorted; "" stands for the top."""

    source: tuple[str, ...]
    test: tuple[str, ...]
    doc: tuple[str, ...]
    example: tuple[str, ...]


def kind_of(path: str) -> str:
    """What a file is for: `test`, `doc`, `example`, `tool`, else `source` or `other`.

    The outermost folder with a telling name decides: `tests/examples/` holds tests.
    """
    folders = [part.lower() for part in PurePosixPath(path).parts[:-1]]
    for name in folders:
        if name in TESTS:
            return "test"
        if name in EXAMPLES:
            return "example"
        if name in DOCS:
            return "example" if EXAMPLES.intersection(folders) else "doc"
        if name in _TOOLING or (name.startswith(".") and name != "."):
            return "tool"
    if _TEST_FILE.search(path):
        return "test"
    return "source" if languages.of_path(path) else "other"


def find(tree: Tree) -> Roots:
    """The roots of a checkout."""
    found: dict[str, set[str]] = {"source": set(), "test": set(), "doc": set(), "example": set()}
    for path in tree.paths:
        kind = kind_of(path)
        if kind == "source":
            found["source"].add(_source_root(tree, path))
        elif kind in found:
            found[kind].add(_named_root(path, kind))
    return Roots(*(tuple(sorted(found[kind])) for kind in ("source", "test", "doc", "example")))


def _source_root(tree: Tree, path: str) -> str:
    """The folder a program would put on its search path: `src`, `lib`, or the top."""
    parts = PurePosixPath(path).parts[:-1]
    for number, part in enumerate(parts):
        if part.lower() in ("src", "lib", "source"):
            root = "/".join(parts[: number + 1])
            # A `lib` with an `__init__.py` is a package itself, not a place for packages.
            return root if f"{root}/__init__.py" not in tree.known else "/".join(parts[:number])
    return ""


def _named_root(path: str, kind: str) -> str:
    names = {"test": TESTS, "doc": DOCS, "example": EXAMPLES}[kind]
    parts = PurePosixPath(path).parts[:-1]
    for number, part in enumerate(parts):
        if part.lower() in names:
            return "/".join(parts[: number + 1])
    return "/".join(parts)


def python_packages(tree: Tree, roots: tuple[str, ...]) -> list[str]:
    """The folders (and single modules) that `import` would find, outermost only, the largest first.

    A module at the top counts only where there is no package: `setup.py` and `conftest.py` are not
    what one imports. Where no package lies at the top, those in namespaces count: `zope` is
    nobody's, `zope/interface` is one.
    """
    packages: set[str] = set()
    spaced: set[str] = set()
    modules: set[str] = set()
    for root in roots:
        prefix = f"{root}/" if root else ""
        for path in tree.below(root):
            inner = path.removeprefix(prefix)
            if kind_of(path) != "source" or not inner.endswith((".py", ".pyi")):
                continue
            package = _outermost(tree, prefix, inner)
            if package and "/" in package:
                spaced.add(f"{prefix}{package}")
            elif package:
                packages.add(f"{prefix}{package}")
            elif "/" not in inner and inner.endswith(".py") and inner not in _NOT_MODULES:
                modules.add(path)
    return _largest_first(tree, packages) or [*_largest_first(tree, spaced), *sorted(modules)]


def import_name(place: str, roots: tuple[str, ...]) -> str:
    """What a program imports to have the package or module at a place."""
    above = [f"{root}/" for root in roots if root and place.startswith(f"{root}/")]
    inner = place.removeprefix(max(above, key=len, default=""))
    return inner.removesuffix(".py").replace("/", ".")


def _outermost(tree: Tree, prefix: str, inner: str) -> str:
    """The package that a file belongs to, in its namespace; "" when it is in none."""
    *folders, file = inner.split("/")
    is_shared = False
    for number in range(1, len(folders) + 1):
        folder = "/".join(folders[:number])
        start = f"{prefix}{folder}/__init__.py"
        if not folders[number - 1].isidentifier():
            return ""
        is_shared = bool(_NAMESPACE.search(tree.text(start) or ""))
        if start in tree.known and not is_shared:
            return folder
    is_module = is_shared and file.endswith(".py") and file != "__init__.py"
    return inner if is_module else ""


def _largest_first(tree: Tree, packages: set[str]) -> list[str]:
    sizes = {each: sum(tree.size(path) for path in tree.below(each)) for each in packages}
    return sorted(packages, key=lambda each: (-sizes[each], each))


_NAMESPACE: Final = re.compile(r"\bextend_path\(\s*__path__|\bdeclare_namespace\(\s*__name__")
"""What the `__init__.py` of a namespace says that several distributions share."""

_NOT_MODULES: Final = frozenset(
    {"setup.py", "conftest.py", "noxfile.py", "fabfile.py", "tasks.py", "manage.py", "build.py"}
)

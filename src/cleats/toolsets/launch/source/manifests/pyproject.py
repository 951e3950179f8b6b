"""`pyproject.toml`: the standard table, and those of Poetry and Flit that came before it."""

import ast
import re
from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch.source import programs
from cleats.toolsets.launch.source.manifests import values
from cleats.toolsets.launch.source.manifests.lines import item_line, toml_line
from cleats.toolsets.launch.source.manifests.model import Manifest, Said
from cleats.toolsets.launch.source.tree import Tree

PATH = "pyproject.toml"


def read(tree: Tree) -> Manifest | None:
    """The package, or None when the file only configures tools."""
    text = tree.text(PATH)
    if text is None:
        return None
    document = values.table(PATH, text)
    project = _table(document, "project")
    if values.text(project.get("name")):
        return _standard(tree, text, project, _table(document, "tool"))
    poetry = _table(document, "tool", "poetry")
    if values.text(poetry.get("name")):
        return _poetry(text, poetry)
    flit = _table(document, "tool", "flit", "metadata")
    return _flit(tree, text, flit) if values.text(flit.get("module")) else None


def _standard(
    tree: Tree, text: str, project: Mapping[str, Any], tools: Mapping[str, Any]
) -> Manifest:
    dynamic = set(values.texts(project.get("dynamic")))

    def said(key: str, value: Any = None) -> Said | None:
        found = project.get(key) if value is None else value
        if not isinstance(found, str) or not found.strip():
            return None
        return Said(found.strip(), PATH, toml_line(text, "project", key))

    licence, licence_file = _licence(project)
    optional = {
        extra: _each(text, "project.optional-dependencies", extra, items)
        for extra, items in _table(project, "optional-dependencies").items()
    }
    imports = _imports(text, tools)
    name = imports[0].value if imports else str(project["name"])
    return Manifest(
        ecosystem="pip",
        path=PATH,
        name=said("name"),
        version=said("version") or _dynamic_version(tree, tools, name),
        licence=said("license", licence) if licence else None,
        licence_file=licence_file,
        description=said("description") or _flit_description(tree, dynamic, name),
        requires=said("requires-python"),
        dependencies=None
        if "dependencies" in dynamic
        else _each(text, "project", "dependencies", project.get("dependencies")),
        optional=optional,
        commands=_scripts(text, project),
        classifiers=_each(text, "project", "classifiers", project.get("classifiers")),
        keywords=tuple(values.texts(project.get("keywords"))),
        imports=imports,
    )


def _licence(project: Mapping[str, Any]) -> tuple[str, str]:
    """The words for the licence, and its file where it is given as one."""
    given = project.get("license")
    if isinstance(given, str):
        return given, ""
    if isinstance(given, dict):
        words = str(given.get("text") or "")
        return (words if len(words) < 100 else ""), str(given.get("file") or "")
    return "", ""


def _scripts(text: str, project: Mapping[str, Any]) -> tuple[Said, ...]:
    return tuple(
        Said(name, PATH, toml_line(text, f"project.{table}", name), detail=str(target))
        for table in ("scripts", "gui-scripts")
        for name, target in sorted(_table(project, table).items())
    )


def _imports(text: str, tools: Mapping[str, Any]) -> tuple[Said, ...]:
    """The packages that a build tool is told to pack, as import names."""
    wheel = _table(tools, "hatch", "build", "targets", "wheel").get("packages")
    setuptools = _table(tools, "setuptools")
    flit = _table(tools, "flit", "module").get("name")
    places = (
        ("tool.hatch.build.targets.wheel", "packages", wheel),
        ("tool.setuptools", "packages", setuptools.get("packages")),
        ("tool.setuptools", "py-modules", setuptools.get("py-modules")),
        ("tool.flit.module", "name", [flit] if flit else None),
    )
    for table, key, value in places:
        if isinstance(value, list) and value:
            names = [str(item).rstrip("/").rsplit("/", 1)[-1] for item in value]
            line = toml_line(text, table, key)
            return tuple(Said(name, PATH, line) for name in names if name.isidentifier())
    return ()


def _dynamic_version(tree: Tree, tools: Mapping[str, Any], name: str) -> Said | None:
    """A version that stands in the code, where the build tool is told to read it there."""
    hatch = _table(tools, "hatch", "version")
    if hatch.get("source", "regex") == "regex" and isinstance(hatch.get("path"), str):
        return version_in(tree, hatch["path"])
    if isinstance(path := _table(tools, "pdm", "version").get("path"), str):
        return version_in(tree, path)
    given = _table(tools, "setuptools", "dynamic", "version")
    if isinstance(given.get("attr"), str):
        return version_at(tree, given["attr"])
    if isinstance(given.get("file"), str):
        return _version_file(tree, given["file"])
    module = name.replace("-", "_")
    if "flit" in tools or not tools.keys() & {"hatch", "setuptools", "setuptools_scm", "pdm"}:
        places = (f"{module}/__init__.py", f"src/{module}/__init__.py", f"{module}.py")
        found = next((path for path in places if path in tree.known), "")
        return version_in(tree, found) if found else None
    return None


def version_in(tree: Tree, path: str) -> Said | None:
    """The version that a file assigns to a name made for it."""
    pattern = r"""^(?:__version__|VERSION|version)(?:\s*:[^=\n]+)?\s*=\s*["']([^"'\n]+)["']"""
    if match := re.search(pattern, tree.text(path) or "", re.MULTILINE):
        line = (tree.text(path) or "").count("\n", 0, match.start()) + 1
        return Said(match[1], path, line, basis="source_code")
    return None


def version_at(tree: Tree, attribute: str) -> Said | None:
    """The version at a dotted name, such as `package.__version__`."""
    module = attribute.rpartition(".")[0].replace(".", "/")
    for root in ("", "src/", "lib/"):
        for path in (f"{root}{module}.py", f"{root}{module}/__init__.py"):
            if found := version_in(tree, path):
                return found
    return None


def _version_file(tree: Tree, path: str) -> Said | None:
    words = (tree.text(path) or "").split()
    return Said(words[0], path) if len(words) == 1 else None


def _flit_description(tree: Tree, dynamic: set[str], name: str) -> Said | None:
    if "description" not in dynamic:
        return None
    module = name.replace("-", "_")
    for path in (f"{module}/__init__.py", f"src/{module}/__init__.py", f"{module}.py"):
        program = programs.parse(tree.text(path))
        if program and (doc := ast.get_docstring(program)):
            return Said(doc.split("\n\n")[0].replace("\n", " "), path, basis="source_code")
    return None


def _poetry(text: str, poetry: Mapping[str, Any]) -> Manifest:
    table = "tool.poetry"

    def said(key: str) -> Said | None:
        value: Any = poetry.get(key)
        return Said(value, PATH, toml_line(text, table, key)) if values.text(value) else None

    given = dict(_table(poetry, "dependencies"))
    python = given.pop("python", None)
    extras = {key: values.texts(each) for key, each in _table(poetry, "extras").items()}
    left_out = {name for items in extras.values() for name in items}
    line = f"{table}.dependencies"

    def entry(name: str) -> Said:
        return Said(_poetry_words(name, given.get(name)), PATH, toml_line(text, line, name))

    return Manifest(
        ecosystem="pip",
        path=PATH,
        name=said("name"),
        version=said("version"),
        licence=said("license"),
        description=said("description"),
        requires=Said(python.strip(), PATH, toml_line(text, line, "python"))
        if isinstance(python, str)
        else None,
        dependencies=tuple(entry(name) for name in sorted(given) if name not in left_out),
        optional={key: tuple(entry(name) for name in value) for key, value in extras.items()},
        commands=tuple(
            Said(name, PATH, toml_line(text, f"{table}.scripts", name), detail=str(target))
            for name, target in sorted(_table(poetry, "scripts").items())
        ),
        classifiers=_each(text, table, "classifiers", poetry.get("classifiers")),
        keywords=tuple(values.texts(poetry.get("keywords"))),
        imports=tuple(
            Said(str(item["include"]), PATH, toml_line(text, table, "packages"))
            for item in values.mappings(poetry.get("packages"))
            if str(item.get("include", "")).isidentifier()
        ),
    )


def _poetry_words(name: str, given: Any) -> str:
    version = given.get("version", "") if isinstance(given, dict) else given
    words = name if version in ("*", "", None) else f"{name}{_caret(str(version))}"
    where = (
        [str(given[key]) for key in _CONDITIONS if key in given] if isinstance(given, dict) else []
    )
    return f"{words}; {' and '.join(where)}" if where else words


_CONDITIONS = ("markers", "platform", "python")
"""What makes a dependency of Poetry one of some systems only."""


def _caret(version: Any) -> str:
    """Poetry's `^` and `~` in the words of PEP 440."""
    match = re.fullmatch(r"([\^~])(\d+)(?:\.(\d+))?(?:\.(\d+))?", str(version).strip())
    if not match:
        text = str(version).strip()
        return f"=={text}" if re.fullmatch(r"\d[\d.]*", text) else text
    numbers = [int(part) for part in match.groups()[1:] if part is not None]
    keep = next((place for place, number in enumerate(numbers) if number), 0)
    if match[1] == "~":
        keep = min(1, len(numbers) - 1)
    upper = [*numbers[:keep], numbers[keep] + 1]
    low = ".".join(map(str, numbers))
    return f">={low},<{'.'.join(map(str, upper))}{'.0' if len(upper) == 1 else ''}"


def _flit(tree: Tree, text: str, flit: Mapping[str, Any]) -> Manifest:
    table = "tool.flit.metadata"
    module = str(flit["module"])
    places = (f"{module}/__init__.py", f"src/{module}/__init__.py", f"{module}.py")
    path = next((place for place in places if place in tree.known), "")
    name = str(flit.get("dist-name") or module)
    requires = flit.get("requires-python")
    return Manifest(
        ecosystem="pip",
        path=PATH,
        name=Said(name, PATH, toml_line(text, table, "module")),
        version=version_in(tree, path) if path else None,
        description=_flit_description(tree, {"description"}, module),
        requires=Said(requires, PATH, toml_line(text, table, "requires-python"))
        if isinstance(requires, str)
        else None,
        dependencies=_each(text, table, "requires", flit.get("requires")),
        classifiers=_each(text, table, "classifiers", flit.get("classifiers")),
        imports=(Said(module, PATH, toml_line(text, table, "module")),),
    )


def _each(text: str, table: str, key: str, given: Any) -> tuple[Said, ...]:
    start = toml_line(text, table, key)
    return tuple(Said(item, PATH, item_line(text, start, item)) for item in values.texts(given))


def _table(document: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        document = values.mapping(document.get(name))
    return document

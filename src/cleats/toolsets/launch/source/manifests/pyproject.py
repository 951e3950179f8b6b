"""Reader for `pyproject.toml`: the standard table, and the older ones of Poetry and Flit."""

import ast
import re
from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch.source.checkout import safe_parsing
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.manifests.model import LocatedValue, PackageManifest, find_item_line, find_toml_line

PYPROJECT_PATH = "pyproject.toml"


def read_pyproject(tree: CheckoutTree) -> PackageManifest | None:
    """Read the package, or return None when the file only configures tools."""
    text = tree.read_text(PYPROJECT_PATH)
    if text is None:
        return None
    document = safe_parsing.parse_table(PYPROJECT_PATH, text)
    project = _find_table(document, "project")
    if safe_parsing.as_text(project.get("name")):
        return _read_standard(tree, text, project, _find_table(document, "tool"))
    poetry = _find_table(document, "tool", "poetry")
    if safe_parsing.as_text(poetry.get("name")):
        return _read_poetry(text, poetry)
    flit = _find_table(document, "tool", "flit", "metadata")
    return _read_flit(tree, text, flit) if safe_parsing.as_text(flit.get("module")) else None


def _read_standard(
    tree: CheckoutTree, text: str, project: Mapping[str, Any], tools: Mapping[str, Any]
) -> PackageManifest:
    dynamic = set(safe_parsing.as_texts(project.get("dynamic")))

    def read_field(key: str, value: Any = None) -> LocatedValue | None:
        field_text = project.get(key) if value is None else value
        if not isinstance(field_text, str) or not field_text.strip():
            return None
        return LocatedValue(field_text.strip(), PYPROJECT_PATH, find_toml_line(text, "project", key))

    licence, licence_file = _read_licence(project)
    optional = {
        extra: _locate_items(text, "project.optional-dependencies", extra, items)
        for extra, items in _find_table(project, "optional-dependencies").items()
    }
    imports = _find_packed_imports(text, tools)
    name = imports[0].value if imports else str(project["name"])
    return PackageManifest(
        ecosystem="pip",
        path=PYPROJECT_PATH,
        name=read_field("name"),
        version=read_field("version") or _find_dynamic_version(tree, tools, name),
        licence=read_field("license", licence) if licence else None,
        licence_file=licence_file,
        description=read_field("description") or _read_flit_description(tree, dynamic, name),
        requires=read_field("requires-python"),
        dependencies=None
        if "dependencies" in dynamic
        else _locate_items(text, "project", "dependencies", project.get("dependencies")),
        optional=optional,
        commands=_read_scripts(text, project),
        classifiers=_locate_items(text, "project", "classifiers", project.get("classifiers")),
        keywords=tuple(safe_parsing.as_texts(project.get("keywords"))),
        imports=imports,
    )


def _read_licence(project: Mapping[str, Any]) -> tuple[str, str]:
    """Return the name of the licence, and its file where one is given."""
    licence = project.get("license")
    if isinstance(licence, str):
        return licence, ""
    if isinstance(licence, dict):
        name = str(licence.get("text") or "")
        return (name if len(name) < 100 else ""), str(licence.get("file") or "")
    return "", ""


def _read_scripts(text: str, project: Mapping[str, Any]) -> tuple[LocatedValue, ...]:
    return tuple(
        LocatedValue(name, PYPROJECT_PATH, find_toml_line(text, f"project.{table}", name), detail=str(target))
        for table in ("scripts", "gui-scripts")
        for name, target in sorted(_find_table(project, table).items())
    )


def _find_packed_imports(text: str, tools: Mapping[str, Any]) -> tuple[LocatedValue, ...]:
    """Return the packages that the build tool is configured to pack, as import names."""
    wheel = _find_table(tools, "hatch", "build", "targets", "wheel").get("packages")
    setuptools = _find_table(tools, "setuptools")
    flit = _find_table(tools, "flit", "module").get("name")
    candidates = (
        ("tool.hatch.build.targets.wheel", "packages", wheel),
        ("tool.setuptools", "packages", setuptools.get("packages")),
        ("tool.setuptools", "py-modules", setuptools.get("py-modules")),
        ("tool.flit.module", "name", [flit] if flit else None),
    )
    for table, key, value in candidates:
        if isinstance(value, list) and value:
            names = [str(item).rstrip("/").rsplit("/", 1)[-1] for item in value]
            line = find_toml_line(text, table, key)
            return tuple(LocatedValue(name, PYPROJECT_PATH, line) for name in names if name.isidentifier())
    return ()


def _find_dynamic_version(tree: CheckoutTree, tools: Mapping[str, Any], name: str) -> LocatedValue | None:
    """Return a version in the code, where the build tool is configured to read it there."""
    hatch = _find_table(tools, "hatch", "version")
    if hatch.get("source", "regex") == "regex" and isinstance(hatch.get("path"), str):
        return find_version_in_file(tree, hatch["path"])
    if isinstance(path := _find_table(tools, "pdm", "version").get("path"), str):
        return find_version_in_file(tree, path)
    version_table = _find_table(tools, "setuptools", "dynamic", "version")
    if isinstance(version_table.get("attr"), str):
        return find_version_at(tree, version_table["attr"])
    if isinstance(version_table.get("file"), str):
        return _read_version_file(tree, version_table["file"])
    module = name.replace("-", "_")
    if "flit" in tools or not tools.keys() & {"hatch", "setuptools", "setuptools_scm", "pdm"}:
        candidates = (f"{module}/__init__.py", f"src/{module}/__init__.py", f"{module}.py")
        module_path = next((path for path in candidates if path in tree.path_set), "")
        return find_version_in_file(tree, module_path) if module_path else None
    return None


def find_version_in_file(tree: CheckoutTree, path: str) -> LocatedValue | None:
    """Return the version that a file assigns to one of the usual names."""
    pattern = r"""^(?:__version__|VERSION|version)(?:\s*:[^=\n]+)?\s*=\s*["']([^"'\n]+)["']"""
    if match := re.search(pattern, tree.read_text(path) or "", re.MULTILINE):
        line = (tree.read_text(path) or "").count("\n", 0, match.start()) + 1
        return LocatedValue(match[1], path, line, basis="source_code")
    return None


def find_version_at(tree: CheckoutTree, attribute: str) -> LocatedValue | None:
    """Return the version at a dotted name, such as `package.__version__`."""
    module = attribute.rpartition(".")[0].replace(".", "/")
    for root in ("", "src/", "lib/"):
        for path in (f"{root}{module}.py", f"{root}{module}/__init__.py"):
            if version := find_version_in_file(tree, path):
                return version
    return None


def _read_version_file(tree: CheckoutTree, path: str) -> LocatedValue | None:
    words = (tree.read_text(path) or "").split()
    return LocatedValue(words[0], path) if len(words) == 1 else None


def _read_flit_description(tree: CheckoutTree, dynamic: set[str], name: str) -> LocatedValue | None:
    if "description" not in dynamic:
        return None
    module = name.replace("-", "_")
    for path in (f"{module}/__init__.py", f"src/{module}/__init__.py", f"{module}.py"):
        program = safe_parsing.parse_python(tree.read_text(path))
        if program and (doc := ast.get_docstring(program)):
            return LocatedValue(doc.split("\n\n")[0].replace("\n", " "), path, basis="source_code")
    return None


def _read_poetry(text: str, poetry: Mapping[str, Any]) -> PackageManifest:
    table = "tool.poetry"

    def read_field(key: str) -> LocatedValue | None:
        value: Any = poetry.get(key)
        return (
            LocatedValue(value, PYPROJECT_PATH, find_toml_line(text, table, key))
            if safe_parsing.as_text(value)
            else None
        )

    requirements = dict(_find_table(poetry, "dependencies"))
    python = requirements.pop("python", None)
    extras = {key: safe_parsing.as_texts(extra_items) for key, extra_items in _find_table(poetry, "extras").items()}
    optional_names = {name for items in extras.values() for name in items}
    dependency_table = f"{table}.dependencies"

    def make_dependency(name: str) -> LocatedValue:
        return LocatedValue(
            _format_poetry_requirement(name, requirements.get(name)),
            PYPROJECT_PATH,
            find_toml_line(text, dependency_table, name),
        )

    return PackageManifest(
        ecosystem="pip",
        path=PYPROJECT_PATH,
        name=read_field("name"),
        version=read_field("version"),
        licence=read_field("license"),
        description=read_field("description"),
        requires=LocatedValue(python.strip(), PYPROJECT_PATH, find_toml_line(text, dependency_table, "python"))
        if isinstance(python, str)
        else None,
        dependencies=tuple(make_dependency(name) for name in sorted(requirements) if name not in optional_names),
        optional={key: tuple(make_dependency(name) for name in value) for key, value in extras.items()},
        commands=tuple(
            LocatedValue(name, PYPROJECT_PATH, find_toml_line(text, f"{table}.scripts", name), detail=str(target))
            for name, target in sorted(_find_table(poetry, "scripts").items())
        ),
        classifiers=_locate_items(text, table, "classifiers", poetry.get("classifiers")),
        keywords=tuple(safe_parsing.as_texts(poetry.get("keywords"))),
        imports=tuple(
            LocatedValue(str(item["include"]), PYPROJECT_PATH, find_toml_line(text, table, "packages"))
            for item in safe_parsing.as_mappings(poetry.get("packages"))
            if str(item.get("include", "")).isidentifier()
        ),
    )


def _format_poetry_requirement(name: str, constraint: Any) -> str:
    version = constraint.get("version", "") if isinstance(constraint, dict) else constraint
    requirement = name if version in ("*", "", None) else f"{name}{_convert_constraint(str(version))}"
    conditions = (
        [str(constraint[key]) for key in _CONDITION_KEYS if key in constraint] if isinstance(constraint, dict) else []
    )
    return f"{requirement}; {' and '.join(conditions)}" if conditions else requirement


_CONDITION_KEYS = ("markers", "platform", "python")
"""Keys that restrict a Poetry dependency to some systems."""


def _convert_constraint(version: Any) -> str:
    """Convert a Poetry constraint with `^` or `~` to PEP 440."""
    match = re.fullmatch(r"([\^~])(\d+)(?:\.(\d+))?(?:\.(\d+))?", str(version).strip())
    if not match:
        text = str(version).strip()
        return f"=={text}" if re.fullmatch(r"\d[\d.]*", text) else text
    numbers = [int(part) for part in match.groups()[1:] if part is not None]
    bumped_index = next((index for index, number in enumerate(numbers) if number), 0)
    if match[1] == "~":
        bumped_index = min(1, len(numbers) - 1)
    upper = [*numbers[:bumped_index], numbers[bumped_index] + 1]
    low = ".".join(map(str, numbers))
    return f">={low},<{'.'.join(map(str, upper))}{'.0' if len(upper) == 1 else ''}"


def _read_flit(tree: CheckoutTree, text: str, flit: Mapping[str, Any]) -> PackageManifest:
    table = "tool.flit.metadata"
    module = str(flit["module"])
    candidates = (f"{module}/__init__.py", f"src/{module}/__init__.py", f"{module}.py")
    path = next((candidate for candidate in candidates if candidate in tree.path_set), "")
    name = str(flit.get("dist-name") or module)
    requires = flit.get("requires-python")
    return PackageManifest(
        ecosystem="pip",
        path=PYPROJECT_PATH,
        name=LocatedValue(name, PYPROJECT_PATH, find_toml_line(text, table, "module")),
        version=find_version_in_file(tree, path) if path else None,
        description=_read_flit_description(tree, {"description"}, module),
        requires=LocatedValue(requires, PYPROJECT_PATH, find_toml_line(text, table, "requires-python"))
        if isinstance(requires, str)
        else None,
        dependencies=_locate_items(text, table, "requires", flit.get("requires")),
        classifiers=_locate_items(text, table, "classifiers", flit.get("classifiers")),
        imports=(LocatedValue(module, PYPROJECT_PATH, find_toml_line(text, table, "module")),),
    )


def _locate_items(text: str, table: str, key: str, items: Any) -> tuple[LocatedValue, ...]:
    start = find_toml_line(text, table, key)
    return tuple(
        LocatedValue(item, PYPROJECT_PATH, find_item_line(text, start, item)) for item in safe_parsing.as_texts(items)
    )


def _find_table(document: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        document = safe_parsing.as_mapping(document.get(name))
    return document

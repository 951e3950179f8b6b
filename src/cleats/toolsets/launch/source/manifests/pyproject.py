"""Reader for `pyproject.toml`: the standard table, and the older ones of Poetry and Flit."""

import ast
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from cleats.toolsets.launch.source.checkout.safe_parsing import as_mappings, as_text, as_texts, parse_python
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.manifests.model import LocatedValue, ManifestFile, PackageManifest

PYPROJECT_PATH = "pyproject.toml"


def read_pyproject(tree: CheckoutTree) -> PackageManifest | None:
    """Read the package, or return None when the file only configures tools."""
    file = ManifestFile.load(tree, PYPROJECT_PATH)
    if file.read_text("project", "name"):
        return _read_standard(tree, file)
    if file.read_text("tool", "poetry", "name"):
        return _read_poetry(file)
    return _read_flit(tree, file) if file.read_text("tool", "flit", "metadata", "module") else None


def _read_standard(tree: CheckoutTree, file: ManifestFile) -> PackageManifest:
    project = file.find_table("project")
    dynamic = set(as_texts(project.get("dynamic")))
    read_field = partial(file.read_text, "project", strip=True)
    licence = project.get("license")
    if isinstance(licence, dict):
        licence = str(licence.get("text") or "")
        licence = licence if len(licence) < 100 else ""
    licence = as_text(licence).strip()
    imports = _find_packed_imports(file)
    module = (imports[0].value if imports else str(project["name"])).replace("-", "_")
    version, description = read_field("version"), read_field("description")
    return PackageManifest(
        ecosystem="pip",
        path=PYPROJECT_PATH,
        name=read_field("name"),
        version=version or _find_dynamic_version(tree, file, module),
        licence=file.locate(licence, "project", "license") if licence else None,
        description=description or (_read_module_summary(tree, module) if "description" in dynamic else None),
        requires=read_field("requires-python"),
        dependencies=None if "dependencies" in dynamic else file.locate_items("project", "dependencies"),
        optional={
            extra: file.locate_items("project", "optional-dependencies", extra)
            for extra in file.find_table("project", "optional-dependencies")
        },
        commands=(*file.locate_entries("project", "scripts"), *file.locate_entries("project", "gui-scripts")),
        classifiers=file.locate_items("project", "classifiers"),
        imports=imports,
    )


def _find_packed_imports(file: ManifestFile) -> tuple[LocatedValue, ...]:
    packed = "hatch.build.targets.wheel.packages", "setuptools.packages", "setuptools.py-modules", "flit.module.name"
    for keys in (("tool", *key.split(".")) for key in packed):
        value = file.find_table(*keys[:-1]).get(keys[-1])
        value = [value] if keys[1] == "flit" and value else value
        if isinstance(value, list) and value:
            names = [str(item).rstrip("/").rsplit("/", 1)[-1] for item in value]
            return tuple(file.locate(name, *keys) for name in names if name.isidentifier())
    return ()


def _find_dynamic_version(tree: CheckoutTree, file: ManifestFile, module: str) -> LocatedValue | None:
    tools = file.find_table("tool")
    hatch = file.find_table("tool", "hatch", "version")
    if hatch.get("source", "regex") == "regex" and isinstance(hatch.get("path"), str):
        return find_version_in_file(tree, hatch["path"])
    if isinstance(path := file.find_table("tool", "pdm", "version").get("path"), str):
        return find_version_in_file(tree, path)
    version = file.find_table("tool", "setuptools", "dynamic", "version")
    if isinstance(version.get("attr"), str):
        return find_version_at(tree, version["attr"])
    if isinstance(version.get("file"), str):
        return read_version_file(tree, version["file"])
    if "flit" in tools or not tools.keys() & {"hatch", "setuptools", "setuptools_scm", "pdm"}:
        return _find_module_version(tree, module)
    return None


def _list_module_files(tree: CheckoutTree, module: str) -> list[str]:
    candidates = (f"{module}/__init__.py", f"src/{module}/__init__.py", f"{module}.py")
    return [path for path in candidates if path in tree.path_set]


def _find_module_version(tree: CheckoutTree, module: str) -> LocatedValue | None:
    paths = _list_module_files(tree, module)
    return find_version_in_file(tree, paths[0]) if paths else None


def find_version_in_file(tree: CheckoutTree, path: str) -> LocatedValue | None:
    """Return the version that a file assigns to one of the usual names."""
    pattern = r"""^(?:__version__|VERSION|version)(?:\s*:[^=\n]+)?\s*=\s*["']([^"'\n]+)["']"""
    return ManifestFile.load(tree, path, "source_code").find(pattern)


def find_version_at(tree: CheckoutTree, attribute: str) -> LocatedValue | None:
    """Return the version at a dotted name, such as `package.__version__`."""
    module = attribute.rpartition(".")[0].replace(".", "/")
    paths = (f"{root}{module}{end}" for root in ("", "src/", "lib/") for end in (".py", "/__init__.py"))
    return next(filter(None, (find_version_in_file(tree, path) for path in paths)), None)


def read_version_file(tree: CheckoutTree, path: str) -> LocatedValue | None:
    """Return the version in a file that holds nothing else."""
    words = (tree.read_text(path) or "").split()
    return LocatedValue(words[0], path) if len(words) == 1 else None


def _read_module_summary(tree: CheckoutTree, module: str) -> LocatedValue | None:
    for path in _list_module_files(tree, module):
        program = parse_python(tree.read_text(path))
        if program and (doc := ast.get_docstring(program)):
            return LocatedValue(doc.split("\n\n")[0].replace("\n", " "), path, basis="source_code")
    return None


def _read_poetry(file: ManifestFile) -> PackageManifest:
    table = ("tool", "poetry")
    requirements = dict(file.find_table(*table, "dependencies"))
    python = requirements.pop("python", None)
    extras = {key: as_texts(names) for key, names in file.find_table(*table, "extras").items()}
    optional_names = {name for names in extras.values() for name in names}

    def list_dependencies(names: list[str]) -> tuple[LocatedValue, ...]:
        return tuple(
            file.locate(_format_poetry_requirement(name, requirements.get(name)), *table, "dependencies", name)
            for name in names
        )

    return PackageManifest(
        ecosystem="pip",
        path=PYPROJECT_PATH,
        name=file.read_text(*table, "name"),
        version=file.read_text(*table, "version"),
        licence=file.read_text(*table, "license"),
        description=file.read_text(*table, "description"),
        requires=file.locate(python.strip(), *table, "dependencies", "python") if isinstance(python, str) else None,
        dependencies=list_dependencies([name for name in sorted(requirements) if name not in optional_names]),
        optional={key: list_dependencies(names) for key, names in extras.items()},
        commands=file.locate_entries(*table, "scripts"),
        classifiers=file.locate_items(*table, "classifiers"),
        imports=tuple(
            file.locate(str(item["include"]), *table, "packages")
            for item in as_mappings(file.find_table(*table).get("packages"))
            if str(item.get("include", "")).isidentifier()
        ),
    )


def _format_poetry_requirement(name: str, constraint: Any) -> str:
    options: Mapping[str, Any] = constraint if isinstance(constraint, dict) else {"version": constraint}
    version = options.get("version", "")
    requirement = name if version in ("*", "", None) else f"{name}{_convert_constraint(str(version).strip())}"
    conditions = [str(options[key]) for key in ("markers", "platform", "python") if key in options]
    return f"{requirement}; {' and '.join(conditions)}" if conditions else requirement


def _convert_constraint(version: str) -> str:
    """Convert a Poetry constraint with `^` or `~` to PEP 440."""
    match = re.fullmatch(r"([\^~])(\d+)(?:\.(\d+))?(?:\.(\d+))?", version)
    if not match:
        return f"=={version}" if re.fullmatch(r"\d[\d.]*", version) else version
    numbers = [int(part) for part in match.groups()[1:] if part is not None]
    bumped_index = next((index for index, number in enumerate(numbers) if number), 0)
    if match[1] == "~":
        bumped_index = min(1, len(numbers) - 1)
    upper = [*numbers[:bumped_index], numbers[bumped_index] + 1]
    low = ".".join(map(str, numbers))
    return f">={low},<{'.'.join(map(str, upper))}{'.0' if len(upper) == 1 else ''}"


def _read_flit(tree: CheckoutTree, file: ManifestFile) -> PackageManifest:
    table = ("tool", "flit", "metadata")
    flit = file.find_table(*table)
    module = str(flit["module"])
    requires = flit.get("requires-python")
    return PackageManifest(
        ecosystem="pip",
        path=PYPROJECT_PATH,
        name=file.locate(str(flit.get("dist-name") or module), *table, "module"),
        version=_find_module_version(tree, module),
        description=_read_module_summary(tree, module.replace("-", "_")),
        requires=file.locate(requires, *table, "requires-python") if isinstance(requires, str) else None,
        dependencies=file.locate_items(*table, "requires"),
        classifiers=file.locate_items(*table, "classifiers"),
        imports=(file.locate(module, *table, "module"),),
    )

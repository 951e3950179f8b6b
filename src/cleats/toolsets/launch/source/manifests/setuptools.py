"""Readers for `setup.cfg` and `setup.py`, which is read but never run: only literals count."""

import ast
import configparser
import re
from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch.source.checkout import safe_parsing
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.manifests.model import LocatedValue, PackageManifest, find_pattern_line
from cleats.toolsets.launch.source.manifests.pyproject import find_version_at, find_version_in_file


def read_setuptools(tree: CheckoutTree) -> PackageManifest | None:
    """Read the package of `setup.cfg`, completed from `setup.py`; None when neither names one."""
    cfg, py = _read_setup_cfg(tree), _read_setup_py(tree)
    if cfg is None or py is None:
        return cfg or py
    return PackageManifest(
        ecosystem="pip",
        path=cfg.path,
        name=cfg.name,
        version=cfg.version or py.version,
        licence=cfg.licence or py.licence,
        description=cfg.description or py.description,
        requires=cfg.requires or py.requires,
        dependencies=cfg.dependencies or py.dependencies,
        optional=cfg.optional or py.optional,
        commands=cfg.commands or py.commands,
        classifiers=cfg.classifiers or py.classifiers,
        keywords=cfg.keywords or py.keywords,
        imports=cfg.imports or py.imports,
    )


def _read_setup_cfg(tree: CheckoutTree) -> PackageManifest | None:
    path = "setup.cfg"
    text = tree.read_text(path)
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text or "")
    except configparser.Error:
        return None
    if not parser.get("metadata", "name", fallback="").strip():
        return None

    def read_field(section: str, *keys: str) -> LocatedValue | None:
        for key in keys:
            value = parser.get(section, key, fallback="").strip()
            if value:
                return LocatedValue(value, path, find_pattern_line(text or "", rf"^{re.escape(key)}\s*[=:]"))
        return None

    def list_items(section: str, key: str) -> tuple[LocatedValue, ...]:
        value = parser.get(section, key, fallback="")
        words = [line.strip() for line in value.split("\n")]
        return tuple(
            LocatedValue(word, path, find_pattern_line(text or "", rf"^[ \t]*{re.escape(word)}\s*$"))
            for word in words
            if word and not word.startswith("#")
        )

    extras = "options.extras_require"
    scripts = list_items("options.entry_points", "console_scripts")
    packages = list_items("options", "packages")
    return PackageManifest(
        ecosystem="pip",
        path=path,
        name=read_field("metadata", "name"),
        version=_resolve_cfg_version(tree, read_field("metadata", "version")),
        licence=read_field("metadata", "license", "licence"),
        description=read_field("metadata", "description", "summary"),
        requires=read_field("options", "python_requires"),
        dependencies=list_items("options", "install_requires"),
        optional={key: list_items(extras, key) for key in parser.options(extras)} if parser.has_section(extras) else {},
        commands=tuple(
            LocatedValue(_parse_command_name(item.value), path, item.line, detail=_parse_command_target(item.value))
            for item in scripts
            if _parse_command_name(item.value)
        ),
        classifiers=list_items("metadata", "classifiers"),
        keywords=tuple(re.split(r"[,\s]+", parser.get("metadata", "keywords", fallback=""))),
        imports=tuple(
            item for item in (*packages, *list_items("options", "py_modules")) if _is_import_name(item.value)
        ),
    )


def _resolve_cfg_version(tree: CheckoutTree, declared: LocatedValue | None) -> LocatedValue | None:
    if declared is None:
        return None
    kind, _, rest = declared.value.partition(":")
    if kind.strip() == "attr":
        return find_version_at(tree, rest.strip())
    if kind.strip() == "file":
        words = (tree.read_text(rest.strip()) or "").split()
        return LocatedValue(words[0], rest.strip()) if len(words) == 1 else None
    return declared


def _read_setup_py(tree: CheckoutTree) -> PackageManifest | None:
    path = "setup.py"
    module = safe_parsing.parse_python(tree.read_text(path))
    call = next((node for node in ast.walk(module) if _is_setup_call(node)), None) if module else None
    if module is None or not isinstance(call, ast.Call):
        return None
    names = _collect_constants(module)
    arguments, is_complete = _collect_arguments(call, module)

    def evaluate_argument(key: str) -> Any:
        return _evaluate_literal(arguments[key], names) if key in arguments else None

    def read_field(key: str) -> LocatedValue | None:
        text = evaluate_argument(key)
        is_text = isinstance(text, str) and text
        return LocatedValue(text, path, _find_origin_line(module, arguments[key])) if is_text else None

    def list_items(key: str) -> tuple[LocatedValue, ...] | None:
        if key not in arguments:
            return () if is_complete else None
        items = evaluate_argument(key)
        if isinstance(items, str):
            items = items.split("\n")
        if not isinstance(items, list | tuple):
            return None
        lines = _map_string_lines(arguments[key])
        return tuple(
            LocatedValue(item, path, lines.get(item, arguments[key].lineno))
            for item in items
            if isinstance(item, str) and item.strip()
        )

    if read_field("name") is None:
        return None
    extras = evaluate_argument("extras_require")
    entry_points = evaluate_argument("entry_points")
    scripts = safe_parsing.as_texts(safe_parsing.as_mapping(entry_points).get("console_scripts"))
    line = arguments["entry_points"].lineno if "entry_points" in arguments else 1
    lines = _map_string_lines(arguments["entry_points"]) if "entry_points" in arguments else {}
    return PackageManifest(
        ecosystem="pip",
        path=path,
        name=read_field("name"),
        version=read_field("version") or _find_py_version(tree, module),
        licence=read_field("license") or read_field("licence"),
        description=read_field("description"),
        requires=read_field("python_requires"),
        dependencies=list_items("install_requires"),
        optional={
            str(key): tuple(LocatedValue(str(item), path, arguments["extras_require"].lineno) for item in items)
            for key, items in extras.items()
            if isinstance(items, list | tuple)
        }
        if isinstance(extras, dict)
        else {},
        commands=tuple(
            LocatedValue(_parse_command_name(item), path, lines.get(item, line), detail=_parse_command_target(item))
            for item in scripts
            if "=" in item and _parse_command_name(item)
        ),
        classifiers=list_items("classifiers") or (),
        keywords=tuple(str(evaluate_argument("keywords") or "").replace(",", " ").split()),
        imports=tuple(
            item for key in ("packages", "py_modules") for item in list_items(key) or () if _is_import_name(item.value)
        ),
    )


def _find_origin_line(module: ast.Module, node: ast.expr) -> int:
    """Return the line of a value; for a name, the line where it is assigned."""
    assigned = _find_assigned_value(module, node.id) if isinstance(node, ast.Name) else None
    return (assigned or node).lineno


def _collect_arguments(call: ast.Call, module: ast.Module) -> tuple[dict[str, ast.expr], bool]:
    """Return the arguments of `setup`, and whether they are complete: `**more` may add any."""
    arguments: dict[str, ast.expr] = {}
    is_complete = True
    for keyword in call.keywords:
        if keyword.arg:
            arguments[keyword.arg] = keyword.value
            continue
        spread = _find_assigned_value(module, keyword.value.id) if isinstance(keyword.value, ast.Name) else None
        if isinstance(spread, ast.Call) and isinstance(spread.func, ast.Name):
            arguments |= {argument.arg: argument.value for argument in spread.keywords if argument.arg}
            is_complete = is_complete and spread.func.id == "dict"
        elif isinstance(spread, ast.Dict):
            pairs = zip(spread.keys, spread.values, strict=True)
            arguments |= {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}
        else:
            is_complete = False
    return arguments, is_complete


def _find_assigned_value(module: ast.Module, name: str) -> ast.expr | None:
    assigned_values = [
        node.value
        for node in ast.walk(module)
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
    ]
    return assigned_values[0] if len(assigned_values) == 1 else None


def _find_py_version(tree: CheckoutTree, module: ast.Module) -> LocatedValue | None:
    """Return the version in a file that the program names, if there is only one."""
    names = [node.value for node in ast.walk(module) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    versions = {version.value: version for name in names if (version := find_version_in_file(tree, name))}
    return next(iter(versions.values())) if len(versions) == 1 else None


def _is_setup_call(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    return (isinstance(function, ast.Name) and function.id == "setup") or (
        isinstance(function, ast.Attribute) and function.attr == "setup"
    )


def _collect_constants(module: ast.Module) -> dict[str, Any]:
    """Return the names that the program assigns a literal once."""
    constants: dict[str, Any] = {}
    for node in module.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                constants[target.id] = None if target.id in constants else _evaluate_literal(node.value, constants)
    return constants


def _evaluate_literal(node: ast.expr, names: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        evaluated_pairs = ((_evaluate_literal(key, names), value) for key, value in pairs if key is not None)
        return {key: _evaluate_literal(value, names) for key, value in evaluated_pairs if isinstance(key, str)}
    if isinstance(node, ast.List | ast.Tuple):
        return [_evaluate_literal(item, names) for item in node.elts]
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _map_string_lines(node: ast.expr) -> dict[str, int]:
    return {
        inner.value: inner.lineno
        for inner in ast.walk(node)
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str)
    }


def _parse_command_name(entry: str) -> str:
    return entry.partition("=")[0].strip()


def _parse_command_target(entry: str) -> str:
    return entry.partition("=")[2].strip()


def _is_import_name(word: str) -> bool:
    return word.isidentifier() and word not in ("find", "find_namespace")

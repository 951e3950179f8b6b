"""`setup.cfg` and `setup.py`. The program is read, never run: only literal values count."""

import ast
import configparser
import re
from collections.abc import Mapping
from typing import Any

from cleats.toolsets.launch.source import programs
from cleats.toolsets.launch.source.manifests import values
from cleats.toolsets.launch.source.manifests.lines import pattern_line
from cleats.toolsets.launch.source.manifests.model import Manifest, Said
from cleats.toolsets.launch.source.manifests.pyproject import version_at, version_in
from cleats.toolsets.launch.source.tree import Tree


def read(tree: Tree) -> Manifest | None:
    """The package of `setup.cfg`, filled up from `setup.py`; None when neither names one."""
    cfg, py = _read_cfg(tree), _read_py(tree)
    if cfg is None or py is None:
        return cfg or py
    return Manifest(
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


def _read_cfg(tree: Tree) -> Manifest | None:
    path = "setup.cfg"
    text = tree.text(path)
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text or "")
    except configparser.Error:
        return None
    if not parser.get("metadata", "name", fallback="").strip():
        return None

    def said(section: str, *keys: str) -> Said | None:
        for key in keys:
            value = parser.get(section, key, fallback="").strip()
            if value:
                return Said(value, path, pattern_line(text or "", rf"^{re.escape(key)}\s*[=:]"))
        return None

    def listed(section: str, key: str) -> tuple[Said, ...]:
        value = parser.get(section, key, fallback="")
        words = [line.strip() for line in value.split("\n")]
        return tuple(
            Said(word, path, pattern_line(text or "", rf"^[ \t]*{re.escape(word)}\s*$"))
            for word in words
            if word and not word.startswith("#")
        )

    extras = "options.extras_require"
    scripts = listed("options.entry_points", "console_scripts")
    packages = listed("options", "packages")
    return Manifest(
        ecosystem="pip",
        path=path,
        name=said("metadata", "name"),
        version=_cfg_version(tree, said("metadata", "version")),
        licence=said("metadata", "license", "licence"),
        description=said("metadata", "description", "summary"),
        requires=said("options", "python_requires"),
        dependencies=listed("options", "install_requires"),
        optional={key: listed(extras, key) for key in parser.options(extras)}
        if parser.has_section(extras)
        else {},
        commands=tuple(
            Said(_command(item.value), path, item.line, detail=_target(item.value))
            for item in scripts
            if _command(item.value)
        ),
        classifiers=listed("metadata", "classifiers"),
        keywords=tuple(re.split(r"[,\s]+", parser.get("metadata", "keywords", fallback=""))),
        imports=tuple(
            item for item in (*packages, *listed("options", "py_modules")) if _is_name(item.value)
        ),
    )


def _cfg_version(tree: Tree, given: Said | None) -> Said | None:
    if given is None:
        return None
    kind, _, rest = given.value.partition(":")
    if kind.strip() == "attr":
        return version_at(tree, rest.strip())
    if kind.strip() == "file":
        words = (tree.text(rest.strip()) or "").split()
        return Said(words[0], rest.strip()) if len(words) == 1 else None
    return given


def _read_py(tree: Tree) -> Manifest | None:
    path = "setup.py"
    module = programs.parse(tree.text(path))
    call = next((node for node in ast.walk(module) if _is_setup(node)), None) if module else None
    if module is None or not isinstance(call, ast.Call):
        return None
    names = _constants(module)
    given, is_whole = _keywords(call, module)

    def value(key: str) -> Any:
        return _literal(given[key], names) if key in given else None

    def said(key: str) -> Said | None:
        found = value(key)
        is_text = isinstance(found, str) and found
        return Said(found, path, _origin(module, given[key])) if is_text else None

    def listed(key: str) -> tuple[Said, ...] | None:
        if key not in given:
            return () if is_whole else None
        found = value(key)
        if isinstance(found, str):
            found = found.split("\n")
        if not isinstance(found, list | tuple):
            return None
        lines = _item_lines(given[key])
        return tuple(
            Said(item, path, lines.get(item, given[key].lineno))
            for item in found
            if isinstance(item, str) and item.strip()
        )

    if said("name") is None:
        return None
    extras = value("extras_require")
    points = value("entry_points")
    scripts = values.texts(values.mapping(points).get("console_scripts"))
    line = given["entry_points"].lineno if "entry_points" in given else 1
    lines = _item_lines(given["entry_points"]) if "entry_points" in given else {}
    return Manifest(
        ecosystem="pip",
        path=path,
        name=said("name"),
        version=said("version") or _py_version(tree, module),
        licence=said("license") or said("licence"),
        description=said("description"),
        requires=said("python_requires"),
        dependencies=listed("install_requires"),
        optional={
            str(key): tuple(Said(str(item), path, given["extras_require"].lineno) for item in items)
            for key, items in extras.items()
            if isinstance(items, list | tuple)
        }
        if isinstance(extras, dict)
        else {},
        commands=tuple(
            Said(_command(item), path, lines.get(item, line), detail=_target(item))
            for item in scripts
            if "=" in item and _command(item)
        ),
        classifiers=listed("classifiers") or (),
        keywords=tuple(str(value("keywords") or "").replace(",", " ").split()),
        imports=tuple(
            item
            for key in ("packages", "py_modules")
            for item in listed(key) or ()
            if _is_name(item.value)
        ),
    )


def _origin(module: ast.Module, node: ast.expr) -> int:
    """The line on which a value stands; that of a constant is where it gets it."""
    found = _assigned(module, node.id) if isinstance(node, ast.Name) else None
    return (found or node).lineno


def _keywords(call: ast.Call, module: ast.Module) -> tuple[dict[str, ast.expr], bool]:
    """What `setup` is given, and whether that is all: `**more` may hold anything."""
    given: dict[str, ast.expr] = {}
    is_whole = True
    for word in call.keywords:
        if word.arg:
            given[word.arg] = word.value
            continue
        spread = _assigned(module, word.value.id) if isinstance(word.value, ast.Name) else None
        if isinstance(spread, ast.Call) and isinstance(spread.func, ast.Name):
            given |= {each.arg: each.value for each in spread.keywords if each.arg}
            is_whole = is_whole and spread.func.id == "dict"
        elif isinstance(spread, ast.Dict):
            pairs = zip(spread.keys, spread.values, strict=True)
            given |= {
                str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)
            }
        else:
            is_whole = False
    return given, is_whole


def _assigned(module: ast.Module, name: str) -> ast.expr | None:
    found = [
        node.value
        for node in ast.walk(module)
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
    ]
    return found[0] if len(found) == 1 else None


def _py_version(tree: Tree, module: ast.Module) -> Said | None:
    """A version that the program reads from a file of the repository which it names."""
    names = [
        node.value
        for node in ast.walk(module)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    found = {said.value: said for name in names if (said := version_in(tree, name))}
    return next(iter(found.values())) if len(found) == 1 else None


def _is_setup(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    return (isinstance(called, ast.Name) and called.id == "setup") or (
        isinstance(called, ast.Attribute) and called.attr == "setup"
    )


def _constants(module: ast.Module) -> dict[str, Any]:
    """Names that the program gives a literal value once."""
    found: dict[str, Any] = {}
    for node in module.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Name):
                found[target.id] = None if target.id in found else _literal(node.value, found)
    return found


def _literal(node: ast.expr, names: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        found = ((_literal(key, names), value) for key, value in pairs if key is not None)
        return {key: _literal(value, names) for key, value in found if isinstance(key, str)}
    if isinstance(node, ast.List | ast.Tuple):
        return [_literal(item, names) for item in node.elts]
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _item_lines(node: ast.expr) -> dict[str, int]:
    return {
        inner.value: inner.lineno
        for inner in ast.walk(node)
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str)
    }


def _command(entry: str) -> str:
    return entry.partition("=")[0].strip()


def _target(entry: str) -> str:
    return entry.partition("=")[2].strip()


def _is_name(word: str) -> bool:
    return word.isidentifier() and word not in ("find", "find_namespace")

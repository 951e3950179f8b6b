"""Readers for `setup.cfg` and `setup.py`, which is read but never run: only literals count."""

import ast
import configparser
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from cleats.toolsets.launch.source.checkout.safe_parsing import as_mapping, as_texts, parse_python
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.manifests.model import (
    LocatedValue,
    ManifestFile,
    PackageManifest,
    fill_gaps,
    find_pattern_line,
)
from cleats.toolsets.launch.source.manifests.pyproject import find_version_at, find_version_in_file, read_version_file

_SETUP_CFG_PATH = "setup.cfg"
_SETUP_PY_PATH = "setup.py"
_METADATA_PATH_PATTERN = re.compile(r"^(?:src/)?\w+/(?:__(?:version|about|init|pkginfo|meta|metadata)__|_version)\.py$")
"""Files that assign the metadata of a package, which `setup.py` then executes or reads."""

_SHARED_FIELDS = (
    *("version", "licence", "description", "requires", "dependencies"),
    *("optional", "commands", "classifiers", "imports"),
)

Values = tuple[LocatedValue, ...]


def read_setuptools(tree: CheckoutTree) -> PackageManifest | None:
    """Read the package of `setup.cfg`, completed from `setup.py`; None when neither names one."""
    cfg, py = _read_setup_cfg(tree), _read_setup_py(tree)
    return fill_gaps(cfg, py, *_SHARED_FIELDS) if cfg and py else cfg or py


class _SetupCfg(configparser.RawConfigParser):
    def __init__(self, text: str) -> None:
        super().__init__(strict=False)
        self.text = text
        self.read_string(text)

    def find_field(self, *keys: str) -> LocatedValue | None:
        for section, key in product(("metadata", "options"), keys):
            if value := self.get(section, key, fallback="").strip():
                line = find_pattern_line(self.text, rf"^{re.escape(key)}\s*[=:]")
                return LocatedValue(value, _SETUP_CFG_PATH, line)
        return None

    def list_items(self, key: str, section: str = "") -> Values:
        sections = (section,) if section else ("metadata", "options")
        text = next(filter(None, (self.get(name, key, fallback="") for name in sections)), "")
        words = [line.strip() for line in text.split("\n")]
        return tuple(
            LocatedValue(word, _SETUP_CFG_PATH, find_pattern_line(self.text, rf"^[ \t]*{re.escape(word)}\s*$"))
            for word in words
            if word and not word.startswith("#")
        )


def _read_setup_cfg(tree: CheckoutTree) -> PackageManifest | None:
    try:
        cfg = _SetupCfg(tree.read_text(_SETUP_CFG_PATH) or "")
    except configparser.Error:
        return None
    extras = "options.extras_require"
    scripts = cfg.list_items("console_scripts", "options.entry_points")
    return _build_manifest(
        cfg,
        _SETUP_CFG_PATH,
        version=_resolve_cfg_version(tree, cfg.find_field("version")),
        description=cfg.find_field("description", "summary"),
        optional={key: cfg.list_items(key, extras) for key in cfg.options(extras)} if cfg.has_section(extras) else {},
        commands=tuple(filter(None, (_parse_command(item) for item in scripts))),
    )


def _build_manifest(source: "_SetupCfg | _SetupCall", path: str, **fields: Any) -> PackageManifest | None:
    """Return the manifest with the fields that both files have by the same names; None without a name."""
    name = source.find_field("name")
    imports = (*(source.list_items("packages") or ()), *(source.list_items("py_modules") or ()))
    if name is None:
        return None
    return PackageManifest(
        ecosystem="pip",
        path=path,
        name=name,
        licence=source.find_field("license", "licence"),
        requires=source.find_field("python_requires"),
        dependencies=source.list_items("install_requires"),
        classifiers=source.list_items("classifiers") or (),
        imports=tuple(
            item for item in imports if item.value.isidentifier() and item.value not in ("find", "find_namespace")
        ),
        **fields,
    )


def _resolve_cfg_version(tree: CheckoutTree, declared: LocatedValue | None) -> LocatedValue | None:
    kind, _, rest = declared.value.partition(":") if declared else ("", "", "")
    if kind.strip() == "attr":
        return find_version_at(tree, rest.strip())
    if kind.strip() == "file":
        return read_version_file(tree, rest.strip())
    return declared


@dataclass(frozen=True)
class _SetupCall:
    tree: CheckoutTree
    module: ast.Module
    arguments: Mapping[str, ast.expr]
    is_complete: bool
    """False if `**more` may add any argument."""

    @cached_property
    def constants(self) -> dict[str, Any]:
        """The names that the program assigns a literal once."""
        constants: dict[str, Any] = {}
        for node in self.module.body:
            target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
            if isinstance(node, ast.Assign) and isinstance(target, ast.Name):
                constants[target.id] = None if target.id in constants else _evaluate_literal(node.value, constants)
        return constants

    def evaluate(self, key: str) -> Any:
        return _evaluate_literal(self.arguments[key], self.constants) if key in self.arguments else None

    def find_field(self, *keys: str) -> LocatedValue | None:
        for key in keys:
            if value := self._find_metadata(self.arguments.get(key)):
                return value
            if isinstance(text := self.evaluate(key), str) and text:
                node = self.arguments[key]
                # For a name, the line where it is assigned.
                assigned = _find_assigned_value(self.module, node.id) if isinstance(node, ast.Name) else None
                return LocatedValue(text, _SETUP_PY_PATH, (assigned or node).lineno)
        return None

    def _find_metadata(self, node: ast.expr | None) -> LocatedValue | None:
        """Return the value of `about["__title__"]`, which a file such as `__version__.py` of the package assigns."""
        key = node.slice.value if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) else None
        if not isinstance(key, str) or not re.fullmatch(r"__\w+__", key):
            return None
        paths = [path for path in self.tree.paths if _METADATA_PATH_PATTERN.search(path)]
        pattern = rf"""^{key}\s*=\s*["']([^"'\n]+)["']"""
        found = (ManifestFile.load(self.tree, path, "source_code").find(pattern) for path in paths)
        values = [value for value in found if value]
        return values[0] if len({value.value for value in values}) == 1 else None

    def list_items(self, key: str) -> Values | None:
        if key not in self.arguments:
            return () if self.is_complete else None
        items = self.evaluate(key)
        items = items.split("\n") if isinstance(items, str) else items
        return self.locate_items(key, as_texts(items)) if isinstance(items, list) else None

    def locate_items(self, key: str, items: list[str]) -> Values:
        """Return texts with the lines that they have in an argument."""
        node = self.arguments[key]
        assigned = _find_assigned_value(self.module, node.id) if isinstance(node, ast.Name) else None
        node = assigned or node
        lines = {
            inner.value: inner.lineno
            for inner in ast.walk(node)
            if isinstance(inner, ast.Constant) and isinstance(inner.value, str)
        }
        return tuple(LocatedValue(item, _SETUP_PY_PATH, lines.get(item, node.lineno)) for item in items)


def _read_setup_py(tree: CheckoutTree) -> PackageManifest | None:
    module = parse_python(tree.read_text(_SETUP_PY_PATH))
    call = next((node for node in ast.walk(module) if _is_setup_call(node)), None) if module else None
    if module is None or not isinstance(call, ast.Call):
        return None
    setup = _SetupCall(tree, module, *_collect_arguments(call, module))
    extras = setup.arguments.get("extras_require", call)
    scripts = as_texts(as_mapping(setup.evaluate("entry_points")).get("console_scripts"))
    return _build_manifest(
        setup,
        _SETUP_PY_PATH,
        version=setup.find_field("version") or _find_py_version(tree, module),
        description=setup.find_field("description"),
        optional={
            key: tuple(LocatedValue(str(item), _SETUP_PY_PATH, extras.lineno) for item in items)
            for key, items in as_mapping(setup.evaluate("extras_require")).items()
            if isinstance(items, list)
        },
        commands=tuple(
            command
            for item in (setup.locate_items("entry_points", scripts) if scripts else ())
            if "=" in item.value and (command := _parse_command(item))
        ),
    )


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
    names = [node.value for node in ast.walk(module) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    versions = {version.value: version for name in names if (version := find_version_in_file(tree, name))}
    return next(iter(versions.values())) if len(versions) == 1 else None


def _is_setup_call(node: ast.AST) -> bool:
    function = node.func if isinstance(node, ast.Call) else None
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return bool(name == "setup")


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


def _parse_command(entry: LocatedValue) -> LocatedValue | None:
    """Parse an entry point, such as `name = package:main`."""
    name, _, target = entry.value.partition("=")
    return LocatedValue(name.strip(), entry.path, entry.line, detail=target.strip()) if name.strip() else None

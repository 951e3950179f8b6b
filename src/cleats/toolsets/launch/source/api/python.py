"""The public API of a Python package, read from its syntax; nothing is imported.

Names that `__init__` lists in `__all__`, or imports and defines without an underscore, are followed
to their definition. A package whose `__init__` offers little is read module by module.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from textwrap import dedent
from typing import Final

from cleats.toolsets.launch.source.api.docstrings import MAX_NOTES, extract_first_sentence, find_notes
from cleats.toolsets.launch.source.api.public_names import ApiSurface, Symbol
from cleats.toolsets.launch.source.checkout import safe_parsing
from cleats.toolsets.launch.source.checkout.repository_layout import classify_path
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree

_MIN_REEXPORTED_NAMES: Final = 3
"""Below this number of re-exported names, the modules themselves are the API."""

_MAX_IMPORT_HOPS: Final = 8
"""Imports that are followed to find the definition of a name."""

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Assignment = ast.Assign | ast.AnnAssign


@dataclass
class PythonModule:
    """A parsed module with its names."""

    name: str
    path: str
    text: str
    body: ast.Module
    is_package: bool

    @cached_property
    def exports(self) -> list[str] | None:
        """The literal names in `__all__`; None without one."""
        names: list[str] | None = None
        for node in self.body.body:
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
                    names = [*(names or []), *_collect_strings(node.value)]
        return names

    @cached_property
    def statements(self) -> list[ast.stmt]:
        return _flatten_statements(self.body.body)

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        """Classes and functions by name; the last definition wins, as at run time."""
        return {node.name: node for node in self.statements if isinstance(node, Definition) and not _is_overload(node)}

    @cached_property
    def assignments(self) -> dict[str, Assignment]:
        """The assignments of this module by the name that each defines."""
        return {
            target.id: node
            for node in self.statements
            if isinstance(node, Assignment) and node.value is not None
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Other names for names of this module: `decode = decode_text`."""
        return {
            target.id: node.value.id
            for node in self.statements
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)
            for target in node.targets
            if isinstance(target, ast.Name) and target.id != node.value.id
        }

    @cached_property
    def imports(self) -> dict[str, tuple[str, str]]:
        """The module and name behind each imported name; only imports from the package itself."""
        return {name: origin for name, origin in self.import_entries if origin[1] != "*"}

    @cached_property
    def import_entries(self) -> list[tuple[str, tuple[str, str]]]:
        return [
            (alias.asname or alias.name, (source, alias.name))
            for node in self.statements
            if isinstance(node, ast.ImportFrom) and (source := self._resolve_module(node))
            for alias in node.names
        ]

    def _resolve_module(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        package_parts = parts[: len(parts) - node.level + self.is_package]
        return ".".join([*package_parts, *([node.module] if node.module else [])])

    @property
    def public_names(self) -> list[str]:
        """The public names, in order."""
        if self.exports is not None:
            return self.exports
        alias_names = [name for name, target in self.aliases.items() if target in self.definitions]
        constant_names = [name for name, node in self.assignments.items() if name.isupper() and not _is_type(node)]
        own_names = [*self.definitions, *alias_names, *constant_names]
        names = [*self.imports, *own_names] if self.is_package else own_names
        return [name for name in dict.fromkeys(names) if not name.startswith("_")]


@dataclass
class _PythonPackage:
    tree: CheckoutTree
    root: str
    """The folder that contains the package."""
    modules: dict[str, PythonModule] = field(default_factory=dict)

    def load_module(self, name: str) -> PythonModule | None:
        if name not in self.modules:
            base = self.root + name.replace(".", "/")
            for path, is_package in ((f"{base}/__init__.py", True), (f"{base}.py", False)):
                text = self.tree.read_text(path)
                if text is not None and (parsed := safe_parsing.parse_python(text)):
                    self.modules[name] = PythonModule(name, path, text, parsed, is_package)
        return self.modules.get(name)

    def find_definition(
        self, module: PythonModule, name: str, hops: int = _MAX_IMPORT_HOPS
    ) -> tuple[PythonModule, Definition | Assignment] | None:
        """Return the definition of a name, following imports through other modules."""
        if name in module.definitions:
            return module, module.definitions[name]
        if not hops:
            return None
        found = self.find_definition(module, module.aliases[name], hops - 1) if name in module.aliases else None
        if found or name in module.assignments:
            return found or (module, module.assignments[name])
        source, source_name = module.imports.get(name, ("", ""))
        if source and (inner := self.load_module(source)):
            return self.find_definition(inner, source_name, hops - 1)
        for star in (origin[0] for _, origin in module.import_entries if origin[1] == "*"):
            inner = self.load_module(star)
            if inner and name in inner.public_names:
                return self.find_definition(inner, name, hops - 1)
        return None

    def list_star_names(self, module: PythonModule) -> list[str]:
        """Return the public names that a package imports with a star."""
        stars = [origin[0] for _, origin in module.import_entries if origin[1] == "*"]
        inner_modules = filter(None, map(self.load_module, stars)) if module.is_package else ()
        return [name for inner in inner_modules for name in inner.public_names]


def read_surface(tree: CheckoutTree, packages: Mapping[str, str]) -> ApiSurface:
    """Return the public names of packages, given as a mapping of import name to file."""
    symbols: dict[str, Symbol] = {}
    modules: list[tuple[str, str]] = []
    for name, file in packages.items():
        module_path = file.removesuffix("/__init__.py").removesuffix(".py")
        package = _PythonPackage(tree, module_path.removesuffix(name.replace(".", "/")))
        top = package.load_module(name)
        if top is None:
            continue
        offered = _list_symbols(package, top, exported=True)
        reexported = [symbol for symbol in offered if symbol.path != top.path]
        files = _find_modules(tree, package.root, name)
        modules += files
        is_sparse = not reexported if top.exports is not None else len(reexported) < _MIN_REEXPORTED_NAMES
        if is_sparse and top.is_package:
            for item, _path in files:
                inner = package.load_module(item)
                if inner is not None and inner is not top:
                    exported = inner.exports is not None
                    offered += _list_symbols(package, inner, exported=exported, only_own=True)
        known_locations = {(item.path, item.line) for item in symbols.values()}
        for symbol in offered:
            if (symbol.path, symbol.line) not in known_locations:  # a second package with the same names
                symbols.setdefault(symbol.name, symbol)
    return ApiSurface(tuple(symbols.values()), tuple(modules))


def _list_symbols(
    package: _PythonPackage, module: PythonModule, *, exported: bool, only_own: bool = False
) -> list[Symbol]:
    names = [*module.public_names, *([] if module.exports is not None else package.list_star_names(module))]
    definitions = {name: package.find_definition(module, name) for name in names if name[:1] != "_"}
    return [
        _make_symbol(f"{module.name}.{name}", *definition, exported)
        for name, definition in definitions.items()
        if definition and (not only_own or definition[0] is module)
    ]


def _make_symbol(name: str, module: PythonModule, node: Definition | Assignment, exported: bool) -> Symbol:
    if isinstance(node, Assignment):
        doc, line = _read_assignment_doc(module, node)
        made_by = node.value.func if isinstance(node.value, ast.Call) else None
        maker_class = module.definitions.get(made_by.id) if isinstance(made_by, ast.Name) else None
        if not doc and isinstance(maker_class, ast.ClassDef):  # the only instance of a class is what the class is
            doc, line = _read_doc(maker_class)
        end = node.end_lineno or node.lineno
        return _document_symbol(Symbol(name, "constant", module.path, node.lineno, end, exported=exported), doc, line)
    symbol = _make_definition(name, module, node, "class" if isinstance(node, ast.ClassDef) else "function")
    constructor = _find_constructor(node)
    maker = (constructor.lineno, max(constructor.lineno, constructor.body[0].lineno - 1)) if constructor else (0, 0)
    members = _list_members(name, module, node) if isinstance(node, ast.ClassDef) else ()
    notes = [*symbol.notes, *(_document_symbol(symbol, *_read_doc(constructor)).notes if constructor else ())]
    return replace(symbol, maker=maker, exported=exported, members=members, notes=tuple(notes[:MAX_NOTES]))


def _make_definition(name: str, module: PythonModule, node: Definition, kind: str) -> Symbol:
    first = node.body[0]
    symbol = Symbol(
        name=name,
        kind=kind,
        path=module.path,
        line=node.lineno,
        end=node.lineno if isinstance(node, ast.ClassDef) else max(node.lineno, first.lineno - 1),
        signature="" if kind == "property" else _format_signature(node, module.text, skip=int(kind == "method")),
    )
    return _document_symbol(symbol, *_read_doc(node))


def _document_symbol(symbol: Symbol, doc: str, line: int) -> Symbol:
    """Return a symbol with what its documentation, which begins on `line`, says about it."""
    if not doc.strip():
        return symbol
    skipped = len(doc) - len(doc.lstrip("\n"))
    text = doc.strip("\n")
    return replace(
        symbol,
        doc=extract_first_sentence(text),
        doc_line=line,
        doc_end=line + skipped + re.split(r"\n\s*\n", text)[0].count("\n"),
        deprecated=bool(re.search(r"\bdeprecated\b", text[:400], re.IGNORECASE)),
        notes=find_notes(text, line + skipped),
    )


def _read_doc(node: Definition) -> tuple[str, int]:
    """Return the docstring with its indentation removed, and its line."""
    first = node.body[0]
    if not isinstance(first, ast.Expr) or not isinstance(first.value, ast.Constant):
        return "", 0
    head, _, rest = str(first.value.value).expandtabs().partition("\n")
    return f"{head.strip()}\n{dedent(rest)}", first.lineno


def _read_assignment_doc(module: PythonModule, node: Assignment) -> tuple[str, int]:
    """Return the text that documents an assignment: a string below it, or comments that begin with `#:`."""
    position = module.statements.index(node) + 1
    following = module.statements[position] if position < len(module.statements) else None
    if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
        text = following.value.value
        return (text, following.lineno) if isinstance(text, str) else ("", 0)
    lines = module.text.split("\n")
    start = node.lineno
    while start > 1 and lines[start - 2].startswith("#:"):
        start -= 1
    return "\n".join(line[2:].strip() for line in lines[start - 1 : node.lineno - 1]), start


def _list_members(name: str, module: PythonModule, node: ast.ClassDef) -> tuple[Symbol, ...]:
    """Return the public methods and properties that a class defines, the last definition of each."""
    members: dict[str, Symbol] = {}
    for item in _flatten_statements(node.body):
        if not isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) or _is_overload(item):
            continue
        decorators = [safe_parsing.unparse_node(decorator) for decorator in item.decorator_list]
        is_hidden = item.name.startswith("_") and item.name != "__call__"
        if is_hidden or any(decorator.endswith((".setter", ".deleter")) for decorator in decorators):
            continue
        is_property = any(decorator.rpartition(".")[2].endswith("property") for decorator in decorators)
        kind = "property" if is_property else "function" if "staticmethod" in decorators else "method"
        member = _make_definition(f"{name}.{item.name}", module, item, kind)
        members[item.name] = replace(member, kind="property" if is_property else "method")
    return tuple(members.values())


def _format_signature(node: Definition, text: str, skip: int = 0) -> str:
    maker = _find_constructor(node) if isinstance(node, ast.ClassDef) else node
    skip = skip or int(maker is not node)
    return f"{node.name}({_format_arguments(maker.args, text, skip=skip)})" if maker else node.name


def _find_constructor(node: Definition) -> ast.FunctionDef | None:
    methods = (method for method in node.body if isinstance(method, ast.FunctionDef) and isinstance(node, ast.ClassDef))
    return next((method for method in methods if method.name == "__init__"), None)


def _format_arguments(arguments: ast.arguments, text: str, skip: int = 0) -> str:
    """Format the parameters without their types, which belong in the reference."""

    def keep_source_text(value: ast.expr) -> ast.expr:
        """Return a default as the file writes it: `10_000` stays readable."""
        source = ast.get_source_segment(text, value) if isinstance(value, ast.Constant) else None
        return ast.Name(source) if source and "\n" not in source else value

    only_positional = arguments.posonlyargs[skip:]
    positional = arguments.args[max(0, skip - len(arguments.posonlyargs)) :]
    default_count = min(len(arguments.defaults), len(only_positional) + len(positional))
    untyped = ast.arguments(
        posonlyargs=[ast.arg(item.arg) for item in only_positional],
        args=[ast.arg(item.arg) for item in positional],
        vararg=ast.arg(arguments.vararg.arg) if arguments.vararg else None,
        kwonlyargs=[ast.arg(item.arg) for item in arguments.kwonlyargs],
        kw_defaults=[keep_source_text(item) if item else None for item in arguments.kw_defaults],
        kwarg=ast.arg(arguments.kwarg.arg) if arguments.kwarg else None,
        defaults=[keep_source_text(item) for item in arguments.defaults[len(arguments.defaults) - default_count :]],
    )
    return safe_parsing.unparse_node(untyped)


def _find_modules(tree: CheckoutTree, root: str, package: str) -> list[tuple[str, str]]:
    modules: list[tuple[str, str]] = []
    for path in tree.paths_below(f"{root}{package.replace('.', '/')}"):
        parts = path.removeprefix(root).removesuffix(".py").split("/")
        if path.endswith(".py") and classify_path(path) == "source":
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            is_hidden = any(part.startswith("_") or part in ("tests", "testing") for part in parts)
            if not is_hidden and all(part.isidentifier() for part in parts):
                modules.append((".".join(parts), path))
    return modules


def _flatten_statements(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements of a module, including those in a condition or a `try`."""
    statements: list[ast.stmt] = []
    for node in body:
        if not isinstance(node, ast.If | ast.Try):
            statements.append(node)
        elif isinstance(node, ast.Try) or not re.search("TYPE_CHECKING|__name__", ast.unparse(node.test)):
            statements += _flatten_statements([*node.body, *node.orelse])
    return statements


def _collect_strings(node: ast.expr) -> list[str]:
    return [child.value for child in ast.walk(node) if isinstance(child, ast.Constant) and isinstance(child.value, str)]


def _is_type(node: Assignment) -> bool:
    """Return whether an assignment only declares a name for annotations, such as a type variable."""
    call = node.value
    name = safe_parsing.unparse_node(call.func) if isinstance(call, ast.Call) else ""
    return name.rpartition(".")[2] in {"TypeVar", "ParamSpec", "TypeVarTuple", "NewType"}


def _is_overload(node: Definition) -> bool:
    return any("overload" in safe_parsing.unparse_node(decorator) for decorator in node.decorator_list)

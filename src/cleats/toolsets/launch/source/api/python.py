"""The public API of a Python package, read from its syntax; nothing is imported.

What `__init__` lists in `__all__`, or imports and defines without an underscore, is followed to its
definition. A package whose `__init__` offers little is read module by module.
"""

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from cleats.toolsets.launch.source import programs, prose, rst
from cleats.toolsets.launch.source.api.model import Surface, Symbol
from cleats.toolsets.launch.source.roots import kind_of
from cleats.toolsets.launch.source.tree import Tree

_FEW: Final = 3
"""Names from its modules below which `__init__` is only a door, and they are the house."""

_HOPS: Final = 8
"""How often a name may be imported from somewhere else."""

_SMALL_END: Final = re.compile(r"(?<=\w\w\w)(?<!etc)\.\s+(?=[a-z])")

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Module:
    """A module and what it says about its own names."""

    name: str
    path: str
    text: str
    body: ast.Module
    is_package: bool

    @cached_property
    def exports(self) -> list[str] | None:
        """What `__all__` lists literally; None without one."""
        found: list[str] | None = None
        for node in self.body.body:
            targets: list[ast.expr] = []
            value: ast.expr | None = None
            if isinstance(node, ast.Assign):
                targets, value = node.targets, node.value
            elif isinstance(node, ast.AnnAssign | ast.AugAssign):
                targets, value = [node.target], node.value
            if value and any(
                isinstance(each, ast.Name) and each.id == "__all__" for each in targets
            ):
                found = [*(found or []), *_strings(value)]
        return found

    @cached_property
    def defined(self) -> dict[str, Definition]:
        """Classes and functions by name; the last one of several wins, as it does at run time."""
        return {
            node.name: node
            for node in _statements(self.body.body)
            if isinstance(node, Definition) and not _is_overload(node)
        }

    @cached_property
    def renamed(self) -> dict[str, str]:
        """Other names for names of this module: `decode = decode_text`."""
        return {
            target.id: node.value.id
            for node in _statements(self.body.body)
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)
            for target in node.targets
            if isinstance(target, ast.Name) and target.id != node.value.id
        }

    @cached_property
    def imported(self) -> dict[str, tuple[str, str]]:
        """Name here, module and name there; only from inside of the package."""
        found: dict[str, tuple[str, str]] = {}
        for node in _statements(self.body.body):
            if isinstance(node, ast.ImportFrom) and (source := self._absolute(node)):
                for each in node.names:
                    if each.name != "*":
                        found[each.asname or each.name] = (source, each.name)
        return found

    @cached_property
    def stars(self) -> list[str]:
        """The modules that it imports everything from."""
        return [
            source
            for node in _statements(self.body.body)
            if isinstance(node, ast.ImportFrom) and (source := self._absolute(node))
            if any(each.name == "*" for each in node.names)
        ]

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        kept = parts[: len(parts) - node.level + self.is_package]
        return ".".join([*kept, *([node.module] if node.module else [])])

    @property
    def public(self) -> list[str]:
        """The names it offers, in order."""
        if self.exports is not None:
            return self.exports
        given = [name for name, meant in self.renamed.items() if meant in self.defined]
        own = [*self.defined, *given]
        names = [*self.imported, *own] if self.is_package else own
        return [name for name in dict.fromkeys(names) if not name.startswith("_")]


@dataclass
class _Package:
    tree: Tree
    root: str
    """The folder that the package lies in."""
    modules: dict[str, Module] = field(default_factory=dict)

    def module(self, name: str) -> Module | None:
        if name not in self.modules:
            base = self.root + name.replace(".", "/")
            for path, is_package in ((f"{base}/__init__.py", True), (f"{base}.py", False)):
                if parsed := _parse(self.tree, path):
                    text = self.tree.text(path) or ""
                    self.modules[name] = Module(name, path, text, parsed, is_package)
        return self.modules.get(name)

    def find(
        self, module: Module, name: str, hops: int = _HOPS
    ) -> tuple[Module, Definition] | None:
        """Where a name is defined, however many modules have passed it on."""
        if name in module.defined:
            return module, module.defined[name]
        if not hops:
            return None
        if name in module.renamed:
            return self.find(module, module.renamed[name], hops - 1)
        source, there = module.imported.get(name, ("", ""))
        if source and (inner := self.module(source)):
            return self.find(inner, there, hops - 1)
        for star in module.stars:
            inner = self.module(star)
            if inner and name in inner.public:
                return self.find(inner, name, hops - 1)
        return None


def surface(tree: Tree, packages: Mapping[str, str]) -> Surface:
    """The public names of some packages in order, each given as what is imported and its file."""
    symbols: dict[str, Symbol] = {}
    modules: list[tuple[str, str]] = []
    for name, file in packages.items():
        place = file.removesuffix("/__init__.py").removesuffix(".py")
        package = _Package(tree, place.removesuffix(name.replace(".", "/")))
        top = package.module(name)
        if top is None:
            continue
        own = _offered(package, top, exported=True)
        passed_on = [symbol for symbol in own if symbol.path != top.path]
        files = _module_names(tree, package.root, name)
        modules += [(each, path) for each, path in files]
        few = not passed_on if top.exports is not None else len(passed_on) < _FEW
        if few and top.is_package:
            for each, _path in files:
                inner = package.module(each)
                if inner is not None and inner is not top:
                    exported = inner.exports is not None
                    own += _offered(package, inner, exported=exported, only_own=True)
        known = {(each.path, each.line) for each in symbols.values()}
        for symbol in own:
            if (symbol.path, symbol.line) not in known:  # a second package with the same names
                symbols.setdefault(symbol.name, symbol)
    return Surface(tuple(symbols.values()), tuple(modules))


def _offered(
    package: _Package, module: Module, *, exported: bool, only_own: bool = False
) -> list[Symbol]:
    found: list[Symbol] = []
    for name in module.public:
        place = package.find(module, name)
        if place is None or name.startswith("_") or (only_own and place[0] is not module):
            continue
        found.append(_symbol(f"{module.name}.{name}", *place, exported))
    return found


def _symbol(name: str, module: Module, node: Definition, exported: bool) -> Symbol:
    raw = ast.get_docstring(node) or ""
    first = node.body[0]
    maker = _maker(node)
    told = re.split(r"\n\s*\n", raw)[0].count("\n")
    return Symbol(
        name=name,
        kind="class" if isinstance(node, ast.ClassDef) else "function",
        path=module.path,
        line=node.lineno,
        end=node.lineno if isinstance(node, ast.ClassDef) else max(node.lineno, first.lineno - 1),
        signature=_signature(node, module.text),
        doc=first_sentence(raw),
        doc_line=first.lineno if raw else 0,
        doc_end=min(first.lineno + told + 1, first.end_lineno or first.lineno) if raw else 0,
        maker=(maker.lineno, max(maker.lineno, maker.body[0].lineno - 1)) if maker else (0, 0),
        deprecated=bool(re.search(r"\bdeprecated\b", raw[:400], re.IGNORECASE)),
        exported=exported,
    )


def first_sentence(doc: str) -> str:
    """The first sentence of a docstring without its marks; "" when it begins with none."""
    marks = (
        r"[-*@] |:(?:param|return|rtype|type|raise|arg|ivar|cvar|meta)\w*|>>>|\.\. |\w+:\s*(?:\n|$)"
    )
    paragraph = re.split(rf"\n\s*\n|\n\s*(?={marks})", doc.strip())[0]
    named = re.sub(r"(?<![\w*`])\*([A-Za-z_]\w*)\*(?![\w*])", r"``\1``", paragraph)
    found = prose.sentences(rst.plain(named))
    if not found:
        return ""
    # Who begins a sentence with a small letter begins the next one so, too.
    small = found[0][:1].islower()
    return _SMALL_END.split(found[0], maxsplit=1)[0] if small else found[0]


def _signature(node: Definition, text: str) -> str:
    if isinstance(node, ast.ClassDef):
        maker = _maker(node)
        return f"{node.name}({_arguments(maker.args, text, skip=1)})" if maker else node.name
    return f"{node.name}({_arguments(node.args, text)})"


def _maker(node: Definition) -> ast.FunctionDef | None:
    """What is called to make an object of a class."""
    if not isinstance(node, ast.ClassDef):
        return None
    makers = (each for each in node.body if isinstance(each, ast.FunctionDef))
    return next((each for each in makers if each.name == "__init__"), None)


def _arguments(arguments: ast.arguments, text: str, skip: int = 0) -> str:
    """The parameters without their types: those are for the reference, not for a headline."""

    def written(value: ast.expr) -> ast.expr:
        """A default as it stands in the file: `10_000` stays readable."""
        source = ast.get_source_segment(text, value) if isinstance(value, ast.Constant) else None
        return ast.Name(source) if source and "\n" not in source else value

    bare = ast.arguments(
        posonlyargs=[ast.arg(each.arg) for each in arguments.posonlyargs],
        args=[ast.arg(each.arg) for each in arguments.args],
        vararg=ast.arg(arguments.vararg.arg) if arguments.vararg else None,
        kwonlyargs=[ast.arg(each.arg) for each in arguments.kwonlyargs],
        kw_defaults=[written(each) if each else None for each in arguments.kw_defaults],
        kwarg=ast.arg(arguments.kwarg.arg) if arguments.kwarg else None,
        defaults=[written(each) for each in arguments.defaults],
    )
    for _ in range(skip):
        if places := bare.posonlyargs or bare.args:
            places.pop(0)
    room = len(bare.posonlyargs) + len(bare.args)
    bare.defaults = bare.defaults[max(0, len(bare.defaults) - room) :]
    return programs.written(bare)


def _module_names(tree: Tree, root: str, package: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for path in tree.below(f"{root}{package.replace('.', '/')}"):
        parts = path.removeprefix(root).removesuffix(".py").split("/")
        if path.endswith(".py") and kind_of(path) == "source":
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            hidden = any(part.startswith("_") or part in ("tests", "testing") for part in parts)
            if not hidden and all(part.isidentifier() for part in parts):
                found.append((".".join(parts), path))
    return found


def _parse(tree: Tree, path: str) -> ast.Module | None:
    text = tree.text(path)
    return None if text is None else programs.parse(text)


def _statements(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a module, those behind a condition or a `try` included."""
    found: list[ast.stmt] = []
    for node in body:
        if isinstance(node, ast.If | ast.Try):
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
                continue
            found += _statements([*node.body, *node.orelse])
        else:
            found.append(node)
    return found


def _strings(node: ast.expr) -> list[str]:
    return [
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]


def _is_overload(node: Definition) -> bool:
    return any("overload" in programs.written(each) for each in node.decorator_list)

"""The public API of a JavaScript or TypeScript package: the exports of its entry file, type declarations first."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Final

from cleats.toolsets.launch.source.api.declarations import (
    CLASS_LABELS,
    Declaration,
    FileDeclarations,
    make_members,
    make_symbol,
    read_declarations,
)
from cleats.toolsets.launch.source.api.public_names import ApiSurface, Symbol
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree
from cleats.toolsets.launch.source.manifests.model import PackageManifest

_SOURCE_SUFFIXES: Final = (".d.ts", ".ts", ".d.mts", ".mts", ".d.cts", ".js", ".mjs", ".cjs", ".tsx", ".jsx")
_MAX_FOLLOWED_FILES: Final = 200
"""Files followed from an entry; a larger package is represented by its first names."""

_MAX_IMPORT_HOPS: Final = 8
"""Imports and re-exports that are followed to find the declaration of a name."""

_COMMENT_PATTERN: Final = re.compile(r"^[ \t]*//[^\n]*|/\*.*?\*/", re.MULTILINE | re.DOTALL)
_REEXPORT_PATTERN: Final = re.compile(
    r"^[ \t]*export\s+(?:type\s+)?(?P<what>\*(?:\s+as\s+\w+)?|\{[^}]*\})\s*from\s*['\"](?P<source>[^'\"]+)['\"]",
    re.MULTILINE,
)
_EXPORT_LIST_PATTERN: Final = re.compile(r"^[ \t]*export\s+(?:type\s+)?(\{[^}]*\})(?!\s*from)", re.MULTILINE)
_DEFAULT_PATTERN: Final = re.compile(
    r"^[ \t]*(?:export\s+default\s+|export\s*=\s*|module\.exports\s*=\s*(?:exports\s*=\s*)?)"
    r"(?!function\b|class\b|async\b|abstract\b|interface\b)([A-Za-z_$][\w$]*)\s*;?\s*$",
    re.MULTILINE,
)
_COMMONJS_LIST_PATTERN: Final = re.compile(r"^[ \t]*module\.exports\s*=\s*(\{[^}]*\})", re.MULTILINE)
_COMMONJS_NAME_PATTERN: Final = re.compile(
    r"^[ \t]*(?:module\.)?exports\.([A-Za-z_$][\w$]*)\s*=\s*([A-Za-z_$][\w$]*)\s*;?\s*$", re.MULTILINE
)
_IMPORT_PATTERN: Final = re.compile(
    r"^[ \t]*import\s+(?:type\s+)?(?P<default>[A-Za-z_$][\w$]*)?\s*,?\s*(?P<names>\{[^}]*\})?\s*from\s*"
    r"['\"](?P<source>[^'\"]+)['\"]",
    re.MULTILINE,
)
_REQUIRE_PATTERN: Final = re.compile(
    r"^[ \t]*(?:const|let|var)\s+(?P<default>[A-Za-z_$][\w$]*)?(?P<names>\{[^}]*\})?\s*=\s*"
    r"require\(['\"](?P<source>[^'\"]+)['\"]\)\s*;?\s*$",
    re.MULTILINE,
)
_LINK_PATTERN: Final = re.compile(r"\{@(?:link|linkcode|linkplain)\s+([^}|\s]+)[^}]*\}")
_NAMING_TAG_PATTERN: Final = re.compile(
    r"^[ \t]*@(?:name|category|summary|memberof|function|module)\b[^\n]*\n?", re.MULTILINE
)
_DESCRIPTION_PATTERN: Final = re.compile(r"@description\s+(.+?)(?=\n\s*\n|\n\s*@|\Z)", re.DOTALL)
_DIRECTIVE_PATTERN: Final = re.compile(r"\s*(?:eslint|oxlint|tslint|@ts-|istanbul|c8|v8|biome|prettier)[-\w]*\b")
_TAG_PATTERN: Final = re.compile(r"^\s*@\w+", re.MULTILINE)
_PROPERTY_PATTERN: Final = re.compile(r"(?:readonly\s+)?([A-Za-z_$][\w$]*)\??\s*:")
_VARIABLE_PATTERN: Final = re.compile(
    r"^(?:export\s+)?(?:declare\s+)?(?:const|let|var)\s+(?P<name>[A-Za-z_$][\w$]*)\b", re.MULTILINE
)
_EXPORTED_VARIABLE_PATTERN: Final = re.compile(
    r"^export\s+(?:declare\s+)?(?:const|let|var)\s+([A-Za-z_$][\w$]*)\b", re.MULTILINE
)
_DOC_ABOVE_PATTERN: Final = re.compile(r"/\*\*(?P<doc>(?:(?!\*/).)*)\*/[ \t]*\n\Z", re.DOTALL)
_REMARK_PATTERN: Final = re.compile(r"^[ \t]*(?:TODO|FIXME|XXX|HACK)\b[^\n]*\n?", re.MULTILINE)
"""A remark of developers to themselves."""

_DEPRECATION_PATTERN: Final = re.compile(r"^\s*@deprecated\s+(?P<text>[A-Z][^\n]*)", re.MULTILINE)
_CLASS_MEMBER_KINDS: Final = ("method", "property")


def read_surface(tree: CheckoutTree, manifest: PackageManifest) -> ApiSurface:
    """Return the names that the first entry file with exports offers, then those of the other paths to import."""
    package = manifest.name.value if manifest.name else ""
    entry, symbols = _read_first_entry(tree, package, manifest.entry_files)
    modules = [(package, entry)] if entry else []
    by_name = {symbol.name: symbol for symbol in symbols}
    places = {(symbol.path, symbol.line) for symbol in symbols}
    for subpath in manifest.subpaths:
        module = f"{package}/{subpath.name}"
        entry, symbols = _read_first_entry(tree, module, subpath.entry_files)
        new_symbols = [item for item in symbols if item.name not in by_name and (item.path, item.line) not in places]
        if new_symbols:
            modules.append((module, entry))
            by_name |= {symbol.name: symbol for symbol in new_symbols}
            places |= {(symbol.path, symbol.line) for symbol in new_symbols}
    return ApiSurface(tuple(by_name.values()), tuple(modules))


def _read_first_entry(tree: CheckoutTree, package: str, entry_files: tuple[str, ...]) -> tuple[str, list[Symbol]]:
    """Return the first file with exports and its names; the first file without names if none has exports."""
    for entry in entry_files:
        if symbols := _PackageReader(tree, package).list_symbols(entry):
            return entry, symbols
    return next(iter(entry_files), ""), []


@dataclass
class _PackageReader:
    tree: CheckoutTree
    package: str
    files: dict[str, FileDeclarations] = field(default_factory=dict)
    codes: dict[str, str] = field(default_factory=dict)

    def list_symbols(self, entry: str) -> list[Symbol]:
        """Return the exports of a file, each with its declaration."""
        self._load_files(entry)
        symbols: dict[str, Symbol] = {}
        for name, declaration in self.iter_exports(entry):
            public_name = self._name_default(declaration) if name == "default" else name
            if (
                public_name
                and not public_name.startswith("_")
                and (symbol := self._make_symbol(public_name, declaration))
            ):
                known = {(item.path, item.line) for item in symbols.values()}
                if (symbol.path, symbol.line) not in known:
                    symbols.setdefault(public_name, symbol)
        # Aliases of types help only readers who know the classes and functions.
        return sorted(symbols.values(), key=lambda symbol: symbol.label == "type")

    def _load_files(self, entry: str) -> None:
        """Parse the entry and the files of the package that it imports, in few batches."""
        pending = [entry]
        while pending and len(self.files) < _MAX_FOLLOWED_FILES:
            for language, suffixes in _SUFFIXES_BY_LANGUAGE.items():
                paths = [path for path in pending if PurePosixPath(path).suffix in suffixes]
                self.files |= read_declarations(self.tree, paths, language)
            found: dict[str, None] = {}
            for path in pending:
                self.files.setdefault(path, FileDeclarations([], []))
                for pattern in (_REEXPORT_PATTERN, _IMPORT_PATTERN, _REQUIRE_PATTERN):
                    for match in pattern.finditer(self.read_code(path)):
                        found[_resolve_import(self.tree, path, match["source"])] = None
            pending = [path for path in found if path and path not in self.files]

    def read_code(self, path: str) -> str:
        """Return the text of a file without comments."""
        if path not in self.codes:
            self.codes[path] = _COMMENT_PATTERN.sub("", self.tree.read_text(path) or "")
        return self.codes[path]

    def iter_exports(self, path: str, hops: int = _MAX_IMPORT_HOPS) -> Iterator[tuple[str, Declaration]]:
        """Yield the names that a file exports with their declarations; a default export is called `default`."""
        code = self.read_code(path)
        for declaration in self.files[path].declarations if path in self.files else ():
            if not declaration.owner and "export" in declaration.modifiers:
                yield ("default" if "default" in declaration.modifiers else declaration.own_name), declaration
        yield from self._iter_exported_variables(path, code)
        aliases = [(name, "default") for name in _DEFAULT_PATTERN.findall(code)]
        for text in (*_EXPORT_LIST_PATTERN.findall(code), *_COMMONJS_LIST_PATTERN.findall(code)):
            aliases += _read_names(text)
        aliases += [(name, exported) for exported, name in _COMMONJS_NAME_PATTERN.findall(code)]
        for name, exported in aliases:
            if found := self.find_declaration(path, name, hops):
                yield exported, found
        for match in _REEXPORT_PATTERN.finditer(code) if hops else ():
            target = _resolve_import(self.tree, path, match["source"])
            if not target or " as " in match["what"].partition("{")[0]:
                continue
            inner = dict(reversed([*self.iter_exports(target, hops - 1)]))
            if match["what"].startswith("*"):
                yield from ((name, item) for name, item in reversed(inner.items()) if name != "default")
            else:
                yield from ((alias, inner[name]) for name, alias in _read_names(match["what"]) if name in inner)

    def _iter_exported_variables(self, path: str, code: str) -> Iterator[tuple[str, Declaration]]:
        """Yield the exported variables that the analysis does not list."""
        listed = {item.own_name for item in (self.files[path].declarations if path in self.files else ())}
        for name in _EXPORTED_VARIABLE_PATTERN.findall(code):
            if name not in listed and (variable := self._find_variable(path, name)):
                yield name, variable

    def find_declaration(self, path: str, name: str, hops: int) -> Declaration | None:
        """Return the declaration of a name in a file, or in the file that it is imported from."""
        own = [item for item in self.files[path].declarations if item.name == name] if path in self.files else []
        documented = next((item for item in own if item.doc), None)
        if own or not hops:
            return documented or next(iter(own), None)
        for pattern in (_IMPORT_PATTERN, _REQUIRE_PATTERN):
            for match in pattern.finditer(self.read_code(path)):
                pairs = _read_names(match["names"] or "")
                # `{a: b}` is an object where it is exported, but takes `a` as `b` where it is imported.
                is_required = pattern is _REQUIRE_PATTERN
                imported = {inner if is_required else alias: alias if is_required else inner for inner, alias in pairs}
                wanted = "default" if match["default"] == name else imported.get(name, "")
                target = _resolve_import(self.tree, path, match["source"]) if wanted else ""
                if target:
                    return dict(self.iter_exports(target, hops - 1)).get(wanted)
        return self._find_variable(path, name)

    def _find_variable(self, path: str, name: str) -> Declaration | None:
        """Return a variable that the analysis does not list because its value is neither a function nor a literal."""
        text = self.tree.read_text(path) or ""
        match = next((item for item in _VARIABLE_PATTERN.finditer(text) if item["name"] == name), None)
        if match is None:
            return None
        line = text.count("\n", 0, match.start()) + 1
        above = _DOC_ABOVE_PATTERN.search(text, 0, match.start())
        doc = "\n".join(map(_strip_comment_sign, above["doc"].split("\n"))) if above else ""
        doc_line = line
        if above and doc.strip():
            blank_lines = len(doc) - len(doc.lstrip("\n"))
            doc_line = text.count("\n", 0, above.start("doc")) + 1 + doc[:blank_lines].count("\n")
        return Declaration("constant", name, path, line, line, name, [], doc.strip("\n"), doc_line, "public", [], [])

    def _list_properties(self, owner: Declaration, known_names: set[str]) -> list[Declaration]:
        """Return the properties in the body of a type, which the analysis lists only if their value is a function."""
        lines = (self.tree.read_text(owner.path) or "").split("\n")
        properties: list[Declaration] = []
        doc_lines: list[str] = []
        depth = open_calls = doc_line = 0
        in_comment = False
        for number, line in enumerate(lines[owner.line - 1 :], start=owner.line):
            text = line.strip()
            if in_comment or text.startswith("/**"):
                doc_lines, doc_line = (doc_lines, doc_line) if in_comment else ([], number)
                doc_lines.append(_strip_comment_sign(text.removeprefix("/**").removesuffix("*/")))
                in_comment = "*/" not in text
                continue
            match = _PROPERTY_PATTERN.match(text) if depth == 1 and not open_calls else None
            if match and match[1] not in known_names and not match[1].startswith("_"):
                doc = "\n".join(doc_lines).strip("\n")
                start = doc_line + (not doc_lines[0]) if doc else number
                qualified_name = f"{owner.name}.{match[1]}"
                properties.append(
                    Declaration(
                        "property", qualified_name, owner.path, number, number, match[1], [], doc, start, "", [], []
                    )
                )
            doc_lines = [] if text else doc_lines
            depth += text.count("{") - text.count("}")
            open_calls += text.count("(") - text.count(")")
            if depth <= 0 and open_calls <= 0 and (number > owner.line or text.endswith((";", "}"))):
                break
        return properties

    def _name_default(self, declaration: Declaration) -> str:
        """Return the name for a default export: its own, else that of the package in camel case."""
        if declaration.own_name not in ("", "default"):
            return declaration.own_name
        words = re.split(r"[^A-Za-z0-9]+", self.package.rpartition("/")[2])
        return words[0] + "".join(word.capitalize() for word in words[1:])

    def _make_symbol(self, name: str, declaration: Declaration) -> Symbol | None:
        if declaration.kind in CLASS_LABELS:
            inner = [
                item
                for item in self.files[declaration.path].declarations
                if item.owner == declaration.name and item.visibility in ("", "public")
                if item.own_name.isidentifier() and not item.own_name.startswith("_")
            ]
            if declaration.kind in ("type", "interface"):
                inner = [*inner, *self._list_properties(declaration, {item.own_name for item in inner})]
            members = make_members((item for item in inner if item.kind in _CLASS_MEMBER_KINDS), name, clean_doc)
            maker = next((item for item in inner if item.kind == "constructor"), None)
            return make_symbol(declaration, name, "class", clean_doc, members=members, maker=maker)
        if declaration.kind in ("function", "constant"):
            symbol = make_symbol(declaration, name, declaration.kind, clean_doc)
            return replace(symbol, signature=symbol.signature.replace(declaration.own_name, name, 1))
        return None


_SUFFIXES_BY_LANGUAGE: Final = {
    "typescript": (".ts", ".mts", ".cts"),
    "tsx": (".tsx",),
    "javascript": (".js", ".mjs", ".cjs", ".jsx"),
}


def _read_names(text: str) -> list[tuple[str, str]]:
    """Return the pairs of inner and outer names in `{a, b as c}` or `{a: b}`."""
    pairs = []
    for part in text.strip("{} \n").split(","):
        words = part.strip().removeprefix("type ").strip()
        if match := re.fullmatch(r"([\w$]+)\s+as\s+([\w$]+)", words):
            pairs.append((match[1], match[2]))
        elif match := re.fullmatch(r"([\w$]+)\s*:\s*([\w$]+)", words):  # an object of CommonJS
            pairs.append((match[2], match[1]))
        elif re.fullmatch(r"[\w$]+", words):
            pairs.append((words, words))
    return pairs


def _resolve_import(tree: CheckoutTree, path: str, source: str) -> str:
    if not source.startswith("."):
        return ""
    base = normpath(str(PurePosixPath(path).parent / source))
    stem = re.sub(r"\.[cm]?[jt]sx?$", "", base)
    candidates = [f"{stem}{end}" for end in _SOURCE_SUFFIXES] + [f"{base}/index{end}" for end in _SOURCE_SUFFIXES]
    candidates.sort(key=lambda candidate: ".d." in path and ".d." not in candidate)
    return next((candidate for candidate in (base, *candidates) if candidate in tree.path_set), "")


def _strip_comment_sign(line: str) -> str:
    """Return a line of a comment without the star that it may begin with."""
    return re.sub(r"^\*(?: |$)", "", line.strip()).strip()


def clean_doc(doc: str, _name: str) -> str:
    """Return the description of a JSDoc comment, with links as code; without one, what to use instead."""
    doc = _REMARK_PATTERN.sub("", doc)
    if _DIRECTIVE_PATTERN.match(doc) or doc[:1].islower():  # a remark between developers, not documentation
        return ""
    description = _DESCRIPTION_PATTERN.search(doc)
    text = description[1] if description else _TAG_PATTERN.split(_NAMING_TAG_PATTERN.sub("", doc), maxsplit=1)[0]
    deprecation = _DEPRECATION_PATTERN.search(doc) if not text.strip() else None
    return _LINK_PATTERN.sub(r"`\1`", deprecation["text"] if deprecation else text).strip()

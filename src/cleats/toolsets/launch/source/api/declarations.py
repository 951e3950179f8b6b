"""The declarations of source files, as the code toolset reads them, in the form that the readers of an API use.

Files are parsed in another process: a grammar is native code, and damaged text may crash it or keep it
busy for minutes. The declarations of such a file are unknown.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from cleats.system.worker_pool import LostTask, ProcessPool
from cleats.toolsets.code.analysis.languages.engine import parse_declarations
from cleats.toolsets.launch.source.api.docstrings import extract_first_sentence, find_notes
from cleats.toolsets.launch.source.api.public_names import Symbol
from cleats.toolsets.launch.source.checkout.tree import CheckoutTree

DocCleaner: TypeAlias = Callable[[str, str], str]
"""Converts the markup in the documentation of a name to plain text; the name is the second argument."""

CLASS_LABELS: Final = {
    kind: "" if kind == "class" else kind for kind in ("class", "interface", "trait", "struct", "enum", "type")
}
"""The kinds of declarations that are types, with the words for them in a text."""

MAX_SIGNATURE_CHARS: Final = 120
"""A longer signature is shortened to the names of its parameters."""

_DEPRECATED_PATTERN: Final = re.compile(r"^\s*@?deprecated\b", re.IGNORECASE | re.MULTILINE)
_SIGNATURE_END_PATTERN: Final = re.compile(r"[{;]|=>?\s*$")
_SIGNATURE_NOISE_PATTERN: Final = re.compile(r"\bfinal |\s+throws\s.*$|\s+: (?:base|this)\(.*$")
_NAME_SEPARATOR_PATTERN: Final = re.compile(r"\.|::")
_MAX_SIGNATURE_LINES: Final = 30


class Declaration(Struct, frozen=True):
    """One declaration of a file. `name` is qualified within the file, with dots."""

    kind: str
    name: str
    path: str
    line: int
    end: int
    """The last line of its signature."""
    signature: str
    parameters: list[str]
    doc: str
    """Its documentation without comment signs."""
    doc_line: int
    visibility: str
    modifiers: list[str]
    decorators: list[str]

    @property
    def own_name(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def owner(self) -> str:
        return self.name.rpartition(".")[0]


class FileDeclarations(Struct, frozen=True):
    """The declarations of a file in their order, and the names that the file itself exports."""

    declarations: list[Declaration]
    exports: list[str]


def read_declarations(tree: CheckoutTree, paths: Iterable[str], language: str) -> dict[str, FileDeclarations]:
    """Return the declarations of files in one language, without files that cannot be parsed."""
    texts = {path: tree.read_text(path) for path in paths}
    tasks = [(path, text, language) for path, text in texts.items() if text]
    results = ProcessPool(_parse_file, 1).map(tasks, lambda task: len(task[1]))
    return {
        task[0]: msgspec.msgpack.decode(result, type=FileDeclarations)
        for task, result in results
        if not isinstance(result, LostTask)
    }


def _parse_file(task: tuple[str, str, str]) -> bytes:
    path, text, language = task
    parsed = parse_declarations(language, path, text.encode())
    lines = text.split("\n")
    declarations = []
    for chunk in parsed.chunks:
        if chunk.kind == "module":
            continue
        line = _find_declaration_line(lines, chunk.start_line, chunk.end_line, chunk.name.rpartition(".")[2])
        documented = bool(chunk.doc) and line > chunk.start_line
        declarations.append(
            Declaration(
                kind=chunk.kind,
                name=chunk.name,
                path=path,
                line=line,
                end=_find_signature_end(lines, line, chunk.end_line),
                signature=chunk.signature,
                parameters=chunk.params,
                doc=chunk.doc,
                doc_line=_find_text_line(lines, chunk.start_line) if documented else line,
                visibility=chunk.visibility,
                modifiers=chunk.modifiers,
                decorators=chunk.decorators,
            )
        )
    return msgspec.msgpack.encode(FileDeclarations(declarations, parsed.exports))


def _find_declaration_line(lines: list[str], start: int, end: int, name: str) -> int:
    """Return the first line of a range that has a name outside of a comment; the first line without one."""
    pattern = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
    in_comment = False
    for number in range(start, end + 1):
        text = lines[number - 1].strip()
        if in_comment or text.startswith("/*"):
            in_comment = "*/" not in text
            text = text.rpartition("*/")[2]
        if not in_comment and not text.startswith(("//", "#[", "*")) and pattern.search(text):
            return number
    return start


def _find_signature_end(lines: list[str], start: int, end: int) -> int:
    last = min(end, start + _MAX_SIGNATURE_LINES)
    return next((number for number in range(start, last) if _SIGNATURE_END_PATTERN.search(lines[number - 1])), start)


def _find_text_line(lines: list[str], start: int) -> int:
    """Return the first line of a comment that has text; a block comment often opens on a line of its own."""
    return start + (lines[start - 1].strip() in ("/**", "/*", "/*!"))


def make_symbol(
    declaration: Declaration,
    name: str,
    kind: str,
    clean_doc: DocCleaner,
    *,
    members: Iterable[Symbol] = (),
    maker: Declaration | None = None,
) -> Symbol:
    """Return a declaration as a public name."""
    # Only documentation above a declaration has lines that can be cited.
    is_documented = declaration.doc_line < declaration.line
    doc = clean_doc(declaration.doc, declaration.own_name) if is_documented else ""
    summary_lines = re.split(r"\n\s*\n", declaration.doc)[0].count("\n") + 1
    signed = maker if maker is not None and maker.parameters else declaration
    own_name = _NAME_SEPARATOR_PATTERN.split(name)[-1].rstrip("!")
    purpose = "" if _DEPRECATED_PATTERN.match(doc) else extract_first_sentence(doc)
    return Symbol(
        name=name,
        kind=kind,
        path=declaration.path,
        line=declaration.line,
        end=declaration.end,
        signature=_format_signature(signed, own_name),
        doc=purpose,
        doc_line=declaration.doc_line if doc else 0,
        doc_end=min(declaration.line - 1, declaration.doc_line + summary_lines) if doc else 0,
        maker=(maker.line, maker.end) if maker is not None and maker.path == declaration.path else (0, 0),
        deprecated=_is_deprecated(declaration),
        label=CLASS_LABELS.get(declaration.kind, "") if kind == "class" else "",
        members=tuple(members),
        notes=find_notes(doc, declaration.doc_line),
    )


def make_members(
    declarations: Iterable[Declaration], owner: str, clean_doc: DocCleaner, separator: str = "."
) -> tuple[Symbol, ...]:
    """Return the members of a class, methods first; overloads are one member, the first with documentation."""
    by_name: dict[str, Declaration] = {}
    for declaration in declarations:
        known = by_name.get(declaration.own_name)
        if known is None or (declaration.doc and not known.doc):
            by_name[declaration.own_name] = declaration
    return tuple(
        make_symbol(
            declaration,
            f"{owner}{separator}{own_name}",
            "property" if declaration.kind == "property" else "method",
            clean_doc,
        )
        for own_name, declaration in sorted(by_name.items(), key=lambda item: item[1].kind == "property")
    )


def _is_deprecated(declaration: Declaration) -> bool:
    names = (decorator.lower() for decorator in declaration.decorators)
    return any(name.startswith(("deprecated", "obsolete")) for name in names) or bool(
        _DEPRECATED_PATTERN.search(declaration.doc)
    )


def _format_signature(declaration: Declaration, name: str) -> str:
    """Return a signature from its name on; a long or generic one with only the names of the parameters."""
    own = declaration.signature
    start = re.search(rf"(?<![\w$]){re.escape(declaration.own_name)}\(", own)
    if declaration.kind == "property" or (start is None and not declaration.parameters):
        return name
    text = _SIGNATURE_NOISE_PATTERN.sub("", own[start.start() :]) if start else ""
    if not text or len(text) > MAX_SIGNATURE_CHARS:
        return f"{name}({', '.join(declaration.parameters)})"
    return name + text.removeprefix(declaration.own_name)

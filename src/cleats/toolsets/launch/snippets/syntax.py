"""Whether code parses, language by language. Nothing is run.

Python is judged by its own parser, data formats by theirs, the others by their grammars. A piece of
code that is only a part of a program (a method without its class) counts where a grammar allows it.

A grammar is native code that cannot be interrupted, and damaged text keeps some of them busy for
minutes. So it works in another process, for as long as honest code could need.
"""

import ast
import json
import re
import tomllib
import warnings
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Final
from xml.parsers import expat

import yaml
from tree_sitter import Language, Node, Parser

from cleats.runtime.pool import Lost, Pool
from cleats.toolsets.launch.snippets import prompts

_GRAMMARS: Final = {
    "javascript": ("tree_sitter_javascript", "language"),
    "jsx": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "java": ("tree_sitter_java", "language"),
    "kotlin": ("tree_sitter_kotlin", "language"),
    "csharp": ("tree_sitter_c_sharp", "language"),
    "go": ("tree_sitter_go", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "ruby": ("tree_sitter_ruby", "language"),
    "php": ("tree_sitter_php", "language_php"),
    "swift": ("tree_sitter_swift", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
    "shell": ("tree_sitter_bash", "language"),
    "bash": ("tree_sitter_bash", "language"),
}

_WRAPPED: Final = {
    "java": ("class Snippet {{\n{}\n}}", "class Snippet {{ void run() {{\n{}\n}} }}"),
    "csharp": ("class Snippet {{\n{}\n}}", "class Snippet {{ void Run() {{\n{}\n}} }}"),
    "go": ("package main\n{}", "package main\nfunc run() {{\n{}\n}}"),
    "rust": ("fn run() {{\n{}\n}}",),
    "c": ("void run(void) {{\n{}\n}}",),
    "cpp": ("void run() {{\n{}\n}}",),
    "kotlin": ("fun run() {{\n{}\n}}",),
    "swift": ("func run() {{\n{}\n}}",),
    "php": ("<?php\n{}",),
}
"""What a part of a program is put into when it does not stand alone."""


def can_check(language: str) -> bool:
    """Whether there is a parser for a language."""
    return language in ("python", "json", "yaml", "toml", "xml") or language in _GRAMMARS


def checks(pieces: Iterable[tuple[str, str]]) -> list[str]:
    """Why each of some pieces of code, with their languages, does not parse; empty if it does.

    It is empty as well when there is no parser for a language.
    """
    asked = list(pieces)
    native = list(dict.fromkeys(each for each in asked if each[1] in _GRAMMARS))
    found = {
        piece: _ENDLESS if isinstance(said, Lost) else said.decode()
        for piece, said in Pool(_spoken, 1).map(native, _weight)
    }
    return [found[each] if each in found else _plain(*each) for each in asked]


_ENDLESS: Final = "its parser crashed or took too long"


def _weight(piece: tuple[str, str]) -> int:
    return len(piece[0])


def _spoken(piece: tuple[str, str]) -> bytes:
    code, language = piece
    shell = language in ("shell", "bash")
    return (_grammar(prompts.commands(code) if shell else code, language) or "").encode()


def _plain(code: str, language: str) -> str:
    if language == "python":
        return _python(code) or ""
    if language in ("json", "yaml", "toml", "xml"):
        return _data(code, language) or ""
    return ""


def _python(code: str) -> str | None:
    program = prompts.typed(code) if prompts.is_session(code) else code
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape in an example is not our affair
            ast.parse(program)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error) or "nested too deeply"
    return None


def _data(code: str, language: str) -> str | None:
    try:
        if language == "json":
            json.loads(code)
        elif language == "toml":
            tomllib.loads(code)
        elif language == "yaml":
            list(yaml.safe_load_all(code))
        else:
            expat.ParserCreate().Parse(code.strip(), True)
    except (ValueError, yaml.YAMLError, expat.ExpatError, RecursionError) as error:
        return " ".join(str(error).split())[:200]
    return None


def _grammar(code: str, language: str) -> str | None:
    fault = _parse(code, language)
    if fault is None:
        return None
    for frame in _WRAPPED.get(language, ()):
        if _parse(frame.format(code), language) is None:
            return None
    return fault


def _parse(code: str, language: str) -> str | None:
    data = code.encode()
    root = _parser(language).parse(data).root_node
    if not root.has_error:
        return None
    node: Node = root
    while not (node.is_error or node.is_missing):
        below = next((each for each in node.children if each.has_error or each.is_missing), None)
        if below is None:
            break
        node = below
    # Not by `start_point`: 0.26.0 of the parser frees the numbers of a point too early.
    line = data.count(b"\n", 0, node.start_byte) + 1
    return f"line {line}: not {_an(language)} program"


@cache
def _parser(language: str) -> Parser:
    module, maker = _GRAMMARS[language]
    return Parser(Language(getattr(import_module(module), maker)()))


def _an(language: str) -> str:
    return f"{'an' if re.match('[aeiou]', language) else 'a'} {language}"

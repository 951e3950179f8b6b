"""Syntax checks of code, by language. Nothing is executed.

Python is checked by its own parser, data formats by theirs, other languages by their grammars. A
fragment of a program (a method without its class) is valid if the grammar accepts it in a frame.

A grammar is native code that cannot be interrupted, and damaged text keeps some grammars busy for
minutes. So they run in another process, for as long as valid code could need.
"""

import ast
import json
import re
import tomllib
import warnings
from collections.abc import Iterable
from typing import Final
from xml.parsers import expat

import yaml
from tree_sitter import Node

from cleats.system.worker_pool import LostTask, ProcessPool
from cleats.toolsets.launch.source.checkout.safe_parsing import GRAMMARS_BY_LANGUAGE, load_parser
from cleats.toolsets.launch.source.text import snippet_code

_FRAMES_BY_LANGUAGE: Final = {
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
"""Frames for fragments that are not valid on their own."""


def can_check(language: str) -> bool:
    """Return True if there is a parser for a language."""
    return language in ("python", "json", "yaml", "toml", "xml") or language in GRAMMARS_BY_LANGUAGE


def find_faults(pieces: Iterable[tuple[str, str]]) -> list[str]:
    """Return the syntax fault of each piece of code, given with its language; empty if it is valid.

    The fault is also empty if there is no parser for the language.
    """
    all_pieces = list(pieces)
    grammar_pieces = list(dict.fromkeys(piece_key for piece_key in all_pieces if piece_key[1] in GRAMMARS_BY_LANGUAGE))
    grammar_faults = {
        piece: _PARSER_LOST_FAULT if isinstance(answer, LostTask) else answer.decode()
        for piece, answer in ProcessPool(_check_piece, 1).map(grammar_pieces, _piece_size)
    }
    return [
        grammar_faults[piece_key] if piece_key in grammar_faults else _check_in_process(*piece_key)
        for piece_key in all_pieces
    ]


_PARSER_LOST_FAULT: Final = "its parser crashed or took too long"


def _piece_size(piece: tuple[str, str]) -> int:
    return len(piece[0])


def _check_piece(piece: tuple[str, str]) -> bytes:
    code, language = piece
    is_shell = language in ("shell", "bash")
    return (_check_grammar(snippet_code.extract_commands(code) if is_shell else code, language) or "").encode()


def _check_in_process(code: str, language: str) -> str:
    if language == "python":
        return _check_python(code) or ""
    if language in ("json", "yaml", "toml", "xml"):
        return _check_data(code, language) or ""
    return ""


def _check_python(code: str) -> str | None:
    program = snippet_code.extract_session_input(code) if snippet_code.is_session(code) else code
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in examples are acceptable
            ast.parse(program)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error) or "nested too deeply"
    return None


def _check_data(code: str, language: str) -> str | None:
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


def _check_grammar(code: str, language: str) -> str | None:
    fault = _parse_code(code, language)
    if fault is None:
        return None
    for frame in _FRAMES_BY_LANGUAGE.get(language, ()):
        if _parse_code(frame.format(code), language) is None:
            return None
    return fault


def _parse_code(code: str, language: str) -> str | None:
    data = code.encode()
    root = load_parser(language).parse(data).root_node
    if not root.has_error:
        return None
    node: Node = root
    while not (node.is_error or node.is_missing):
        faulty_child = next((child for child in node.children if child.has_error or child.is_missing), None)
        if faulty_child is None:
            break
        node = faulty_child
    # Do not use `start_point`: tree-sitter 0.26.0 frees the numbers of a point too early.
    line = data.count(b"\n", 0, node.start_byte) + 1
    return f"line {line}: not {_add_article(language)} program"


def _add_article(language: str) -> str:
    return f"{'an' if re.match('[aeiou]', language) else 'a'} {language}"

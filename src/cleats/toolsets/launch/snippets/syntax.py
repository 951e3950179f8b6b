"""Syntax checks of code, by language. Nothing is executed.

Python is checked by its own parser, data formats by theirs, other languages by their grammars. A
fragment of a program (a method without its class) is valid if the grammar accepts it in a frame.

A grammar is native code that cannot be interrupted, and damaged text keeps some grammars busy for
minutes. So they run in another process, for as long as valid code could need.
"""

import ast
import json
import tomllib
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Final
from xml.parsers import expat

import yaml
from tree_sitter import Node

from cleats.system.worker_pool import LostTask, ProcessPool
from cleats.toolsets.launch.source.checkout.safe_parsing import GRAMMARS_BY_LANGUAGE, PLATFORM_TABLES, load_parser
from cleats.toolsets.launch.source.text import code_blocks

_LANGUAGES: Final = PLATFORM_TABLES["languages"]
_PARSER_LOST_FAULT: Final = "its parser crashed or took too long"
_DATA_PARSERS: Final[Mapping[str, Callable[[str], object]]] = {
    "json": json.loads,
    "toml": tomllib.loads,
    "yaml": lambda code: list(yaml.safe_load_all(code)),
    "xml": lambda code: expat.ParserCreate().Parse(code.strip(), True),
}


def can_check(language: str) -> bool:
    """Return True if there is a parser for a language."""
    return language == "python" or language in _DATA_PARSERS or language in GRAMMARS_BY_LANGUAGE


def find_faults(pieces: Iterable[tuple[str, str]]) -> list[str]:
    """Return the syntax fault of each piece of code, given with its language; empty if it is valid.

    The fault is also empty if there is no parser for the language.
    """
    all_pieces = list(pieces)
    grammar_pieces = list(dict.fromkeys(piece for piece in all_pieces if piece[1] in GRAMMARS_BY_LANGUAGE))
    grammar_faults = {
        piece: _PARSER_LOST_FAULT if isinstance(answer, LostTask) else answer.decode()
        for piece, answer in ProcessPool(_check_piece, 1).map(grammar_pieces, lambda piece: len(piece[0]))
    }
    return [grammar_faults[piece] if piece in grammar_faults else _check_in_process(*piece) for piece in all_pieces]


def _check_piece(piece: tuple[str, str]) -> bytes:
    code, language = piece
    code = code_blocks.extract_commands(code) if language in ("shell", "bash") else code
    fault = _parse_code(code, language)
    frames = _LANGUAGES[language].get("frames", ()) if fault else ()
    is_fragment = any(not _parse_code(frame.format(code), language) for frame in frames)
    return b"" if is_fragment else fault.encode()


def _check_in_process(code: str, language: str) -> str:
    try:
        if language == "python":
            program = code_blocks.extract_session_input(code) if code_blocks.is_session(code) else code
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # invalid escapes in examples are acceptable
                ast.parse(program)
        elif language in _DATA_PARSERS:
            _DATA_PARSERS[language](code)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, yaml.YAMLError, expat.ExpatError, RecursionError, MemoryError) as error:
        return " ".join(str(error).split())[:200] or "nested too deeply"
    return ""


def _parse_code(code: str, language: str) -> str:
    data = code.encode()
    root = load_parser(language).parse(data).root_node
    if not root.has_error:
        return ""
    node: Node = root
    while not (node.is_error or node.is_missing):
        faulty_child = next((child for child in node.children if child.has_error or child.is_missing), None)
        if faulty_child is None:
            break
        node = faulty_child
    # Do not use `start_point`: tree-sitter 0.26.0 frees the numbers of a point too early.
    line = data.count(b"\n", 0, node.start_byte) + 1
    return f"line {line}: not {'an' if language[0] in 'aeiou' else 'a'} {language} program"

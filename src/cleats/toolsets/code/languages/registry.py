"""The languages that have a table, by id. A table is loaded when it is first asked for."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

from cleats.toolsets.code.languages.table import Language

_PLACES: Final = {
    "python": "python:PYTHON",
    "javascript": "javascript:JAVASCRIPT",
    "typescript": "typescript:TYPESCRIPT",
    "tsx": "typescript:TSX",
    "go": "go:GO",
    "java": "java:JAVA",
    "php": "php:PHP",
    "rust": "rust:RUST",
    "csharp": "csharp:CSHARP",
    "shell": "shell:SHELL",
    "c": "c:C",
    "cpp": "cpp:CPP",
    "ruby": "ruby:RUBY",
    "kotlin": "kotlin:KOTLIN",
    "swift": "swift:SWIFT",
}
"""The module of each, and its name there."""


class _Languages(Mapping[str, Language]):
    def __getitem__(self, lang: str) -> Language:
        module, _, name = _PLACES[lang].partition(":")
        language: Language = getattr(import_module(f"{__package__}.{module}"), name)
        return language

    def __contains__(self, lang: object) -> bool:
        return lang in _PLACES

    def __iter__(self) -> Iterator[str]:
        return iter(_PLACES)

    def __len__(self) -> int:
        return len(_PLACES)


LANGUAGES: Final = _Languages()

"""The names of every language and format, and the files that are written in it.

`language_names.toml` has the ids that files are labelled with, and the mode that a format is read in. The syntax of
languages is defined elsewhere.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from cleats.toolsets.code.analysis.facts import Mode

UNKNOWN_LANGUAGE: Final = "text"
"""The id of text in no known language."""


class LanguageName(Struct, frozen=True, forbid_unknown_fields=True):
    """The names of a language, and the file names that identify it, each list as words of a text."""

    title: str
    aliases: str = ""
    """Other names to filter by, in lower case. One alias may belong to several languages."""
    extensions: str = ""
    """Without the dot, in lower case; the longest match wins."""
    filenames: str = ""
    """Full names, in lower case. One `*` in a name stands for any text."""
    interpreters: str = ""
    """Interpreters that a `#!` line may name, without a version."""
    mode: Mode = "code"


@cache
def load_language_names() -> Mapping[str, LanguageName]:
    """Return all languages by id. The first one that claims a name gets it."""
    import tomllib  # noqa: PLC0415 - a server starts without

    document = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    return msgspec.convert(document, dict[str, LanguageName])


@cache
def _map_claims(attribute: str) -> Mapping[str, str]:
    """Return the language that each word of an attribute belongs to."""
    languages: dict[str, str] = {}
    for lang, row in load_language_names().items():
        for word in getattr(row, attribute).split():
            languages.setdefault(word, lang)
    return languages


def list_known_filenames() -> frozenset[str]:
    """Return the whole file names, in lower case, that indicate a language."""
    return frozenset(_map_claims("filenames"))


@cache
def list_filename_patterns() -> list[tuple[str, str, str]]:
    """Return the beginning and the end of the file names that indicate a language, and the language."""
    claims = [(*claim.partition("*"), lang) for claim, lang in _map_claims("filenames").items()]
    return [(head, tail, lang) for head, star, tail, lang in claims if star]


def detect_language_by_path(path: str) -> str:
    """Return the language that a file name indicates; empty if it indicates none."""
    name = path.rsplit("/", 1)[-1].lower()
    if (lang := _map_claims("filenames").get(name)) is not None:
        return lang
    for prefix, suffix, lang in list_filename_patterns():
        if name.startswith(prefix) and name.endswith(suffix) and len(name) >= len(prefix + suffix):
            return lang
    languages_by_extension = _map_claims("extensions")
    dot = name.find(".", 1)
    while dot != -1:
        if (lang := languages_by_extension.get(name[dot + 1 :])) is not None:
            return lang
        dot = name.find(".", dot + 1)
    return ""


def detect_language_by_interpreter(command: str) -> str:
    """Return the language of an interpreter such as `python3.12`; empty if unknown."""
    name = command.rsplit("/", 1)[-1].lower()
    languages = _map_claims("interpreters")
    return languages.get(name) or languages.get(name.rstrip("0123456789.-"), "")


@cache
def map_languages_by_name() -> Mapping[str, list[str]]:
    """Return the ids of the languages by each id, alias and title in lower case."""
    languages_by_name: dict[str, list[str]] = {}
    for lang, row in load_language_names().items():
        for name in dict.fromkeys((lang, *row.aliases.split(), row.title.lower())):
            languages_by_name.setdefault(name, []).append(lang)
    return languages_by_name


def resolve_language_ids(name: str) -> tuple[str, ...]:
    """Return the language ids for a name; empty if unknown. Case and a leading dot are ignored."""
    lowered = name.strip().lower()
    if languages := map_languages_by_name().get(lowered):
        return tuple(languages)
    lang = _map_claims("extensions").get(lowered.removeprefix("."))
    return () if lang is None else (lang,)


@cache
def get_language_mode(lang: str) -> Mode:
    """Return the mode that files of a language are read in."""
    row = load_language_names().get(lang)
    return "code" if row is None else row.mode

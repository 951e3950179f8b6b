"""Where Hugo serves a page, read from the site's own configuration.

A plan names two places for a page: the file it lies in and the address it is read at. The second
follows from the first by Hugo's rules: content folders and mounts, languages, permalinks, ugly
URLs. They are written down here once, and checked against Hugo itself in the tests.
"""

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

_TOKEN = re.compile(r":([a-z]+)(?:\[([^\]]*)\])?")
_UNSAFE = re.compile(r"[^\w.+~@/-]+")


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder of the repository that is content; `language` is empty when names tell it."""

    source: str
    target: str
    language: str


@dataclass(frozen=True, slots=True)
class Placed:
    """A file as Hugo sees it: below the content, in a language."""

    folders: tuple[str, ...]
    name: str
    language: str

    @property
    def is_section(self) -> bool:
        return self.name == "_index"


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What one configuration of a site says about addresses."""

    base_url: str = ""
    languages: tuple[str, ...] = ("en",)
    default_language: str = "en"
    in_subdir: bool = False
    mounts: tuple[Mount, ...] = (Mount("content", "", ""),)
    permalinks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By kind (`page` or `section`), then by section."""
    hosts: Mapping[str, str] = field(default_factory=dict)
    """The base URL of each language that has a host of its own."""
    ugly: bool = False
    keeps_case: bool = False
    sections: frozenset[tuple[str, ...]] = frozenset()
    """The folders of the content, below the first, that have an index: only those are sections."""

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> "Serving":
        """Read the settings of a site, whose top-level keys are in lower case."""
        default = str(settings.get("defaultcontentlanguage") or "en").lower()
        given = settings.get("languages")
        tables = {
            str(name).lower(): _lowered(table)
            for name, table in (given.items() if isinstance(given, Mapping) else ())
            if isinstance(table, Mapping) and not _lowered(table).get("disabled")
        }
        return cls(
            base_url=_readable(settings.get("baseurl")),
            languages=tuple(tables) or (default,),
            default_language=default,
            in_subdir=settings.get("defaultcontentlanguageinsubdir") is True,
            mounts=tuple(_mounts(settings, tables)),
            permalinks=_permalinks(settings.get("permalinks")),
            hosts={name: at for name, t in tables.items() if (at := _readable(t.get("baseurl")))},
            ugly=settings.get("uglyurls") is True,
            keeps_case=settings.get("disablepathtolower") is True,
        )

    def knowing(self, paths: Iterable[str]) -> "Serving":
        """The same site with these files in it, as far as they make sections."""
        placed = [each for path in paths if (each := self.place(path)) is not None]
        more = frozenset(each.folders for each in placed if each.is_section)
        return replace(self, sections=self.sections | more)

    def origin(self, language: str) -> str:
        """The scheme and host that a language is served at; empty when the site does not say."""
        parts = urlsplit(self.hosts.get(language.lower(), self.base_url))
        return f"{parts.scheme}://{parts.netloc}" if parts.scheme and parts.netloc else ""

    def place(self, path: str) -> Placed | None:
        """Find the page of a file; None when it is not content."""
        for mount in sorted(self.mounts, key=lambda each: -len(each.source)):
            if not path.startswith(f"{mount.source}/"):
                continue
            below = PurePosixPath(mount.target) / path.removeprefix(f"{mount.source}/")
            name, _, language = below.name.removesuffix(".md").rpartition(".")
            if not name or language.lower() not in self.languages:
                name, language = below.name.removesuffix(".md"), ""
            tongue = (mount.language or language or self.default_language).lower()
            return Placed(below.parent.parts, name, tongue)
        return None

    def url_path(self, path: str, *, title: str = "", date: dt.date | None = None) -> str | None:
        """Say at which path of its host a file is served; None when that cannot be known."""
        placed = self.place(path)
        if placed is None:
            return None
        inner = self._inner(placed, title, date)
        if inner is None:
            return None
        base = urlsplit(self.hosts.get(placed.language, self.base_url)).path.strip("/")
        prefix = placed.language if self._has_prefix(placed.language) else ""
        whole = "/".join(part for part in (base, prefix, inner) if part)
        if self.ugly and inner and not placed.is_section:
            return f"/{whole}.html"
        return f"/{whole}/" if whole else "/"

    def _has_prefix(self, language: str) -> bool:
        if self.hosts:
            return False
        return self.in_subdir or language != self.default_language

    def _inner(self, placed: Placed, title: str, date: dt.date | None) -> str | None:
        kind = "section" if placed.is_section else "page"
        top = placed.folders[0] if placed.folders else ""
        pattern = self.permalinks.get(kind, {}).get(top.lower())
        if pattern is not None:
            return self._expanded(pattern, placed, title, date)
        parts = list(placed.folders)
        if placed.name not in ("index", "_index"):
            parts.append(placed.name)
        return self._cased("/".join(parts)).replace(" ", "-")

    def _expanded(
        self, pattern: str, placed: Placed, title: str, date: dt.date | None
    ) -> str | None:
        bundle = placed.name in ("index", "_index")
        above = placed.folders[:-1] if placed.name == "index" else placed.folders
        folders = tuple(
            name
            for depth, name in enumerate(above, start=1)
            if depth == 1 or above[:depth] in self.sections
        )
        name = placed.folders[-1] if bundle and placed.folders else placed.name
        values = {
            "section": placed.folders[0] if placed.folders else "",
            "sections": "/".join(folders),
            "title": _urlized(title),
            "slug": _urlized(title),
            "filename": name,
            "contentbasename": name,
            "slugorfilename": name,
            "slugorcontentbasename": name,
        }
        if date is not None:
            values |= {"year": f"{date.year:04}", "month": f"{date.month:02}"}
            values |= {"day": f"{date.day:02}", "yearday": str(date.timetuple().tm_yday)}
        known = True

        def put(found: re.Match[str]) -> str:
            nonlocal known
            if found.group(2) is not None and found.group(1) == "sections":
                return "/".join(_sliced(folders, found.group(2)))
            known = known and found.group(1) in values
            return values.get(found.group(1), "")

        made = self._cased(_TOKEN.sub(put, pattern))
        parts = [part for part in made.split("/") if part]
        return "/".join(parts) if known else None

    def _cased(self, path: str) -> str:
        return path if self.keeps_case else path.lower()


def _mounts(settings: Mapping[str, Any], tables: Mapping[str, Any]) -> Iterator[Mount]:
    module = settings.get("module")
    given = _lowered(module).get("mounts") if isinstance(module, Mapping) else None
    listed = [_lowered(each) for each in given or () if isinstance(each, Mapping)]
    content = [each for each in listed if _is_content(str(each.get("target", "")))]
    for each in content:
        target = str(each["target"]).strip("/").removeprefix("content").strip("/")
        yield Mount(str(each.get("source", "")).strip("/"), target, str(each.get("lang") or ""))
    if content:
        return
    own = {name: t["contentdir"] for name, t in tables.items() if t.get("contentdir")}
    for name, folder in own.items():
        yield Mount(str(folder).strip("/"), "", name)
    whole = str(settings.get("contentdir") or "content").strip("/")
    if whole not in {mount.strip("/") for mount in own.values()}:
        yield Mount(whole, "", "")


def _is_content(target: str) -> bool:
    return target.strip("/") == "content" or target.startswith("content/")


def _permalinks(given: Any) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {"page": {}, "section": {}}
    if not isinstance(given, Mapping):
        return found
    for name, value in given.items():
        if isinstance(value, Mapping):
            if name.lower() in found:
                found[name.lower()].update({str(k).lower(): str(v) for k, v in value.items()})
        else:
            found["page"][str(name).lower()] = str(value)  # a name alone means its pages
    return found


def _sliced(folders: tuple[str, ...], words: str) -> tuple[str, ...]:
    """Cut the list of folders as Hugo's `:sections[1:]` does."""
    if words == "last":
        return folders[-1:]
    start, colon, end = words.partition(":")
    bounds = [int(each) if each.isdigit() else None for each in (start, end)]
    if not colon:
        at = bounds[0] or 0
        return folders[at : at + 1]
    return folders[bounds[0] : bounds[1]]


def _urlized(text: str) -> str:
    return re.sub(r"-{2,}", "-", _UNSAFE.sub("", text.strip().replace(" ", "-"))).strip("-")


def _readable(given: Any) -> str:
    """The address that a site gives itself; one that cannot be read is Hugo's to complain about."""
    address = str(given or "")
    try:
        urlsplit(address)
    except ValueError:
        return ""
    return address


def _lowered(table: Mapping[str, Any]) -> dict[str, Any]:
    return {str(key).lower(): value for key, value in table.items()}

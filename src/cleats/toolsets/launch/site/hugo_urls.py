"""The addresses at which Hugo serves pages, derived from the configuration of the site.

The address follows from the file by Hugo's rules: content folders and mounts, languages, permalinks,
ugly URLs. The tests check them against Hugo itself.
"""

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from cleats.toolsets.launch.site.hugo import lower_keys

_PERMALINK_TOKEN_PATTERN = re.compile(r":([a-z]+)(?:\[([^\]]*)\])?")
_UNSAFE_URL_PATTERN = re.compile(r"[^\w.+~@/-]+")


@dataclass(frozen=True, slots=True)
class ContentMount:
    """A folder of the repository with content; `language` is empty if file names define it."""

    source: str
    target: str
    language: str


@dataclass(frozen=True, slots=True)
class HugoPage:
    """A file as Hugo sees it: its path below the content, and its language."""

    folders: tuple[str, ...]
    name: str
    language: str

    @property
    def is_section(self) -> bool:
        return self.name == "_index"


@dataclass(frozen=True, slots=True, kw_only=True)
class HugoUrlRules:
    """The rules for addresses in one configuration of a site."""

    base_url: str = ""
    languages: tuple[str, ...] = ("en",)
    default_language: str = "en"
    in_subdir: bool = False
    mounts: tuple[ContentMount, ...] = (ContentMount("content", "", ""),)
    permalinks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Patterns by kind (`page` or `section`), then by section."""
    hosts: Mapping[str, str] = field(default_factory=dict)
    """The base URL of each language that has its own host."""
    ugly: bool = False
    keeps_case: bool = False
    sections: frozenset[tuple[str, ...]] = frozenset()
    """The content folders below the first level that have an index: only those are sections."""

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> "HugoUrlRules":
        """Read the settings of a site, whose top-level keys are in lower case."""
        default = str(settings.get("defaultcontentlanguage") or "en").lower()
        language_tables = settings.get("languages")
        tables = {
            str(name).lower(): lower_keys(table)
            for name, table in (language_tables.items() if isinstance(language_tables, Mapping) else ())
            if isinstance(table, Mapping) and not lower_keys(table).get("disabled")
        }
        return cls(
            base_url=_parse_address(settings.get("baseurl")),
            languages=tuple(tables) or (default,),
            default_language=default,
            in_subdir=settings.get("defaultcontentlanguageinsubdir") is True,
            mounts=tuple(_iter_mounts(settings, tables)),
            permalinks=_parse_permalinks(settings.get("permalinks")),
            hosts={name: url for name, table in tables.items() if (url := _parse_address(table.get("baseurl")))},
            ugly=settings.get("uglyurls") is True,
            keeps_case=settings.get("disablepathtolower") is True,
        )

    def with_paths(self, paths: Iterable[str]) -> "HugoUrlRules":
        """Return the rules with the sections that these files define."""
        hugo_pages = [page for path in paths if (page := self.locate_page(path)) is not None]
        new_sections = frozenset(page.folders for page in hugo_pages if page.is_section)
        return replace(self, sections=self.sections | new_sections)

    def resolve_origin(self, language: str) -> str:
        """Return the scheme and host of a language, or an empty text if they are unknown."""
        parts = urlsplit(self.hosts.get(language.lower(), self.base_url))
        return f"{parts.scheme}://{parts.netloc}" if parts.scheme and parts.netloc else ""

    def locate_page(self, path: str) -> HugoPage | None:
        """Return the page of a file, or None if it is not content."""
        for mount in sorted(self.mounts, key=lambda content_mount: -len(content_mount.source)):
            if not path.startswith(f"{mount.source}/"):
                continue
            content_path = PurePosixPath(mount.target) / path.removeprefix(f"{mount.source}/")
            name, _, language = content_path.name.removesuffix(".md").rpartition(".")
            if not name or language.lower() not in self.languages:
                name, language = content_path.name.removesuffix(".md"), ""
            page_language = (mount.language or language or self.default_language).lower()
            return HugoPage(content_path.parent.parts, name, page_language)
        return None

    def resolve_url_path(self, path: str, *, title: str = "", date: dt.date | None = None) -> str | None:
        """Return the path at which a file is served on its host, or None if it is unknown."""
        page = self.locate_page(path)
        if page is None:
            return None
        inner_path = self._resolve_inner_path(page, title, date)
        if inner_path is None:
            return None
        base = urlsplit(self.hosts.get(page.language, self.base_url)).path.strip("/")
        has_prefix = not self.hosts and (self.in_subdir or page.language != self.default_language)
        prefix = page.language if has_prefix else ""
        full_path = "/".join(part for part in (base, prefix, inner_path) if part)
        if self.ugly and inner_path and not page.is_section:
            return f"/{full_path}.html"
        return f"/{full_path}/" if full_path else "/"

    def _resolve_inner_path(self, page: HugoPage, title: str, date: dt.date | None) -> str | None:
        kind = "section" if page.is_section else "page"
        top_folder = page.folders[0] if page.folders else ""
        pattern = self.permalinks.get(kind, {}).get(top_folder.lower())
        if pattern is not None:
            return self._expand_permalink(pattern, page, title, date)
        parts = list(page.folders)
        if page.name not in ("index", "_index"):
            parts.append(page.name)
        return self._apply_case("/".join(parts)).replace(" ", "-")

    def _expand_permalink(self, pattern: str, page: HugoPage, title: str, date: dt.date | None) -> str | None:
        is_bundle = page.name in ("index", "_index")
        parent_folders = page.folders[:-1] if page.name == "index" else page.folders
        folders = tuple(
            name
            for depth, name in enumerate(parent_folders, start=1)
            if depth == 1 or parent_folders[:depth] in self.sections
        )
        name = page.folders[-1] if is_bundle and page.folders else page.name
        plain_title = _UNSAFE_URL_PATTERN.sub("", title.strip().replace(" ", "-"))
        values = {
            "section": page.folders[0] if page.folders else "",
            "sections": "/".join(folders),
            **dict.fromkeys(("title", "slug"), re.sub(r"-{2,}", "-", plain_title).strip("-")),
            **dict.fromkeys(("filename", "contentbasename", "slugorfilename", "slugorcontentbasename"), name),
        }
        if date is not None:
            values |= {"year": f"{date.year:04}", "month": f"{date.month:02}"}
            values |= {"day": f"{date.day:02}", "yearday": str(date.timetuple().tm_yday)}
        all_known = True

        def substitute(match: re.Match[str]) -> str:
            nonlocal all_known
            if match.group(2) is not None and match.group(1) == "sections":
                return "/".join(_slice_folders(folders, match.group(2)))
            all_known = all_known and match.group(1) in values
            return values.get(match.group(1), "")

        expanded = self._apply_case(_PERMALINK_TOKEN_PATTERN.sub(substitute, pattern))
        parts = [part for part in expanded.split("/") if part]
        return "/".join(parts) if all_known else None

    def _apply_case(self, path: str) -> str:
        return path if self.keeps_case else path.lower()


def _iter_mounts(settings: Mapping[str, Any], tables: Mapping[str, Any]) -> Iterator[ContentMount]:
    module = settings.get("module")
    mount_tables = lower_keys(module).get("mounts") if isinstance(module, Mapping) else None
    mounts = [lower_keys(mount_table) for mount_table in mount_tables or () if isinstance(mount_table, Mapping)]
    content_mounts = [it for it in mounts if re.match(r"/*content/*$|content/", str(it.get("target", "")))]
    for mount_table in content_mounts:
        target = str(mount_table["target"]).strip("/").removeprefix("content").strip("/")
        yield ContentMount(str(mount_table.get("source", "")).strip("/"), target, str(mount_table.get("lang") or ""))
    if content_mounts:
        return
    folders = {name: str(table["contentdir"]).strip("/") for name, table in tables.items() if table.get("contentdir")}
    yield from (ContentMount(folder, "", name) for name, folder in folders.items())
    default_folder = str(settings.get("contentdir") or "content").strip("/")
    if default_folder not in folders.values():
        yield ContentMount(default_folder, "", "")


def _parse_permalinks(configured: Any) -> dict[str, dict[str, str]]:
    permalinks: dict[str, dict[str, str]] = {"page": {}, "section": {}}
    if not isinstance(configured, Mapping):
        return permalinks
    for name, value in configured.items():
        if isinstance(value, Mapping):
            if name.lower() in permalinks:
                permalinks[name.lower()].update({str(k).lower(): str(v) for k, v in value.items()})
        else:
            permalinks["page"][str(name).lower()] = str(value)  # a section without a kind means its pages
    return permalinks


def _slice_folders(folders: tuple[str, ...], slice_text: str) -> tuple[str, ...]:
    """Slice the list of folders as Hugo's `:sections[1:]` does."""
    if slice_text == "last":
        return folders[-1:]
    start_text, colon, end_text = slice_text.partition(":")
    start, end = (int(bound) if bound.isdigit() else None for bound in (start_text, end_text))
    return folders[start:end] if colon else folders[start or 0 :][:1]


def _parse_address(configured: Any) -> str:
    address = str(configured or "")
    try:
        urlsplit(address)
    except ValueError:
        return ""
    return address

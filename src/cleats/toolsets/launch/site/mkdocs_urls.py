"""The addresses at which MkDocs serves pages, and the links between its files."""

import datetime as dt
import posixpath
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Self
from urllib.parse import unquote, urlsplit

from cleats.toolsets.launch.site.mkdocs import MkDocsConfig

MARKDOWN_SUFFIXES = (".md", ".markdown", ".mdown", ".mkdn", ".mkd")


@dataclass(frozen=True, slots=True)
class MkDocsUrlRules:
    """The rules for addresses of one site."""

    docs_folder: str = "docs"
    site_url: str = ""
    has_page_folders: bool = True
    """Whether a page is served as a folder; else as a file with the ending `.html`."""

    @classmethod
    def from_config(cls, config: MkDocsConfig) -> Self:
        """Read the settings of a site."""
        return cls(config.docs_folder, config.site_url, config.document.get("use_directory_urls") is not False)

    def with_paths(self, _paths: Iterable[str]) -> Self:
        """Return the rules; other files do not change the address of a page."""
        return self

    def resolve_origin(self, _language: str) -> str:
        """Return the scheme and host of the site, or an empty text if they are unknown."""
        parts = _split_address(self.site_url)
        return f"{parts[0]}://{parts[1]}" if parts[0] and parts[1] else ""

    @property
    def base_path(self) -> str:
        """The path of the site on its host, with a slash at both ends."""
        path = _split_address(self.site_url)[2].strip("/")
        return f"/{path}/" if path else "/"

    def resolve_url_path(self, path: str, *, title: str = "", date: dt.date | None = None) -> str | None:
        """Return the path at which a file is served on its host, or None if it is not below the folder of the pages."""
        del title, date  # no setting makes them part of an address
        if not path.startswith(f"{self.docs_folder}/"):
            return None
        file = PurePosixPath(path.removeprefix(f"{self.docs_folder}/"))
        folder = "" if str(file.parent) == "." else f"{file.parent}/"
        if file.suffix not in MARKDOWN_SUFFIXES:
            return f"{self.base_path}{folder}{file.name}"
        if file.stem in ("index", "README"):
            return f"{self.base_path}{folder}" + ("" if self.has_page_folders else "index.html")
        return f"{self.base_path}{folder}{file.stem}" + ("/" if self.has_page_folders else ".html")

    def resolve_file_link(self, path: str, link_path: str) -> str | None:
        """Return the address of the file that a relative link in a page names, or None if it does not name a page."""
        if link_path.startswith("/") or not link_path.endswith(MARKDOWN_SUFFIXES):
            return None
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(link_path)))
        return self.resolve_url_path(target)


def make_file_link(path: str, target: str) -> str:
    """Return the relative link from one file to another."""
    return posixpath.relpath(target, posixpath.dirname(path) or ".")


def _split_address(address: str) -> tuple[str, str, str]:
    try:
        parts = urlsplit(address)
    except ValueError:
        return "", "", ""
    return parts.scheme, parts.netloc, parts.path

"""The site: every page as HTML, with every internal link checked."""

import html
import os
import posixpath
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from markdown_it.token import Token

from book.pages import BookPage, extract_plain_text, get_parser, make_slug
from tests.support.paths import REPOSITORY_ROOT

NAVIGATION_GROUPS: Mapping[str, Sequence[str]] = {
    "Start": ("README", "getting-started"),
    "Toolsets": ("code", "explore", "skills", "assets", "launch"),
    "Running it": ("operations", "http", "console", "scaling", "threat-model"),
    "Extending it": ("contract", "writing-a-toolset", "writing-a-profile", "toolset"),
    "Reference": ("tools", "commands", "settings", "errors"),
    "Inside": ("design", "benchmarks", "search-quality", "CHANGELOG"),
}
"""The order of the pages; a page that is not listed comes last."""

PAGE_CSS = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
* { box-sizing: border-box; }
body { margin: 0; font: 16px/1.55 system-ui, sans-serif; display: grid;
  grid-template-columns: 15rem minmax(0, 1fr); }
nav { padding: 1.5rem 1rem; border-right: 1px solid var(--line); min-height: 100vh; }
nav b { display: block; margin: 1rem 0 .2rem; font-size: .8rem; opacity: .7; }
nav a { display: block; padding: .1rem 0; text-decoration: none; }
nav a[aria-current] { font-weight: 600; }
main { padding: 1.5rem 2.5rem 5rem; max-width: 56rem; }
pre { background: var(--soft); padding: .8rem 1rem; overflow-x: auto; border-radius: 6px; }
code { font: .88em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
td, th { border-bottom: 1px solid var(--line); padding: .3rem .7rem .3rem 0; text-align: left;
  vertical-align: top; }
img { max-width: 100%; }
.pages { display: none; }
@media (max-width: 50rem) {
  body { display: flex; flex-direction: column; }
  nav { order: 1; min-height: 0; border: 0; border-top: 1px solid var(--line); }
  main { padding: 1rem 1rem 3rem; max-width: 100%; }
  .pages { display: block; padding: 1rem 1rem 0; }
}
"""
"""The style sheet. On a narrow screen the page comes first and the list of pages below it."""


class BookSite:
    """The mapping from pages to files of the site."""

    def __init__(self, pages: Sequence[BookPage]) -> None:
        self.pages = {page.path: page for page in pages}
        self.files = {page.path: _get_file_name(page.path) for page in pages}
        self.anchors = {page.path: _collect_anchors(page) for page in pages}
        self.copied: set[str] = set()
        self.problems: list[str] = []

    def write(self, folder: Path) -> list[str]:
        """Write the site into a folder, and return every link that leads nowhere."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for page in self.pages.values():
            text = self._render_page(page)
            (folder / self.files[page.path]).write_text(text, encoding="utf-8")
        for path in sorted(self.copied):
            target = folder / "files" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(REPOSITORY_ROOT / path, target)
        return self.problems

    def _render_page(self, page: BookPage) -> str:
        tokens = [self._resolve_links(page, token) for token in _add_heading_ids(page)]
        body = get_parser().renderer.render(tokens, get_parser().options, {})
        title = html.escape(page.title)
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<style>{PAGE_CSS}</style></head><body><a class=pages href='#all-pages'>All pages</a>"
            f"<nav id=all-pages>{self._render_navigation(page)}</nav>"
            f"<main>\n{body}</main></body></html>\n"
        )

    def _render_navigation(self, current_page: BookPage) -> str:
        by_name = {_get_page_name(path): path for path in self.pages}
        grouped_names = {name for names in NAVIGATION_GROUPS.values() for name in names}
        groups = {**NAVIGATION_GROUPS, "More": sorted(by_name.keys() - grouped_names)}
        parts = []
        for title, names in groups.items():
            if paths := [by_name[name] for name in names if name in by_name]:
                parts.append(f"<b>{title}</b>")
                parts += [self._render_entry(path, current_page) for path in paths]
        return "".join(parts)

    def _render_entry(self, path: str, current_page: BookPage) -> str:
        current = ' aria-current="page"' if path == current_page.path else ""
        title = html.escape(self.pages[path].title)
        return f'<a href="{self.files[path]}"{current}>{title}</a>'

    def _resolve_links(self, page: BookPage, token: Token) -> Token:
        for child in token.children or ():
            for name in ("href", "src"):
                if (link := child.attrGet(name)) is not None:
                    child.attrSet(name, self._resolve_target(page, str(link), _get_line(token)))
        return token

    def _resolve_target(self, page: BookPage, link: str, line: int) -> str:
        """Return the target of a link on the site."""
        if "://" in link or link.startswith("mailto:"):
            return link
        path, _, anchor = link.partition("#")
        folder = posixpath.dirname(page.path)
        target = posixpath.normpath(posixpath.join(folder, path)) if path else page.path
        if target in self.pages:
            if anchor and anchor not in self.anchors[target]:
                self.problems.append(f"{page.path}:{line}: {target} has no #{anchor}")
            return self.files[target] + (f"#{anchor}" if anchor else "")
        file = REPOSITORY_ROOT / target
        if not file.exists() or os.path.pardir in Path(target).parts:
            self.problems.append(f"{page.path}:{line}: there is no {target}")
        elif file.is_file():
            self.copied.add(target)
            return f"files/{target}"
        elif f"{target}/README.md" in self.pages:
            return self.files[f"{target}/README.md"]
        return link


def _add_heading_ids(page: BookPage) -> Iterator[Token]:
    """Yield copies of the tokens of a page, with an id on every heading.

    They are copies because a page is processed twice.
    """
    anchor_counts: dict[str, int] = {}
    for position, original in enumerate(page.tokens):
        token = original.copy(children=[child.copy() for child in original.children or ()] or None)
        if token.type == "heading_open":
            token.attrSet("id", _number_anchor(make_slug(extract_plain_text(page.tokens[position + 1])), anchor_counts))
        yield token


def _number_anchor(name: str, anchor_counts: dict[str, int]) -> str:
    """Return the anchor of a heading; a repeated heading gets a number, as on GitHub."""
    count = anchor_counts.get(name, 0)
    anchor_counts[name] = count + 1
    return f"{name}-{count}" if count else name


def _collect_anchors(page: BookPage) -> set[str]:
    ids = {str(token.attrGet("id")) for token in _add_heading_ids(page) if token.type == "heading_open"}
    for token in page.tokens:
        for child in token.children or ():
            if child.type == "html_inline" and 'id="' in child.content:
                ids.add(child.content.split('id="', 1)[1].split('"', 1)[0])
    return ids


def _get_line(token: Token) -> int:
    return (token.map or [0])[0] + 1


def _get_page_name(path: str) -> str:
    """Return the name of a page in the table of groups."""
    stem = Path(path).stem
    folder = Path(path).parent.name
    return folder if stem == "README" and folder else stem


def _get_file_name(path: str) -> str:
    name = _get_page_name(path)
    return "index.html" if name == "README" else f"{name.lower()}.html"

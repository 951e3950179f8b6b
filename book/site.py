"""The site: every page as HTML, with every internal link checked."""

import html
import json
import os
import posixpath
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from markdown_it.token import Token

from book.pages import BookPage, extract_plain_text, get_parser, make_slug
from tests.support.paths import REPOSITORY_ROOT

NAVIGATION_GROUPS: Mapping[str, Sequence[str]] = {
    "Start": ("README", "getting-started", "ripgrep-or-cleats"),
    "Toolsets": ("code", "explore", "skills", "assets", "launch"),
    "Guides": ("gate-your-server", "writing-a-toolset", "writing-a-profile", "toolset"),
    "Operate": ("operations", "http", "console", "scaling", "threat-model"),
    "Reference": ("tools", "commands", "settings", "errors", "contract-rules", "glossary"),
    "Background": ("contract", "design", "search-quality", "benchmarks", "CHANGELOG"),
}
"""The order of the pages; a page that is not listed comes last."""

ASSETS_FOLDER = Path(__file__).parent / "assets"
"""The style sheet and the script of every page."""


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
            (folder / self._get_plain_name(page.path)).write_text(page.text, encoding="utf-8")
        shutil.copytree(ASSETS_FOLDER, folder, dirs_exist_ok=True)
        index = json.dumps([section for page in self.pages.values() for section in self._split_sections(page)])
        (folder / "search-index.js").write_text(f"window.SEARCH_SECTIONS = {index};\n", encoding="utf-8")
        (folder / "llms.txt").write_text(self._render_llms_text(), encoding="utf-8")
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
            '<link rel="stylesheet" href="site.css"><script defer src="site.js"></script></head><body>'
            '<a class="pages" href="#all-pages">All pages</a><nav id="all-pages" aria-label="Pages">'
            '<div class="search"><input type="search" placeholder="Search (press /)"'
            ' aria-label="Search the documentation">'
            f"<ol></ol></div>{self._render_navigation(page)}</nav>"
            f'<main>\n{body}<p class="plain"><a href="{self._get_plain_name(page.path)}">Plain text</a></p>'
            f"</main>{_render_contents(tokens)}</body></html>\n"
        )

    def _get_plain_name(self, path: str) -> str:
        return self.files[path].removesuffix(".html") + ".txt"

    def _split_sections(self, page: BookPage) -> Iterator[dict[str, str]]:
        """Yield the sections of a page for the search: each heading with the distinct words below it."""
        section = {"title": page.title, "page": page.title, "href": self.files[page.path], "text": ""}
        tokens = list(_add_heading_ids(page))
        for position, token in enumerate(tokens):
            if token.type == "heading_open":
                yield section | {"text": _list_words(section["text"])}
                title = extract_plain_text(tokens[position + 1])
                section = {
                    "title": title,
                    "page": page.title,
                    "href": f"{self.files[page.path]}#{token.attrGet('id')}",
                    "text": "",
                }
            elif token.type in {"inline", "fence", "code_block"}:
                section["text"] += " " + token.content
        yield section | {"text": _list_words(section["text"])}

    def _render_llms_text(self) -> str:
        """Return the list of pages for language models, as llmstxt.org describes it."""
        front = self.pages.get("README.md", next(iter(self.pages.values())))
        summary = next((token.content for token in front.tokens[3:] if token.type == "inline"), "")
        lines = [f"# {front.title}", "", f"> {summary}", "", "## Pages", ""]
        lines += [f"- [{page.title}]({self._get_plain_name(page.path)})" for page in self.pages.values()]
        return "\n".join(lines) + "\n"

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


def _list_words(text: str) -> str:
    return " ".join(sorted(set(re.findall(r"\w+", text.lower()))))


def _render_contents(tokens: Sequence[Token]) -> str:
    """Return the table of contents of a page, or nothing for a page of one or two sections."""
    headings = [
        (token.tag[1], str(token.attrGet("id")), extract_plain_text(tokens[position + 1]))
        for position, token in enumerate(tokens)
        if token.type == "heading_open" and token.tag in {"h2", "h3"}
    ]
    if len(headings) < 3:
        return ""
    items = "".join(
        f'<li class="level-{level}"><a href="#{anchor}">{html.escape(title)}</a></li>'
        for level, anchor, title in headings
    )
    return f'<aside class="contents" aria-label="On this page"><ul>{items}</ul></aside>'


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

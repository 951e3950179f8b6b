"""The site: every page as HTML, with every internal link followed on the way."""

import html
import os
import posixpath
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from markdown_it.token import Token

from book.pages import ROOT, Page, parser, plain, slug

GROUPS: Mapping[str, Sequence[str]] = {
    "Start": ("README", "getting-started"),
    "Toolsets": ("code", "skills", "assets", "launch"),
    "Running it": ("operations", "http", "scaling", "threat-model"),
    "Extending it": ("contract", "writing-a-toolset", "writing-a-profile", "toolset"),
    "Reference": ("tools", "commands", "settings", "errors"),
    "Inside": ("design", "benchmarks", "search-quality", "CHANGELOG"),
}
"""The order of the pages; one that is not here comes last."""

STYLE = """
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
"""On a narrow screen a page comes first and the list of pages below it, one link away."""


class Site:
    """Knows which page becomes which file."""

    def __init__(self, pages: Sequence[Page]) -> None:
        self.pages = {page.path: page for page in pages}
        self.files = {page.path: _file(page.path) for page in pages}
        self.anchors = {page.path: _anchors(page) for page in pages}
        self.copied: set[str] = set()
        self.problems: list[str] = []

    def write(self, folder: Path) -> list[str]:
        """Write the site into a folder, and give every link that leads nowhere."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for page in self.pages.values():
            text = self._html(page)
            (folder / self.files[page.path]).write_text(text, encoding="utf-8")
        for path in sorted(self.copied):
            target = folder / "files" / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / path, target)
        return self.problems

    def _html(self, page: Page) -> str:
        tokens = [self._linked(page, token) for token in _with_ids(page)]
        body = parser().renderer.render(tokens, parser().options, {})
        title = html.escape(page.title)
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<style>{STYLE}</style></head><body><a class=pages href='#all-pages'>All pages</a>"
            f"<nav id=all-pages>{self._nav(page)}</nav>"
            f"<main>\n{body}</main></body></html>\n"
        )

    def _nav(self, here: Page) -> str:
        by_name = {_name(path): path for path in self.pages}
        placed = {name for names in GROUPS.values() for name in names}
        groups = {**GROUPS, "More": sorted(by_name.keys() - placed)}
        parts = []
        for title, names in groups.items():
            if there := [by_name[name] for name in names if name in by_name]:
                parts.append(f"<b>{title}</b>")
                parts += [self._entry(path, here) for path in there]
        return "".join(parts)

    def _entry(self, path: str, here: Page) -> str:
        current = ' aria-current="page"' if path == here.path else ""
        title = html.escape(self.pages[path].title)
        return f'<a href="{self.files[path]}"{current}>{title}</a>'

    def _linked(self, page: Page, token: Token) -> Token:
        for child in token.children or ():
            for name in ("href", "src"):
                if (given := child.attrGet(name)) is not None:
                    child.attrSet(name, self._target(page, str(given), _line(token)))
        return token

    def _target(self, page: Page, link: str, line: int) -> str:
        """Where a link leads on the site."""
        if "://" in link or link.startswith("mailto:"):
            return link
        path, _, anchor = link.partition("#")
        folder = posixpath.dirname(page.path)
        target = posixpath.normpath(posixpath.join(folder, path)) if path else page.path
        if target in self.pages:
            if anchor and anchor not in self.anchors[target]:
                self.problems.append(f"{page.path}:{line}: {target} has no #{anchor}")
            return self.files[target] + (f"#{anchor}" if anchor else "")
        place = ROOT / target
        if not place.exists() or os.path.pardir in Path(target).parts:
            self.problems.append(f"{page.path}:{line}: there is no {target}")
        elif place.is_file():
            self.copied.add(target)
            return f"files/{target}"
        elif f"{target}/README.md" in self.pages:
            return self.files[f"{target}/README.md"]
        return link


def _with_ids(page: Page) -> Iterator[Token]:
    """The tokens of a page, with an id on every heading; copies, since a page is read twice."""
    seen: dict[str, int] = {}
    for place, original in enumerate(page.tokens):
        token = original.copy(children=[child.copy() for child in original.children or ()] or None)
        if token.type == "heading_open":
            token.attrSet("id", _numbered(slug(plain(page.tokens[place + 1])), seen))
        yield token


def _numbered(name: str, seen: dict[str, int]) -> str:
    """The anchor of a heading; the second of the same words gets a number, as on GitHub."""
    count = seen.get(name, 0)
    seen[name] = count + 1
    return f"{name}-{count}" if count else name


def _anchors(page: Page) -> set[str]:
    ids = {str(token.attrGet("id")) for token in _with_ids(page) if token.type == "heading_open"}
    for token in page.tokens:
        for child in token.children or ():
            if child.type == "html_inline" and 'id="' in child.content:
                ids.add(child.content.split('id="', 1)[1].split('"', 1)[0])
    return ids


def _line(token: Token) -> int:
    return (token.map or [0])[0] + 1


def _name(path: str) -> str:
    """What a page is called in the table of groups."""
    stem = Path(path).stem
    folder = Path(path).parent.name
    return folder if stem == "README" and folder else stem


def _file(path: str) -> str:
    name = _name(path)
    return "index.html" if name == "README" else f"{name.lower()}.html"

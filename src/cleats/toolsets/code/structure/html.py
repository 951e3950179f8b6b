"""Pages: a section for each heading, scripts and styles cut out of them."""

import re
from dataclasses import dataclass, field
from html import unescape
from typing import Final

from cleats.toolsets.code.structure.markup import Tag, tags
from cleats.toolsets.code.structure.outline import MOST_DOC, Outline

_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_PARTS: Final = frozenset(
    {"section", "article", "main", "nav", "aside", "header", "footer", "form", "dialog", "template"}
)
_RAW: Final = frozenset({"script", "style"})
_EMBEDDED: Final = {
    "json": "json",
    "tsx": "tsx",
    "typescript": "typescript",
    "script": "javascript",
    "module": "javascript",
    "babel": "javascript",
    "jsx": "javascript",
    "ts": "typescript",
    "scss": "scss",
    "less": "less",
    "css": "css",
    "style": "css",
}
"""What the language, type or name of such a tag has in it, and which language that is."""
_INLINE = re.compile(r"</?(?:a|abbr|b|code|em|i|kbd|small|span|strong|u)\b[^<>]*>", re.IGNORECASE)
_MARKS = re.compile(r"<[^<>]*>")
_MOST: Final = 2000
"""Characters of a heading or a paragraph that are looked at."""


@dataclass(slots=True)
class Reading:
    """One pass over a page."""

    outline: Outline
    text: str
    section: str = ""
    above: list[tuple[int, str]] = field(default_factory=list)
    opened: Tag | None = None
    """A heading, title, script or style whose end is still to come."""
    waiting: tuple[int, str, str] | None = None
    """A section that has not met its first paragraph."""

    def run(self) -> None:
        for tag in tags(self.text, html=True):
            if tag.opens:
                self._open(tag)
            elif self.opened is not None and tag.name == self.opened.name:
                self._close(self.opened, tag)
                self.opened = None
        self._settle("")

    def _open(self, tag: Tag) -> None:
        self._links(tag)
        if tag.name in _HEADINGS or tag.name in _RAW or tag.name == "title":
            self.opened = tag
        elif tag.name in _PARTS and tag.attributes.get("id"):
            self._settle("")
            self.section = f"{tag.name}#{tag.attributes['id']}"
            self.outline.cut(tag.line, "section", self.section)
        elif tag.name == "p" and self.waiting is not None:
            end = self.text.find("</p", tag.end, tag.end + _MOST)
            self._settle(_plain(self.text[tag.end : end if end > 0 else tag.end + MOST_DOC]))

    def _close(self, opened: Tag, tag: Tag) -> None:
        inside = self.text[opened.end : tag.start]
        if opened.name in _RAW:
            if tag.last > opened.line:
                self.outline.embed(opened.line, "element", opened.name, _lang(opened))
                self.outline.cut(tag.last + 1, "section", self.section or self.outline.source.stem)
            return
        name = _plain(inside[:_MOST])
        if opened.name == "title":
            self.outline.name = self.outline.name or name
            self.section = self.section or name
            return
        level = int(opened.name[1])
        self.above = [(depth, text) for depth, text in self.above if depth < level]
        self.above.append((level, name))
        self._settle("")
        self.section = name
        self.waiting = (opened.line, name, " > ".join(text for _, text in self.above))

    def _settle(self, doc: str) -> None:
        if self.waiting is not None:
            line, name, path = self.waiting
            self.outline.cut(line, "section", name, doc, path)
            self.waiting = None

    def _links(self, tag: Tag) -> None:
        said = tag.attributes
        if tag.name == "script" or (tag.name == "link" and "stylesheet" in said.get("rel", "")):
            self.outline.imported(said.get("src") or said.get("href", ""))
        elif tag.name == "meta":
            self.outline.field(
                tag.line, said.get("name") or said.get("property", ""), said.get("content", "")
            )
        else:
            for key in ("href", "src", "action"):
                self.outline.say(tag.line, "uses", said.get(key, ""))


def _lang(opened: Tag) -> str:
    """What a script or style is written in; empty when it is data for another program."""
    named = opened.attributes.get("lang") or opened.attributes.get("type") or opened.name
    return next((lang for part, lang in _EMBEDDED.items() if part in named.lower()), "")


def read(outline: Outline) -> None:
    Reading(outline, "\n".join(outline.source.lines)).run()


def _plain(marked: str) -> str:
    return " ".join(unescape(_MARKS.sub(" ", _INLINE.sub("", marked))).split())[:MOST_DOC]

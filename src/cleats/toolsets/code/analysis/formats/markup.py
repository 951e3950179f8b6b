"""Pages, documents and their style.

HTML has a section for each heading, with scripts and styles as separate chunks; XML is data; the
rules of a style sheet form readable groups, named after the elements that they style.
"""

import re
from collections.abc import Iterator
from html import unescape
from typing import Final, NamedTuple

from msgspec import Struct

from cleats.toolsets.code.analysis.formats.outline import (
    BLOCK_LINES,
    MAX_DOC_CHARS,
    MAX_KEY_DEPTH,
    MAX_LINE_CHARS,
    MAX_VALUE_CHARS,
    DataEntry,
    Outline,
    cut_entries,
)

_TAG_PATTERN = re.compile(
    r"<(?P<close>/)?(?P<name>[A-Za-z_][\w:.-]*)(?P<attributes>(?:[^<>\"']++|\"[^\"]*+\"|'[^']*+')*+)>"
)
_ATTRIBUTE_PATTERN = re.compile(r"([\w:@.-]+)\s*+=\s*+(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
_RAW_TEXT_TAGS: Final = frozenset({"script", "style"})
_VOID_TAGS: Final = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source"} | {"track", "wbr"}
)
_SKIPPED_DELIMITERS: Final = (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("<!", ">"))


class MarkupTag(NamedTuple):
    """A tag with its position."""

    name: str
    """The name, lowercased for HTML."""
    opens: bool
    closes: bool
    """True for an end tag; an empty element both opens and closes."""
    attributes: dict[str, str]
    start: int
    end: int
    line: int
    last: int
    """The first and the last line of the tag, counted from 0."""


def iterate_tags(text: str, *, html: bool) -> Iterator[MarkupTag]:
    """Yield every tag in order, skipping comments, character data and scripts."""
    position = line = counted_to = 0
    while (start := text.find("<", position)) != -1:
        line += text.count("\n", counted_to, start)
        counted_to = start
        if (skipped_to := _find_skip_end(text, start)) is not None:
            position = skipped_to
            continue
        match = _TAG_PATTERN.match(text, start)
        if match is None:
            position = start + 1
            continue
        position = match.end()
        tag = _build_tag(match, line, html=html)
        yield tag
        if html and tag.opens and tag.name in _RAW_TEXT_TAGS:
            raw_end = re.compile(rf"</{tag.name}\b", re.IGNORECASE).search(text, position)
            position = raw_end.start() if raw_end else len(text)


def _find_skip_end(text: str, start: int) -> int | None:
    for opening, closing in _SKIPPED_DELIMITERS:
        if text.startswith(opening, start):
            end = text.find(closing, start + len(opening))
            return len(text) if end == -1 else end + len(closing)
    return None


def _build_tag(match: re.Match[str], line: int, *, html: bool) -> MarkupTag:
    name = match["name"].lower() if html else match["name"]
    attribute_text = match["attributes"]
    is_empty = attribute_text.endswith("/") or (html and name in _VOID_TAGS)
    is_closing = match["close"] is not None
    pairs = () if is_closing else _ATTRIBUTE_PATTERN.finditer(attribute_text[:4000])
    attributes = {pair[1].lower(): pair[2] or pair[3] or pair[4] or "" for pair in pairs}
    last = line + match[0].count("\n")
    return MarkupTag(name, not is_closing, is_closing or is_empty, attributes, *match.span(), line, last)


_HEADING_TAGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_SECTION_TAGS: Final = frozenset(
    {"section", "article", "main", "nav", "aside", "header", "footer", "form", "dialog", "template"}
)
_EMBEDDED_LANGUAGES: Final = {
    **{name: name for name in ("json", "tsx", "typescript")},
    **dict.fromkeys(("script", "module", "babel", "jsx"), "javascript"),
    "ts": "typescript",
    **{name: name for name in ("scss", "less", "css")},
    "style": "css",
}
"""Text in the language, type or name of a script or style tag, with the language it means."""
_INLINE_TAG_PATTERN = re.compile(r"</?(?:a|abbr|b|code|em|i|kbd|small|span|strong|u)\b[^<>]*>", re.IGNORECASE)
_ANY_TAG_PATTERN = re.compile(r"<[^<>]*>")


class HtmlReader(Struct):
    """One pass over a page."""

    outline: Outline
    text: str
    section: str = ""
    ancestors: list[tuple[int, str]] = []
    open_tag: MarkupTag | None = None
    """A heading, title, script or style tag whose end is still to come."""
    pending_section: tuple[int, str, str] | None = None
    """A section whose first paragraph has not been read yet."""

    def run(self) -> None:
        for tag in iterate_tags(self.text, html=True):
            if tag.opens:
                self._open_element(tag)
            elif self.open_tag is not None and tag.name == self.open_tag.name:
                self._close_element(self.open_tag, tag)
                self.open_tag = None
        self._finish_section("")

    def _open_element(self, tag: MarkupTag) -> None:
        self._collect_links(tag)
        if tag.name in _HEADING_TAGS or tag.name in _RAW_TEXT_TAGS or tag.name == "title":
            self.open_tag = tag
        elif tag.name in _SECTION_TAGS and tag.attributes.get("id"):
            self._finish_section("")
            self.section = f"{tag.name}#{tag.attributes['id']}"
            self.outline.cut(tag.line, "section", self.section)
        elif tag.name == "p" and self.pending_section is not None:
            end = self.text.find("</p", tag.end, tag.end + MAX_LINE_CHARS)
            self._finish_section(_strip_markup(self.text[tag.end : end if end > 0 else tag.end + MAX_DOC_CHARS]))

    def _close_element(self, open_tag: MarkupTag, tag: MarkupTag) -> None:
        content = self.text[open_tag.end : tag.start]
        if open_tag.name in _RAW_TEXT_TAGS:
            if tag.last > open_tag.line:
                self.outline.cut(open_tag.line, "element", open_tag.name, lang=_detect_language(open_tag))
                self.outline.cut(tag.last + 1, "section", self.section or self.outline.source.stem)
            return
        name = _strip_markup(content[:MAX_LINE_CHARS])
        if open_tag.name == "title":
            self.outline.name = self.outline.name or name
            self.section = self.section or name
            return
        level = int(open_tag.name[1])
        self.ancestors = [(depth, text) for depth, text in self.ancestors if depth < level]
        self.ancestors.append((level, name))
        self._finish_section("")
        self.section = name
        self.pending_section = (open_tag.line, name, " > ".join(text for _, text in self.ancestors))

    def _finish_section(self, doc: str) -> None:
        if self.pending_section is not None:
            line, name, path = self.pending_section
            self.outline.cut(line, "section", name, doc, path)
            self.pending_section = None

    def _collect_links(self, tag: MarkupTag) -> None:
        attributes = tag.attributes
        if tag.name == "script" or (tag.name == "link" and "stylesheet" in attributes.get("rel", "")):
            self.outline.add_import(attributes.get("src") or attributes.get("href", ""))
        elif tag.name == "meta":
            name = attributes.get("name") or attributes.get("property", "")
            self.outline.add_field(tag.line, name, attributes.get("content", ""))
        else:
            for key in ("href", "src", "action"):
                self.outline.add_mention(tag.line, "uses", attributes.get(key, ""))


def _detect_language(tag: MarkupTag) -> str:
    """Return the language of a script or style, empty if it is data for another program."""
    type_name = tag.attributes.get("lang") or tag.attributes.get("type") or tag.name
    return next((lang for marker, lang in _EMBEDDED_LANGUAGES.items() if marker in type_name.lower()), "")


def _strip_markup(markup: str) -> str:
    return " ".join(unescape(_ANY_TAG_PATTERN.sub(" ", _INLINE_TAG_PATTERN.sub("", markup))).split())[:MAX_DOC_CHARS]


def read_html(outline: Outline) -> None:
    HtmlReader(outline, outline.source.text).run()


_NAMING_ATTRIBUTES: Final = ("name", "id", "key", "android:name", "x:key", "include", "artifactid")


class XmlReader(Struct):
    """One pass over a document."""

    outline: Outline
    text: str
    top_entries: list[DataEntry] = []
    open_names: list[str] = []
    open_tag: MarkupTag | None = None
    """The last tag if it was a start tag: the following text may be its content."""

    def run(self) -> None:
        for tag in iterate_tags(self.text, html=False):
            if tag.opens:
                self._open_element(tag)
            if tag.closes:
                self._close_element(tag)
            self.open_tag = tag if tag.opens and not tag.closes else None

    def _open_element(self, tag: MarkupTag) -> None:
        depth = len(self.open_names)
        if depth in (1, 2):
            label = next((tag.attributes[key] for key in _NAMING_ATTRIBUTES if tag.attributes.get(key)), "")
            entry = DataEntry(tag.line, f"{tag.name}.{label}" if label else tag.name, not tag.closes)
            siblings = self.top_entries if depth == 1 else self.top_entries[-1].entries if self.top_entries else []
            siblings.append(entry)
        self.open_names.append(tag.name)
        if depth < MAX_KEY_DEPTH:
            path = ".".join(self.open_names)
            for key, value in tag.attributes.items():
                self.outline.add_field(tag.line, f"{path}.{key}", value)

    def _close_element(self, tag: MarkupTag) -> None:
        if self.open_tag is not None and len(self.open_names) <= MAX_KEY_DEPTH:
            content = self.text[self.open_tag.end : tag.start][: 4 * MAX_VALUE_CHARS]
            if content := " ".join(content.split()):
                self.outline.add_field(self.open_tag.line, ".".join(self.open_names), content)
        if self.open_names:
            self.open_names.pop()


def read_xml(outline: Outline) -> None:
    reader = XmlReader(outline, outline.source.text)
    reader.run()
    cut_entries(outline, reader.top_entries, len(outline.source.lines) - 1)


_CSS_TOKEN_PATTERN = re.compile(
    r"/\*.*?(?:\*/|\Z)|//[^\n]*|\"(?:[^\"\\\n]++|\\.)*+\"?|'(?:[^'\\\n]++|\\.)*+'?|[{};]", re.DOTALL
)
_IMPORT_PATTERN = re.compile(r"@(?:import|use|forward)\s+(?:url\()?[\"']?([^\"')\s;]+)")
_SELECTOR_PATTERN = re.compile(r"[.#]([A-Za-z_][\w-]{0,100})")
_VARIABLE_PATTERN = re.compile(r"((?:--|\$|@)[\w-]{1,100})\s{0,20}:\s{0,20}([^;{}\n]{1,200})")
_VARIABLE_USE_PATTERN = re.compile(r"var\(\s{0,20}(--[\w-]{1,100})")
_TITLE_PATTERN = re.compile(r"[\w][^\n*]{0,100}")


def read_css(outline: Outline) -> None:
    text = outline.source.text
    line = offset = depth = rule_start = 0
    group_line: int | None = None
    title = ""
    for match in _CSS_TOKEN_PATTERN.finditer(text):
        line += text.count("\n", offset, match.start())
        offset = match.start()
        token = match[0]
        if token.startswith("/*"):
            if depth == 0 and not text[rule_start:offset].strip():
                title_match = _TITLE_PATTERN.search(token[:MAX_LINE_CHARS])
                title = title_match[0].strip(" -=/") if title_match else ""
                group_line, rule_start = line, match.end()
                outline.cut(line, "element", title or outline.source.stem)
        elif token == "{":
            if depth == 0:
                first = line - text[rule_start:offset].lstrip().count("\n")
                if group_line is None or (first - group_line >= BLOCK_LINES and first > group_line):
                    selector = " ".join(text[rule_start:offset][-MAX_LINE_CHARS:].split())[:100]
                    outline.cut(first, "element", title or selector)
                    group_line = first
            depth += 1
        elif token == "}":
            depth = max(depth - 1, 0)
        if token in "};" and depth == 0:
            rule_start = match.end()
    _collect_css_mentions(outline)


def _collect_css_mentions(outline: Outline) -> None:
    for index, full_line in enumerate(outline.source.lines):
        line = full_line[:MAX_LINE_CHARS]
        if "@" in line and (match := _IMPORT_PATTERN.search(line)):
            outline.add_import(match[1])
        if line.rstrip().endswith(("{", ",")):
            for match in _SELECTOR_PATTERN.finditer(line):
                outline.add_mention(index, "uses", match[1])
        for match in _VARIABLE_USE_PATTERN.finditer(line):
            outline.add_mention(index, "uses", match[1])
        for match in _VARIABLE_PATTERN.finditer(line):
            outline.add_field(index, match[1], match[2].strip())

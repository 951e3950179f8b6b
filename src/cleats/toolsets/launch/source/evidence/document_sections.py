"""Sections of the repository's own documents, as evidence in the order in which they are written.

A section keeps its text, its lists, its tables and its code together, so that a page can show a task
as its authors explain it. Each statement is a claim in the words of the document; sentences that
speak of the project, praise it or cannot stand alone are left out.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from textwrap import dedent
from typing import Any, Final

from cleats.toolsets.launch.source.evidence.document_claims import clean_title, detect_block_language, slugify_title
from cleats.toolsets.launch.source.evidence.ledger import Citation, ClaimLedger
from cleats.toolsets.launch.source.text import code_blocks, english
from cleats.toolsets.launch.source.text.documents import NOTE_KINDS, Block
from cleats.toolsets.launch.source.text.sentences import ProductSubject, has_product_subject, strip_merits

_TOPICS: Final = "command_line task unrelated questions troubleshooting install configuration limits features"
TOPIC_PATTERNS: Final = {topic: english.load_pattern(f"{topic}_section") for topic in _TOPICS.split()}
"""Patterns of headings by topic; the first that matches decides, and a section without one is a task."""

_WARNING_PATTERN: Final = english.load_expression("warning")
REFERRING_START_PATTERN: Final = english.load_expression("referring_start")
_DEVELOPER_COMMAND_PATTERN: Final = re.compile(
    r"^\s*(?:\./|scripts/|git |make\b|tox\b|nox\b|pytest\b|pre-commit\b"
    r"|python3? (?:setup\.py|-m (?:pytest|build|tox)))",
    re.MULTILINE,
)
"""Commands for people who work on the product, not with it."""

_COUNTED_LEAD_PATTERN: Final = english.load_expression("counted_lead")
"""A lead that says how many items follow, or that these are all; without one of them it would be false."""

_DOCUMENT_WORD_PATTERN: Final = re.compile(r"\s+(?:documentation|docs|manual|user guide)$", re.IGNORECASE)

_QUOTATION_PATTERN: Final = re.compile('[\u2018\u201c"]([^\u2018\u2019\u201c\u201d"]+)[\u2019\u201d"]')
_PICTOGRAM_PATTERN: Final = re.compile("^[\u2600-\u27bf\ufe0f\U0001f300-\U0001faff\\s]+")
_OPENING_PATTERN: Final = re.compile(r"introduction|about|synopsis|description", re.IGNORECASE)
_WELCOME_PATTERN: Final = re.compile(r"welcome to\b", re.IGNORECASE)
_WHAT_IS_PATTERN: Final = re.compile(r"(?:what is|about) (.+?)\??", re.IGNORECASE)
_PROJECT_PATTERN: Final = english.load_pattern("project_section")
_MERIT_PATTERN: Final = english.load_expression("merit")
"""A comparison with other products, or a sentence about the product without its name."""

_SIGNATURE_PATTERN: Final = re.compile(r"\w\(|^\w+(?:\.\w+)+$")
"""A heading that is a call or the name of a member."""

_TRAILING_CODE_PATTERN: Final = re.compile(
    r"(?<=[a-z])(?<!\bof)(?<!\bwith)(?<!\busing)(?<!\bto)(?<!\band)(?<!\bor)(?<!\bin)(?<!\bfor)(?: +`[^`]*`)+$"
)
"""Code that a heading shows as an example of what it names."""

MIN_LEAD_WORDS: Final = 3
"""Words of a sentence that leads to a list."""

MIN_CAPTION_WORDS: Final = 2
"""Words of a caption above code; a single word is a label, such as `JavaScript`."""

MAX_SECTIONS: Final = 60
"""Sections read at most; more would be a book, which the repository already has."""

MAX_SECTION_PARTS: Final = 60
"""Parts of a section; the rest of a longer one is left to its document."""


@dataclass(frozen=True, slots=True)
class SectionPart:
    """A piece of a section: `text`, `item`, `row`, `header` (of a table), `note` or `code`."""

    kind: str
    reference: str
    """The claim that states it, or the snippet."""
    label: str = ""
    """The strong words that an item begins with, or the kind of a note."""
    depth: int = 0

    def as_json(self) -> dict[str, Any]:
        name = "snippet_id" if self.kind == "code" else "claim_id"
        optional = {"label": self.label, "depth": self.depth}
        return {"kind": self.kind, name: self.reference} | {key: value for key, value in optional.items() if value}


@dataclass(frozen=True, slots=True)
class DocumentSection:
    """A section of a document, with its heading and its topic."""

    section_id: str
    title: str
    topic: str
    path: str
    level: int
    above: tuple[str, ...] = ()
    """The headings above it, outermost first."""
    parts: list[SectionPart] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        parts = [part.as_json() for part in self.parts]
        names = ("section_id", "title", "topic", "path", "level")
        return {name: getattr(self, name) for name in names} | {"parts": parts}


@dataclass(slots=True)
class SectionReader:
    """Reads the sections of one product's documents."""

    ledger: ClaimLedger
    subject: ProductSubject
    sections: dict[str, DocumentSection] = field(default_factory=dict)
    claimed_texts: dict[str, str] = field(default_factory=dict)
    """The texts that are claimed, with the document of each."""
    praises_product: bool = True
    """True in an introduction and in a list of features, where a merit is a promise and not an explanation."""

    def read_document(self, blocks: Iterable[Block]) -> None:
        """Add the sections of a document."""
        section: DocumentSection | None = None
        lead = ""
        lost_lead = False
        groups = [list(group) for _, group in groupby(self._add_title(list(blocks)), key=lambda block: block.kind)]
        for number, run in enumerate(groups):
            kind = run[0].kind
            leads_to_code = number + 1 < len(groups) and groups[number + 1][0].kind == "code"
            for block in run:
                if kind == "heading":
                    section = self._open_section(block)
                elif section is None and not self.sections:
                    section = self._open_section(replace(block, text=self.subject.name, section=()))
            if section is None or kind == "heading":
                lead, lost_lead = "", False
                continue
            shown = run if kind != "item" or self._is_whole_list(run, lead) else []
            if kind == "code" and lost_lead and any(part.kind == "code" for part in section.parts):
                shown = []  # nothing says what it is for
            part_count = len(section.parts)
            for block in shown:
                if len(section.parts) < MAX_SECTION_PARTS:
                    section.parts.extend(self._read_parts(block, leads_to_code=leads_to_code and block is run[-1]))
            lead = run[-1].text if kind == "paragraph" else ""
            is_lost = len(section.parts) == part_count and len(run[-1].text.split()) >= MIN_LEAD_WORDS
            lost_lead = kind == "paragraph" and is_lost

    def _add_title(self, blocks: list[Block]) -> list[Block]:
        """Return the blocks of a document below one title, which may be an image."""
        titles = [block for block in blocks if block.kind == "heading" and not block.section]
        if len(titles) < 2:
            return blocks
        is_titled = self.subject.name.lower() in titles[0].text.lower()
        title, start = (titles[0].text, titles[1].line) if is_titled else (self.subject.name, 0)
        return [replace(block, section=(title, *block.section)) if block.line >= start else block for block in blocks]

    def drop_sections_without_code(self, path: str) -> None:
        """Drop the sections of a document that show no code; only a guide is read for its text alone."""
        for section in [item for item in self.sections.values() if item.path == path]:
            if not any(part.kind == "code" for part in section.parts):
                del self.sections[section.section_id]

    def list_sections(self) -> list[DocumentSection]:
        """Return the sections that say something, in the order of the documents.

        A section whose parent says nothing moves up, or it would follow an unrelated section.
        """
        sections = [section for section in self.sections.values() if section.parts]
        titles = {(section.path, section.title) for section in sections}
        return [
            replace(
                section,
                topic="introduction" if self._is_opening(section) else section.topic,
                level=min(section.level, 1)
                + sum((section.path, clean_heading(heading)) in titles for heading in section.above[1:]),
            )
            for section in sections
        ]

    def _is_opening(self, section: DocumentSection) -> bool:
        """Return whether a section only introduces a document, as `Kettle Documentation` does."""
        name = _DOCUMENT_WORD_PATTERN.sub("", section.title)
        has_code = any(part.kind == "code" for part in section.parts)
        is_title = section.level == 0 and self.subject.is_named_by(name)
        question = _WHAT_IS_PATTERN.fullmatch(section.title)
        return (is_title or bool(question and self.subject.is_named_by(question[1]))) and not has_code

    def _open_section(self, heading: Block) -> DocumentSection | None:
        title = clean_heading(heading.text)
        level = len(heading.section)
        topic = self._find_topic(title, heading.section, level)
        self.praises_product = topic in ("introduction", "features")
        section_id = slugify_title(title)
        if not section_id or topic == "unrelated" or len(self.sections) >= MAX_SECTIONS:
            return None
        if section_id in self.sections and self.sections[section_id].parts:
            section_id = slugify_title(f"{clean_heading(heading.section[-1])} {title}") if heading.section else ""
        if not section_id or (section_id in self.sections and self.sections[section_id].parts):
            return None
        section = DocumentSection(section_id, title, topic, heading.path, level, heading.section)
        self.sections[section_id] = section
        return section

    def _find_topic(self, title: str, above: tuple[str, ...], level: int) -> str:
        is_opening = level == 0 or (level == 1 and bool(_OPENING_PATTERN.fullmatch(title)))
        if _WELCOME_PATTERN.match(title) and self.subject.name.lower() in title.lower():
            return "introduction"
        if is_opening and not any(section.parts for section in self.sections.values()):
            return "introduction"
        # The heading itself decides, then those above it, not the title.
        for depth, heading in zip(range(max(level, 1), 0, -1), (title, *above[:0:-1]), strict=False):
            if depth == 1 and _PROJECT_PATTERN.search(heading):
                return "unrelated"
            if _SIGNATURE_PATTERN.search(heading):
                continue  # `limit(fn, ...options)` is about neither limits nor options
            for topic, pattern in TOPIC_PATTERNS.items():
                if pattern.search(heading):
                    return topic
        return "task"

    def _is_whole_list(self, items: list[Block], lead: str) -> bool:
        """Return whether a list still says what its author means without the items that are left out."""
        texts = [next(iter(self._select_text(item)), "") if self._has_text(item) else "" for item in items]
        path = items[0].path
        lost_count = texts.count("")
        if len(items) > 1 and all(self.claimed_texts.get(text, path) != path for text in texts):
            return False  # another document has the same list
        if lost_count * 2 > len(items):
            return False
        lead_sentence = next(reversed(english.split_sentences(lead)), "")
        if len(lead_sentence.split()) < MIN_LEAD_WORDS:
            return True  # no sentence, but a heading such as `Features:`
        is_lead_lost = not self._is_usable(lead_sentence, is_item=False)
        if not lead_sentence.endswith(":") and ":" not in lead_sentence:
            return True
        has_fragments = any(not text.endswith((".", "?")) for text in texts if text)
        is_counted = bool(_COUNTED_LEAD_PATTERN.search(lead_sentence))
        return not (is_lead_lost and has_fragments) and not (lost_count and is_counted)

    def _has_text(self, block: Block) -> bool:
        return bool(block.text) and not block.html and not block.only_link

    def _read_parts(self, block: Block, *, leads_to_code: bool = False) -> Iterator[SectionPart]:
        if block.kind == "code":
            language, code = read_code(block)
            if code.strip() and not (language == "shell" and _DEVELOPER_COMMAND_PATTERN.search(code)):
                yield SectionPart("code", code_blocks.compute_snippet_id(language, code))
        elif block.kind == "row":
            cells = [cell.strip() for cell in block.text.split("|")]
            if any(cells) and not block.html and "://" not in block.text:
                kind = "header" if block.lead == "header" else "row"
                yield SectionPart(kind, self._claim(block.text, block))
        elif self._has_text(block):
            for text in self._select_text(block, leads_to_code=leads_to_code):
                label = block.lead if block.lead and (block.kind == "item" or _is_note(block)) else ""
                kind = "item" if block.kind == "item" else "note" if _is_note(block) else "text"
                yield SectionPart(kind, self._claim(text, block), label, max(0, block.depth - 1))

    def _select_text(self, block: Block, *, leads_to_code: bool = False) -> list[str]:
        """Return the text of a block in at most two pieces: its sentences, and one that leads to what follows.

        A caption above code leads to it.
        """
        if block.kind == "item":
            text = re.sub(r"[,;]$", "", block.text).strip()
            is_whole = text.endswith((".", "?", ":"))
            sentences = english.split_sentences(text) if is_whole else [text]
        else:
            text = _PICTOGRAM_PATTERN.sub("", block.text)
            sentences = [english.address_reader(item) for item in english.split_sentences(text)]
            if _is_note(block):
                sentences = [re.sub(r"!+$", ".", item) for item in sentences]
            elif leads_to_code and sentences:
                sentences[-1] = _format_lead(sentences[-1])
            if sentences and not sentences[-1].endswith((".", "?", ":", "!")):
                return []  # a caption or a label, not a sentence
        kept: list[str] = []
        was_dropped = False
        for sentence in sentences:
            refers_to_lost = was_dropped and REFERRING_START_PATTERN.match(sentence)
            is_usable = self._is_usable(sentence, is_item=block.kind == "item", is_note=_is_note(block))
            text = sentence if is_usable else strip_merits(sentence) if self.praises_product else ""
            is_usable = is_usable or bool(text and self._is_usable(text, is_item=block.kind == "item"))
            was_dropped = bool(refers_to_lost) or not is_usable
            if not was_dropped:
                kept.append(text)
        leads = kept[-1:] if kept and kept[-1].endswith(":") and block.kind != "item" else []
        body = kept[: len(kept) - len(leads)]
        texts = [*([" ".join(body)] if body else []), *leads]
        # An item is part of its list, which another list may share it with.
        return [text for text in texts if block.kind == "item" or text not in self.claimed_texts]

    def _is_usable(self, sentence: str, *, is_item: bool, is_note: bool = False) -> bool:
        ending = "." if is_item and not sentence.endswith((".", "?", ":")) else ""
        if (english.is_promise(sentence) and not is_note) or not english.is_quotable(
            f"{sentence}{ending}", is_item=is_item
        ):
            return False
        if _WARNING_PATTERN.search(sentence):
            return True
        return not self._is_unproven_merit(sentence) and not english.is_strong_praise(sentence)

    def _is_unproven_merit(self, sentence: str) -> bool:
        """Return whether a sentence says how fast or safe the product is, not how something works."""
        is_about_product = has_product_subject(sentence, self.subject) or bool(_MERIT_PATTERN.search(sentence))
        return english.is_unproven(sentence) and (self.praises_product or is_about_product)

    def _claim(self, text: str, block: Block) -> str:
        self.claimed_texts.setdefault(text, block.path)
        is_readme = "/" not in block.path
        citation = Citation.of_block(block, "readme_technical" if is_readme else "implementation_doc")
        # A warning or an explanation is quoted as it is written, so nothing is inferred.
        is_fact = True if _WARNING_PATTERN.search(text) or not self.praises_product else None
        return self.ledger.add(text, "other", [citation], is_fact=is_fact)


def clean_heading(text: str) -> str:
    """Return a heading as a page can use it, also a question; "" for one that is code or in another script."""
    name, mark, rest = text.partition(" --- ")
    question = (rest if mark and "." in name else text).rstrip(" ?")  # `package.module --- What it is for`
    bare = _TRAILING_CODE_PATTERN.sub("", question)
    title = clean_title(_QUOTATION_PATTERN.sub(r"\1", bare if re.search("[ -]", bare) else question))
    return f"{title}?" if title and text.rstrip().endswith("?") else title


def read_code(block: Block) -> tuple[str, str]:
    """Return the language and the code of a block as the catalogue has it, without prompts and outputs."""
    language = detect_block_language(block)
    code = dedent(block.text)
    if language == "python" and code_blocks.is_session(code):
        code = code_blocks.extract_session_input(code)
    elif language == "shell":
        code = code_blocks.extract_commands(code)
    return language, code


def read_sections(
    ledger: ClaimLedger, subject: ProductSubject, blocks_by_path: Mapping[str, list[Block]], guide_paths: Container[str]
) -> list[DocumentSection]:
    """Read the sections of the documents of a product, the readme first.

    Of documents that are neither overviews nor guides, only sections with code are read.
    """
    reader = SectionReader(ledger, subject)
    for path, blocks in blocks_by_path.items():
        reader.read_document(blocks)
        if path not in guide_paths:
            reader.drop_sections_without_code(path)
    return reader.list_sections()


def _is_note(block: Block) -> bool:
    return block.lead.lower() in NOTE_KINDS


def _format_lead(sentence: str) -> str:
    """Return a caption above code as a sentence that leads to it."""
    is_caption = len(sentence.split()) >= MIN_CAPTION_WORDS and re.search(r"[\w`)\]]$", sentence)
    text = f"{sentence}:" if is_caption else sentence
    return f"{text[:1].upper()}{text[1:]}" if text.partition(" ")[0].isalpha() else text

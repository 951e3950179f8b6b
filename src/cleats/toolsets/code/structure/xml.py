"""XML: the elements below the root as entries, their attributes and texts as fields."""

from dataclasses import dataclass, field
from typing import Final

from cleats.toolsets.code.structure.entries import Entry, cut_entries
from cleats.toolsets.code.structure.markup import Tag, tags
from cleats.toolsets.code.structure.outline import MOST_TEXT, Outline

_DEEPEST: Final = 8
_NAMING: Final = ("name", "id", "key", "android:name", "x:key", "include", "artifactid")


@dataclass(slots=True)
class Reading:
    """One pass over a document."""

    outline: Outline
    text: str
    top: list[Entry] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    opened: Tag | None = None
    """The last tag, if it was an opening one: then what follows may be its text."""

    def run(self) -> None:
        for tag in tags(self.text, html=False):
            if tag.opens:
                self._open(tag)
            if tag.closes:
                self._close(tag)
            self.opened = tag if tag.opens and not tag.closes else None

    def _open(self, tag: Tag) -> None:
        depth = len(self.names)
        if depth in (1, 2):
            named = next((tag.attributes[key] for key in _NAMING if tag.attributes.get(key)), "")
            entry = Entry(tag.line, f"{tag.name}.{named}" if named else tag.name, not tag.closes)
            into = self.top if depth == 1 else self.top[-1].entries if self.top else []
            into.append(entry)
        self.names.append(tag.name)
        if depth < _DEEPEST:
            path = ".".join(self.names)
            for key, value in tag.attributes.items():
                self.outline.field(tag.line, f"{path}.{key}", value)

    def _close(self, tag: Tag) -> None:
        if self.opened is not None and len(self.names) <= _DEEPEST:
            said = self.text[self.opened.end : tag.start][: 4 * MOST_TEXT]
            if said := " ".join(said.split()):
                self.outline.field(self.opened.line, ".".join(self.names), said)
        if self.names:
            self.names.pop()


def read(outline: Outline) -> None:
    reading = Reading(outline, "\n".join(outline.source.lines))
    reading.run()
    cut_entries(outline, reading.top, len(outline.source.lines) - 1)

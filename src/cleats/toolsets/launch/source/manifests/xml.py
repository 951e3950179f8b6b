"""XML with line numbers, and with nothing that reaches outside of the file."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat  # ElementTree gives no lines


@dataclass(slots=True)
class Element:
    """An element; names are without their namespace."""

    name: str
    line: int
    attributes: dict[str, str]
    children: list["Element"] = field(default_factory=list)
    text: str = ""

    def find(self, *names: str) -> "Element | None":
        """The first element down this path."""
        here: Element | None = self
        for name in names:
            here = (
                next((each for each in here.children if each.name == name), None) if here else here
            )
        return here

    def all(self, name: str) -> Iterator["Element"]:
        """Every element of this name, at any depth."""
        waiting = self.children[::-1]
        while waiting:  # not by calling itself: a file may be nested as deep as it likes
            child = waiting.pop()
            if child.name == name:
                yield child
            waiting += child.children[::-1]


def parse(text: str | None) -> Element | None:
    """The root element; None for what is no XML, or declares entities."""
    parser = expat.ParserCreate(namespace_separator="|")
    top = Element("", 1, {})
    stack = [top]

    def begin(name: str, attributes: dict[str, str]) -> None:
        element = Element(name.rpartition("|")[2], parser.CurrentLineNumber, attributes)
        stack[-1].children.append(element)
        stack.append(element)

    def end(_name: str) -> None:
        stack[-1].text = stack[-1].text.strip()
        stack.pop()

    def said(words: str) -> None:
        stack[-1].text += words

    def refuse(*_declared: object) -> None:
        raise expat.ExpatError("entities are not read")

    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.CharacterDataHandler = said
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse((text or "").lstrip(), True)
    except expat.ExpatError:
        return None
    return top.children[0] if top.children else None

"""XML with line numbers, read without anything that reaches outside of the file."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat  # ElementTree gives no lines


@dataclass(slots=True)
class XmlElement:
    """An element; its name is without the namespace."""

    name: str
    line: int
    attributes: dict[str, str]
    children: list["XmlElement"] = field(default_factory=list)
    text: str = ""

    def find(self, *names: str) -> "XmlElement | None":
        """Return the first element down a path of names."""
        element: XmlElement | None = self
        for name in names:
            element = next((child for child in element.children if child.name == name), None) if element else element
        return element

    def find_all(self, name: str) -> Iterator["XmlElement"]:
        """Yield every element with a name, at any depth."""
        pending = self.children[::-1]
        while pending:  # not recursive: the nesting depth of a file is not limited
            child = pending.pop()
            if child.name == name:
                yield child
            pending += child.children[::-1]


def parse_xml(text: str | None) -> XmlElement | None:
    """Return the root element of an XML text; None if it is invalid or declares entities."""
    parser = expat.ParserCreate(namespace_separator="|")
    top = XmlElement("", 1, {})
    stack = [top]

    def start_element(name: str, attributes: dict[str, str]) -> None:
        element = XmlElement(name.rpartition("|")[2], parser.CurrentLineNumber, attributes)
        stack[-1].children.append(element)
        stack.append(element)

    def end_element(_name: str) -> None:
        stack[-1].text = stack[-1].text.strip()
        stack.pop()

    def add_text(data: str) -> None:
        stack[-1].text += data

    def refuse_entities(*_declaration: object) -> None:
        raise expat.ExpatError("entities are not supported")

    parser.StartElementHandler = start_element
    parser.EndElementHandler = end_element
    parser.CharacterDataHandler = add_text
    parser.EntityDeclHandler = refuse_entities
    try:
        parser.Parse((text or "").lstrip(), True)
    except expat.ExpatError:
        return None
    return top.children[0] if top.children else None

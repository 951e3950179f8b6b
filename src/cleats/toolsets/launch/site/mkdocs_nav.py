"""The navigation of a MkDocs site: pages are added and removed in its text, and everything else stays as it is.

The text is edited at the positions that the YAML parser reports. The result is parsed again and must list exactly the
expected pages; otherwise nothing is changed.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import yaml

from cleats.toolsets.launch.site.mkdocs import parse_mkdocs_config

GROUP_INDENT = 4
"""Spaces before the items of a new group, as in the documentation of MkDocs."""

_PLAIN_NAME_PATTERN = re.compile(r"[A-Za-z][\w .-]*[\w]")
_WORDS_OF_YAML = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null"])


@dataclass(frozen=True, slots=True)
class NavItem:
    """A line of the navigation that names one page; the line counts from 0."""

    page: str
    line: int
    dash_column: int


@dataclass(frozen=True, slots=True)
class NavGroup:
    """New pages below one title, relative to the folder of the pages, in reading order."""

    title: str
    pages: Sequence[str]
    subgroups: Mapping[str, Sequence[str]]
    """Further pages by the title of their group."""

    @property
    def all_pages(self) -> tuple[str, ...]:
        return (*self.pages, *(page for pages in self.subgroups.values() for page in pages))


def update_nav(text: str, order: Sequence[str], new: NavGroup, removed: Sequence[str]) -> str | None:
    """Return a configuration whose navigation lists the new pages and omits the removed ones.

    `order` has all pages of the launch. A new page follows its predecessor in this order, if the navigation lists it;
    without one, the new pages become a group at the end. Returns None if there is no navigation, if nothing changes, or
    if the text cannot be edited safely.
    """
    config = parse_mkdocs_config("", text)
    present = set(config.nav_pages)
    added = [page for page in new.all_pages if page not in present]
    if not config.has_nav or config.fault or not (added or present & set(removed)):
        return None
    newline = "\r\n" if "\r\n" in text else "\n"
    edited = _remove_items(text, set(removed))
    if added == list(new.all_pages) and not present & set(order):
        edited = _append_group(edited, new, newline)
    else:
        for page in added:
            edited = _insert_page(edited, page, order, newline)
    expected = sorted([*added, *(page for page in config.nav_pages if page not in removed)])
    return edited if sorted(parse_mkdocs_config("", edited).nav_pages) == expected else None


def _remove_items(text: str, removed: set[str]) -> str:
    lines = text.split("\n")
    numbers = {item.line for item in _list_items(_find_nav(text)) if item.page in removed}
    return "\n".join(line for number, line in enumerate(lines) if number not in numbers)


def _insert_page(text: str, page: str, order: Sequence[str], newline: str) -> str:
    """Insert a page after its nearest predecessor that is listed, else before its nearest successor."""
    items = {item.page: item for item in _list_items(_find_nav(text))}
    position = order.index(page)
    predecessor = next((items[other] for other in reversed(order[:position]) if other in items), None)
    successor = next((items[other] for other in order[position + 1 :] if other in items), None)
    item = predecessor or successor
    if item is None:
        return text
    line = item.line + (predecessor is not None)
    return _insert_lines(text, line, [f"{' ' * item.dash_column}- {_format_name(page)}"], newline)


def _append_group(text: str, group: NavGroup, newline: str) -> str:
    nav = _find_nav(text)
    if nav is None:
        return text
    subgroups = [{title: list(pages)} for title, pages in group.subgroups.items()]
    if nav.flow_style:
        entry = json.dumps({group.title: [*group.pages, *subgroups]}, ensure_ascii=False)
        end = nav.end_mark.index - 1  # before the bracket
        return f"{text[:end].rstrip().removesuffix(',')}{', ' if nav.value else ''}{entry}{text[end:]}"
    indent = " " * nav.start_mark.column
    inner, innermost = (indent + " " * (GROUP_INDENT * depth) for depth in (1, 2))
    lines = [f"{indent}- {_format_name(group.title)}:", *(f"{inner}- {_format_name(page)}" for page in group.pages)]
    for title, pages in group.subgroups.items():
        lines += [f"{inner}- {_format_name(title)}:", *(f"{innermost}- {_format_name(page)}" for page in pages)]
    return _insert_lines(text, _find_last_line(nav) + 1, lines, newline)


def _insert_lines(text: str, number: int, new_lines: Sequence[str], newline: str) -> str:
    lines = text.split("\n")
    added = "".join(line + newline for line in new_lines)
    above, below = "\n".join(lines[:number]), "\n".join(lines[number:])
    if number >= len(lines):  # the last line has no end
        return f"{above}{newline}{added}"
    return f"{above}\n{added}{below}"


def _find_nav(text: str) -> yaml.SequenceNode | None:
    root = yaml.compose(text, yaml.SafeLoader)
    pairs = root.value if isinstance(root, yaml.MappingNode) else ()
    found = next((value for key, value in pairs if key.value == "nav"), None)
    return found if isinstance(found, yaml.SequenceNode) else None


def _list_items(node: yaml.Node | None) -> Iterator[NavItem]:
    """Yield the items of block lists that name one page on one line."""
    if not isinstance(node, yaml.SequenceNode) or node.flow_style:
        return
    for item in node.value:
        value = item
        if isinstance(item, yaml.MappingNode) and len(item.value) == 1 and not item.flow_style:
            value = item.value[0][1]
        if isinstance(value, yaml.ScalarNode) and value.end_mark.line == item.start_mark.line:
            yield NavItem(str(value.value), item.start_mark.line, node.start_mark.column)
        else:
            yield from _list_items(value)


def _find_last_line(node: yaml.Node) -> int:
    """Return the last line of a node with content; the end mark of a block is after the lines that follow it."""
    if isinstance(node, yaml.ScalarNode) or getattr(node, "flow_style", False) or not node.value:
        return int(node.end_mark.line)
    last = node.value[-1]
    return _find_last_line(last[1] if isinstance(last, tuple) else last)


def _format_name(name: str) -> str:
    is_path = re.fullmatch(r"[A-Za-z0-9][\w./-]*\.md", name)
    is_plain = _PLAIN_NAME_PATTERN.fullmatch(name) and name.lower() not in _WORDS_OF_YAML
    return name if is_path or is_plain else json.dumps(name, ensure_ascii=False)

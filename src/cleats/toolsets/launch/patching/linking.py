"""From drafts to patches: new pages with their weights, and links to them from pages that exist.

New pages come after their siblings: their weights go up by the largest that is there. A page above
them that the launch may change gets a link to the first of them, under the heading that such links
have on the site, or under a new one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from cleats.contract.errors import ToolError
from cleats.toolsets.launch import pages
from cleats.toolsets.launch.patching.fence import Fence
from cleats.toolsets.launch.patching.front import updated
from cleats.toolsets.launch.patching.patches import (
    Patch,
    create_file,
    update_by_anchor,
    update_range,
)
from cleats.toolsets.launch.source.tree import Tree

HEADINGS = ("links and resources", "related links", "see also")
NEW_HEADING = "See also"


def patches(
    drafts: Mapping[str, str], plan: Sequence[Mapping[str, Any]], fence: Fence, tree: Tree
) -> list[Patch]:
    """Plan every change of the site: the drafts by path, then the links that lead to them."""
    raised = {folder: _largest(folder, tree, drafts) for folder in _folders(drafts)}
    made: list[Patch] = []
    for path, text in sorted(drafts.items()):
        made.append(create_file(path, _weighted(text, raised[_folder(path)])))
    made.extend(_links(drafts, plan, fence))
    return made


def _folder(path: str) -> str:
    """The folder whose pages stand beside this one."""
    place = PurePosixPath(path)
    bundle = place.name.startswith(("index.", "_index."))
    return str(place.parent.parent if bundle else place.parent)


def _folders(paths: Iterable[str]) -> set[str]:
    return {_folder(path) for path in paths}


def _largest(folder: str, tree: Tree, drafts: Mapping[str, str]) -> int:
    """The largest weight of the pages beside, ours left out so that a second plan is the same."""
    weights = [0]
    for path in tree.below(folder):
        if path.endswith(".md") and path not in drafts and _folder(path) == folder:
            weight = _front(tree.text(path) or "").get("weight")
            weights.append(weight if isinstance(weight, int) else 0)
    return max(weights)


def _weighted(text: str, largest: int) -> str:
    weight = pages.parse(text).front.get("weight")
    if not isinstance(weight, int) or largest <= 0:
        return text
    return updated(text, {"weight": weight + largest})


def _links(
    drafts: Mapping[str, str], plan: Sequence[Mapping[str, Any]], fence: Fence
) -> Iterator[Patch]:
    """Link the first new page of each folder from the index above it, where that may change."""
    linked: dict[str, list[Mapping[str, Any]]] = {}
    for entry in plan:
        above = PurePosixPath(entry["output_path"]).parent.parent
        index = str(above / "_index.md")
        is_index = PurePosixPath(entry["output_path"]).name.startswith("_index.")
        if is_index and index not in drafts:
            linked.setdefault(index, []).append(entry)
    for index, entries in sorted(linked.items()):
        text = _text(fence, index)
        if text is not None:
            yield from _linked(index, text, entries)


def _linked(path: str, text: str, entries: Sequence[Mapping[str, Any]]) -> Iterator[Patch]:
    page = pages.parse(text)
    there = {link.target.rstrip("/") for link in pages.links(page.body)}
    wanted = [
        f"- [{entry['title']}]({entry['url_path']})"
        for entry in entries
        if entry["url_path"].rstrip("/") not in there
    ]
    if not wanted:
        return
    items = "\n".join(wanted)
    headings = pages.headings(page.body)
    for heading in headings:
        if heading.text.casefold() in HEADINGS:
            yield update_by_anchor(path, text, heading.text, items)
            return
    end = text.count("\n") + (not text.endswith("\n"))
    gap = "" if text.endswith("\n\n") else "\n"
    yield update_range(path, text, end + 1, end, f"{gap}## {NEW_HEADING}\n\n{items}\n")


def _text(fence: Fence, path: str) -> str | None:
    """A page that may be changed; None when there is none, or it is not ours to touch."""
    try:
        data = fence.read(path)
        return None if data is None else data.decode()
    except (ToolError, UnicodeDecodeError):
        return None


def _front(text: str) -> Mapping[str, Any]:
    try:
        return pages.parse(text).front
    except pages.FrontMatterError:
        return {}

"""From a file before and after a fix to the smallest patch that leads from one to the other."""

from cleats.toolsets.launch import pages
from cleats.toolsets.launch.fixes.model import Answer, Gone
from cleats.toolsets.launch.patching.patches import (
    ConflictError,
    Patch,
    after,
    create_file,
    delete_file,
    update_front_matter,
    update_range,
)

_PLAIN = (str, bool, int, type(None))
"""Values that a patch can name: it is JSON, which has no `.inf`, and a date would come back as
text."""


def patches(path: str, before: str | None, answer: Answer) -> list[Patch]:
    """The patches for a rule's answer; none when it changes nothing."""
    if answer is None or answer == before:
        return []
    if isinstance(answer, Gone):
        return [] if before is None else [delete_file(path, before)]
    if before is None:
        return [create_file(path, answer)]
    return [between(path, before, answer)]


def between(path: str, before: str, wanted: str) -> Patch:
    """A patch of the keys of the front matter where only those differ, else of the lines."""
    return _keys(path, before, wanted) or _lines(path, before, wanted)


def _keys(path: str, before: str, wanted: str) -> Patch | None:
    try:
        old, new = pages.parse(before).front, pages.parse(wanted).front
        changed = {key: new.get(key) for key in {**old, **new} if old.get(key) != new.get(key)}
        if not old or not changed or not all(isinstance(each, _PLAIN) for each in changed.values()):
            return None
        patch = update_front_matter(path, before, changed)
        return patch if after(patch, before) == wanted else None
    except (pages.FrontMatterError, ConflictError):  # it is written in a way that keys do not fit
        return None


def _lines(path: str, before: str, wanted: str) -> Patch:
    old, new = before.split("\n"), wanted.split("\n")
    shorter = min(len(old), len(new))
    tail = 0
    while tail < shorter and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    head = 0
    while head < shorter - tail and old[head] == new[head]:
        head += 1
    middle = new[head : len(new) - tail]
    text = "\n".join(middle) + "\n" if middle else ""
    patch = update_range(path, before, head + 1, len(old) - tail, text)
    if after(patch, before) != wanted:
        raise ValueError(f"the patch of {path} does not lead to the fixed text")
    return patch

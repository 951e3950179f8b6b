"""From a file before and after a fix to the smallest patch that leads from one to the other."""

from cleats.toolsets.launch.fixes.model import Answer, Gone
from cleats.toolsets.launch.patching.patches import (
    Patch,
    after,
    create_file,
    delete_file,
    update_range,
)


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
    """A patch of the lines that differ."""
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

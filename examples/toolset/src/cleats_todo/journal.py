"""The list, kept as a file of lines: each line is an item as it was at that moment.

A line is appended in one write, so several servers can share the file without a lock, and one that
is killed while it writes loses that line and nothing else.
"""

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from uuid import uuid4


@dataclass(frozen=True)
class Item:
    """One thing to do."""

    id: str
    text: str
    done: bool = False


class Journal:
    """The items in one file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, text: str) -> Item:
        """Write a new item down."""
        return self._written(Item(id=uuid4().hex[:8], text=text))

    def finish(self, item_id: str) -> Item | None:
        """Mark an item as done; None when there is no such item."""
        for item in self.items():
            if item.id == item_id:
                return item if item.done else self._written(replace(item, done=True))
        return None

    def items(self) -> list[Item]:
        """Every item as it is now, in the order in which they were added."""
        found: dict[str, Item] = {}
        lines = self._path.read_bytes().splitlines() if self._path.exists() else []
        for line in lines:
            try:
                item = Item(**json.loads(line))
            except (ValueError, TypeError):  # a line that was never finished
                continue
            found[item.id] = item
        return list(found.values())

    def _written(self, item: Item) -> Item:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps(asdict(item), ensure_ascii=False).encode()
        # The break comes first: it also ends a line that was never finished.
        opened = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(opened, b"\n" + line)
        finally:
            os.close(opened)
        return item

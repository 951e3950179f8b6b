"""What one build of the site made: the files a reader gets, and the places in them."""

import os
import re
from dataclasses import dataclass, field
from functools import cached_property
from html import unescape
from pathlib import Path
from urllib.parse import unquote

_ID = re.compile(r"""<[^>]*?\s(?:id|name)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")


@dataclass(frozen=True)
class Output:
    """The folder of a build, the sections it serves, the hosts and the path it is served at."""

    folder: Path
    sections: tuple[str, ...]
    hosts: frozenset[str]
    base: str = "/"
    _anchors: dict[str, frozenset[str]] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def files(self) -> frozenset[str]:
        """Every file, relative to the folder; names as they are, so that case counts."""
        root = str(self.folder)
        return frozenset(
            os.path.relpath(os.path.join(place, name), root).replace(os.sep, "/")  # noqa: PTH118 - many
            for place, _, names in os.walk(root)
            for name in names
        )

    @cached_property
    def _folded(self) -> dict[str, str]:
        return {name.casefold(): name for name in sorted(self.files, reverse=True)}

    def file(self, address: str) -> str | None:
        """The file that a web server gives for the path of an address; None when there is none."""
        return next((each for each in self._candidates(address) if each in self.files), None)

    def nearly(self, address: str) -> str | None:
        """The file that would be given if case did not count."""
        folded = (self._folded.get(each.casefold()) for each in self._candidates(address))
        return next(filter(None, folded), None)

    def _candidates(self, address: str) -> list[str]:
        path = unquote(address)
        base = self.base.rstrip("/") + "/"
        if path + "/" == base:
            path = base
        if not path.startswith(base):
            return []
        below = path.removeprefix(base)
        if not below or below.endswith("/"):
            return [f"{below}index.html"]
        return [below, f"{below}/index.html", f"{below}.html"]

    def anchors(self, file: str) -> frozenset[str]:
        """The places in a page that an address can name."""
        if file not in self._anchors:
            text = (self.folder / file).read_bytes().decode("utf-8", "replace")
            found = ("".join(groups) for groups in _ID.findall(text))
            self._anchors[file] = frozenset(unescape(each) for each in found)
        return self._anchors[file]

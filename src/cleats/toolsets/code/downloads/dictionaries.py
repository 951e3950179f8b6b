"""Word lists: fetched, counted, and kept with a manifest that says what each one is.

The manifest pins: a list that is fetched again must be the one that it names, unless an update was
asked for. So a manifest can be kept in a repository, and gives everybody the same lists.
"""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from anyio import to_thread
from msgspec import Meta, Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.downloads import models, sources
from cleats.toolsets.code.downloads.fetching import Arrived, Order, fetched
from cleats.toolsets.code.downloads.places import held
from cleats.toolsets.code.downloads.sources import Policy, Source
from cleats.toolsets.code.store.files import replace_text

MANIFEST: Final = "dictionaries.json"
BUILT_IN: Final = "en"
NAME: Final = r"^[a-z0-9][a-z0-9._-]{0,63}$"
LONGEST_LINE: Final = 200

Reason = Literal["built-in", "present", "not-modified", "unchanged"]
Report = Callable[[str, int, int], None]
"""Told the name of a list, the bytes so far and, if that is known, of how many."""


class Kept(Struct, frozen=True):
    """What the manifest says about one list."""

    url: str
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    bytes: int
    words: int
    etag: str = ""
    modified: str = ""


_NOTHING: Final = Kept("", "", 0, 0)


class Manifest(Struct):
    """All the lists in a folder."""

    format: Literal[1] = 1
    dictionaries: dict[Annotated[str, Meta(pattern=NAME)], Kept] = {}


# At import: two threads that show msgspec a type for the first time bring the process down.
_read = msgspec.json.Decoder(Manifest).decode


@dataclass
class Shelf:
    """A folder with word lists."""

    folder: Path
    repository: Path
    policy: Policy
    update: bool = False
    force: bool = False
    downloaded: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[dict[str, Any]] = field(default_factory=list)

    async def bring(
        self, names: Sequence[str] | None, given: dict[str, Source], report: Report
    ) -> None:
        """Have these lists, and those of the manifest when none is named.

        Raises:
            ToolError: one cannot be had; those before it are there.
        """
        async with held(self.folder):
            manifest = self._manifest()
            wanted = [*given, *(name for name in names or () if name not in given)]
            for name in wanted or [BUILT_IN, *manifest.dictionaries]:
                source = given.get(name) or self._known(name, manifest)
                if source is None:
                    self.skipped.append(_built_in(name))
                else:
                    await self._one(name, source, manifest, report)

    def _known(self, name: str, manifest: Manifest) -> Source | None:
        kept = manifest.dictionaries.get(name)
        return sources.read(kept.url, self.repository) if kept else None

    async def _one(self, name: str, source: Source, manifest: Manifest, report: Report) -> None:
        kept = manifest.dictionaries.get(name)
        if kept is not None and kept.url != source.url:
            kept = None
        known = None if self.force else await to_thread.run_sync(self._intact, name, kept, source)
        if known and not self.update:
            self._skip(name, known, "present")
            return
        order = Order(
            source,
            self.folder / f"{name}.txt",
            self.repository,
            sha256=kept.sha256 if kept and not self.update else "",
            etag=known.etag if known else "",
            modified=known.modified if known else "",
        )
        async with fetched(order, self.policy, partial(report, name)) as arrived:
            if arrived is None:
                self._skip(name, known or _NOTHING, "not-modified")
                return
            words = await to_thread.run_sync(_count, arrived.path, source)
            if known and known.sha256 == arrived.sha256:
                self._skip(name, known, "unchanged")
            else:
                arrived.place()
                self._note(name, source, arrived, words)
        about = (source.url, arrived.sha256, arrived.bytes, words, arrived.etag, arrived.modified)
        manifest.dictionaries[name] = Kept(*about)
        self._save(manifest)

    def _intact(self, name: str, kept: Kept | None, source: Source) -> Kept | None:
        """What is kept, if the list is there, unchanged, and what the source says it must be."""
        if kept is None or source.sha256 not in ("", kept.sha256):
            return None
        try:
            with (self.folder / f"{name}.txt").open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            return None
        return kept if found == kept.sha256 else None

    def _skip(self, name: str, kept: Kept, reason: Reason) -> None:
        self.skipped.append({"name": name, "reason": reason, "words": kept.words})

    def _note(self, name: str, source: Source, arrived: Arrived, words: int) -> None:
        self.downloaded.append(
            {
                "name": name,
                "url": source.shown,
                "path": str(self.folder / f"{name}.txt"),
                "sha256": arrived.sha256,
                "bytes": arrived.bytes,
                "words": words,
                "resumed": arrived.resumed,
            }
        )

    def _manifest(self) -> Manifest:
        path = self.folder / MANIFEST
        try:
            return _read(path.read_bytes())
        except FileNotFoundError:
            return Manifest()
        except msgspec.MsgspecError as error:
            raise ToolError(
                ErrorCode.INVALID_REQUEST,
                f"{path} cannot be read: {error}.",
                hint="Correct it, or remove it and download the lists again.",
            ) from None

    def _save(self, manifest: Manifest) -> None:
        ordered = dict(sorted(manifest.dictionaries.items()))
        data = msgspec.json.encode(Manifest(dictionaries=ordered))
        replace_text(self.folder / MANIFEST, msgspec.json.format(data).decode() + "\n")


def named(given: str | Sequence[str], base: Path) -> dict[str, Source]:
    """Sources by their names, from `name=url` each.

    Raises:
        ToolError: INVALID_REQUEST.
    """
    found: dict[str, Source] = {}
    for each in [given] if isinstance(given, str) else given:
        name, equals, address = each.partition("=")
        if not equals or not re.fullmatch(NAME, name):
            raise _bad(f"{each[:200]!r} is not name=url")
        if name in found:
            raise _bad(f"{name!r} is there twice")
        if name == BUILT_IN:
            raise _bad(f"{BUILT_IN!r} is the list that comes with this program")
        found[name] = sources.read(address, base)
    return found


def _built_in(name: str) -> dict[str, Any]:
    if name != BUILT_IN:
        raise _bad(f"There is no source for the list {name!r}")
    return {"name": name, "reason": "built-in", "words": models.words()}


def _count(path: Path, source: Source) -> int:
    """The words of a list: the first of each line, but for empty lines and comments."""
    count = 0
    try:
        with path.open(encoding="utf-8-sig") as file:
            for line in file:
                if len(line) > LONGEST_LINE or "\0" in line or line.startswith("<"):
                    raise _no_list(source)
                count += bool(line.strip()) and not line.startswith("#")
    except UnicodeDecodeError:
        raise _no_list(source) from None
    if not count:
        raise _no_list(source)
    return count


def _bad(why: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_REQUEST,
        f"{why}.",
        hint="Give lists as url: name=https://..., the name in lower case; en is built in.",
    )


def _no_list(source: Source) -> ToolError:
    return ToolError(
        ErrorCode.DOWNLOAD_VERIFY_FAILED,
        f"{source.shown} is no list of words. Nothing was put in place.",
        hint="A list is text in UTF-8 with one word on each line.",
        retryable=False,
    )

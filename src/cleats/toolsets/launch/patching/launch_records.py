"""The record of a launch in the site: which pages it wrote, and a digest of each of their lines.

It is a hidden file in the folder of the pages, so it is reviewed, merged and moved with them, and a later run on any
machine finds it however the request was merged. It holds what the run drafted, not what was merged: every difference
from it is an edit by a person. Site generators skip hidden files.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from cleats.toolsets.launch.patching.merging import LINE_DIGEST_CHARACTERS
from cleats.toolsets.launch.runs import artifacts

RECORD_FILE_NAME = ".cleats-launch.json"

PageReader = Callable[[str], "str | None"]
"""Returns the text of a file of the site, or None if it does not exist or must not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPage:
    """A page as a run drafted it."""

    product: str
    """The slug and the platform of the product."""
    section: str
    locale: str
    repo_sha: str
    """The commit of the source from which the page was drafted."""
    weight_offset: int = 0
    """What was added to the weight of the page, so that it follows its siblings."""
    digests: Sequence[str]

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "RecordedPage":
        text = document["lines"]
        starts = range(0, len(text), LINE_DIGEST_CHARACTERS)
        return cls(
            product=document["product"],
            section=document["section"],
            locale=document["locale"],
            repo_sha=document["repo_sha"],
            weight_offset=document.get("weight_offset", 0),
            digests=[text[start : start + LINE_DIGEST_CHARACTERS] for start in starts],
        )

    def as_json(self) -> dict[str, Any]:
        fields = {name: getattr(self, name) for name in ("product", "section", "locale", "repo_sha")}
        offset = {"weight_offset": self.weight_offset} if self.weight_offset else {}
        return {**fields, **offset, "lines": "".join(self.digests)}


@dataclass(slots=True)
class LaunchRecords:
    """The records of a site, read when they are needed."""

    read_text: PageReader
    allowed_paths: Sequence[str]
    _documents: dict[str, dict[str, RecordedPage]] = field(default_factory=dict)
    _texts: dict[str, str | None] = field(default_factory=dict)

    def find_page(self, path: str) -> RecordedPage | None:
        """Return the record of a page, or None if no run is known to have written it."""
        for folder in self._list_folders(path):
            name = PurePosixPath(path).relative_to(folder).as_posix()
            if (page := self._load_record(str(folder / RECORD_FILE_NAME)).get(name)) is not None:
                return page
        return None

    def list_pages(self) -> dict[str, RecordedPage]:
        """Return all pages of the records that were read so far, by path."""
        return {
            str(PurePosixPath(record_path).parent / name): page
            for record_path, record in sorted(self._documents.items())
            for name, page in sorted(record.items())
        }

    def set_page(self, path: str, page: RecordedPage | None) -> None:
        """Set or remove the entry of a page, in the nearest record or a new one."""
        folders = self._list_folders(path)
        record_paths = [str(folder / RECORD_FILE_NAME) for folder in folders]
        existing = [record_path for record_path in record_paths if self._load_record(record_path)]
        if not record_paths:
            return  # only the page itself may be changed
        record_path = (existing or record_paths[-1:])[0]
        name = PurePosixPath(path).relative_to(PurePosixPath(record_path).parent).as_posix()
        record = self._load_record(record_path)
        old_page = record.get(name)
        if page is None:
            record.pop(name, None)
        elif old_page is None or replace(old_page, repo_sha=page.repo_sha) != page:
            record[name] = page  # the commit of an unchanged page stays, so that its record does not change

    def list_changed_files(self) -> dict[str, tuple[str | None, str | None]]:
        """Return each changed record file with its old and its new text; None for no file."""
        changed: dict[str, tuple[str | None, str | None]] = {}
        for record_path, record in sorted(self._documents.items()):
            old_text = self._texts[record_path]
            new_text = _render_record(record) if record else None
            if old_text != new_text and (record or _parse_record(old_text)):
                changed[record_path] = (old_text, new_text)
        return changed

    def _list_folders(self, path: str) -> list[PurePosixPath]:
        """Return the folders that a record of the page may be in, the nearest first."""
        allowed = [PurePosixPath(entry.removesuffix("**").rstrip("/")) for entry in self.allowed_paths]
        parents = PurePosixPath(path).parents
        return [folder for folder in parents if any(folder.is_relative_to(root) for root in allowed)]

    def _load_record(self, record_path: str) -> dict[str, RecordedPage]:
        if record_path not in self._documents:
            self._texts[record_path] = self.read_text(record_path)
            self._documents[record_path] = _parse_record(self._texts[record_path])
        return self._documents[record_path]


def _parse_record(text: str | None) -> dict[str, RecordedPage]:
    """Return the pages of a record; none if it cannot be read, because then nothing in it is certain."""
    try:
        document = json.loads(text or "")
    except ValueError:
        return {}
    if artifacts.find_faults("launch_record", document):
        return {}
    return {name: RecordedPage.from_json(page) for name, page in document["pages"].items()}


def _render_record(record: Mapping[str, RecordedPage]) -> str:
    note = "Written by Cleats: digests of the lines of its pages, so that an update keeps your edits."
    pages = {name: page.as_json() for name, page in sorted(record.items())}
    return artifacts.encode_canonical_json({"schema_version": "1.0", "note": note, "pages": pages}).decode()

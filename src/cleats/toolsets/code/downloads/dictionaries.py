"""Word lists: downloaded, counted, and stored with a manifest that describes each of them.

The manifest pins versions: a list that is downloaded again must have the recorded hash unless an update was requested.
A manifest can therefore be committed to a repository so that everybody gets the same lists.
"""

import json
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
from cleats.system.atomic_files import replace_text
from cleats.toolsets.code.analysis import embedding
from cleats.toolsets.code.downloads import sources
from cleats.toolsets.code.downloads.fetching import DownloadRequest, download_file, hash_file
from cleats.toolsets.code.downloads.sources import DownloadPolicy, DownloadSource
from cleats.toolsets.code.downloads.targets import lock_folder

MODEL_FOLDER: Final = Path(embedding.__file__).parent / "data"
"""Folder of the model; importing the module that reads it would load numpy."""

_MODEL_FILENAMES: Final = ("table.json", "vectors.npy", "words.txt")


def describe_model(model: str | None, folder: Path = MODEL_FOLDER) -> dict[str, Any]:
    """Return the facts about the built-in model, or about its copy in another folder.

    Raises:
        ToolError: INVALID_REQUEST, another model was requested.
    """
    table = json.loads((MODEL_FOLDER / "table.json").read_text("utf-8"))
    name = str(table["model"])
    if model is not None and model.lower() not in {name.lower(), name.rpartition("/")[2].lower()}:
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"{model!r} cannot be used: vectors are built with the word table {name}.",
            hint="The table is built in and needs no download; omit `model`.",
        )
    return {
        "model": name,
        "available": all(hash_file(folder / file) == hash_file(MODEL_FOLDER / file) for file in _MODEL_FILENAMES),
        "shipped": True,
        "downloaded": False,
        "output": str(folder),
        "dims": table["dims"],
        "words": table["words"],
        "bytes": sum((MODEL_FOLDER / file).stat().st_size for file in _MODEL_FILENAMES),
        "fingerprint": table["fingerprint"],
    }


MANIFEST_FILENAME: Final = "dictionaries.json"
BUILTIN_DICTIONARY: Final = "en"
DICTIONARY_NAME_PATTERN: Final = r"^[a-z0-9][a-z0-9._-]{0,63}$"
MAX_LINE_CHARS: Final = 200

SkipReason = Literal["built-in", "present", "not-modified", "unchanged"]
DictionaryProgressCallback = Callable[[str, int, int], None]
"""Receives the name of a list, the bytes read so far, and the total if it is known."""


class DictionaryRecord(Struct, frozen=True):
    """The manifest entry of one list."""

    url: str
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    bytes: int
    words: int
    etag: str = ""
    modified: str = ""


_EMPTY_RECORD: Final = DictionaryRecord("", "", 0, 0)


class DictionaryManifest(Struct):
    """The lists in a folder."""

    format: Literal[1] = 1
    dictionaries: dict[Annotated[str, Meta(pattern=DICTIONARY_NAME_PATTERN)], DictionaryRecord] = {}


# At import: the process crashes if two threads show msgspec a new type at the same time.
_decode_manifest = msgspec.json.Decoder(DictionaryManifest).decode


@dataclass
class DictionaryFolder:
    """A folder with word lists."""

    folder: Path
    repository: Path
    policy: DownloadPolicy
    update: bool = False
    force: bool = False
    downloaded: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[dict[str, Any]] = field(default_factory=list)

    async def ensure_dictionaries(
        self, names: Sequence[str] | None, named_sources: dict[str, DownloadSource], report: DictionaryProgressCallback
    ) -> None:
        """Download the lists of these names, else all with a source, else all of the manifest, unless up to date.

        Raises:
            ToolError: INVALID_REQUEST, a list has no source, and nothing was downloaded; or a list cannot be
                downloaded, and the lists before it are in place.
        """
        async with lock_folder(self.folder):
            manifest = read_manifest(self.folder)
            requested_names = named_sources if names is None else names
            sources_by_name = {
                name: named_sources.get(name) or self._find_source(name, manifest)
                for name in requested_names or [BUILTIN_DICTIONARY, *manifest.dictionaries]
            }
            self.skipped += [_describe_builtin(name) for name, source in sources_by_name.items() if source is None]
            for name, source in sources_by_name.items():
                if source is not None:
                    await self._ensure_dictionary(name, source, manifest, report)

    def _find_source(self, name: str, manifest: DictionaryManifest) -> DownloadSource | None:
        record = manifest.dictionaries.get(name)
        return sources.parse_source(record.url, self.repository) if record else None

    async def _ensure_dictionary(
        self, name: str, source: DownloadSource, manifest: DictionaryManifest, report: DictionaryProgressCallback
    ) -> None:
        record = manifest.dictionaries.get(name)
        if record is not None and record.url != source.url:
            record = None
        intact_record = None if self.force else await to_thread.run_sync(self._find_intact, name, record, source)
        if intact_record and not self.update:
            self._report_skip(name, intact_record, "present")
            return
        request = DownloadRequest(
            source,
            self.folder / f"{name}.txt",
            self.repository,
            sha256=record.sha256 if record and not self.update else "",
            etag=intact_record.etag if intact_record else "",
            modified=intact_record.modified if intact_record else "",
        )
        async with download_file(request, self.policy, partial(report, name)) as download:
            if download is None:
                self._report_skip(name, intact_record or _EMPTY_RECORD, "not-modified")
                return
            words = await to_thread.run_sync(_count_words, download.path, source)
            if intact_record and intact_record.sha256 == download.sha256:
                self._report_skip(name, intact_record, "unchanged")
            else:
                download.move_to_target()
                facts = {
                    "sha256": download.sha256,
                    "bytes": download.bytes,
                    "words": words,
                    "resumed": download.resumed,
                }
                path = str(self.folder / f"{name}.txt")
                self.downloaded.append({"name": name, "url": source.public_url, "path": path, **facts})
        record_values = (source.url, download.sha256, download.bytes, words, download.etag, download.modified)
        manifest.dictionaries[name] = DictionaryRecord(*record_values)
        ordered = dict(sorted(manifest.dictionaries.items()))
        data = msgspec.json.encode(DictionaryManifest(dictionaries=ordered))
        replace_text(self.folder / MANIFEST_FILENAME, msgspec.json.format(data).decode() + "\n")

    def _find_intact(
        self, name: str, record: DictionaryRecord | None, source: DownloadSource
    ) -> DictionaryRecord | None:
        if record is None or source.sha256 not in ("", record.sha256):
            return None
        return record if hash_file(self.folder / f"{name}.txt") == record.sha256 else None

    def _report_skip(self, name: str, record: DictionaryRecord, reason: SkipReason) -> None:
        self.skipped.append({"name": name, "reason": reason, "words": record.words})


def read_manifest(folder: Path) -> DictionaryManifest:
    """Return the manifest of a folder, empty if there is none.

    Raises:
        ToolError: INVALID_REQUEST, it is damaged.
    """
    path = folder / MANIFEST_FILENAME
    try:
        return _decode_manifest(path.read_bytes())
    except FileNotFoundError:
        return DictionaryManifest()
    except msgspec.MsgspecError as error:
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"{path} cannot be read: {error}.",
            hint="Fix the file, or delete it and download the lists again.",
        ) from None


def check_dictionaries(folder: Path) -> dict[str, bool]:
    """Return whether each list of a folder is as it was downloaded; the built-in one always is.

    Raises:
        ToolError: INVALID_REQUEST, the manifest is damaged.
    """
    records = read_manifest(folder).dictionaries
    intact = {name: hash_file(folder / f"{name}.txt") == record.sha256 for name, record in records.items()}
    return {BUILTIN_DICTIONARY: True, **intact}


def parse_named_sources(specs: str | Sequence[str], base: Path) -> dict[str, DownloadSource]:
    """Parse one or more `name=url` specifications into sources by name.

    Raises:
        ToolError: INVALID_REQUEST.
    """
    named_sources: dict[str, DownloadSource] = {}
    for spec in [specs] if isinstance(specs, str) else specs:
        name, equals, address = spec.partition("=")
        if not equals or not re.fullmatch(DICTIONARY_NAME_PATTERN, name):
            raise _invalid_spec_error(f"{spec[:200]!r} is not name=url")
        if name in named_sources:
            raise _invalid_spec_error(f"{name!r} occurs twice")
        if name == BUILTIN_DICTIONARY:
            raise _invalid_spec_error(f"{BUILTIN_DICTIONARY!r} is the built-in list")
        named_sources[name] = sources.parse_source(address, base)
    return named_sources


def _describe_builtin(name: str) -> dict[str, Any]:
    if name != BUILTIN_DICTIONARY:
        raise _invalid_spec_error(f"No source is known for the word list {name!r}")
    return {"name": name, "reason": "built-in", "words": describe_model(None)["words"]}


def _count_words(path: Path, source: DownloadSource) -> int:
    """Count the words of a list: the first of each line, ignoring empty lines and comments."""
    count = 0
    try:
        with path.open(encoding="utf-8-sig") as file:
            for line in file:
                if len(line) > MAX_LINE_CHARS or "\0" in line or line.startswith("<"):
                    raise _invalid_list_error(source)
                count += bool(line.strip()) and not line.startswith("#")
    except UnicodeDecodeError:
        raise _invalid_list_error(source) from None
    if not count:
        raise _invalid_list_error(source)
    return count


def _invalid_spec_error(problem: str) -> ToolError:
    return ToolError(
        ErrorCode.INVALID_REQUEST,
        f"{problem}.",
        hint="Give lists as url: name=https://..., the name in lower case; en is built in.",
    )


def _invalid_list_error(source: DownloadSource) -> ToolError:
    return ToolError(
        ErrorCode.DOWNLOAD_VERIFY_FAILED,
        f"{source.public_url} is not a word list. Nothing was installed.",
        hint="A word list is UTF-8 text with one word per line.",
        retryable=False,
    )

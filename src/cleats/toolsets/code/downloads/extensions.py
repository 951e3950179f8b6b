"""Extensions of SQLite: fetched, unpacked and kept, one folder for each kind of machine.

`extension.json` in the folder says which library is meant, so that it is replaced all at once; the
files of each download have a folder of their own.
"""

import hashlib
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, Literal

import msgspec
from anyio import from_thread, to_thread
from msgspec import Meta, Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.downloads import archives, libraries, sources
from cleats.toolsets.code.downloads.fetching import Arrived, Order, Report, fetched
from cleats.toolsets.code.downloads.libraries import Machine
from cleats.toolsets.code.downloads.places import LOCK, held
from cleats.toolsets.code.downloads.sources import Policy, Source
from cleats.toolsets.code.store.files import replace_text, sync_tree

MANIFEST: Final = "extension.json"
FILES: Final = "files-"
_PARTIAL: Final = "download"

_Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class Installed(Struct, frozen=True):
    """What the manifest says."""

    provider: str
    platform: str
    arch: str
    url: str
    sha256: _Hash
    bytes: int
    folder: Annotated[str, Meta(pattern=f"^{FILES}[0-9a-f-]+$")]
    library: str
    library_sha256: _Hash
    etag: str = ""
    modified: str = ""
    format: Literal[1] = 1

    def path(self, place: Path) -> Path | None:
        """The library, if the manifest names a file in its folder."""
        parts = PurePosixPath(self.library).parts
        if ".." in parts or "\\" in self.library or self.library.startswith("/"):
            return None
        return place / self.folder / Path(*parts)


# At import: two threads that show msgspec a type for the first time bring the process down.
_read = msgspec.json.Decoder(Installed).decode


def installed(place: Path) -> Installed | None:
    """What a folder says that it has; None when it says nothing that can be read."""
    try:
        return _read((place / MANIFEST).read_bytes())
    except (OSError, msgspec.MsgspecError):
        return None


def intact(place: Path, manifest: Installed) -> bool:
    """Whether the library is the one that was put there."""
    path = manifest.path(place)
    return path is not None and not path.is_symlink() and digest(path) == manifest.library_sha256


def digest(path: Path) -> str | None:
    """The hash of a file, if it can be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of an extension for one kind of machine."""

    folder: Path
    provider: str
    machine: Machine
    repository: Path
    policy: Policy

    async def bring(
        self, source: Source | None, report: Report, *, update: bool, force: bool
    ) -> tuple[Installed, dict[str, Any] | None, str]:
        """Have the extension; what it is, what came, or why nothing had to.

        Raises:
            ToolError: it cannot be had; what was there is there.
        """
        async with held(self.folder):
            await to_thread.run_sync(self._check_ours)
            before = installed(self.folder)
            source = source or self._known(before)
            same = before if before is not None and before.url == source.url else None
            # Without encryption only what is known is taken, also where an update is wanted.
            pinned = same is not None and not (update and source.encrypted)
            known = None if force else await to_thread.run_sync(self._intact, same, source)
            if known is not None and not update:
                return known, None, "present"
            order = Order(
                source,
                self.folder / _PARTIAL,
                self.repository,
                same.sha256 if same is not None and pinned else "",
                etag=known.etag if known else "",
                modified=known.modified if known else "",
            )
            async with fetched(order, self.policy, report) as arrived:
                if arrived is None and known is not None:
                    return known, None, "not-modified"
                assert arrived is not None  # noqa: S101 - nothing was known
                if known is not None and known.sha256 == arrived.sha256:
                    return known, None, "unchanged"
                made, count = await to_thread.run_sync(self._install, source, arrived)
        return made, self._told(source, arrived, count), ""

    def _intact(self, same: Installed | None, source: Source) -> Installed | None:
        """What is installed, if it is unchanged, and what the source says it must be."""
        if same is None or source.sha256 not in ("", same.sha256):
            return None
        return same if intact(self.folder, same) else None

    def _check_ours(self) -> None:
        """Refuse a folder with something else in it: its files would be mixed with those of others.

        Raises:
            ToolError: INVALID_REQUEST.
        """
        if (self.folder / MANIFEST).is_file():
            return
        others = [p.name for p in self.folder.iterdir() if not _is_ours(p.name)]
        if others:
            raise ToolError(
                ErrorCode.INVALID_REQUEST,
                f"{self.folder} has other files in it, such as {min(others)!r}.",
                hint="Name a folder that is new or empty.",
            )

    def _known(self, before: Installed | None) -> Source:
        if before is not None:
            return sources.read(before.url, self.repository)
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"There is no source for {self.provider} on {self.machine.key}.",
            hint=(
                "None is needed: vectors are built in. To keep the extension for other programs, "
                "give url, an archive or a library."
            ),
        )

    def _install(self, source: Source, arrived: Arrived) -> tuple[Installed, int]:
        name = f"{FILES}{arrived.sha256[:12]}-{secrets.token_hex(4)}"
        target = self.folder / name
        try:
            with arrived.path.open("rb") as file:
                if archives.is_archive(file):
                    found = archives.extract(file, target, alive=from_thread.check_cancelled)
                    names = [entry.name for entry in found if not entry.folder]
                    library = libraries.find(target, names, self.provider, self.machine)
                else:
                    libraries.check(arrived.path, self.machine)
                    library = libraries.PROVIDERS[self.provider] + self.machine.ending
                    target.mkdir()
                    shutil.copyfile(arrived.path, target / library)
                    sync_tree(target)
                    names = [library]
            made = self._manifest(source, arrived, name, library)
            replace_text(self.folder / MANIFEST, msgspec.json.encode(made).decode())
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            raise
        for old in self.folder.glob(f"{FILES}*"):
            if old.name != name:
                shutil.rmtree(old, ignore_errors=True)
        return made, len(names)

    def _manifest(self, source: Source, arrived: Arrived, folder: str, library: str) -> Installed:
        return Installed(
            provider=self.provider,
            platform=self.machine.platform,
            arch=self.machine.arch,
            url=source.url,
            sha256=arrived.sha256,
            bytes=arrived.bytes,
            folder=folder,
            library=library,
            library_sha256=digest(self.folder / folder / library) or "",
            etag=arrived.etag,
            modified=arrived.modified,
        )

    def _told(self, source: Source, arrived: Arrived, count: int) -> dict[str, Any]:
        return {
            "name": self.provider,
            "url": source.shown,
            "sha256": arrived.sha256,
            "bytes": arrived.bytes,
            "files": count,
            "resumed": arrived.resumed,
        }


def _is_ours(name: str) -> bool:
    return name.startswith((FILES, archives.UNFINISHED, f".{_PARTIAL}.part")) or name == LOCK

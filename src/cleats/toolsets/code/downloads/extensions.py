"""SQLite extensions: downloaded, unpacked and stored, in one folder per platform.

`extension.json` in the folder names the current library, so that a replacement takes effect at
once; the files of each download are in a separate folder.
"""

import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, Literal

import msgspec
from anyio import from_thread, to_thread
from msgspec import Meta, Struct

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system.atomic_files import replace_text, sync_tree
from cleats.toolsets.code.downloads import archives, libraries, sources
from cleats.toolsets.code.downloads.fetching import (
    DownloadedFile,
    DownloadProgressCallback,
    DownloadRequest,
    download_file,
    hash_file,
)
from cleats.toolsets.code.downloads.libraries import LibraryPlatform
from cleats.toolsets.code.downloads.sources import DownloadPolicy, DownloadSource
from cleats.toolsets.code.downloads.targets import LOCK_FILENAME, lock_folder

MANIFEST_FILENAME: Final = "extension.json"
FILES_FOLDER_PREFIX: Final = "files-"
_DOWNLOAD_FILENAME: Final = "download"

_Sha256Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class ExtensionManifest(Struct, frozen=True):
    """The contents of the manifest of an installed extension."""

    provider: str
    platform: str
    arch: str
    url: str
    sha256: _Sha256Digest
    bytes: int
    folder: Annotated[str, Meta(pattern=f"^{FILES_FOLDER_PREFIX}[0-9a-f-]+$")]
    library: str
    library_sha256: _Sha256Digest
    etag: str = ""
    modified: str = ""
    format: Literal[1] = 1

    def resolve_library(self, extension_folder: Path) -> Path | None:
        """Return the path of the library, or None if it is outside the folder."""
        parts = PurePosixPath(self.library).parts
        if ".." in parts or "\\" in self.library or self.library.startswith("/"):
            return None
        return extension_folder / self.folder / Path(*parts)


# At import: the process crashes if two threads show msgspec a new type at the same time.
_decode_manifest = msgspec.json.Decoder(ExtensionManifest).decode


def read_manifest(folder: Path) -> ExtensionManifest | None:
    """Return the manifest of a folder, or None if it is missing or unreadable."""
    try:
        return _decode_manifest((folder / MANIFEST_FILENAME).read_bytes())
    except (OSError, msgspec.MsgspecError):
        return None


def is_intact(folder: Path, manifest: ExtensionManifest) -> bool:
    """Return whether the library is unchanged since it was installed."""
    path = manifest.resolve_library(folder)
    return path is not None and not path.is_symlink() and hash_file(path) == manifest.library_sha256


@dataclass(frozen=True, slots=True)
class ExtensionFolder:
    """The folder of an extension for one platform."""

    folder: Path
    provider: str
    machine: LibraryPlatform
    repository: Path
    policy: DownloadPolicy

    async def ensure_extension(
        self, source: DownloadSource | None, report: DownloadProgressCallback, *, update: bool, force: bool
    ) -> tuple[ExtensionManifest, dict[str, Any] | None, str]:
        """Download and install the extension unless it is up to date.

        Returns the manifest, a description of the download if there was one, and otherwise the
        reason why none was needed.

        Raises:
            ToolError: it cannot be downloaded or installed; an earlier installation is unchanged.
        """
        async with lock_folder(self.folder):
            await to_thread.run_sync(self._check_ownership)
            previous = read_manifest(self.folder)
            source = source or self._read_recorded_source(previous)
            same_source = previous if previous is not None and previous.url == source.url else None
            # Without encryption only the recorded file is accepted, even if an update is requested.
            is_pinned = same_source is not None and not (update and source.is_encrypted)
            intact_manifest = None if force else await to_thread.run_sync(self._find_intact, same_source, source)
            if intact_manifest is not None and not update:
                return intact_manifest, None, "present"
            request = DownloadRequest(
                source,
                self.folder / _DOWNLOAD_FILENAME,
                self.repository,
                same_source.sha256 if same_source is not None and is_pinned else "",
                etag=intact_manifest.etag if intact_manifest else "",
                modified=intact_manifest.modified if intact_manifest else "",
            )
            async with download_file(request, self.policy, report) as download:
                if download is None and intact_manifest is not None:
                    return intact_manifest, None, "not-modified"
                assert download is not None  # noqa: S101 - nothing was known
                if intact_manifest is not None and intact_manifest.sha256 == download.sha256:
                    return intact_manifest, None, "unchanged"
                manifest, file_count = await to_thread.run_sync(self._install_library, source, download)
        description = {
            "name": self.provider,
            "url": source.public_url,
            "sha256": download.sha256,
            "bytes": download.bytes,
            "files": file_count,
            "resumed": download.resumed,
        }
        return manifest, description, ""

    def _find_intact(self, manifest: ExtensionManifest | None, source: DownloadSource) -> ExtensionManifest | None:
        if manifest is None or source.sha256 not in ("", manifest.sha256):
            return None
        return manifest if is_intact(self.folder, manifest) else None

    def _check_ownership(self) -> None:
        """Reject a folder with other files, which would be mixed with the extension's."""
        if (self.folder / MANIFEST_FILENAME).is_file():
            return
        own_prefixes = (FILES_FOLDER_PREFIX, archives.STAGING_FOLDER_PREFIX, f".{_DOWNLOAD_FILENAME}.part")
        names = {path.name for path in self.folder.iterdir()} - {LOCK_FILENAME}
        foreign_names = [name for name in names if not name.startswith(own_prefixes)]
        if foreign_names:
            message = f"{self.folder} has other files in it, such as {min(foreign_names)!r}."
            raise ToolError(ErrorCode.INVALID_REQUEST, message, hint="Name a folder that is new or empty.")

    def _read_recorded_source(self, manifest: ExtensionManifest | None) -> DownloadSource:
        if manifest is not None:
            return sources.parse_source(manifest.url, self.repository)
        raise ToolError(
            ErrorCode.INVALID_REQUEST,
            f"No source is known for {self.provider} on {self.machine.key}.",
            hint=(
                "Cleats does not need it: vectors are built in. To store the extension for other programs, "
                "give url, an archive or a library."
            ),
        )

    def _install_library(self, source: DownloadSource, download: DownloadedFile) -> tuple[ExtensionManifest, int]:
        name = f"{FILES_FOLDER_PREFIX}{download.sha256[:12]}-{secrets.token_hex(4)}"
        target = self.folder / name
        try:
            with download.path.open("rb") as file:
                if archives.is_archive(file):
                    entries = archives.extract_archive(file, target, check_cancelled=from_thread.check_cancelled)
                    names = [entry.name for entry in entries if not entry.folder]
                    library = libraries.find_library(target, names, self.provider, self.machine)
                else:
                    libraries.check_library(download.path, self.machine)
                    library = libraries.LIBRARY_NAMES_BY_PROVIDER[self.provider] + self.machine.library_suffix
                    target.mkdir()
                    shutil.copyfile(download.path, target / library)
                    sync_tree(target)
                    names = [library]
            manifest = ExtensionManifest(
                provider=self.provider,
                platform=self.machine.platform,
                arch=self.machine.arch,
                url=source.url,
                sha256=download.sha256,
                bytes=download.bytes,
                folder=name,
                library=library,
                library_sha256=hash_file(target / library) or "",
                etag=download.etag,
                modified=download.modified,
            )
            replace_text(self.folder / MANIFEST_FILENAME, msgspec.json.encode(manifest).decode())
        except BaseException:
            shutil.rmtree(target, ignore_errors=True)
            raise
        for old in self.folder.glob(f"{FILES_FOLDER_PREFIX}*"):
            if old.name != name:
                shutil.rmtree(old, ignore_errors=True)
        return manifest, len(names)

"""The shared index of a server: generations published for other machines, and pulled from where others published them.

A reader needs no checkout. It pulls the published generation into its cache and serves it, looks
for a newer one every few seconds, and keeps serving what it has while the storage is unreachable.

Invariants:

- A pointer names a generation whose parts are all there, or nothing: parts are uploaded first,
  then the manifest, then the pointer moves.
- A reader serves exactly what was published: the pointer has the hash of the manifest, the
  manifest that of every part, and both are checked before the first answer.
- A reader that cannot reach the storage serves what it has.
- Parts that two generations share are stored once and transferred once.
"""

import asyncio
import hashlib
import logging
import os
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
from anyio import to_thread

from cleats.contract.errors import ToolError
from cleats.settings import Settings, get_environment
from cleats.system.atomic_files import replace_text
from cleats.toolsets.code.index import catalogue_schema
from cleats.toolsets.code.index.generations import GenerationStore
from cleats.toolsets.code.index.portable import hash_file
from cleats.toolsets.code.index.progress import BuildProgress
from cleats.toolsets.code.index.service import Indexes, RemoteIndexPort
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.sharing.manifest import (
    DatabasePointerStore,
    FilePointerStore,
    FleetManifest,
    InvalidGenerationError,
    ManifestPart,
    Pointer,
    PointerStore,
    build_manifest,
    check_index_name,
    missing_index_error,
    parse_manifest,
)
from cleats.toolsets.code.sharing.storage import Storage, open_storage

log = logging.getLogger(__name__)

RETAINED_GENERATIONS: Final = 3
"""The number of generations that stay in the storage; readers may still use an older one."""

MARK_FILE_NAME: Final = "shared.json"
"""The file in a generation store that names the shared generation it is a copy of."""

TransferCallback = Callable[[int, int], None]
"""A callback that receives the bytes transferred and their total."""


@dataclass(frozen=True, slots=True)
class IndexShare:
    """A shared index, identified by its name."""

    name: str
    storage: Storage
    pointers: PointerStore

    def publish(self, folder: Path, report_progress: TransferCallback = lambda _done, _total: None) -> Pointer:
        """Publish a local generation for every reader.

        Raises:
            OSError: The storage or the database cannot be reached; readers keep what they have.
        """
        manifest = build_manifest(self.name, folder)
        data = manifest.encode()
        pointer = Pointer(manifest.generation, hash_manifest(data))
        if self.pointers.read(self.name) == pointer:
            return pointer
        moved_bytes = 0
        for part in manifest.parts:
            if not self.storage.has(_object_key(part.sha256)):
                self.storage.put(_object_key(part.sha256), folder / part.path)
            moved_bytes += part.size
            report_progress(moved_bytes, manifest.size)
        self.storage.put(self._manifest_key(pointer.generation), data)
        self.pointers.move(self.name, pointer)
        with suppress(OSError, InvalidGenerationError):  # the next one tries again
            self._remove_old_generations(pointer.generation)
        return pointer

    def pull(
        self, generation_store: GenerationStore, report_progress: TransferCallback = lambda _done, _total: None
    ) -> bool:
        """Pull the published generation to this machine; return whether it is new.

        Raises:
            OSError: The storage or the database cannot be reached.
            InvalidGenerationError: The published data is invalid.
        """
        pointer = self.pointers.read(self.name)
        if pointer is None or pointer == read_mark(generation_store):
            return False
        lock = generation_store.try_build_lock()
        if lock is None:  # another process of this machine is pulling
            return False
        try:
            manifest = self._fetch_manifest(pointer)
            with generation_store.create_draft() as draft:
                self._fill_folder(draft, manifest, generation_store, report_progress)
                generation_store.publish(draft)
            replace_text(generation_store.folder / MARK_FILE_NAME, msgspec.json.encode(pointer).decode() + "\n")
            generation_store.remove_unused()
        finally:
            lock.release()
        log.info("index.pulled name=%s generation=%s", self.name, pointer.generation)
        return True

    def _fetch_manifest(self, pointer: Pointer) -> FleetManifest:
        data = self.storage.get(self._manifest_key(pointer.generation))
        if data is None:
            raise InvalidGenerationError("the published generation has no manifest")
        if hash_manifest(data) != pointer.manifest:
            raise InvalidGenerationError("the manifest is not the one that was published")
        manifest = parse_manifest(data)
        if manifest.form != catalogue_schema.CATALOGUE_SCHEMA_VERSION:
            raise InvalidGenerationError(f"another version of Cleats wrote it (format {manifest.form})")
        return manifest

    def _fill_folder(
        self, draft: Path, manifest: FleetManifest, generation_store: GenerationStore, report_progress: TransferCallback
    ) -> None:
        """Bring every part into a folder; those of the current generation are only linked."""
        moved_bytes = 0
        with generation_store.lease_current() or nullcontext() as lease:
            for part in manifest.parts:
                target = draft / part.path
                target.parent.mkdir(parents=True, exist_ok=True)
                if lease is None or not _link_part(lease.folder / part.path, target, part):
                    self._fetch_part(part, target)
                moved_bytes += part.size
                report_progress(moved_bytes, manifest.size)

    def _fetch_part(self, part: ManifestPart, target: Path) -> None:
        if not self.storage.fetch(_object_key(part.sha256), target):
            raise InvalidGenerationError(f"a part is missing: {part.path}")
        if target.stat().st_size != part.size or hash_file(target) != part.sha256:
            raise InvalidGenerationError(f"a part is damaged: {part.path}")

    def _remove_old_generations(self, newest: str) -> None:
        """Remove generations beyond the retained ones, and the parts that only they use."""
        key = f"{self.name}/generations.json"
        data = self.storage.get(key)
        names: list[str] = msgspec.json.decode(data, type=list[str]) if data else []
        names = [*(name for name in names if name != newest), newest]
        old_names, retained_names = names[:-RETAINED_GENERATIONS], names[-RETAINED_GENERATIONS:]
        needed_hashes = {part.sha256 for name in retained_names for part in self._list_parts(name)}
        for name in old_names:
            for part in self._list_parts(name):
                if part.sha256 not in needed_hashes:
                    self.storage.remove(_object_key(part.sha256))
            self.storage.remove(self._manifest_key(name))
        self.storage.put(key, msgspec.json.encode(retained_names))

    def _list_parts(self, generation: str) -> tuple[ManifestPart, ...]:
        data = self.storage.get(self._manifest_key(generation))
        return parse_manifest(data).parts if data else ()

    def _manifest_key(self, generation: str) -> str:
        return f"{self.name}/generations/{generation}.json"


def read_mark(generation_store: GenerationStore) -> Pointer | None:
    """Return the shared generation that a generation store has a copy of."""
    try:
        return msgspec.json.decode((generation_store.folder / MARK_FILE_NAME).read_bytes(), type=Pointer)
    except (OSError, msgspec.DecodeError):
        return None


def _object_key(sha256: str) -> str:
    return f"objects/{sha256[:2]}/{sha256}"


def _link_part(source: Path, target: Path, part: ManifestPart) -> bool:
    """Link a local file as a part if its bytes are the same; return whether it was linked."""
    try:
        if source.stat().st_size != part.size or hash_file(source) != part.sha256:
            return False
        os.link(source, target)
    except OSError:
        return False
    return True


def hash_manifest(data: bytes) -> str:
    """Return the hash of a manifest for its pointer."""
    return hashlib.sha256(data).hexdigest()


@dataclass(eq=False)
class SharedIndex(RemoteIndexPort):
    """One shared index as seen by one server."""

    share: IndexShare
    publishes: bool
    root: Path
    poll_seconds: float
    _pull_lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        self.name = self.share.name

    @property
    def reader_activity(self) -> str:
        return f"reads the shared index {self.share.name}"

    async def ensure_available(self, store: GenerationStore) -> None:
        """Make sure that there is a generation to read; the first call waits for the first pull.

        Raises:
            ToolError: NO_INDEX, nothing has been published yet, or it cannot be fetched.
        """
        if self.publishes or store.read_current_name() is not None:
            return
        async with self._pull_lock:
            if store.read_current_name() is not None:
                return
            try:
                was_pulled = await to_thread.run_sync(self.share.pull, store)
            except (OSError, InvalidGenerationError) as error:
                raise missing_index_error(f"shared index {self.name} to read", f"it cannot be read: {error}") from None
        if not was_pulled:
            raise missing_index_error(f"shared index {self.share.name} to read", "it has not been published yet")

    async def follow(self, store: GenerationStore) -> None:
        """Pull every published generation, until cancelled."""
        while not self.publishes:
            try:
                async with self._pull_lock:
                    await to_thread.run_sync(self.share.pull, store)
            except (OSError, InvalidGenerationError, ToolError) as error:
                log.warning("index.pull name=%s error=%s", self.share.name, error)
            await asyncio.sleep(self.poll_seconds)

    async def publish(self, store: GenerationStore, _on_progress: Callable[[BuildProgress], None]) -> str:
        """Publish the current generation; return an error text, or an empty string on success."""
        if not self.publishes:
            return ""

        def publish_current() -> None:
            lease = store.lease_current()
            if lease is not None:
                with lease:
                    self.share.publish(lease.folder)

        try:
            await to_thread.run_sync(publish_current)
        except (OSError, InvalidGenerationError) as error:
            return f"The index could not be shared: {error}."
        return ""


def open_shared_index(settings: Settings, repository: Repository) -> SharedIndex:
    """Open the shared index of the settings.

    Raises:
        SettingError: The address or the name is invalid.
    """
    name = check_index_name(repository.shared_name(settings.code.index_name))
    index_storage = open_storage(settings.code.index_url, _object_store_options(settings))
    pointers = DatabasePointerStore(settings.database_url) if settings.database_url else FilePointerStore(index_storage)
    return SharedIndex(
        IndexShare(name, index_storage, pointers),
        settings.code.index_share == "publish",
        repository.root,
        settings.code.index_poll,
    )


def _object_store_options(settings: Settings) -> dict[str, Any]:
    environ = get_environment(settings)
    names = {
        "AWS_ACCESS_KEY_ID": "access_key_id",
        "AWS_SECRET_ACCESS_KEY": "secret_access_key",
        "AWS_SESSION_TOKEN": "session_token",
        "AWS_REGION": "region",
    }
    access: dict[str, Any] = {option: environ[name] for name, option in names.items() if environ.get(name)}
    if settings.code.index_endpoint:
        access["endpoint"] = settings.code.index_endpoint
        if settings.code.index_endpoint.startswith("http://"):
            access["client_options"] = {"allow_http": True}
    return access


async def publish_changes(indexes: Indexes, poll_seconds: float) -> None:
    """Build and publish the index of the project whenever its files change, until cancelled."""
    repository = indexes.find_repository(None)
    logged_generation = ""
    while True:
        try:
            report = await indexes.build_index(repository, indexes.options, lambda _progress: None)
            for warning in report.warnings:
                log.warning("index.kept warning=%s", warning)
            if report.generation != logged_generation:
                logged_generation = report.generation
                log.info("index.published generation=%s files=%d", logged_generation, report.files.total)
        except ToolError as error:  # another builder, a full disk: the next attempt may succeed
            log.warning("index.failed code=%s %s", error.code.name, error.message)
        await asyncio.sleep(poll_seconds)

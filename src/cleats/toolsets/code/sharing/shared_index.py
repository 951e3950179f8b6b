"""The shared index of a server: pulled by its readers, published by its builder.

A reader needs no checkout. It pulls the published generation into its cache and serves it, looks
for a newer one every few seconds, and keeps serving what it has while the storage is unreachable.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyio import to_thread

from cleats.contract.errors import ToolError
from cleats.settings import Settings, get_environment
from cleats.toolsets.code.index.generations import GenerationStore
from cleats.toolsets.code.index.progress import BuildProgress
from cleats.toolsets.code.index.service import Indexes, RemoteIndexPort
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.sharing.manifest import (
    DatabasePointerStore,
    FilePointerStore,
    InvalidGenerationError,
    check_index_name,
    missing_index_error,
)
from cleats.toolsets.code.sharing.publisher import IndexShare
from cleats.toolsets.code.sharing.storage import open_storage

log = logging.getLogger(__name__)


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
                raise missing_index_error(f"shared index {self.name} to read", f"it cannot be had: {error}") from None
        if not was_pulled:
            raise missing_index_error(f"shared index {self.share.name} to read", "nobody has published it yet")

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

"""The shared index of a server: followed by those who read it, published by the one who builds.

A reader needs no checkout: it pulls the published generation into its cache and serves that, looks
for a newer one every few seconds, and keeps serving what it has when the storage is away.
"""

import asyncio
import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyio import to_thread

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import SettingError, Settings, surroundings
from cleats.toolsets.code.fleet.manifest import NAME, UnsoundError
from cleats.toolsets.code.fleet.pointers import Beside, Database
from cleats.toolsets.code.fleet.role import Role
from cleats.toolsets.code.fleet.sharing import Share
from cleats.toolsets.code.fleet.storage import storage
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.store.generations import Shelf

log = logging.getLogger(__name__)


@dataclass(eq=False)
class Shared(Role):
    """One shared index, as one server has it."""

    share: Share
    publishes: bool
    root: Path
    pause: float
    _pulling: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def name(self) -> str:
        return self.share.name

    @property
    def asked(self) -> str:
        """What a server does with it that does not build it."""
        return f"reads the shared index {self.share.name}"

    async def ready(self, shelf: Shelf) -> None:
        """Have something to read: the first call waits for the first pull.

        Raises:
            ToolError: NO_INDEX, nothing was published yet, or it cannot be had.
        """
        if self.publishes or shelf.name() is not None:
            return
        async with self._pulling:
            if shelf.name() is not None:
                return
            try:
                found = await to_thread.run_sync(self.share.pull, shelf)
            except (OSError, UnsoundError) as error:
                raise _none(self.share.name, f"it cannot be had: {error}") from None
        if not found:
            raise _none(self.share.name, "nobody has published it yet")

    async def follow(self, shelf: Shelf) -> None:
        """Pull whatever is published, until cancelled."""
        while not self.publishes:
            try:
                async with self._pulling:
                    await to_thread.run_sync(self.share.pull, shelf)
            except (OSError, UnsoundError, ToolError) as error:
                log.warning("index.pull name=%s error=%s", self.share.name, error)
            await asyncio.sleep(self.pause)

    async def publish(self, shelf: Shelf) -> str:
        """Publish the generation of a shelf; why it did not work, empty when it did."""
        if not self.publishes:
            return ""

        def put() -> None:
            lease = shelf.current()
            if lease is not None:
                with lease:
                    self.share.publish(lease.folder)

        try:
            await to_thread.run_sync(put)
        except (OSError, UnsoundError) as error:
            return f"The index could not be shared: {error}."
        return ""


def shared(settings: Settings, repository: Repository) -> Shared:
    """The shared index that the settings name.

    Raises:
        SettingError: its address or its name is none.
    """
    name = repository.shared_name(settings.index_name)
    if not NAME.fullmatch(name):
        raise SettingError(f"index_name: {name!r} cannot be the name of a shared index")
    place = storage(settings.index_url, _access(settings))
    pointers = Database(settings.database_url) if settings.database_url else Beside(place)
    return Shared(
        Share(name, place, pointers),
        settings.index_share == "publish",
        repository.root,
        settings.index_poll,
    )


def _access(settings: Settings) -> dict[str, Any]:
    """How to reach an object store: an address of its own, and the usual variables."""
    environ = surroundings(settings)
    names = {
        "AWS_ACCESS_KEY_ID": "access_key_id",
        "AWS_SECRET_ACCESS_KEY": "secret_access_key",
        "AWS_SESSION_TOKEN": "session_token",
        "AWS_REGION": "region",
    }
    access: dict[str, Any] = {
        option: environ[name] for name, option in names.items() if environ.get(name)
    }
    if settings.index_endpoint:
        access["endpoint"] = settings.index_endpoint
        if settings.index_endpoint.startswith("http://"):
            access["client_options"] = {"allow_http": True}
    return access


def _none(name: str, why: str) -> ToolError:
    return ToolError(
        ErrorCode.NO_INDEX,
        f"There is no shared index {name} to read: {why}.",
        hint="Build and publish it with `cleats worker` where the repository is.",
    )

"""The choice of a repository's record store: a folder on this machine, or the database of a fleet.

Imported when a server starts, so the stores are imported when they are first needed.
"""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from cleats.contract.errors import ToolError
from cleats.settings import Settings
from cleats.toolsets.code.repository import Repository

if TYPE_CHECKING:
    from cleats.toolsets.code.records.archive import RecordStore
    from cleats.toolsets.code.records.postgres_records import RecordDatabase


class RecordStores:
    """The record stores of all repositories."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self._settings = settings
        self._folder = folder

    @property
    def are_shared(self) -> bool:
        """True if a database stores the records, so that other machines see them."""
        return bool(self._settings.database_url)

    @cached_property
    def _database(self) -> "RecordDatabase":
        from cleats.toolsets.code.records.postgres_records import RecordDatabase  # noqa: PLC0415 - few have any

        return RecordDatabase(self._settings.database_url)

    def open(self, repository: Repository) -> "RecordStore":
        """Return the record store of a repository."""
        from cleats.toolsets.code.records.archive import RecordArchive  # noqa: PLC0415 - a server starts

        archive = RecordArchive.from_repository(self._folder, repository)
        if not self.are_shared:
            return archive
        from cleats.toolsets.code.records.postgres_records import DatabaseRecordStore  # noqa: PLC0415 - as above

        is_default = repository == Repository.from_path(None, self._settings.project_dir)
        name = repository.shared_name(self._settings.code.index_name if is_default else "")
        return DatabaseRecordStore(self._database, name, archive)

    def update(self, repository: Repository) -> str:
        """Update the records that an index is built from; return a warning if they may be outdated.

        Blocks. Records that were there before stay available.
        """
        try:
            self.open(repository).refresh()
        except ToolError as error:
            import logging  # noqa: PLC0415 - there is hardly ever anything to say

            log = logging.getLogger(__name__)
            log.warning("records.late repo=%s error=%s", repository.id, error.message)
            return f"Records may be missing. {error.message}"
        return ""

    async def update_in_thread(self, repository: Repository) -> str:
        """Update the records in a thread, where that can take long."""
        if not self.are_shared:
            return ""
        from anyio import to_thread  # noqa: PLC0415 - `cleats index` needs none

        return await to_thread.run_sync(self.update, repository, abandon_on_cancel=True)

    async def check_reachable(self) -> None:
        """Check that the database, if there is one, can be reached.

        Raises:
            OSError: it cannot.
        """
        if self.are_shared:
            from cleats.system import postgres  # noqa: PLC0415 - few have one

            await postgres.check_database(self._settings.database_url)

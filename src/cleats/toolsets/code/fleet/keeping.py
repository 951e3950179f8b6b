"""Keeping a shared index up to date: build when files changed, publish what was built."""

import asyncio
import logging

from cleats.contract.errors import ToolError
from cleats.settings import Settings
from cleats.toolsets.code.indexing.access import Indexes

log = logging.getLogger(__name__)


async def keep(settings: Settings) -> None:
    """Build and publish the index of the project whenever its files change, until cancelled."""
    indexes = Indexes(settings)
    repository = indexes.repository(None)
    told = ""
    while True:
        try:
            done = await indexes.build(repository, indexes.options, lambda _at: None)
            for warning in done.warnings:
                log.warning("index.kept warning=%s", warning)
            if done.generation != told:
                told = done.generation
                log.info("index.published generation=%s files=%d", told, done.files.total)
        except ToolError as error:  # another builder, a full disk: the next round may do better
            log.warning("index.failed code=%s %s", error.code.name, error.message)
        await asyncio.sleep(settings.index_poll)

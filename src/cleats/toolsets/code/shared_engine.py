"""The indexes, the search engines and the builds of a server, one of each for all its toolsets."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache

from cleats.contract.tools import ListChangeCallback
from cleats.settings import Settings
from cleats.toolsets.code.composition import open_indexes
from cleats.toolsets.code.index.background_builds import BackgroundBuilds
from cleats.toolsets.code.search.tool import LiveSearch, OverlaySearch, SearchTool


class CodeEngine:
    """What the toolsets `code` and `explore` of one server share, so that either can release what the other opened."""

    def __init__(self, settings: Settings) -> None:
        self.indexes = open_indexes(settings)
        self.builds = BackgroundBuilds(self.indexes, is_enabled=settings.code.auto_index == "on")
        demote_tests = settings.code.search_tests == "lower"
        self.search_tool = SearchTool(
            self.indexes, self.builds, _load_live_search, cache(_load_overlay), demote_tests=demote_tests
        )
        self._users = 0
        self._resources = AsyncExitStack()

    @asynccontextmanager
    async def lifespan(self, on_list_change: ListChangeCallback) -> AsyncIterator[None]:
        """Run for the first toolset that starts until the last one ends."""
        self._users += 1
        try:
            if self._users == 1:
                await self._resources.enter_async_context(self.search_tool.lifespan(on_list_change))
                await self._resources.enter_async_context(self.builds.lifespan())
            yield
        finally:
            self._users -= 1
            if not self._users:
                await self._resources.aclose()


def _load_live_search() -> LiveSearch:
    from cleats.toolsets.code.explore.live_search import search_live  # noqa: PLC0415 - by the first that needs it

    return search_live


def _load_overlay() -> OverlaySearch:
    from cleats.toolsets.code.explore.overlay_search import ChangeOverlay  # noqa: PLC0415 - by the first change

    return ChangeOverlay().search

"""The official skills extension (SEP-2640): `skills/list`, `skills/get`, directory reads.

The files themselves are ordinary resources.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from cleats.contract.errors import ErrorCode
from cleats.contract.listing import Page, page
from cleats.contract.resources import Resource, Resources
from cleats.contract.skills import SkillEntries, SkillEntry
from cleats.transports.mcp.paging import cursor_of, paged
from cleats.transports.mcp.resources import as_json

if TYPE_CHECKING:
    from cleats.transports.mcp.server import McpServer

ID = "io.modelcontextprotocol/skills"
PAGE = 50
"""Skills on a page. Each is read and hashed for it, with all of its files."""

CHILDREN = 500

Ctx = ServerRequestContext[Any, Any]


class UriParams(types.RequestParams):
    """Params that name one thing."""

    uri: str


class DirectoryParams(types.PaginatedRequestParams):
    """Params that name a folder and a page of it."""

    uri: str


class SkillsExtension:
    """The handlers, over the toolsets that publish skills and all that have resources."""

    def __init__(self, providers: Sequence[SkillEntries], resources: Sequence[Resources]) -> None:
        self._providers = providers
        self._resources = resources

    def add_to(self, server: "McpServer") -> None:
        add = server.add_request_handler
        add("skills/list", types.PaginatedRequestParams, self.list)
        add("skills/get", UriParams, self.get)
        add("resources/directory/read", DirectoryParams, self.read_directory)
        server.extensions[ID] = {"directoryRead": True}

    async def list(self, ctx: Ctx, params: types.PaginatedRequestParams | None) -> dict[str, Any]:
        listers = [provider.list for provider in self._providers]
        found, cursor = await paged(listers, cursor_of(params), PAGE)
        result: dict[str, Any] = {"skills": [_entry(each) for each in found]}
        if cursor is not None:
            result["nextCursor"] = cursor
        return result | _freshness(ctx)

    async def get(self, ctx: Ctx, params: UriParams) -> dict[str, Any]:
        for provider in self._providers:
            if (entry := await provider.get(params.uri)) is not None:
                return {"skill": _entry(entry)} | _freshness(ctx)
        raise _no("skill is served", params.uri)

    async def read_directory(self, _ctx: Ctx, params: DirectoryParams) -> dict[str, Any]:
        for provider in self._resources:
            children = await provider.children(params.uri)
            if children is not None:
                found, cursor = await paged([_lister(children)], params.cursor, CHILDREN)
                result: dict[str, Any] = {"resources": [as_json(each) for each in found]}
                return result | ({} if cursor is None else {"nextCursor": cursor})
        raise _no("directory resource is", params.uri)


def _lister(children: Sequence[Resource]) -> Any:
    ordered = sorted(children, key=lambda each: each.uri)
    uris = [each.uri for each in ordered]

    async def lister(after: str, limit: int) -> Page[Resource]:
        return page(ordered, uris, after, limit)

    return lister


def _entry(entry: SkillEntry) -> dict[str, Any]:
    return {
        "uri": entry.uri,
        "frontmatter": dict(entry.front_matter),
        "resources": [
            {"uri": file.uri, "digest": f"sha256:{file.sha256}", "size": file.size}
            for file in entry.files
        ],
    }


def _freshness(ctx: Ctx) -> dict[str, Any]:
    """Stateless clients are told how long an answer holds: files may change at any time."""
    modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    return {"ttlMs": 0, "cacheScope": "private"} if modern else {}


def _no(what: str, uri: str) -> MCPError:
    data = {"code": ErrorCode.NOT_FOUND.name, "uri": uri}
    return MCPError(types.INVALID_PARAMS, f"No {what} at {uri}", data)

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
from cleats.contract.resources import ListPage, Resource, ResourceProvider, SkillEntry, SkillProvider, slice_page
from cleats.transports.mcp.resources import collect_page, read_cursor, render_resource

if TYPE_CHECKING:
    from cleats.transports.mcp.server import McpServer

EXTENSION_ID = "io.modelcontextprotocol/skills"
SKILLS_PER_PAGE = 50
"""The page size of listings. Each skill is read and hashed for it, with all of its files."""

CHILDREN_PER_PAGE = 500

SdkContext = ServerRequestContext[Any, Any]


class UriParams(types.RequestParams):
    """Params that name one resource."""

    uri: str


class DirectoryParams(types.PaginatedRequestParams):
    """Params that name a folder and a page of it."""

    uri: str


class SkillsExtension:
    """The handlers, over the toolsets that publish skills and all that have resources."""

    def __init__(self, providers: Sequence[SkillProvider], resources: Sequence[ResourceProvider]) -> None:
        self._providers = providers
        self._resources = resources

    def register(self, server: "McpServer") -> None:
        add = server.add_request_handler
        add("skills/list", types.PaginatedRequestParams, self.list_skills)
        add("skills/get", UriParams, self.get_skill)
        add("resources/directory/read", DirectoryParams, self.read_directory)
        server.extensions[EXTENSION_ID] = {"directoryRead": True}

    async def list_skills(self, ctx: SdkContext, params: types.PaginatedRequestParams | None) -> dict[str, Any]:
        listers = [provider.list for provider in self._providers]
        entries, cursor = await collect_page(listers, read_cursor(params), SKILLS_PER_PAGE)
        result: dict[str, Any] = {"skills": [_render_entry(entry) for entry in entries]}
        if cursor is not None:
            result["nextCursor"] = cursor
        return result | _cache_fields(ctx)

    async def get_skill(self, ctx: SdkContext, params: UriParams) -> dict[str, Any]:
        for provider in self._providers:
            if (entry := await provider.get(params.uri)) is not None:
                return {"skill": _render_entry(entry)} | _cache_fields(ctx)
        raise _not_found_error("skill is served", params.uri)

    async def read_directory(self, _ctx: SdkContext, params: DirectoryParams) -> dict[str, Any]:
        for provider in self._resources:
            children = await provider.list_children(params.uri)
            if children is not None:
                resources, cursor = await collect_page([_build_lister(children)], params.cursor, CHILDREN_PER_PAGE)
                result: dict[str, Any] = {"resources": [render_resource(resource) for resource in resources]}
                return result | ({} if cursor is None else {"nextCursor": cursor})
        raise _not_found_error("directory resource is", params.uri)


def _build_lister(children: Sequence[Resource]) -> Any:
    ordered = sorted(children, key=lambda child: child.uri)
    uris = [child.uri for child in ordered]

    async def list_children(after: str, limit: int) -> ListPage[Resource]:
        return slice_page(ordered, uris, after, limit)

    return list_children


def _render_entry(entry: SkillEntry) -> dict[str, Any]:
    return {
        "uri": entry.uri,
        "frontmatter": dict(entry.front_matter),
        "resources": [{"uri": file.uri, "digest": f"sha256:{file.sha256}", "size": file.size} for file in entry.files],
    }


def _cache_fields(ctx: SdkContext) -> dict[str, Any]:
    """Return the caching fields for stateless clients: files may change at any time."""
    is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    return {"ttlMs": 0, "cacheScope": "private"} if is_modern else {}


def _not_found_error(subject: str, uri: str) -> MCPError:
    data = {"code": ErrorCode.NOT_FOUND.name, "uri": uri}
    return MCPError(types.INVALID_PARAMS, f"No {subject} at {uri}", data)

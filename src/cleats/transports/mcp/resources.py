"""`resources/*`: what toolsets offer to be read."""

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from cleats.contract.errors import ErrorCode
from cleats.contract.resources import Contents, Resource, Resources
from cleats.transports.mcp.paging import cursor_of, paged

if TYPE_CHECKING:
    from cleats.transports.mcp.server import McpServer

PAGE = 500
"""Resources on a page: some 100 kB."""

NOT_FOUND_2025 = -32002
"""What handshake clients know as "resource not found"; stateless ones get -32602."""

Ctx = ServerRequestContext[Any, Any]


class ResourceMethods:
    """The handlers."""

    def __init__(self, providers: Sequence[Resources]) -> None:
        self._providers = providers

    def add_to(self, server: "McpServer") -> None:
        add = server.add_request_handler
        add("resources/list", types.PaginatedRequestParams, self.list)
        add("resources/templates/list", types.PaginatedRequestParams, self.templates)
        add("resources/read", types.ReadResourceRequestParams, self.read)

    async def list(
        self, _ctx: Ctx, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        listers = [provider.list for provider in self._providers]
        found, cursor = await paged(listers, cursor_of(params), PAGE)
        return types.ListResourcesResult(
            resources=[types.Resource(**as_json(each)) for each in found], next_cursor=cursor
        )

    async def templates(
        self, _ctx: Ctx, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=each.uri, name=each.name, description=each.description
                )
                for provider in self._providers
                for each in provider.templates
            ]
        )

    async def read(
        self, ctx: Ctx, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        for provider in self._providers:
            if (contents := await provider.read(uri)) is not None:
                return types.ReadResourceResult(contents=[_contents(contents)])
        raise not_found(ctx, uri)


def not_found(ctx: Ctx, uri: str) -> MCPError:
    """There is nothing behind a URI."""
    modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    number = types.INVALID_PARAMS if modern else NOT_FOUND_2025
    return MCPError(
        number, f"There is no resource at {uri}", {"code": ErrorCode.NOT_FOUND.name, "uri": uri}
    )


def as_json(resource: Resource) -> dict[str, Any]:
    """A resource as MCP lists it."""
    shown: dict[str, Any] = {
        "uri": resource.uri,
        "name": resource.name,
        "mimeType": resource.mime_type,
    }
    if resource.description:
        shown["description"] = resource.description
    if resource.size is not None:
        shown["size"] = resource.size
    return shown


def _contents(contents: Contents) -> types.TextResourceContents | types.BlobResourceContents:
    """Text when the bytes are text, so that nothing of them is lost; else base64."""
    try:
        return types.TextResourceContents(
            uri=contents.uri, mime_type=contents.mime_type, text=contents.data.decode()
        )
    except UnicodeDecodeError:
        blob = base64.b64encode(contents.data).decode()
        return types.BlobResourceContents(uri=contents.uri, mime_type=contents.mime_type, blob=blob)

"""The MCP methods for resources, prompts and skills that toolsets offer.

Skills follow the official extension (SEP-2640); their files are ordinary resources.
"""

import base64
import binascii
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import PaginatedRequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from cleats.contract.errors import ErrorCode
from cleats.contract.resources import ListName, ListPage, Prompt, Resource, ResourceContents, SkillEntry, slice_page
from cleats.contract.tools import Toolset
from cleats.transports.mcp.description import SKILLS_EXTENSION
from cleats.transports.mcp.dispatcher import invalid_request_error

if TYPE_CHECKING:
    from cleats.transports.mcp.server import McpServer

ItemT = TypeVar("ItemT")
PageLister = Callable[[str, int], Awaitable[ListPage[ItemT]]]


async def collect_page(
    listers: Sequence[PageLister[ItemT]], params: PaginatedRequestParams | None, size: int
) -> tuple[list[ItemT], str | None]:
    """Return the requested page, or the first without params, and the cursor of the next.

    Raises:
        MCPError: The cursor is invalid.
    """
    lister_index, after = _decode_cursor(None if params is None else params.cursor, len(listers))
    items: list[ItemT] = []
    while lister_index < len(listers):
        page = await listers[lister_index](after, size - len(items))
        items += page.items
        if page.after:
            return items, _encode_cursor(lister_index, page.after)
        lister_index, after = lister_index + 1, ""
        if len(items) >= size and lister_index < len(listers):
            return items, _encode_cursor(lister_index, "")
    return items, None


def _encode_cursor(lister_index: int, after: str) -> str:
    return base64.urlsafe_b64encode(json.dumps([lister_index, after]).encode()).decode()


def _decode_cursor(cursor: str | None, count: int) -> tuple[int, str]:
    if cursor is None:
        return 0, ""
    try:
        value: Any = json.loads(base64.b64decode(cursor, b"-_", validate=True))
    except (binascii.Error, ValueError):
        value = None
    match value:
        case [int(lister_index), str(after)] if 0 <= lister_index < count:
            return lister_index, after
    raise invalid_request_error("Invalid cursor. Use the cursor of the previous page, or omit it.")


RESOURCES_PER_PAGE, PROMPTS_PER_PAGE, CHILDREN_PER_PAGE = 500, 200, 500
"""The page sizes of listings; a page of resources is about 100 kB."""

SKILLS_PER_PAGE = 50
"""The page size of a listing of skills. Each skill is read and hashed for it, with all of its files."""

HANDSHAKE_NOT_FOUND_CODE = -32002
"""The code that handshake clients know as "resource not found"; stateless ones get -32602."""

SdkContext = ServerRequestContext[Any, Any]
PageParams = PaginatedRequestParams | None


class UriParams(PaginatedRequestParams):
    """Params that name one resource, or a folder and a page of it."""

    uri: str


class OfferHandlers:
    """The handlers of the methods for what toolsets offer besides tools."""

    def __init__(self, toolsets: Sequence[Toolset]) -> None:
        self._resources = [toolset.resources for toolset in toolsets if toolset.resources is not None]
        self._prompts = [toolset.prompts for toolset in toolsets if toolset.prompts is not None]
        self._skills = [toolset.skills for toolset in toolsets if toolset.skills is not None]

    def register(self, server: "McpServer") -> set[ListName]:
        """Register the handlers of what exists; return the lists that can be announced."""
        add = server.add_request_handler
        lists: set[ListName] = set()
        if self._resources:
            lists.add("resources")
            add("resources/list", PaginatedRequestParams, self.list_resources)
            add("resources/templates/list", PaginatedRequestParams, self.list_templates)
            add("resources/read", types.ReadResourceRequestParams, self.read_resource)
        if self._prompts:
            lists.add("prompts")
            add("prompts/list", PaginatedRequestParams, self.list_prompts)
            add("prompts/get", types.GetPromptRequestParams, self.get_prompt)
        if self._skills:
            add("skills/list", PaginatedRequestParams, self.list_skills)
            add("skills/get", UriParams, self.get_skill)
            add("resources/directory/read", UriParams, self.read_directory)
            server.extensions.update(SKILLS_EXTENSION)
        return lists

    async def list_resources(self, _ctx: SdkContext, params: PageParams) -> types.ListResourcesResult:
        listers = [provider.list for provider in self._resources]
        resources, cursor = await collect_page(listers, params, RESOURCES_PER_PAGE)
        rows = [types.Resource(**render_resource(resource)) for resource in resources]
        return types.ListResourcesResult(resources=rows, next_cursor=cursor)

    async def list_templates(self, _ctx: SdkContext, _params: PageParams) -> types.ListResourceTemplatesResult:
        rows = [
            types.ResourceTemplate(uri_template=template.uri, name=template.name, description=template.description)
            for provider in self._resources
            for template in provider.templates
        ]
        return types.ListResourceTemplatesResult(resource_templates=rows)

    async def read_resource(self, ctx: SdkContext, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        for provider in self._resources:
            if (contents := await provider.read(uri)) is not None:
                return types.ReadResourceResult(contents=[_render_contents(contents)])
        is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        code = types.INVALID_PARAMS if is_modern else HANDSHAKE_NOT_FOUND_CODE
        raise _not_found_error(f"Resource not found: {uri}", uri, code)

    async def list_prompts(self, _ctx: SdkContext, params: PageParams) -> types.ListPromptsResult:
        listers = [provider.list for provider in self._prompts]
        prompts, cursor = await collect_page(listers, params, PROMPTS_PER_PAGE)
        rows = [types.Prompt(**_render_prompt(prompt)) for prompt in prompts]
        return types.ListPromptsResult(prompts=rows, next_cursor=cursor)

    async def get_prompt(self, _ctx: SdkContext, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        for provider in self._prompts:
            text = await provider.get(params.name, params.arguments or {})
            if text is not None:
                content = types.TextContent(type="text", text=text)
                return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=content)])
        raise invalid_request_error(f"Unknown prompt {params.name!r}.")

    async def list_skills(self, ctx: SdkContext, params: PageParams) -> dict[str, Any]:
        listers = [provider.list for provider in self._skills]
        entries, cursor = await collect_page(listers, params, SKILLS_PER_PAGE)
        result: dict[str, Any] = {"skills": [_render_entry(entry) for entry in entries]}
        return result | ({} if cursor is None else {"nextCursor": cursor}) | _cache_fields(ctx)

    async def get_skill(self, ctx: SdkContext, params: UriParams) -> dict[str, Any]:
        for provider in self._skills:
            if (entry := await provider.get(params.uri)) is not None:
                return {"skill": _render_entry(entry)} | _cache_fields(ctx)
        raise _not_found_error(f"No skill is served at {params.uri}", params.uri)

    async def read_directory(self, _ctx: SdkContext, params: UriParams) -> dict[str, Any]:
        for provider in self._resources:
            children = await provider.list_children(params.uri)
            if children is not None:
                resources, cursor = await collect_page([_build_lister(children)], params, CHILDREN_PER_PAGE)
                result: dict[str, Any] = {"resources": [render_resource(resource) for resource in resources]}
                return result | ({} if cursor is None else {"nextCursor": cursor})
        raise _not_found_error(f"No directory resource is at {params.uri}", params.uri)


def render_resource(resource: Resource) -> dict[str, Any]:
    """Return a resource as MCP lists it."""
    optional = {"description": resource.description or None, "size": resource.size}
    fields = {"uri": resource.uri, "name": resource.name, "mimeType": resource.mime_type}
    return fields | {name: value for name, value in optional.items() if value is not None}


def _render_contents(contents: ResourceContents) -> types.TextResourceContents | types.BlobResourceContents:
    """Return text if the bytes are valid UTF-8, so that nothing is lost; otherwise base64."""
    try:
        return types.TextResourceContents(uri=contents.uri, mime_type=contents.mime_type, text=contents.data.decode())
    except UnicodeDecodeError:
        blob = base64.b64encode(contents.data).decode()
        return types.BlobResourceContents(uri=contents.uri, mime_type=contents.mime_type, blob=blob)


def _render_prompt(prompt: Prompt) -> dict[str, Any]:
    arguments = [
        {"name": argument.name, "description": argument.description, "required": argument.required}
        for argument in prompt.arguments
    ]
    return {"name": prompt.name, "description": prompt.description, "arguments": arguments}


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


def _not_found_error(message: str, uri: str, code: int = types.INVALID_PARAMS) -> MCPError:
    return MCPError(code, message, {"code": ErrorCode.NOT_FOUND.name, "uri": uri})

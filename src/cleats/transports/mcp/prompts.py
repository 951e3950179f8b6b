"""`prompts/*`: what toolsets offer to a person."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.context import ServerRequestContext

from cleats.contract.prompts import Prompt, Prompts
from cleats.transports.mcp.paging import cursor_of, paged
from cleats.transports.mcp.refusals import refusal

if TYPE_CHECKING:
    from cleats.transports.mcp.server import McpServer

PAGE = 200

Ctx = ServerRequestContext[Any, Any]


class PromptMethods:
    """The handlers."""

    def __init__(self, providers: Sequence[Prompts]) -> None:
        self._providers = providers

    def add_to(self, server: "McpServer") -> None:
        add = server.add_request_handler
        add("prompts/list", types.PaginatedRequestParams, self.list)
        add("prompts/get", types.GetPromptRequestParams, self.get)

    async def list(
        self, _ctx: Ctx, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        listers = [provider.list for provider in self._providers]
        found, cursor = await paged(listers, cursor_of(params), PAGE)
        return types.ListPromptsResult(
            prompts=[types.Prompt(**_as_json(each)) for each in found], next_cursor=cursor
        )

    async def get(self, _ctx: Ctx, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        for provider in self._providers:
            text = await provider.get(params.name, params.arguments or {})
            if text is not None:
                said = types.TextContent(type="text", text=text)
                return types.GetPromptResult(
                    messages=[types.PromptMessage(role="user", content=said)]
                )
        raise refusal(f"There is no prompt {params.name!r}.")


def _as_json(prompt: Prompt) -> dict[str, Any]:
    return {
        "name": prompt.name,
        "description": prompt.description,
        "arguments": [
            {"name": each.name, "description": each.description, "required": each.required}
            for each in prompt.arguments
        ],
    }

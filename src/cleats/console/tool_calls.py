"""Calls of tools for a page: the same dispatcher, the same rights and the same records as for every other caller."""

from collections.abc import Mapping
from itertools import count
from secrets import token_hex
from typing import Any

from cleats.contract.outcome import Done, Outcome
from cleats.contract.payload import CONTENT, AnswerMeta, get_outcome_error
from cleats.contract.registry import Registry
from cleats.contract.tools import Tool
from cleats.runtime.call import ToolCall
from cleats.runtime.dispatcher import Dispatcher

SURFACE = "console"
"""The name of this surface in logs and records."""


class ToolCaller:
    """Calls tools as one caller."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._prefix = token_hex(4)
        self._numbers = count(1)
        self._open_calls: set[ToolCall] = set()

    @property
    def registry(self) -> Registry:
        """The tools that the caller may use."""
        return self._dispatcher.registry

    def has_tools(self, *names: str) -> bool:
        """Return whether the caller may use all of these tools."""
        return all(self.registry.has_tool(name) for name in names)

    def create_call(self, tool: str, arguments: Mapping[str, Any]) -> ToolCall:
        """Return a call that is ready to be dispatched."""
        call_id = f"{self._prefix}-{next(self._numbers)}"
        return ToolCall(
            tool=tool, arguments=arguments, id=call_id, surface=SURFACE, meta=AnswerMeta(request_id=call_id)
        )

    async def dispatch(self, call: ToolCall) -> Outcome:
        """Run a call to its end."""
        self._open_calls.add(call)
        try:
            return await self._dispatcher.dispatch(call)
        finally:
            self._open_calls.discard(call)

    def cancel_all(self) -> None:
        """Cancel every call that still runs."""
        for call in list(self._open_calls):
            call.cancel()

    async def run(self, tool: str, /, **arguments: Any) -> Any:
        """Call a tool and return its result; arguments that are None are left out.

        Raises:
            ToolError: What the tool answered, or CANCELLED.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        return unwrap_outcome(await self.dispatch(self.create_call(tool, given)))


def unwrap_outcome(outcome: Outcome) -> Any:
    """Return the result of an outcome.

    Raises:
        ToolError: The error of the outcome.
    """
    if isinstance(outcome, Done):
        return outcome.result
    raise get_outcome_error(outcome) or AssertionError(outcome)


def render_answer(tool: Tool, outcome: Outcome, meta: AnswerMeta) -> Any:
    """Return an outcome as an agent would get it: text, or a JSON value."""
    answer = tool.payload.render_outcome(outcome, meta)
    if answer.content is not None:
        if tool.payload is CONTENT and all(block.get("type") == "text" for block in answer.content):
            return "\n".join(str(block["text"]) for block in answer.content)
        return list(answer.content)
    return answer.body

"""The wire formats of model APIs, as far as the clients need them: read a request, write a reply.

Supported are the Messages API of Anthropic, Chat Completions and Responses of OpenAI, and
generateContent of Gemini, each with and without streaming.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MODEL_NAME = "scripted"
USAGE_TOKENS = 10
"""Tokens that every reply claims to have cost; clients only need some number."""

WRAPPER_TOOL = "tool_call"
"""The tool with which Qwen Code calls a tool that was only declared in an earlier result."""

JsonObject = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool as a client presents it to the model."""

    name: str
    description: str
    schema: JsonObject
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to a tool call as the model reads it."""

    tool_name: str
    text: str


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request to the model in terms that all wire formats share."""

    tools: Sequence[OfferedTool]
    results: Sequence[ToolResult]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model makes."""

    id: str
    tool: OfferedTool
    arguments: JsonObject

    @property
    def arguments_text(self) -> str:
        return json.dumps(self.arguments)


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The model's turn: a call, or else a text, which ends the session."""

    text: str = ""
    call: ToolCall | None = None


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """One server-sent event. Without a name it has data only."""

    data: JsonObject | str
    name: str = ""

    def encode(self) -> bytes:
        data = self.data if isinstance(self.data, str) else json.dumps(self.data)
        return (f"event: {self.name}\n" if self.name else "").encode() + f"data: {data}\n\n".encode()


class ModelWire(ABC):
    """One wire format."""

    @abstractmethod
    def matches(self, path: str) -> bool:
        """Return whether a POST to this path uses the format."""

    @abstractmethod
    def read_request(self, body: JsonObject) -> ModelRequest:
        """Parse a request."""

    @abstractmethod
    def build_body(self, reply: ModelReply) -> JsonObject:
        """Return the answer to a request without streaming."""

    @abstractmethod
    def build_events(self, reply: ModelReply) -> Iterator[StreamEvent]:
        """Return the events of a streamed answer."""


class AnthropicWire(ModelWire):
    """POST /v1/messages."""

    def matches(self, path: str) -> bool:
        return path.endswith("/messages")

    def read_request(self, body: JsonObject) -> ModelRequest:
        # The model knows a deferred tool only after a reference to it in the conversation.
        references = set(_iterate_references(body["messages"]))
        tools = [
            OfferedTool(tool["name"], tool.get("description", ""), tool["input_schema"])
            for tool in body.get("tools") or []
            if "input_schema" in tool and (not tool.get("defer_loading") or tool["name"] in references)
        ]
        names: dict[str, str] = {}
        results: list[ToolResult] = []
        for message in body["messages"]:
            for block in message["content"] if isinstance(message["content"], list) else []:
                if block["type"] == "tool_use":
                    names[block["id"]] = block["name"]
                elif block["type"] == "tool_result":
                    results.append(ToolResult(names.get(block["tool_use_id"], ""), join_text(block.get("content"))))
        return ModelRequest(tools, results)

    def build_body(self, reply: ModelReply) -> JsonObject:
        stop = "tool_use" if reply.call else "end_turn"
        return {**self._start_message(), "content": [self._build_block(reply)], "stop_reason": stop}

    def build_events(self, reply: ModelReply) -> Iterator[StreamEvent]:
        def make_event(name: str, **fields: Any) -> StreamEvent:
            return StreamEvent({"type": name, **fields}, name)

        call = reply.call
        empty: JsonObject = {"input": {}} if call else {"text": ""}
        delta = (
            {"type": "input_json_delta", "partial_json": call.arguments_text}
            if call
            else {"type": "text_delta", "text": reply.text}
        )
        stop = {"stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None}
        yield make_event("message_start", message=self._start_message())
        yield make_event("content_block_start", index=0, content_block={**self._build_block(reply), **empty})
        yield make_event("content_block_delta", index=0, delta=delta)
        yield make_event("content_block_stop", index=0)
        yield make_event("message_delta", delta=stop, usage={"output_tokens": USAGE_TOKENS})
        yield make_event("message_stop")

    def _start_message(self) -> dict[str, Any]:
        usage = {"input_tokens": USAGE_TOKENS, "output_tokens": USAGE_TOKENS}
        start = {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL_NAME, "content": []}
        return {**start, "stop_reason": None, "stop_sequence": None, "usage": usage}

    def _build_block(self, reply: ModelReply) -> dict[str, Any]:
        if call := reply.call:
            return {"type": "tool_use", "id": call.id, "name": call.tool.name, "input": call.arguments}
        return {"type": "text", "text": reply.text}


class ChatWire(ModelWire):
    """POST /v1/chat/completions."""

    def matches(self, path: str) -> bool:
        return path.endswith("/chat/completions")

    def read_request(self, body: JsonObject) -> ModelRequest:
        functions = [tool["function"] for tool in body.get("tools") or [] if "function" in tool]
        names: dict[str, str] = {}
        results: list[ToolResult] = []
        for message in body["messages"]:
            for call in message.get("tool_calls") or []:
                names[call["id"]] = _name_call(call["function"])
            if message["role"] == "tool":
                results.append(ToolResult(names.get(message["tool_call_id"], ""), join_text(message["content"])))
        return ModelRequest([_read_function(item) for item in functions], results)

    def build_body(self, reply: ModelReply) -> JsonObject:
        choice = {"index": 0, "message": self._build_message(reply), "finish_reason": self._name_stop(reply)}
        return {**self._build_head("chat.completion"), "choices": [choice], "usage": _OPENAI_USAGE}

    def build_events(self, reply: ModelReply) -> Iterator[StreamEvent]:
        delta = self._build_message(reply)
        for index, call in enumerate(delta.get("tool_calls", ())):
            call["index"] = index
        head = self._build_head("chat.completion.chunk")
        yield StreamEvent({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        stop = {"index": 0, "delta": {}, "finish_reason": self._name_stop(reply)}
        yield StreamEvent({**head, "choices": [stop]})
        yield StreamEvent({**head, "choices": [], "usage": _OPENAI_USAGE})
        yield StreamEvent("[DONE]")

    def _build_head(self, kind: str) -> dict[str, Any]:
        return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": MODEL_NAME}

    def _name_stop(self, reply: ModelReply) -> str:
        return "tool_calls" if reply.call else "stop"

    def _build_message(self, reply: ModelReply) -> dict[str, Any]:
        if call := reply.call:
            function = {"name": call.tool.name, "arguments": call.arguments_text}
            calls = [{"id": call.id, "type": "function", "function": function}]
            return {"role": "assistant", "content": None, "tool_calls": calls}
        return {"role": "assistant", "content": reply.text}


class ResponsesWire(ModelWire):
    """POST /v1/responses. Tools may be in namespaces, as Codex groups those of an MCP server."""

    def matches(self, path: str) -> bool:
        return path.endswith("/responses")

    def read_request(self, body: JsonObject) -> ModelRequest:
        names: dict[str, str] = {}
        results: list[ToolResult] = []
        for item in body["input"] if isinstance(body["input"], list) else []:
            if item.get("type") == "function_call":
                names[item["call_id"]] = item["name"]
            elif item.get("type") == "function_call_output":
                results.append(ToolResult(names.get(item["call_id"], ""), join_text(item["output"])))
        return ModelRequest(list(_iterate_responses_tools(body)), results)

    def build_body(self, reply: ModelReply) -> JsonObject:
        return {
            "id": "resp_1",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "model": MODEL_NAME,
            "output": [self._build_item(reply)],
            "parallel_tool_calls": False,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": USAGE_TOKENS,
                "output_tokens": USAGE_TOKENS,
                "total_tokens": 2 * USAGE_TOKENS,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0},
            },
        }

    def build_events(self, reply: ModelReply) -> Iterator[StreamEvent]:
        body, item = self.build_body(reply), self._build_item(reply)
        events: Sequence[tuple[str, JsonObject]] = (
            ("response.created", {"response": {**body, "status": "in_progress", "output": []}}),
            ("response.output_item.added", {"output_index": 0, "item": {**item, "status": "in_progress"}}),
            ("response.output_item.done", {"output_index": 0, "item": item}),
            ("response.completed", {"response": body}),
        )
        for number, (name, fields) in enumerate(events):
            yield StreamEvent({"type": name, "sequence_number": number, **fields}, name)

    def _build_item(self, reply: ModelReply) -> dict[str, Any]:
        if call := reply.call:
            item = {"type": "function_call", "id": f"fc_{call.id}", "call_id": call.id, "status": "completed"}
            namespace = {"namespace": call.tool.namespace} if call.tool.namespace else {}
            return {**item, **namespace, "name": call.tool.name, "arguments": call.arguments_text}
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}


class GeminiWire(ModelWire):
    """POST /v1beta/models/NAME:generateContent and :streamGenerateContent."""

    def matches(self, path: str) -> bool:
        return path.endswith((":generateContent", ":streamGenerateContent"))

    def read_request(self, body: JsonObject) -> ModelRequest:
        tools = [
            OfferedTool(
                declaration["name"],
                declaration.get("description", ""),
                next((declaration[key] for key in _GEMINI_SCHEMA_KEYS if declaration.get(key)), {}),
            )
            for group in body.get("tools") or []
            for declaration in group.get("functionDeclarations", ())
        ]
        results = [
            ToolResult(part["functionResponse"]["name"], _read_gemini_response(part["functionResponse"]["response"]))
            for content in body["contents"]
            for part in content.get("parts", ())
            if "functionResponse" in part
        ]
        return ModelRequest(tools, results)

    def build_body(self, reply: ModelReply) -> JsonObject:
        part: JsonObject = {"text": reply.text}
        if call := reply.call:
            part = {"functionCall": {"name": call.tool.name, "args": call.arguments}}
        content = {"role": "model", "parts": [part]}
        usage = {"promptTokenCount": USAGE_TOKENS, "candidatesTokenCount": USAGE_TOKENS}
        return {
            "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {**usage, "totalTokenCount": 2 * USAGE_TOKENS},
            "modelVersion": MODEL_NAME,
        }

    def build_events(self, reply: ModelReply) -> Iterator[StreamEvent]:
        yield StreamEvent(self.build_body(reply))


MODEL_WIRES: Sequence[ModelWire] = (AnthropicWire(), ChatWire(), ResponsesWire(), GeminiWire())

_GEMINI_SCHEMA_KEYS = ("parametersJsonSchema", "parameters_json_schema", "parameters")
_OPENAI_USAGE = {"prompt_tokens": USAGE_TOKENS, "completion_tokens": USAGE_TOKENS, "total_tokens": 2 * USAGE_TOKENS}


def is_streaming(path: str, body: JsonObject) -> bool:
    """Return whether a request wants its answer as events."""
    return bool(body.get("stream")) or path.endswith(":streamGenerateContent")


def join_text(content: Any) -> str:
    """Return the text of a result, which is a string or a list of blocks."""
    if isinstance(content, list):
        return "\n".join(str(block.get("text") or json.dumps(block)) for block in content)
    return str(content or "")


def _name_call(function: JsonObject) -> str:
    """Return the name of the tool that was called, which a wrapper has among its arguments."""
    if function["name"] == WRAPPER_TOOL:
        return str(json.loads(function["arguments"]).get("name", ""))
    return str(function["name"])


def _read_function(function: JsonObject) -> OfferedTool:
    return OfferedTool(function["name"], function.get("description", ""), function.get("parameters") or {})


def _iterate_references(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if value.get("type") == "tool_reference":
            yield value.get("tool_name") or value["name"]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _iterate_references(item)


def _iterate_responses_tools(body: JsonObject) -> Iterator[OfferedTool]:
    for tool in body.get("tools") or []:
        if tool.get("type") == "function":
            yield _read_function(tool)
        elif tool.get("type") == "namespace":
            for member in tool.get("tools", ()):
                function = _read_function(member)
                yield OfferedTool(function.name, function.description, function.schema, tool["name"])


def _read_gemini_response(response: JsonObject) -> str:
    return "\n".join(value if isinstance(value, str) else json.dumps(value) for value in response.values())

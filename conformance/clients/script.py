"""The script of a session: the calls that the model makes, and what must come back to it."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformance.clients.wires import WRAPPER_TOOL, ModelReply, ModelRequest, OfferedTool, ToolCall, ToolResult

DISCOVERY_TOOLS = {"ToolSearch": "query", "tool_search": "query", "WaitForMcpServers": ""}
"""The tools with which clients that show only names let the model load tools, each with its argument."""

MAX_DISCOVERY_CALLS = 4
DESCRIBED_TOOLS = ("find_code", "grep_code", "skill")
SERVER_NAME = "cleats"
DISCOVERY_QUERY = f"select:{','.join(f'mcp__{SERVER_NAME}__{name}' for name in DESCRIBED_TOOLS)}"

LARGE_ANSWER_TOKENS = 8_000

_TOOL_PATTERN = re.compile(rf"(?:^|.*{SERVER_NAME}.*[^a-z])({'|'.join(DESCRIBED_TOOLS)})")
_SHOWN_PATTERN = re.compile(r"[Ll]ines 1-(?P<shown>[\d,]+) of (?P<all>[\d,]+); next: offset=")
_DECLARATION_PATTERN = re.compile(r"^<function>(\{.*\})</function>$", re.MULTILINE)
_HIT_PATTERN = re.compile(r"^ \d+: .*def ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ScriptStep:
    """One call, and the judge of its answer, who returns the problem or an empty text."""

    title: str
    tool: str
    arguments: Mapping[str, Any]
    judge: Callable[[str], str]


def require(*texts: str) -> Callable[[str], str]:
    """Return a judge who wants all of these texts in an answer."""

    def judge(answer: str) -> str:
        missing = [text for text in texts if text not in answer]
        return f"{', '.join(map(repr, missing))} missing in {shorten(answer)}" if missing else ""

    return judge


def judge_whole_answer(answer: str) -> str:
    """Compare the lines that arrived with the number that the answer's first line names."""
    if not (match := _SHOWN_PATTERN.search(answer)):
        return f"no total and no continuation in {shorten(answer)}"
    arrived, shown = len(_HIT_PATTERN.findall(answer)), int(match["shown"].replace(",", ""))
    return "" if arrived == shown else f"{arrived} of {shown} lines arrived"


def judge_cut_answer(answer: str) -> str:
    """Accept an answer that the client shortened if the total, the continuation and some lines are left."""
    if not _SHOWN_PATTERN.search(answer):
        return f"no total and no continuation in {shorten(answer)}"
    return "" if _HIT_PATTERN.search(answer) else f"no lines in {shorten(answer)}"


def judge_progress(answer: str) -> str:
    """Accept an answer from the index, or one that shows that the build goes on."""
    if "No index yet" in answer and "(index being built" not in answer:
        return f"the index is not being built: {shorten(answer)}"
    return require("billing/refunds.py")(answer)


FULL_SCRIPT: Sequence[ScriptStep] = (
    ScriptStep(
        "find_code",
        "find_code",
        {"query": "how is money returned to a customer"},
        require("No index yet (index being built", "billing/refunds.py", "pay_back_refund"),
    ),
    ScriptStep(
        "grep_code",
        "grep_code",
        {"pattern": "REFUND_WINDOW_DAYS ="},
        require("billing/refunds.py", "REFUND_WINDOW_DAYS = 14"),
    ),
    ScriptStep("skill", "skill", {"name": "refund-checklist"}, require("Ask for the receipt before anything else.")),
    ScriptStep(
        "hint",
        "grep_code",
        {"pattern": "refund", "files": True},
        require("unexpected property", "Did you mean files_only"),
    ),
    ScriptStep(
        "error",
        "grep_code",
        {"pattern": "refund(", "regex": True},
        require("Invalid regular expression", "Escape special"),
    ),
    ScriptStep("answer", "grep_code", {"pattern": "def "}, judge_whole_answer),
    ScriptStep("large", "grep_code", {"pattern": "def ", "tokens": LARGE_ANSWER_TOKENS}, judge_cut_answer),
    ScriptStep("build", "find_code", {"query": "pay_back_refund"}, judge_progress),
)
"""The script of a whole session, on a repository without an index."""

SHORT_SCRIPT: Sequence[ScriptStep] = FULL_SCRIPT[1:2]
"""One call, which shows that a registration is read."""


@dataclass(slots=True)
class ScriptedSession:
    """A session as the model sees it: it follows the script and keeps what it was shown."""

    steps: Sequence[ScriptStep]
    turn_tools: list[dict[str, OfferedTool]] = field(default_factory=list)
    """The tools of Cleats in every request that has tools, by their own names."""

    answers: list[str] = field(default_factory=list)
    was_discovered: bool = False
    """True if the client showed only names at first."""

    def choose_reply(self, request: ModelRequest) -> ModelReply:
        """Return the next call of the script, or the end."""
        if not request.tools:  # a side request, such as one for a title
            return ModelReply("Refunds")
        declared = dict(_iterate_own_tools(list(_iterate_declarations(request.results))))
        offered = {name: tool for name, tool in _iterate_own_tools(request.tools) if name not in declared}
        self.turn_tools.append({**declared, **offered})
        answers = [join_strings(result.text) for result in request.results if find_own_name(result.tool_name)]
        if len(answers) >= len(self.answers):
            self.answers = answers
        if len(answers) >= len(self.steps):
            return ModelReply("Done.")
        step = self.steps[len(answers)]
        number = len(request.results)
        if step.tool in offered:
            return ModelReply(call=ToolCall(f"call_{number}", offered[step.tool], step.arguments))
        wrapper = next((tool for tool in request.tools if tool.name == WRAPPER_TOOL), None)
        if wrapper is not None and step.tool in declared:
            arguments = {"name": declared[step.tool].name, "arguments": step.arguments}
            return ModelReply(call=ToolCall(f"call_{number}", wrapper, arguments))
        discovery = next((tool for tool in request.tools if tool.name in DISCOVERY_TOOLS), None)
        if discovery is None or number - len(answers) >= MAX_DISCOVERY_CALLS:
            return ModelReply("There is no such tool.")
        self.was_discovered = True
        argument = DISCOVERY_TOOLS[discovery.name]
        return ModelReply(call=ToolCall(f"call_{number}", discovery, {argument: DISCOVERY_QUERY} if argument else {}))

    def list_known_tools(self) -> dict[str, OfferedTool]:
        """Return the tools of the first request, or all that were discovered."""
        turns = self.turn_tools if self.was_discovered else self.turn_tools[:1]
        return {name: tool for turn in turns for name, tool in turn.items()}


def judge_tools(session: ScriptedSession) -> str:
    """Return the tools that the model should have known from its first turn and did not."""
    if not session.turn_tools:
        return "the model was never asked"
    missing = [name for name in DESCRIBED_TOOLS if name not in session.list_known_tools()]
    return f"not offered: {', '.join(missing)}" if missing else ""


def judge_descriptions(session: ScriptedSession) -> str:
    """Return the arguments that the model knows without a description."""
    tools = session.list_known_tools()
    bare = [
        f"{name}.{argument}"
        for name, tool in tools.items()
        for argument, schema in tool.schema.get("properties", {}).items()
        if name in DESCRIBED_TOOLS and not schema.get("description")
    ]
    empty = [name for name in DESCRIBED_TOOLS if name in tools and not tools[name].schema.get("properties")]
    if bare or empty or not tools:
        return f"without description: {', '.join([*bare, *empty]) or 'all'}"
    return require("refund-checklist")(tools["skill"].description) if "skill" in tools else ""


def find_own_name(name: str) -> str:
    """Return the name that a tool of Cleats has without a client's prefix, or an empty text."""
    match = _TOOL_PATTERN.fullmatch(name)
    return match[1] if match else ""


def _iterate_own_tools(tools: Sequence[OfferedTool]) -> Iterator[tuple[str, OfferedTool]]:
    # A client that puts the server's name before its tools may have a `skill` of its own.
    named = [tool for tool in tools if SERVER_NAME in f"{tool.namespace}{tool.name}"]
    for tool in named or tools:
        if name := find_own_name(tool.name):
            yield name, tool


def _iterate_declarations(results: Sequence[ToolResult]) -> Iterator[OfferedTool]:
    """Return the tools that a search for tools answered with, as text."""
    for result in results:
        if result.tool_name in DISCOVERY_TOOLS:
            for declaration in map(json.loads, _DECLARATION_PATTERN.findall(result.text)):
                schema = declaration.get("parametersJsonSchema") or declaration.get("parameters") or {}
                yield OfferedTool(declaration["name"], declaration.get("description", ""), schema)


def join_strings(text: str) -> str:
    """Return the strings in an answer that a client passes on as JSON, or the text itself."""

    def iterate_strings(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from iterate_strings(item)

    try:
        return "\n".join(iterate_strings(json.loads(text)))
    except ValueError:  # not JSON, or JSON that the client has cut off
        return text.replace("\\n", "\n") if text.startswith(("{", "[")) else text


def shorten(text: str, limit: int = 300) -> str:
    """Return a text on one line, cut to a length."""
    line = " ".join(text.split())
    return repr(line if len(line) <= limit else f"{line[:limit]}…")

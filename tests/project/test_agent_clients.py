"""The conformance run of real agent clients: its scripted model can fail, and the documentation says what it proves."""

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from cleats.cli.clients import CLIENTS_BY_NAME
from conformance.clients.catalogue import AGENT_CLIENTS, SKIPPED_CLIENTS
from conformance.clients.environments import REQUIREMENTS_FOLDER, read_version
from conformance.clients.libraries import LIBRARY_AGENTS
from conformance.clients.model import ScriptedModel, serve_model
from conformance.clients.script import (
    FULL_SCRIPT,
    ScriptedSession,
    judge_cut_answer,
    judge_descriptions,
    judge_progress,
    judge_tools,
    judge_whole_answer,
)
from tests.support.paths import REPOSITORY_ROOT

CLIENTS_FOLDER = REPOSITORY_ROOT / "conformance" / "clients"
GETTING_STARTED = (REPOSITORY_ROOT / "docs" / "getting-started.md").read_text()

SCHEMA = {"type": "object", "properties": {"query": {"type": "string", "description": "Question."}}}
TOOL_FIELDS = {"name": "mcp__cleats__find_code", "description": "Find code."}
CALL = {"id": "call_0", "name": "mcp__cleats__find_code"}

FIRST_REQUESTS: dict[str, dict[str, Any]] = {
    "/v1/messages": {
        "messages": [{"role": "user", "content": "Go."}],
        "tools": [{**TOOL_FIELDS, "input_schema": SCHEMA}],
    },
    "/v1/chat/completions": {
        "messages": [{"role": "user", "content": "Go."}],
        "tools": [{"type": "function", "function": {**TOOL_FIELDS, "parameters": SCHEMA}}],
    },
    "/v1/responses": {
        "input": [{"type": "message", "role": "user", "content": "Go."}],
        "tools": [
            {
                "type": "namespace",
                "name": "mcp__cleats",
                "tools": [{"type": "function", "name": "find_code", "parameters": SCHEMA}],
            }
        ],
    },
    "/v1beta/models/gemini:generateContent": {
        "contents": [{"role": "user", "parts": [{"text": "Go."}]}],
        "tools": [{"functionDeclarations": [{**TOOL_FIELDS, "parametersJsonSchema": SCHEMA}]}],
    },
}
RESULTS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "/v1/messages": (
        "messages",
        [
            {"role": "assistant", "content": [{"type": "tool_use", **CALL, "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_0", "content": "found"}]},
        ],
    ),
    "/v1/chat/completions": (
        "messages",
        [
            {"role": "assistant", "tool_calls": [{"id": "call_0", "function": {**CALL, "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_0", "content": "found"},
        ],
    ),
    "/v1/responses": (
        "input",
        [
            {"type": "function_call", "call_id": "call_0", "name": "find_code", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_0", "output": [{"type": "input_text", "text": "found"}]},
        ],
    ),
    "/v1beta/models/gemini:generateContent": (
        "contents",
        [
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "mcp__cleats__find_code", "response": {"output": "found"}}}],
            }
        ],
    ),
}


@pytest.fixture
def session() -> ScriptedSession:
    return ScriptedSession(FULL_SCRIPT[:1])


@pytest.fixture
def model(session: ScriptedSession, tmp_path: Path) -> Iterator[ScriptedModel]:
    with serve_model(ScriptedModel(session.choose_reply, tmp_path / "requests")) as served:
        yield served


def post(model: ScriptedModel, path: str, body: dict[str, Any]) -> str:
    with closing(http.client.HTTPConnection(urlsplit(model.url).netloc, timeout=30)) as connection:
        connection.request("POST", path, json.dumps(body))
        return connection.getresponse().read().decode()


@pytest.mark.parametrize("is_streaming", [False, True])
@pytest.mark.parametrize("path", FIRST_REQUESTS)
def test_the_model_calls_a_tool_reads_the_result_and_ends(
    path: str, is_streaming: bool, session: ScriptedSession, model: ScriptedModel
) -> None:
    first = {**FIRST_REQUESTS[path], "stream": is_streaming}
    key, results = RESULTS[path]
    address = path.replace(":generate", ":streamGenerate") if is_streaming else path

    call = post(model, address, first)
    end = post(model, address, {**first, key: [*first[key], *results]})

    assert "find_code" in call
    assert "how is money returned" in call
    assert call.startswith(("event:", "data:")) is is_streaming
    assert "Done." in end
    assert session.answers == ["found"]
    assert judge_descriptions(session) == ""
    assert judge_tools(session) == "not offered: grep_code, skill"


def test_arguments_without_a_description_are_a_problem(session: ScriptedSession, model: ScriptedModel) -> None:
    bare = {"type": "object", "properties": {"query": {"type": "string"}}}
    post(model, "/v1/messages", {"messages": [], "tools": [{**TOOL_FIELDS, "input_schema": bare}]})

    assert judge_descriptions(session) == "without description: find_code.query"


def test_a_deferred_tool_is_unknown_until_it_is_referenced(session: ScriptedSession, model: ScriptedModel) -> None:
    deferred = {**TOOL_FIELDS, "input_schema": SCHEMA, "defer_loading": True}
    search = {"name": "ToolSearch", "input_schema": {}}

    call = post(model, "/v1/messages", {"messages": [], "tools": [search, deferred]})

    assert "ToolSearch" in call
    assert judge_tools(session).startswith("not offered: find_code")


def test_another_host_is_refused_and_recorded(model: ScriptedModel) -> None:
    answer = post(model, "http://example.org/v1/messages", {"messages": []})

    assert "only this machine" in answer
    assert model.foreign_hosts == {"example.org"}


@pytest.mark.parametrize(
    ("judge", "answer"),
    [
        (judge_whole_answer, "5 matching lines; lines 1-2 of 5; next: offset=2\na.py\n 1: def one():"),
        (judge_whole_answer, "... 95943 bytes truncated ..."),
        (judge_cut_answer, "5 matching lines; lines 1-2 of 5; next: offset=2"),
        (judge_cut_answer, "a.py\n 1: def one():"),
        (judge_progress, "No index yet; ranked by words from a live scan.\nbilling/refunds.py"),
        (judge_progress, "No index yet (being built: read 5 %). Nothing found."),
    ],
)
def test_a_lost_or_emptied_answer_is_a_problem(judge: Any, answer: str) -> None:
    assert judge(answer) != ""


def test_every_client_of_install_is_run_or_skipped_with_a_reason() -> None:
    run = {client.name for client in AGENT_CLIENTS}
    skipped = {name for name, client in CLIENTS_BY_NAME.items() if client.title in SKIPPED_CLIENTS}

    assert run | skipped == set(CLIENTS_BY_NAME)
    assert not run & skipped
    for client in AGENT_CLIENTS:
        assert set(client.scopes) == set(CLIENTS_BY_NAME[client.name].files)


def test_the_documentation_names_the_versions_that_are_tested() -> None:
    pins = json.loads((CLIENTS_FOLDER / "package.json").read_text())["dependencies"]

    for client in AGENT_CLIENTS:
        assert f"| {client.title} | tested with {pins[client.package]}" in GETTING_STARTED
    for agent in LIBRARY_AGENTS:
        assert f"{agent.title} {read_version(agent.environment, agent.package)}" in GETTING_STARTED


def test_every_package_of_the_clients_is_locked_with_its_hash() -> None:
    packages = json.loads((CLIENTS_FOLDER / "package-lock.json").read_text())["packages"]
    locked = [package for path, package in packages.items() if path and not package.get("link")]

    assert locked
    assert not [package for package in locked if "integrity" not in package and not package.get("inBundle")]
    for requirements in REQUIREMENTS_FOLDER.glob("*.txt"):
        lines = [line for line in requirements.read_text().splitlines() if "==" in line and not line.startswith(" ")]
        assert lines
        assert all(line.endswith("\\") for line in lines)

"""What the agents share: the registration of Cleats, the model's address, and a loop for libraries that have none."""

import json
import os
import urllib.request
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

MODEL_NAME = "scripted"
MODEL_URL = os.environ["MODEL_URL"]
PROMPT = "Find out how refunds are paid."
MAX_TURNS = 20


def read_registration() -> dict[str, Any]:
    """Return the entry that `cleats install` wrote into the project's file, with one more setting.

    Most libraries raise an error of the protocol instead of showing it to the model, so a wrong
    argument shall be an answer.
    """
    document = json.loads(Path(os.environ["REGISTRATION_FILE"]).read_text())
    entry: dict[str, Any] = document["mcpServers"]["cleats"]
    env = {**os.environ, **entry.get("env", {}), "CLEATS_VALIDATION_ERRORS": "tool"}
    return {"command": entry["command"], "args": entry["args"], "env": env}


def make_function(name: str, description: str | None, schema: Any) -> dict[str, Any]:
    """Return a tool in the form of Chat Completions."""
    return {"type": "function", "function": {"name": name, "description": description or "", "parameters": schema}}


async def run_loop(functions: Sequence[dict[str, Any]], call_tool: Callable[[str, Any], Awaitable[str]]) -> None:
    """Ask the model and make its calls until it is done."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": PROMPT}]
    for _ in range(MAX_TURNS):
        message = _ask_model({"model": MODEL_NAME, "messages": messages, "tools": list(functions)})
        messages.append(message)
        if not message.get("tool_calls"):
            return
        for call in message["tool_calls"]:
            text = await call_tool(call["function"]["name"], json.loads(call["function"]["arguments"]))
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})


def _ask_model(body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(
        f"{MODEL_URL}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        message: dict[str, Any] = json.load(response)["choices"][0]["message"]
    return message

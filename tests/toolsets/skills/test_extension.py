"""Tests of the official skills extension, resources and prompts over MCP."""

import base64
import json
from contextlib import AbstractContextManager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from anyio import fail_after
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from tests.support.golden_files import compare_golden_file
from tests.support.mcp_client import ENVELOPE_META, ServerPeer, start_server
from tests.support.skills import SERVE_COMMAND, SkillFolders, request_method, write_old_file, write_skill

EXTENSION_NAME = "io.modelcontextprotocol/skills"


@pytest.fixture
def world(tmp_path: Path) -> SkillFolders:
    return SkillFolders(tmp_path)


def send_stateless_request(peer: ServerPeer, method: str, **params: Any) -> dict[str, Any]:
    peer.send_request(method, method, {**params, "_meta": ENVELOPE_META})
    return peer.wait_for_answer(method)


def test_the_extension_is_announced_with_what_it_needs(world: SkillFolders) -> None:
    with world.serve(ready=False) as peer:
        capabilities = send_stateless_request(peer, "server/discover")["result"]["capabilities"]

    assert capabilities["extensions"] == {EXTENSION_NAME: {"directoryRead": True}}
    assert capabilities["resources"]["listChanged"] is True
    assert capabilities["prompts"] == {"listChanged": True}


def test_a_server_without_skills_announces_none_of_it(tmp_path: Path) -> None:
    world = SkillFolders(tmp_path)

    with _serve_code(world) as peer:
        hello = peer.initialize()
        refusal = request_method(peer, "skills/list")["error"]

    assert hello["capabilities"].keys() == {"tools", "experimental"}
    assert refusal["code"] == -32601


def _serve_code(world: SkillFolders) -> AbstractContextManager[ServerPeer]:
    command = (*SERVE_COMMAND[:-1], "code")
    return start_server(*command, home=world.home, ready=False, **world.environ)


def test_what_goes_over_the_wire_is_the_golden_file(world: SkillFolders) -> None:
    path = world.write_user_skill("pdf", "|\n  Fill in\n  forms", license="MIT", metadata='{version: "1.0", n: 3}')
    write_old_file(path.with_name("references") / "forms.md", "# Forms\n")
    write_old_file(path.with_name("logo.png"), b"\x89PNG")
    world.write_project_skill("deploy", "Ship it")
    uri = "skill://user/claude/pdf"
    requests: list[tuple[str, dict[str, Any]]] = [
        ("skills/list", {}),
        ("skills/get", {"uri": f"{uri}/SKILL.md"}),
        ("skills/get", {"uri": "skill://nobody/SKILL.md"}),
        ("resources/list", {}),
        ("resources/templates/list", {}),
        ("resources/read", {"uri": f"{uri}/SKILL.md"}),
        ("resources/read", {"uri": f"{uri}/logo.png"}),
        ("resources/read", {"uri": f"{uri}/../../../x"}),
        ("resources/directory/read", {"uri": uri}),
        ("resources/directory/read", {"uri": f"{uri}/references"}),
        ("resources/directory/read", {"uri": "skill://user"}),
        ("resources/directory/read", {"uri": f"{uri}/SKILL.md"}),
        ("prompts/list", {}),
        ("prompts/get", {"name": "deploy", "arguments": {"arguments": "now"}}),
        ("prompts/get", {"name": "nobody"}),
    ]

    with world.serve(ready=False) as peer:
        exchanges = []
        for method, params in requests:
            answer = send_stateless_request(peer, method, **params)
            shown_answer = answer.get("result") or {"error": answer["error"]}
            shown_answer.pop("_meta", None)
            exchanges.append({"method": method, "params": params, "answer": shown_answer})

    text = json.dumps(exchanges, indent=1, ensure_ascii=False).replace(str(world.folder), "WORLD")
    compare_golden_file("skills_extension.json", text + "\n")


def test_digests_and_sizes_are_those_of_the_bytes_that_are_read(world: SkillFolders) -> None:
    path = world.write_user_skill("pdf", body="ä\r\n")
    write_old_file(path.with_name("a b?.bin"), bytes(range(256)))

    with world.serve() as peer:
        (entry,) = request_method(peer, "skills/list")["result"]["skills"]
        read_bytes = {
            file["uri"]: request_method(peer, "resources/read", uri=file["uri"])["result"]["contents"][0]
            for file in entry["resources"]
        }

    assert len(read_bytes) == 2
    for file in entry["resources"]:
        contents = read_bytes[file["uri"]]
        data = contents["text"].encode() if "text" in contents else base64.b64decode(contents["blob"])
        assert file["digest"] == f"sha256:{sha256(data).hexdigest()}"
        assert file["size"] == len(data)


@pytest.mark.parametrize(
    ("method", "key"),
    [("skills/list", "skills"), ("resources/list", "resources"), ("prompts/list", "prompts")],
)
def test_long_lists_come_in_pages_that_lose_nothing(world: SkillFolders, method: str, key: str) -> None:
    for number in range(620):
        world.write_user_skill(f"skill-{number:03}")

    with world.serve() as peer:
        pages = []
        cursor: dict[str, str] = {}
        while True:
            result = request_method(peer, method, **cursor)["result"]
            pages.append([item.get("name") or item["uri"] for item in result[key]])
            if "nextCursor" not in result:
                break
            cursor = {"cursor": result["nextCursor"]}
        refusal = request_method(peer, method, cursor="nonsense")["error"]

    all_names = [name for page in pages for name in page]
    assert len(pages) > 1
    assert len(all_names) == len(set(all_names)) == 620
    assert refusal["code"] == -32602


def test_same_names_from_several_places_have_uris_of_their_own(world: SkillFolders) -> None:
    world.write_project_skill("pdf", "The project's")
    world.write_user_skill("pdf", "The user's")
    world.write_plugins(office=["pdf"])

    with world.serve() as peer:
        uris = [entry["uri"] for entry in request_method(peer, "skills/list")["result"]["skills"]]
        shadowed_skill = request_method(peer, "skills/get", uri="skill://user/claude/pdf/SKILL.md")["result"]

    assert uris == [
        "skill://plugin/office/skills/pdf/SKILL.md",
        "skill://project/claude/pdf/SKILL.md",
    ]
    assert shadowed_skill["skill"]["frontmatter"]["description"] == "The user's"


def test_a_skill_that_breaks_a_rule_is_a_tool_only(world: SkillFolders) -> None:
    world.write_user_skill("Wrong")
    world.write_user_skill("colon", "Use when: asked")

    with world.serve() as peer:
        published_skills = request_method(peer, "skills/list")["result"]["skills"]
        resources = request_method(peer, "resources/list")["result"]["resources"]
        prompts = request_method(peer, "prompts/list")["result"]["prompts"]

    assert published_skills == resources == []
    assert [prompt["name"] for prompt in prompts] == ["Wrong", "colon"]


def test_a_skill_with_too_many_files_is_not_published_and_that_is_said(world: SkillFolders) -> None:
    path = world.write_user_skill("big")
    for number in range(512):
        write_old_file(path.with_name(f"{number}.txt"), "")

    with world.serve(CLEATS_SKILL_TOOLS="all") as peer:
        published_skills = request_method(peer, "skills/list")["result"]["skills"]
        peer.send_call(1, "skill_diagnostics")
        diagnostics = peer.wait_for_answer(1)["result"]["content"][0]["text"]

    assert published_skills == []
    assert "[too-large]" in diagnostics


def test_files_behind_a_link_out_of_the_skill_are_not_served(world: SkillFolders) -> None:
    path = world.write_user_skill("pdf")
    secret = write_old_file(world.folder / "secret.txt", "secret")
    path.with_name("link.txt").symlink_to(secret)
    path.with_name("folder").symlink_to(world.folder)
    uri = "skill://user/claude/pdf"

    with world.serve() as peer:
        (entry,) = request_method(peer, "skills/list")["result"]["skills"]
        children = request_method(peer, "resources/directory/read", uri=uri)["result"]["resources"]
        answers = [
            request_method(peer, "resources/read", uri=f"{uri}/{name}")
            for name in ("link.txt", "folder/secret.txt", "%2e%2e/pdf/SKILL.md", "..%2f..%2fx")
        ]

    assert [file["uri"] for file in entry["resources"]] == [f"{uri}/SKILL.md"]
    assert [child["name"] for child in children] == ["pdf"]
    assert [answer["error"]["code"] for answer in answers] == [-32002] * 4


def test_a_prompt_puts_what_was_typed_where_the_skill_wants_it(world: SkillFolders) -> None:
    write_skill(world.claude / "skills" / "fix", body="Fix issue $ARGUMENTS now.\n")

    with world.serve() as peer:
        prompt_result = request_method(peer, "prompts/get", name="fix", arguments={"arguments": "#7"})["result"]

    assert prompt_result["messages"][0]["role"] == "user"
    assert prompt_result["messages"][0]["content"]["text"].endswith("Fix issue #7 now.\n")


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_official_client_finds_loads_and_reads(world: SkillFolders, mode: Any) -> None:
    path = world.write_user_skill("pdf", "Fill in forms")
    environ = {**world.environ, "HOME": str(world.home), "CLEATS_LOG_LEVEL": "error"}
    server = StdioServerParameters(
        command=SERVE_COMMAND[0], args=[*SERVE_COMMAND[1:]], env=environ, cwd=str(world.project)
    )

    with fail_after(60):
        async with Client(server, mode=mode) as client:
            tools = (await client.list_tools()).tools
            result = await client.call_tool("skill", {"name": "pdf"})
            resources = (await client.list_resources()).resources
            read_result = await client.read_resource(resources[0].uri)
            prompt = await client.get_prompt("pdf")

    text = f"Loading: pdf\nBase directory: {path.parent}\n\n{path.read_text()}"
    assert "- pdf: Fill in forms" in (tools[0].description or "")
    assert result.content[0].text == text  # type: ignore[union-attr]
    assert read_result.contents[0].text == path.read_text()  # type: ignore[union-attr]
    assert prompt.messages[0].content.text == text  # type: ignore[union-attr]

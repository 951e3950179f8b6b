"""The official skills extension, resources and prompts, from the same catalogue, over MCP."""

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

from tests.golden_files import check
from tests.peer import ENVELOPE, Peer, started
from tests.skill_world import SERVE, World, answered, skill, write

EXTENSION = "io.modelcontextprotocol/skills"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def stateless(peer: Peer, method: str, **params: Any) -> dict[str, Any]:
    peer.request(method, method, {**params, "_meta": ENVELOPE})
    return peer.answer(method)


def test_the_extension_is_announced_with_what_it_needs(world: World) -> None:
    with world.serving(ready=False) as peer:
        capabilities = stateless(peer, "server/discover")["result"]["capabilities"]

    assert capabilities["extensions"] == {EXTENSION: {"directoryRead": True}}
    assert capabilities["resources"]["listChanged"] is True
    assert capabilities["prompts"] == {"listChanged": True}


def test_a_server_without_skills_announces_none_of_it(tmp_path: Path) -> None:
    world = World(tmp_path)

    with _serving_code(world) as peer:
        hello = peer.initialize()
        refused = answered(peer, "skills/list")["error"]

    assert hello["capabilities"].keys() == {"tools", "experimental"}
    assert refused["code"] == -32601


def _serving_code(world: World) -> AbstractContextManager[Peer]:
    command = (*SERVE[:-1], "code")
    return started(*command, home=world.home, ready=False, **world.environ)


def test_what_goes_over_the_wire_is_the_golden_file(world: World) -> None:
    path = world.user(
        "pdf", "|\n  Fill in\n  forms", license="MIT", metadata='{version: "1.0", n: 3}'
    )
    write(path.with_name("references") / "forms.md", "# Forms\n")
    write(path.with_name("logo.png"), b"\x89PNG")
    world.own("deploy", "Ship it")
    uri = "skill://user/claude/pdf"
    asked: list[tuple[str, dict[str, Any]]] = [
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

    with world.serving(ready=False) as peer:
        said = []
        for method, params in asked:
            answer = stateless(peer, method, **params)
            shown = answer.get("result") or {"error": answer["error"]}
            shown.pop("_meta", None)
            said.append({"method": method, "params": params, "answer": shown})

    text = json.dumps(said, indent=1, ensure_ascii=False).replace(str(world.folder), "WORLD")
    check("skills_extension.json", text + "\n")


def test_digests_and_sizes_are_those_of_the_bytes_that_are_read(world: World) -> None:
    path = world.user("pdf", body="ä\r\n")
    write(path.with_name("a b?.bin"), bytes(range(256)))

    with world.serving() as peer:
        (entry,) = answered(peer, "skills/list")["result"]["skills"]
        read = {
            file["uri"]: answered(peer, "resources/read", uri=file["uri"])["result"]["contents"][0]
            for file in entry["resources"]
        }

    assert len(read) == 2
    for file in entry["resources"]:
        contents = read[file["uri"]]
        data = (
            contents["text"].encode() if "text" in contents else base64.b64decode(contents["blob"])
        )
        assert file["digest"] == f"sha256:{sha256(data).hexdigest()}"
        assert file["size"] == len(data)


@pytest.mark.parametrize(
    ("method", "key"),
    [("skills/list", "skills"), ("resources/list", "resources"), ("prompts/list", "prompts")],
)
def test_long_lists_come_in_pages_that_lose_nothing(world: World, method: str, key: str) -> None:
    for number in range(620):
        world.user(f"skill-{number:03}")

    with world.serving() as peer:
        pages = []
        cursor: dict[str, str] = {}
        while True:
            result = answered(peer, method, **cursor)["result"]
            pages.append([item.get("name") or item["uri"] for item in result[key]])
            if "nextCursor" not in result:
                break
            cursor = {"cursor": result["nextCursor"]}
        refused = answered(peer, method, cursor="nonsense")["error"]

    everything = [name for page in pages for name in page]
    assert len(pages) > 1
    assert len(everything) == len(set(everything)) == 620
    assert refused["code"] == -32602


def test_same_names_from_several_places_have_uris_of_their_own(world: World) -> None:
    world.own("pdf", "The project's")
    world.user("pdf", "The user's")
    world.plugins(office=["pdf"])

    with world.serving() as peer:
        listed = [entry["uri"] for entry in answered(peer, "skills/list")["result"]["skills"]]
        hidden = answered(peer, "skills/get", uri="skill://user/claude/pdf/SKILL.md")["result"]

    assert listed == [
        "skill://plugin/office/skills/pdf/SKILL.md",
        "skill://project/claude/pdf/SKILL.md",
    ]
    assert hidden["skill"]["frontmatter"]["description"] == "The user's"


def test_a_skill_that_breaks_a_rule_is_a_tool_only(world: World) -> None:
    world.user("Wrong")
    world.user("colon", "Use when: asked")

    with world.serving() as peer:
        published = answered(peer, "skills/list")["result"]["skills"]
        resources = answered(peer, "resources/list")["result"]["resources"]
        prompts = answered(peer, "prompts/list")["result"]["prompts"]

    assert published == resources == []
    assert [prompt["name"] for prompt in prompts] == ["Wrong", "colon"]


def test_a_skill_with_too_many_files_is_not_published_and_that_is_said(world: World) -> None:
    path = world.user("big")
    for number in range(512):
        write(path.with_name(f"{number}.txt"), "")

    with world.serving() as peer:
        published = answered(peer, "skills/list")["result"]["skills"]
        peer.call(1, "skill_diagnostics")
        told = peer.answer(1)["result"]["content"][0]["text"]

    assert published == []
    assert "[too-large]" in told


def test_files_behind_a_link_out_of_the_skill_are_not_served(world: World) -> None:
    path = world.user("pdf")
    secret = write(world.folder / "secret.txt", "secret")
    path.with_name("link.txt").symlink_to(secret)
    path.with_name("folder").symlink_to(world.folder)
    uri = "skill://user/claude/pdf"

    with world.serving() as peer:
        (entry,) = answered(peer, "skills/list")["result"]["skills"]
        listed = answered(peer, "resources/directory/read", uri=uri)["result"]["resources"]
        answers = [
            answered(peer, "resources/read", uri=f"{uri}/{name}")
            for name in ("link.txt", "folder/secret.txt", "%2e%2e/pdf/SKILL.md", "..%2f..%2fx")
        ]

    assert [file["uri"] for file in entry["resources"]] == [f"{uri}/SKILL.md"]
    assert [child["name"] for child in listed] == ["pdf"]
    assert [answer["error"]["code"] for answer in answers] == [-32002] * 4


def test_a_prompt_puts_what_was_typed_where_the_skill_wants_it(world: World) -> None:
    skill(world.claude / "skills" / "fix", body="Fix issue $ARGUMENTS now.\n")

    with world.serving() as peer:
        got = answered(peer, "prompts/get", name="fix", arguments={"arguments": "#7"})["result"]

    assert got["messages"][0]["role"] == "user"
    assert got["messages"][0]["content"]["text"].endswith("Fix issue #7 now.\n")


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_official_client_finds_loads_and_reads(world: World, mode: Any) -> None:
    path = world.user("pdf", "Fill in forms")
    environ = {**world.environ, "HOME": str(world.home), "CLEATS_LOG_LEVEL": "error"}
    server = StdioServerParameters(
        command=SERVE[0], args=[*SERVE[1:]], env=environ, cwd=str(world.project)
    )

    with fail_after(60):
        async with Client(server, mode=mode) as client:
            tools = (await client.list_tools()).tools
            result = await client.call_tool("skill", {"name": "pdf"})
            resources = (await client.list_resources()).resources
            read = await client.read_resource(resources[0].uri)
            prompt = await client.get_prompt("pdf")

    text = f"Loading: pdf\nBase directory: {path.parent}\n\n{path.read_text()}"
    assert "- pdf: Fill in forms" in (tools[0].description or "")
    assert result.content[0].text == text  # type: ignore[union-attr]
    assert read.contents[0].text == path.read_text()  # type: ignore[union-attr]
    assert prompt.messages[0].content.text == text  # type: ignore[union-attr]

"""Tests of the `skill` tool over MCP, from a real process that reads real files."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.golden_files import compare_golden_file
from tests.support.mcp_client import ServerPeer, start_server
from tests.support.requirements import requirement
from tests.support.shell import Shell
from tests.support.skills import (
    LONG_AGO,
    SkillFolders,
    call_tool,
    load_skill,
    read_skill_description,
    replace_file,
    request_method,
    write_old_file,
    write_skill,
)
from tests.support.waiting import wait_until

SKILL_LIST_TEXT = """\
Load a skill by name to get specialized instructions.

Available skills:
- deploy: Ship the project
- bun: Enhanced documentation skill for 'bun'
- user: 用户的全局技能,必读!
- example-skills:pdf: Comprehensive PDF manipulation toolkit"""


@pytest.fixture
def world(tmp_path: Path) -> SkillFolders:
    return SkillFolders(tmp_path)


@requirement(
    "c:start:stdin",
    "c:start:stdout",
    "c:start:stderr",
    "c:start:protocol",
    "c:init:scan",
    "c:init:registry",
    "c:init:progress",
)
def test_the_server_finds_the_skills_when_it_starts_and_says_so_on_stderr(world: SkillFolders) -> None:
    world.write_user_skill("bun")
    world.write_project_skill("deploy")

    with world.serve(ready=False) as peer:
        hello = peer.initialize()
        listed_tools = request_method(peer, "tools/list")["result"]["tools"]
        peer.close_input()
        assert peer.wait_for_exit() == 0

    assert hello["serverInfo"]["name"] == "cleats"
    assert [tool["name"] for tool in listed_tools] == ["skill"]
    assert b"skills.scan" in peer.stderr
    assert b"skills.found skills=2 sources=2" in peer.stderr


@requirement("c:tool:name", "c:tool:list", "c:tool:input", "c:dynamic:kinds", "c:dynamic:format")
def test_the_description_lists_every_skill_in_the_format_of_the_spec(world: SkillFolders) -> None:
    world.write_user_skill("user", "用户的全局技能,必读!")
    world.write_user_skill("bun", "Enhanced documentation skill for 'bun'")
    world.write_project_skill("deploy", "Ship the project")
    world.write_plugins(example_skills=["pdf"])
    plugin = world.claude / "plugins" / "cache" / "example-skills" / "skills" / "pdf"
    write_skill(plugin, "Comprehensive PDF manipulation toolkit")

    with world.serve() as peer:
        tools = request_method(peer, "tools/list")["result"]["tools"]

    [tool] = tools
    assert tool["name"] == "skill"
    assert tool["description"] == SKILL_LIST_TEXT
    assert tool["inputSchema"]["required"] == ["name"]
    assert tool["inputSchema"]["properties"]["name"]["type"] == "string"


@pytest.mark.parametrize("toolsets", [("skills",), ()])
def test_the_other_tools_are_served_on_request_and_unknown_otherwise(
    world: SkillFolders, toolsets: tuple[str, ...]
) -> None:
    names_by_setting = {}
    for setting in ("skill", "all"):
        environ: dict[str, Any] = {**world.environ, "CLEATS_SKILL_TOOLS": setting}
        command = (sys.executable, "-m", "cleats", "serve", *toolsets)
        with start_server(*command, home=world.home, **environ) as peer:
            tools = request_method(peer, "tools/list")["result"]["tools"]
            peer.send_call("search", "skill_search", query="x")
            answer = peer.wait_for_answer("search")
        names = [tool["name"] for tool in tools if tool["name"].startswith("skill")]
        names_by_setting[setting] = (names, "result" in answer)

    assert names_by_setting == {
        "skill": (["skill"], False),
        "all": (["skill", "skill_diagnostics", "skill_file", "skill_search"], True),
    }


@requirement("c:load:any-case", "c:load:content", "c:load:base", "c:content:header")
@pytest.mark.parametrize("name", ["user", "USER", " User "])
def test_a_skill_is_loaded_by_its_name_in_any_case(world: SkillFolders, name: str) -> None:
    path = world.write_user_skill("user", "Read this first", body="# Rules\n\nBe kind.\n")

    with world.serve() as peer:
        text = load_skill(peer, name)

    assert text == (
        f"Loading: user\nBase directory: {path.parent}\n\n"
        "---\nname: user\ndescription: Read this first\n---\n\n# Rules\n\nBe kind.\n"
    )


@requirement("c:load:any-case", "c:full-name:found", "c:short-name:found")
def test_a_skill_with_capitals_in_its_name_is_found_in_any_case_too(world: SkillFolders) -> None:
    names = ["own-words", "OWN-WORDS", "office:pdf", "pdf", "Office:Pdf"]
    world.write_user_skill("Own-Words")
    world.write_plugins(OFFICE=["PDF"])

    with world.serve() as peer:
        first_lines = [load_skill(peer, name).splitlines()[0] for name in names]

    assert first_lines == ["Loading: Own-Words"] * 2 + ["Loading: OFFICE:PDF"] * 3


@requirement(
    "c:full-name:found",
    "c:full-name:content",
    "c:short-name:found",
    "c:short-name:content",
)
@pytest.mark.parametrize("name", ["example-skills:pdf", "Example-Skills:PDF", "pdf"])
def test_a_plugins_skill_is_loaded_by_its_full_and_by_its_short_name(world: SkillFolders, name: str) -> None:
    world.write_plugins(example_skills=["pdf", "docx"])

    with world.serve() as peer:
        text = load_skill(peer, name)

    assert text.startswith("Loading: example-skills:pdf\nBase directory: ")
    assert text.endswith("---\nname: pdf\ndescription: Knows pdf\n---\n\nDo it.\n")


@requirement("c:ambiguous:error", "c:ambiguous:lists", "c:ambiguous:suggests")
def test_a_short_name_of_two_plugins_is_an_error_with_their_full_names(world: SkillFolders) -> None:
    world.write_plugins(office=["pdf"], print=["pdf"])

    with world.serve() as peer:
        result = call_tool(peer, "skill", name="pdf")

    assert result["isError"] is True
    assert result["structuredContent"]["code"] == "INVALID_REQUEST"
    assert result["structuredContent"]["matches"] == ["office:pdf", "print:pdf"]
    assert result["content"][0]["text"] == (
        "'pdf' is ambiguous, 2 skills have it: office:pdf, print:pdf. Use a full name, such as 'office:pdf'."
    )


def test_a_short_name_goes_to_the_strongest_place_and_full_names_always_work(
    world: SkillFolders,
) -> None:
    world.write_project_skill("pdf", body="The project's.\n")
    world.write_user_skill("pdf", body="The user's.\n")
    world.write_plugins(office=["pdf"])

    with world.serve() as peer:
        short, plugins, users = (load_skill(peer, n) for n in ("pdf", "office:pdf", "user:pdf"))

    assert short.endswith("The project's.\n")
    assert plugins.startswith("Loading: office:pdf\n")
    assert users.endswith("The user's.\n")


@requirement("c:not-found:error", "c:not-found:similar", "c:not-found:format")
@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("pfd", "pdf"),
        ("xls", "xlsx"),
        ("relase-notes", "release-notes"),
        ("notes", "release-notes"),
    ],
)
def test_a_name_that_no_skill_has_is_answered_with_the_nearest(world: SkillFolders, name: str, near: str) -> None:
    for skill_name in ("pdf", "xlsx", "release-notes", "kubernetes"):
        world.write_user_skill(skill_name)

    with world.serve() as peer:
        result = call_tool(peer, "skill", name=name)

    assert result["isError"] is True
    assert result["structuredContent"] == {
        "code": "NOT_FOUND",
        "message": f"Skill not found: {name!r}. Did you mean: {near}?",
        "suggestions": [near],
    }
    assert near in result["content"][0]["text"]


def test_a_skill_asked_for_by_its_folder_is_answered_with_its_name(world: SkillFolders) -> None:
    write_skill(world.claude / "skills" / "folder", name="quite-another")
    world.write_user_skill("folders")

    with world.serve() as peer:
        result = call_tool(peer, "skill", name="Folder")

    assert result["structuredContent"]["suggestions"] == ["quite-another", "folders"]


def test_a_skill_that_is_broken_is_not_just_unknown(world: SkillFolders) -> None:
    path = world.write_user_skill("tabs")
    path.write_text("---\n\tname: tabs\n\tdescription: d\n---\n")
    os.utime(path, (LONG_AGO, LONG_AGO))
    world.write_user_skill("other")

    with world.serve() as peer:
        result = call_tool(peer, "skill", name="Tabs")

    message = result["content"][0]["text"]
    assert result["structuredContent"]["code"] == "NOT_FOUND"
    assert f"Skill not found: 'Tabs'. {path} cannot be used, because its front matter" in message
    assert "Indent with spaces; YAML does not allow tabs. `cleats skills validate` lists all" in message


def test_one_call_says_once_that_there_are_broken_skills(world: SkillFolders) -> None:
    for name in ("a", "b", "c"):
        path = world.write_user_skill(name)
        path.write_text("no front matter")
        os.utime(path, (LONG_AGO, LONG_AGO))
    first = world.claude / "skills" / "a" / "SKILL.md"

    process = Shell(world.project).run("call", "skill", '{"name": "x"}', **world.environ)

    [line] = [stderr_line for stderr_line in process.stderr.splitlines() if "WARNING" in stderr_line]
    assert line.endswith(f"skills.broken count=3 first={first}: run `cleats skills validate` to see all problems")


def test_without_anything_near_the_error_says_where_the_names_are_and_names_no_other_tool(world: SkillFolders) -> None:
    world.write_user_skill("pdf")

    with world.serve() as peer:
        result = call_tool(peer, "skill", name="thermodynamics")

    assert result["structuredContent"]["suggestions"] == []
    text = result["content"][0]["text"]
    assert "The description of this tool lists the names." in text
    assert "skill_" not in text


@requirement("c:content:file", "c:exact:lines", "c:exact:code", "c:exact:indent", "c:exact:utf8")
@pytest.mark.parametrize(
    "text",
    [
        "---\nname: odd\ndescription: d\n---\n\n```py\n\tdef f():\n        pass  \n```\n\n\n",
        "---\r\nname: odd\r\ndescription: d\r\n---\r\n\r\nline\r\nline\r",
        "\ufeff---\nname: odd\ndescription: d\n---\nno newline at the end",
        '---\nname: odd\ndescription: d\n---\nüñí 日本語 🎉 \u2028 \x7f \\n </x> "q" $ARGUMENTS\n',
    ],
)
def test_the_file_follows_byte_for_byte(world: SkillFolders, text: str) -> None:
    path = write_old_file(world.claude / "skills" / "odd" / "SKILL.md", text)

    with world.serve() as peer:
        answer = load_skill(peer, "odd")

    assert answer == f"Loading: odd\nBase directory: {path.parent}\n\n{text}"


@requirement("c:no-name:error", "c:no-name:says", "c:no-name:code")
def test_a_call_without_a_name_is_refused_as_invalid_params(world: SkillFolders) -> None:
    with world.serve() as peer:
        peer.send_call(1, "skill")
        error = peer.wait_for_answer(1)["error"]

    assert error["code"] == -32602
    assert error["data"]["code"] == "INVALID_REQUEST"
    assert 'missing required property "name"' in error["message"]


@requirement("c:internal:error", "c:internal:message", "c:internal:logged")
def test_a_file_that_cannot_be_read_is_an_error_with_its_reason_and_a_log(world: SkillFolders) -> None:
    path = world.write_user_skill("pdf")

    with world.serve() as peer:
        path.unlink()
        path.mkdir()
        result = call_tool(peer, "skill", name="pdf")
        wait_until(lambda: b"IsADirectoryError" in peer.stderr)

    assert result["isError"] is True
    assert result["structuredContent"]["code"] == "INTERNAL"
    assert result["structuredContent"]["message"].startswith(f"{path} cannot be read: it is a folder. ")


def test_a_skill_that_is_no_longer_one_is_not_served_in_pieces(world: SkillFolders) -> None:
    path = world.write_user_skill("pdf")

    with world.serve() as peer:
        write_old_file(path, "")
        result = call_tool(peer, "skill", name="pdf")

    assert result["structuredContent"]["code"] == "INTERNAL"
    assert "no front matter" in result["content"][0]["text"]


def test_a_skill_that_vanished_since_the_last_look_is_not_found(world: SkillFolders) -> None:
    path = world.write_user_skill("pdf")
    world.write_user_skill("pdfs")

    with world.serve() as peer:
        path.unlink()
        result = call_tool(peer, "skill", name="pdf")

    assert result["structuredContent"]["code"] == "NOT_FOUND"
    assert result["structuredContent"]["suggestions"] == ["pdfs"]


def test_an_edit_is_seen_at_once_even_between_two_looks(world: SkillFolders) -> None:
    path = world.write_user_skill("pdf", body="Old.\n")

    with world.serve() as peer:
        before = load_skill(peer, "pdf")
        replace_file(path, path.read_text().replace("Old.", "New."))
        after = load_skill(peer, "pdf")

    assert (before.endswith("Old.\n"), after.endswith("New.\n")) == (True, True)


def test_one_broken_skill_hides_no_other_and_is_explained(world: SkillFolders) -> None:
    world.write_user_skill("good")
    write_old_file(world.claude / "skills" / "bare" / "SKILL.md", "No front matter.\n")
    write_old_file(world.claude / "skills" / "mute" / "SKILL.md", "---\nname: mute\n---\n")
    write_old_file(world.claude / "skills" / "latin" / "SKILL.md", b"---\nname: \xff\n---\n")
    os.mkfifo(write_skill(world.claude / "skills" / "pipe").with_name("other"))
    (world.claude / "skills" / "pipe" / "SKILL.md").unlink()
    os.mkfifo(world.claude / "skills" / "pipe" / "SKILL.md")

    with world.serve(CLEATS_SKILL_TOOLS="all") as peer:
        assert read_skill_description(peer).endswith("Available skills:\n- good: Knows good")
        diagnostics = call_tool(peer, "skill_diagnostics")["content"][0]["text"]

    for code in ("front-matter", "no-description", "not-utf8", "unreadable"):
        assert f"error [{code}]" in diagnostics


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_name_on_disk_that_is_no_text_costs_only_what_is_called_so(world: SkillFolders) -> None:
    good = world.write_user_skill("good")
    world.write_user_skill("odd").parent.rename(good.parents[1] / os.fsdecode(b"odd\xff"))
    write_old_file(good.with_name(os.fsdecode(b"notes\xff.md")), "x")
    write_old_file(good.with_name("notes.md"), "x")
    world.write_plugins(example_skills=["pdf"])
    world.write_plugin_manifest({"example-skills@market": {"installPath": "cache/example-skills"}, "\ud800@m": {}})

    with world.serve(CLEATS_SKILL_TOOLS="all") as peer:
        assert read_skill_description(peer).endswith("- good: Knows good\n- example-skills:pdf: Knows pdf")
        diagnostics = call_tool(peer, "skill_diagnostics")["content"][0]["text"]
        files = call_tool(peer, "skill_file", name="good")["content"][0]["text"]
        directory = request_method(peer, "resources/directory/read", uri="skill://user/claude/good")

    assert f"error [place-name] {good.parents[1]}/odd?/SKILL.md" in diagnostics
    assert files == "SKILL.md\nnotes.md"
    assert [resource["name"] for resource in directory["result"]["resources"]] == ["good", "notes.md"]


def test_a_skill_for_people_only_is_hidden_from_models(world: SkillFolders) -> None:
    world.write_user_skill("deploy", **{"disable-model-invocation": "true"})
    world.write_user_skill("style", **{"user-invocable": "false"})

    with world.serve() as peer:
        prompts = request_method(peer, "prompts/list")["result"]["prompts"]
        refusal = call_tool(peer, "skill", name="deploy")

        assert "deploy" not in read_skill_description(peer)
        assert "- style: " in read_skill_description(peer)
        assert refusal["structuredContent"]["code"] == "NOT_FOUND"
        assert [prompt["name"] for prompt in prompts] == ["deploy"]


def test_without_skills_the_tool_is_there_and_says_so(world: SkillFolders) -> None:
    with world.serve() as peer:
        assert read_skill_description(peer).endswith("No skills are installed.")


def call_companion_tools(peer: ServerPeer) -> dict[str, str]:
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "search": ("skill_search", {"query": "acroform"}),
        "search nothing": ("skill_search", {"query": "zzz"}),
        "search typo": ("skill_search", {"query": "spredsheet", "limit": 1}),
        "files": ("skill_file", {"name": "pdf"}),
        "folder": ("skill_file", {"name": "pdf", "path": "references/"}),
        "file": ("skill_file", {"name": "pdf", "path": "references/forms.md"}),
        "no file": ("skill_file", {"name": "pdf", "path": "references/form.md"}),
        "outside": ("skill_file", {"name": "pdf", "path": "../xlsx/SKILL.md"}),
        "link outside": ("skill_file", {"name": "pdf", "path": "secret"}),
        "absolute": ("skill_file", {"name": "pdf", "path": "/etc/hostname"}),
        "diagnostics": ("skill_diagnostics", {"name": "pdf"}),
    }
    return {
        key: "\n".join(str(block.get("text", block)) for block in result["content"])
        for key, (tool, arguments) in calls.items()
        for result in [call_tool(peer, tool, **arguments)]
    }


def test_the_companions_search_read_and_explain(world: SkillFolders) -> None:
    path = world.write_user_skill("pdf", "Fill in forms", body="Uses the AcroForm of a file.\n")
    world.write_user_skill("xlsx", "Work with spreadsheets")
    write_old_file(path.with_name("references") / "forms.md", "# Forms\n")
    path.with_name("secret").symlink_to(world.claude / "skills" / "xlsx" / "SKILL.md")

    with world.serve(CLEATS_SKILL_TOOLS="all") as peer:
        answers = call_companion_tools(peer)

    text = "".join(f"== {key}\n{value}\n" for key, value in answers.items())
    compare_golden_file("skills_companions.txt", text.replace(str(world.folder), "WORLD"))


def test_a_picture_is_served_as_one_and_other_bytes_as_a_blob(world: SkillFolders) -> None:
    path = world.write_user_skill("pdf")
    write_old_file(path.with_name("a.png"), b"\x89PNG\r\n\x1a\n")
    write_old_file(path.with_name("b.bin"), b"\xff\x00")

    with world.serve(CLEATS_SKILL_TOOLS="all") as peer:
        (picture,) = call_tool(peer, "skill_file", name="pdf", path="a.png")["content"]
        (blob,) = call_tool(peer, "skill_file", name="pdf", path="b.bin")["content"]

    assert (picture["type"], picture["mimeType"]) == ("image", "image/png")
    assert blob["resource"]["blob"] == "/wA="


def test_what_is_longer_than_any_of_its_kind_is_answered_and_not_worked_on(world: SkillFolders) -> None:
    """Bound the work: each of these kept the server busy for minutes."""
    world.write_user_skill("pdf")
    many = " ".join(map(str, range(100_000)))

    with world.serve(CLEATS_SKILL_TOOLS="all") as peer:
        file = call_tool(peer, "skill_file", name="pdf", path="a/" * 400_000)
        result = call_tool(peer, "skill_search", query=f"pdf {many}")
        peer.send_request("uri", "resources/read", {"uri": "skill://user/" + "a/" * 400_000})
        resource = peer.wait_for_answer("uri")

    assert file["structuredContent"]["code"] == "INVALID_REQUEST"
    assert result["content"][0]["text"].startswith("- pdf: ")
    assert "error" in resource


def test_a_skill_linked_from_elsewhere_is_found_once(world: SkillFolders) -> None:
    path = write_skill(world.folder / "elsewhere" / "pdf")
    for place in (world.claude / "skills", world.home / ".agents" / "skills"):
        place.mkdir(parents=True)
        (place / "pdf").symlink_to(path.parent)

    with world.serve(CLEATS_SKILL_TOOLS="all") as peer:
        diagnostics = call_tool(peer, "skill_diagnostics")["content"][0]["text"]

        assert read_skill_description(peer).count("- pdf: ") == 1
        assert diagnostics.endswith("0 problems.")

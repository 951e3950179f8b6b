"""Tests of skills that appear, change and disappear while the server runs."""

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats.toolsets.skills import files
from cleats.toolsets.skills import skill as skill_module
from cleats.toolsets.skills.library import CatalogueEdition, SkillLibrary
from cleats.toolsets.skills.refresh import LibraryRefresher
from cleats.toolsets.skills.skill import FileStamp
from tests.support.mcp_client import ENVELOPE_META, ServerPeer, start_server
from tests.support.requirements import requirement
from tests.support.skills import (
    SkillFolders,
    call_tool,
    load_skill,
    read_skill_description,
    replace_file,
    request_method,
    write_skill,
)
from tests.support.waiting import wait_until

QUICK_REFRESH_ENVIRON: dict[str, Any] = {"CLEATS_SKILL_REFRESH": "0.05"}
"""A refresh interval so short that it elapses while a test waits."""


@pytest.fixture
def world(tmp_path: Path) -> SkillFolders:
    return SkillFolders(tmp_path)


def wait_for_notification(peer: ServerPeer, method: str) -> dict[str, Any]:
    """Return the next notification of a method; others may come before it."""
    while (frame := peer.receive()).get("method") != method:
        pass
    return frame


class SteppedLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock a test can set forward."""

    skipped_seconds = 0.0

    def time(self) -> float:
        return super().time() + self.skipped_seconds


@requirement("c:refresh:rescan")
def test_a_new_skill_is_found_when_thirty_seconds_have_passed_and_not_before(world: SkillFolders) -> None:
    world.write_user_skill("old")
    settings = world.build_settings(skill_watch="off")
    library = SkillLibrary(settings)
    refreshes: list[float] = []
    loop = SteppedLoop()

    def count_refresh(refresh: Callable[[], CatalogueEdition] = library.refresh) -> CatalogueEdition:
        started = loop.skipped_seconds
        edition = refresh()
        refreshes.append(started)
        return edition

    async def watch_library() -> list[list[str]]:
        seen_names = []
        vars(library)["refresh"] = count_refresh
        async with LibraryRefresher(library, settings).run(lambda *_lists: None):
            await wait_for_timer()
            world.write_user_skill("fresh")
            for seconds in (25.0, 5.5):
                loop.skipped_seconds += seconds
                await wait_for_timer()
                seen_names.append([skill.name for skill in library.catalogue.skills])
        return seen_names

    async def wait_for_timer() -> None:
        """Let the refresher work until it waits for the timer; a refresh takes a thread."""
        with anyio.fail_after(20):
            while loop.skipped_seconds > 30 and len(refreshes) < 2:
                await asyncio.sleep(0)
        for _ in range(1000):
            await asyncio.sleep(0)

    try:
        seen_names = loop.run_until_complete(watch_library())
    finally:
        loop.close()

    assert seen_names == [["old"], ["fresh", "old"]]
    assert refreshes == [0.0, 30.5]


@requirement(
    "c:refresh:rescan",
    "c:refresh:registry",
    "c:refresh:description",
    "c:dynamic:updated",
    "c:new:registered",
    "c:new:available",
)
def test_every_new_skill_is_listed_announced_and_loaded_after_the_next_look(world: SkillFolders) -> None:
    world.write_user_skill("old")

    with world.serve(**QUICK_REFRESH_ENVIRON) as peer:
        before = read_skill_description(peer)
        world.write_user_skill("fresh", "Just written")
        wait_for_notification(peer, "notifications/tools/list_changed")
        after = read_skill_description(peer)
        text = load_skill(peer, "fresh")
        world.write_user_skill("fresher", "Written later")
        wait_for_notification(peer, "notifications/tools/list_changed")
        later = read_skill_description(peer)

    assert "fresh" not in before
    assert "- fresh: Just written" in after
    assert "- fresher: Written later" in later
    assert text.startswith("Loading: fresh\n")


@requirement("c:modified:loaded", "c:modified:returned")
def test_a_modified_skill_has_its_new_content_after_the_next_look(world: SkillFolders) -> None:
    path = world.write_user_skill("pdf", "Old words")

    with world.serve(**QUICK_REFRESH_ENVIRON) as peer:
        replace_file(path, "---\nname: pdf\ndescription: New words\n---\n\nNew.\n")
        wait_for_notification(peer, "notifications/tools/list_changed")

        assert "- pdf: New words" in read_skill_description(peer)
        assert load_skill(peer, "pdf").endswith("New.\n")


@requirement("c:removed:gone", "c:removed:not-found")
def test_a_removed_skill_is_gone_after_the_next_look(world: SkillFolders) -> None:
    path = world.write_user_skill("pdf")
    world.write_user_skill("docx")

    with world.serve(**QUICK_REFRESH_ENVIRON) as peer:
        path.unlink()
        wait_for_notification(peer, "notifications/tools/list_changed")
        result = call_tool(peer, "skill", name="pdf")

        assert "- pdf" not in read_skill_description(peer)
        assert result["structuredContent"]["code"] == "NOT_FOUND"
        assert "not found" in result["content"][0]["text"]


def test_a_change_is_seen_at_once_where_the_system_reports_it(world: SkillFolders) -> None:
    world.write_user_skill("old")
    hours: dict[str, Any] = {"CLEATS_SKILL_REFRESH": "3600", "CLEATS_SKILL_WATCH": "on"}

    with world.serve(**hours) as peer:
        stop = threading.Event()
        # Nothing says when the system has begun to watch, so the change is made until it is seen.
        touching = threading.Thread(target=_repeat_until_set, args=(stop, lambda: world.write_user_skill("fresh")))
        touching.start()
        try:
            wait_for_notification(peer, "notifications/tools/list_changed")
        finally:
            stop.set()
            touching.join()

        assert "- fresh: " in read_skill_description(peer)


def _repeat_until_set(stop: threading.Event, work: Callable[[], object]) -> None:
    while not stop.wait(0.05):
        work()


def test_a_new_folder_of_skills_is_found_and_watched_from_then_on(world: SkillFolders) -> None:
    with world.serve(**QUICK_REFRESH_ENVIRON) as peer:
        world.write_project_skill("late")
        wait_for_notification(peer, "notifications/tools/list_changed")

        assert "- late: " in read_skill_description(peer)


def test_a_stateless_client_hears_of_it_on_the_stream_that_it_opened(world: SkillFolders) -> None:
    kinds = {"toolsListChanged": True, "resourcesListChanged": True, "promptsListChanged": True}

    with world.serve(ready=False, **QUICK_REFRESH_ENVIRON) as peer:
        subscription_params = {"notifications": kinds, "_meta": ENVELOPE_META}
        peer.send_request("listen", "subscriptions/listen", subscription_params)
        first = peer.receive()
        world.write_user_skill("fresh")
        methods = {peer.receive()["method"] for _ in range(3)}

    assert first["method"] == "notifications/subscriptions/acknowledged"
    assert methods == {
        "notifications/tools/list_changed",
        "notifications/resources/list_changed",
        "notifications/prompts/list_changed",
    }


def test_nothing_is_announced_when_no_list_reads_differently(world: SkillFolders) -> None:
    path = world.write_user_skill("pdf", body="Old text.\n")

    with world.serve(**QUICK_REFRESH_ENVIRON) as peer:
        replace_file(path, path.read_text().replace("Old", "New"))  # the same length: no list shows it
        wait_until(lambda: peer.stderr.count(b"skills.found") > 1)
        peer.close_input()

        assert peer.read_remaining() == []


def test_only_the_list_that_reads_differently_is_announced(world: SkillFolders) -> None:
    path = world.write_user_skill("pdf", body="Short.\n")

    with world.serve(**QUICK_REFRESH_ENVIRON) as peer:
        replace_file(path, path.read_text() + "Longer.\n")
        first = peer.receive()
        peer.close_input()

        assert [frame["method"] for frame in [first, *peer.read_remaining()]] == [
            "notifications/resources/list_changed"
        ]


@contextmanager
def start_slow_server(world: SkillFolders, **extra_environ: str) -> Iterator[ServerPeer]:
    """Start a server whose scans of the disk last until the test lets them end."""
    command = (sys.executable, "-m", "tests.support.servers.slow_skills", "serve", "skills")
    environ: dict[str, Any] = {**world.environ, "CLEATS_SKILL_WATCH": "off", **QUICK_REFRESH_ENVIRON, **extra_environ}
    with start_server(*command, home=world.home, **environ) as peer:
        yield peer


@requirement("c:refreshing:current", "c:refreshing:not-blocked", "c:refreshing:after")
def test_a_request_during_a_refresh_gets_the_old_catalogue_whole_and_at_once(
    world: SkillFolders,
) -> None:
    world.write_user_skill("old")
    hold = world.home / "hold"

    with start_slow_server(world) as peer:
        hold.touch()
        wait_until((world.home / "looking").exists)
        world.write_user_skill("fresh")
        during = read_skill_description(peer)
        text = load_skill(peer, "old")
        refusal = call_tool(peer, "skill", name="fresh")
        hold.unlink()
        wait_for_notification(peer, "notifications/tools/list_changed")
        after = read_skill_description(peer)

    assert "- old: " in during
    assert "fresh" not in during
    assert text.startswith("Loading: old\n")
    assert refusal["isError"] is True
    assert "- fresh: " in after


@requirement("c:concurrent:independent", "c:concurrent:correct", "c:concurrent:registry")
@pytest.mark.parametrize("in_place", [False, True], ids=["atomic", "in place"])
def test_a_hundred_loads_during_continuous_edits_return_whole_files(world: SkillFolders, in_place: bool) -> None:
    names = [f"skill-{number}" for number in range(20)]
    paths = {name: world.write_user_skill(name, body=_build_body(name, 0)) for name in names}
    stop = threading.Event()
    editor = threading.Thread(target=_edit_skills, args=(paths, stop, in_place))

    patient = {"CLEATS_QUEUE": "200", "CLEATS_TIMEOUTS": "skill=90"}
    with start_slow_server(world, CLEATS_SKILL_WATCH="on", **patient) as peer:
        editor.start()
        try:
            for turn in range(3):
                for number in range(100):
                    peer.send_call(f"{turn}-{number}", "skill", name=names[number % 20])
                answers = [peer.wait_for_answer(f"{turn}-{number}") for number in range(100)]
                for number, answer in enumerate(answers):
                    _check_complete(names[number % 20], answer["result"]["content"][0]["text"])
        finally:
            stop.set()
            editor.join()
        assert all(f"- {name}: " in read_skill_description(peer) for name in names)


def test_a_file_is_read_until_it_is_quiet(world: SkillFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write_user_skill("pdf")
    found_skill = SkillLibrary(world.build_settings()).catalogue.find("pdf")
    header = b"---\nname: pdf\ndescription: d\n---\n"
    young, old = FileStamp(1, 1, -1), FileStamp(1, 1, 1)
    reads = [(header, young), (header, young), (header + b"half", young), (header + b"all", old)]
    monkeypatch.setattr(files, "read_stamped", lambda _path: reads.pop(0))
    monkeypatch.setattr(files, "RETRY_PAUSE_SECONDS", 0)

    assert files.load_skill_text(found_skill) == (header + b"all").decode()


def _build_body(name: str, edition: int) -> str:
    line = f"{name} {edition}\n"
    return line * (3000 // len(line)) + f"end of {edition}\n"


def _edit_skills(paths: dict[str, Path], stop: threading.Event, in_place: bool) -> None:
    edition = 0
    while not stop.is_set():
        edition += 1
        for name, path in paths.items():
            text = f"---\nname: {name}\ndescription: Edited\n---\n\n{_build_body(name, edition)}"
            if in_place:
                path.write_text(text)
            else:
                replace_file(path, text)


def _check_complete(name: str, text: str) -> None:
    header, _, file = text.partition("\n\n")
    assert header.startswith(f"Loading: {name}\n")
    body = file.partition("---\n\n")[2]
    edition = int(body.split()[1])
    assert body == _build_body(name, edition)


@requirement(
    "c:sigint:cleanup",
    "c:sigint:log",
    "c:sigint:exit",
    "c:sigterm:cleanup",
    "c:sigterm:exit",
)
@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM", "end of input"])
def test_the_server_stops_looking_says_so_and_exits_with_zero(world: SkillFolders, how: str) -> None:
    world.write_user_skill("pdf")

    with world.serve(CLEATS_SKILL_WATCH="on", **QUICK_REFRESH_ENVIRON) as peer:
        load_skill(peer, "pdf")
        if how == "end of input":
            peer.close_input()
        else:
            peer.send_signal(signal.Signals[how])

        assert peer.wait_for_exit() == 0
        assert b"skills.end" in peer.stderr
        assert f"serve.end reason={how}".encode() in peer.stderr


def test_a_skill_switched_off_meanwhile_disappears(world: SkillFolders) -> None:
    world.write_user_skill("pdf")
    world.write_user_skill("docx")

    with world.serve(CLEATS_DATA_DIR=str(world.folder / "data"), **QUICK_REFRESH_ENVIRON) as peer:
        switches = world.folder / "data" / "skills" / "disabled.json"
        switches.parent.mkdir(parents=True)
        switches.write_text(json.dumps(["pdf"]))
        wait_for_notification(peer, "notifications/tools/list_changed")

        assert "- pdf: " not in read_skill_description(peer)


def test_a_skill_added_after_the_clients_list_loads_all_the_same(world: SkillFolders) -> None:
    world.write_user_skill("old")

    with world.serve(**QUICK_REFRESH_ENVIRON) as peer:
        read_skill_description(peer)
        write_skill(world.claude / "skills" / "fresh")
        wait_until(lambda: not call_tool(peer, "skill", name="fresh")["isError"])


def test_a_file_whose_time_is_turned_back_is_read_again(world: SkillFolders) -> None:
    path = world.write_user_skill("pdf", "First")

    with world.serve(**QUICK_REFRESH_ENVIRON) as peer:
        world.write_user_skill("pdf", "Later")
        os.utime(path, (1, 1))
        wait_for_notification(peer, "notifications/tools/list_changed")

        assert "- pdf: Later" in read_skill_description(peer)


def test_lists_other_than_tools_are_announced_too(world: SkillFolders) -> None:
    with world.serve(**QUICK_REFRESH_ENVIRON) as peer:
        world.write_user_skill("fresh")
        wait_for_notification(peer, "notifications/prompts/list_changed")
        resources = request_method(peer, "resources/list")["result"]["resources"]

    assert [resource["name"] for resource in resources] == ["fresh"]


def test_a_file_seen_half_written_is_read_again_before_an_error_is_answered(
    world: SkillFolders, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = world.write_user_skill("pdf")
    skill = SkillLibrary(world.build_settings()).catalogue.find("pdf")
    data, stamp = skill_module.read_stamped(str(path))
    contents = [data[:9], data]
    monkeypatch.setattr(files, "read_stamped", lambda _path: (contents.pop(0), stamp))

    text = files.load_skill_text(skill)

    assert text == data.decode()
    assert contents == []


def test_a_catalogue_reads_a_file_seen_half_written_again(world: SkillFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    path = world.write_user_skill("pdf")
    data, stamp = skill_module.read_stamped(str(path))
    contents = [data[:9], data]
    monkeypatch.setattr(skill_module, "read_stamped", lambda _path: (contents.pop(0), stamp))

    catalogue = SkillLibrary(world.build_settings()).catalogue

    assert [skill.name for skill in catalogue.skills] == ["pdf"]
    assert catalogue.problems == []

"""Skills come, change and go while the server runs."""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cleats.settings import Settings
from cleats.toolsets.skills import files
from cleats.toolsets.skills.library import Library
from cleats.toolsets.skills.skill import Stamp
from tests.peer import ENVELOPE, Peer, started
from tests.requirements import requirement
from tests.skill_world import World, answered, asked, description, loaded, replaced, skill
from tests.waiting import until

QUICKLY: dict[str, Any] = {"CLEATS_SKILL_REFRESH": "0.05"}
"""A timer that rings while a test waits."""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def announced(peer: Peer, method: str) -> dict[str, Any]:
    """The next notification of a kind; others may come before it."""
    while (frame := peer.receive()).get("method") != method:
        pass
    return frame


@requirement("c:refresh:rescan")
def test_the_timer_is_set_to_thirty_seconds() -> None:
    assert Settings().skill_refresh == 30.0


@requirement(
    "c:refresh:rescan",
    "c:refresh:registry",
    "c:refresh:description",
    "c:dynamic:updated",
    "c:new:registered",
    "c:new:available",
)
def test_every_new_skill_is_listed_announced_and_loaded_after_the_next_look(world: World) -> None:
    world.user("old")

    with world.serving(**QUICKLY) as peer:
        before = description(peer)
        world.user("fresh", "Just written")
        announced(peer, "notifications/tools/list_changed")
        after = description(peer)
        text = loaded(peer, "fresh")
        world.user("fresher", "Written later")
        announced(peer, "notifications/tools/list_changed")
        later = description(peer)

    assert "fresh" not in before
    assert "- fresh: Just written" in after
    assert "- fresher: Written later" in later
    assert text.startswith("Loading: fresh\n")


@requirement("c:modified:loaded", "c:modified:returned")
def test_a_modified_skill_has_its_new_content_after_the_next_look(world: World) -> None:
    path = world.user("pdf", "Old words")

    with world.serving(**QUICKLY) as peer:
        replaced(path, "---\nname: pdf\ndescription: New words\n---\n\nNew.\n")
        announced(peer, "notifications/tools/list_changed")

        assert "- pdf: New words" in description(peer)
        assert loaded(peer, "pdf").endswith("New.\n")


@requirement("c:removed:gone", "c:removed:not-found")
def test_a_removed_skill_is_gone_after_the_next_look(world: World) -> None:
    path = world.user("pdf")
    world.user("docx")

    with world.serving(**QUICKLY) as peer:
        path.unlink()
        announced(peer, "notifications/tools/list_changed")
        result = asked(peer, "skill", name="pdf")

        assert "- pdf" not in description(peer)
        assert result["structuredContent"]["code"] == "NOT_FOUND"
        assert "not found" in result["content"][0]["text"]


def test_a_change_is_seen_at_once_where_the_system_reports_it(world: World) -> None:
    world.user("old")
    hours: dict[str, Any] = {"CLEATS_SKILL_REFRESH": "3600", "CLEATS_SKILL_WATCH": "on"}

    with world.serving(**hours) as peer:
        stop = threading.Event()
        # Nothing says when the system has begun to watch, so the change is made until it is seen.
        touching = threading.Thread(target=_until_set, args=(stop, lambda: world.user("fresh")))
        touching.start()
        try:
            announced(peer, "notifications/tools/list_changed")
        finally:
            stop.set()
            touching.join()

        assert "- fresh: " in description(peer)


def _until_set(stop: threading.Event, work: Callable[[], object]) -> None:
    while not stop.wait(0.05):
        work()


def test_a_new_folder_of_skills_is_found_and_watched_from_then_on(world: World) -> None:
    with world.serving(**QUICKLY) as peer:
        world.own("late")
        announced(peer, "notifications/tools/list_changed")

        assert "- late: " in description(peer)


def test_a_stateless_client_hears_of_it_on_the_stream_that_it_opened(world: World) -> None:
    kinds = {"toolsListChanged": True, "resourcesListChanged": True, "promptsListChanged": True}

    with world.serving(ready=False, **QUICKLY) as peer:
        wanted = {"notifications": kinds, "_meta": ENVELOPE}
        peer.request("listen", "subscriptions/listen", wanted)
        first = peer.receive()
        world.user("fresh")
        heard = {peer.receive()["method"] for _ in range(3)}

    assert first["method"] == "notifications/subscriptions/acknowledged"
    assert heard == {
        "notifications/tools/list_changed",
        "notifications/resources/list_changed",
        "notifications/prompts/list_changed",
    }


def test_nothing_is_announced_when_no_list_reads_differently(world: World) -> None:
    path = world.user("pdf", body="Old text.\n")

    with world.serving(**QUICKLY) as peer:
        replaced(path, path.read_text().replace("Old", "New"))  # the same length: no list shows it
        until(lambda: peer.stderr.count(b"skills.found") > 1)
        peer.end_input()

        assert peer.rest() == []


def test_only_the_list_that_reads_differently_is_announced(world: World) -> None:
    path = world.user("pdf", body="Short.\n")

    with world.serving(**QUICKLY) as peer:
        replaced(path, path.read_text() + "Longer.\n")
        first = peer.receive()
        peer.end_input()

        assert [frame["method"] for frame in [first, *peer.rest()]] == [
            "notifications/resources/list_changed"
        ]


@contextmanager
def slow(world: World, **more: str) -> Iterator[Peer]:
    """A server whose looks at the disk last until the test lets them end."""
    command = (sys.executable, "-m", "tests.servers.slow_skills", "serve", "skills")
    environ: dict[str, Any] = {**world.environ, "CLEATS_SKILL_WATCH": "off", **QUICKLY, **more}
    with started(*command, home=world.home, **environ) as peer:
        yield peer


@requirement("c:refreshing:current", "c:refreshing:not-blocked", "c:refreshing:after")
def test_a_request_during_a_refresh_gets_the_old_catalogue_whole_and_at_once(
    world: World,
) -> None:
    world.user("old")
    hold = world.home / "hold"

    with slow(world) as peer:
        hold.touch()
        until((world.home / "looking").exists)
        world.user("fresh")
        during = description(peer)
        text = loaded(peer, "old")
        refused = asked(peer, "skill", name="fresh")
        hold.unlink()
        announced(peer, "notifications/tools/list_changed")
        after = description(peer)

    assert "- old: " in during
    assert "fresh" not in during
    assert text.startswith("Loading: old\n")
    assert refused["isError"] is True
    assert "- fresh: " in after


@requirement("c:concurrent:independent", "c:concurrent:correct", "c:concurrent:registry")
@pytest.mark.parametrize("in_place", [False, True], ids=["atomic", "in place"])
def test_a_hundred_loads_during_continuous_edits_return_whole_files(
    world: World, in_place: bool
) -> None:
    names = [f"skill-{number}" for number in range(20)]
    paths = {name: world.user(name, body=_body(name, 0)) for name in names}
    stop = threading.Event()
    editor = threading.Thread(target=_edit, args=(paths, stop, in_place))

    patient = {"CLEATS_QUEUE": "200", "CLEATS_TIMEOUTS": "skill=90"}
    with slow(world, CLEATS_SKILL_WATCH="on", **patient) as peer:
        editor.start()
        try:
            for turn in range(3):
                for number in range(100):
                    peer.call(f"{turn}-{number}", "skill", name=names[number % 20])
                answers = [peer.answer(f"{turn}-{number}") for number in range(100)]
                for number, answer in enumerate(answers):
                    _check_whole(names[number % 20], answer["result"]["content"][0]["text"])
        finally:
            stop.set()
            editor.join()
        assert all(f"- {name}: " in description(peer) for name in names)


def test_a_file_is_read_until_it_is_quiet(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.user("pdf")
    found = Library(world.settings()).catalogue.find("pdf")
    header = b"---\nname: pdf\ndescription: d\n---\n"
    young, old = Stamp(1, 1, -1), Stamp(1, 1, 1)
    reads = [(header, young), (header, young), (header + b"half", young), (header + b"all", old)]
    monkeypatch.setattr(files, "read_stamped", lambda _path: reads.pop(0))
    monkeypatch.setattr(files, "PAUSE", 0)

    assert files.load_text(found) == (header + b"all").decode()


def _body(name: str, edition: int) -> str:
    line = f"{name} {edition}\n"
    return line * (3000 // len(line)) + f"end of {edition}\n"


def _edit(paths: dict[str, Path], stop: threading.Event, in_place: bool) -> None:
    edition = 0
    while not stop.is_set():
        edition += 1
        for name, path in paths.items():
            text = f"---\nname: {name}\ndescription: Edited\n---\n\n{_body(name, edition)}"
            if in_place:
                path.write_text(text)
            else:
                replaced(path, text)


def _check_whole(name: str, text: str) -> None:
    header, _, file = text.partition("\n\n")
    assert header.startswith(f"Loading: {name}\n")
    body = file.partition("---\n\n")[2]
    edition = int(body.split()[1])
    assert body == _body(name, edition)


@requirement(
    "c:sigint:cleanup",
    "c:sigint:log",
    "c:sigint:exit",
    "c:sigterm:cleanup",
    "c:sigterm:exit",
)
@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM", "end of input"])
def test_the_server_stops_looking_says_so_and_exits_with_zero(world: World, how: str) -> None:
    world.user("pdf")

    with world.serving(CLEATS_SKILL_WATCH="on", **QUICKLY) as peer:
        loaded(peer, "pdf")
        if how == "end of input":
            peer.end_input()
        else:
            peer.signal(signal.Signals[how])

        assert peer.wait() == 0
        assert b"skills.end" in peer.stderr
        assert f"serve.end reason={how}".encode() in peer.stderr


def test_a_skill_switched_off_meanwhile_disappears(world: World) -> None:
    world.user("pdf")
    world.user("docx")

    with world.serving(CLEATS_DATA_DIR=str(world.folder / "data"), **QUICKLY) as peer:
        switches = world.folder / "data" / "skills" / "disabled.json"
        switches.parent.mkdir(parents=True)
        switches.write_text(json.dumps(["pdf"]))
        announced(peer, "notifications/tools/list_changed")

        assert "- pdf: " not in description(peer)


def test_a_skill_added_after_the_clients_list_loads_all_the_same(world: World) -> None:
    world.user("old")

    with world.serving(**QUICKLY) as peer:
        description(peer)
        skill(world.claude / "skills" / "fresh")
        until(lambda: not asked(peer, "skill", name="fresh")["isError"])


def test_a_file_whose_time_is_turned_back_is_read_again(world: World) -> None:
    path = world.user("pdf", "First")

    with world.serving(**QUICKLY) as peer:
        world.user("pdf", "Later")
        os.utime(path, (1, 1))
        announced(peer, "notifications/tools/list_changed")

        assert "- pdf: Later" in description(peer)


def test_lists_other_than_tools_are_announced_too(world: World) -> None:
    with world.serving(**QUICKLY) as peer:
        world.user("fresh")
        announced(peer, "notifications/prompts/list_changed")
        listed = answered(peer, "resources/list")["result"]["resources"]

    assert [resource["name"] for resource in listed] == ["fresh"]

"""`show_file`: the requested lines, the chunks on them, and nothing outside the repository."""

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.errors import ErrorCode
from cleats.toolsets.code.maintenance import excerpt
from tests.support.maintenance import MODULE_SOURCE, MaintenanceClient, create_maintenance_client
from tests.support.requirements import requirement
from tests.support.shell import LAW_SETTINGS


@pytest.fixture
def upkeep(tmp_path: Path) -> MaintenanceClient:
    return create_maintenance_client(tmp_path)


@requirement("a:tools:show_file")
def test_a_whole_file_is_shown_without_an_index(upkeep: MaintenanceClient) -> None:
    result = upkeep.expect_result("show_file", path="app/core.py")

    assert result == {
        "path": "app/core.py",
        "startLine": 1,
        "endLine": 11,
        "totalLines": 11,
        "bytes": len(MODULE_SOURCE),
        "text": MODULE_SOURCE,
        "sha256": hashlib.sha256(MODULE_SOURCE.encode()).hexdigest(),
        "truncated": False,
        "index": None,
        "chunks": [],
    }


@requirement("a:tools:show_file")
def test_lines_come_with_the_chunks_that_the_index_has_there(upkeep: MaintenanceClient) -> None:
    generation = upkeep.repository.build_index().generation

    result = upkeep.expect_result("show_file", path="app/core.py", startLine=10, endLine=10)

    assert result["text"] == "    def third(self):\n"
    assert result["index"] == {"generation": generation, "state": "same"}
    names = [(chunk["kind"], chunk["name"]) for chunk in result["chunks"]]
    assert names == [("module", "core"), ("class", "Second"), ("method", "Second.third")]
    assert result["chunks"][-1]["startLine"] == 10


def test_a_chunk_has_the_id_that_a_search_gives_it(upkeep: MaintenanceClient) -> None:
    upkeep.repository.build_index()

    result = upkeep.expect_result("show_file", path="app/core.py", startLine=11)
    search_result = upkeep.expect_result("search", query="third", mode="code", top=1, output="full")

    assert search_result["code"][0]["id"] in {chunk["id"] for chunk in result["chunks"]}


def test_context_is_lines_before_and_after(upkeep: MaintenanceClient) -> None:
    for given_, expected in (
        ({"startLine": 4, "endLine": 5, "context": 1}, (3, 6)),
        ({"startLine": 4, "context": 2}, (2, 6)),
        ({"startLine": 1, "endLine": 1, "context": 99}, (1, 11)),
        ({"endLine": 2}, (1, 2)),
        ({"startLine": 10}, (10, 11)),
        ({"startLine": 10, "endLine": 99}, (10, 11)),
    ):
        result = upkeep.expect_result("show_file", path="app/core.py", **given_)

        assert (result["startLine"], result["endLine"]) == expected
        lines = MODULE_SOURCE.splitlines(keepends=True)[expected[0] - 1 : expected[1]]
        assert result["text"] == "".join(lines)


def test_a_file_that_has_changed_since_or_is_not_indexed_says_so(upkeep: MaintenanceClient) -> None:
    upkeep.repository.build_index()
    upkeep.repository.write_file("app/core.py", "x = 1\n")
    upkeep.repository.write_file("app/more.py", "y = 1\n")

    changed = upkeep.expect_result("show_file", path="app/core.py")
    warnings = upkeep.warnings
    absent = upkeep.expect_result("show_file", path="app/more.py")

    assert (changed["index"]["state"], warnings) == ("changed", ["file_changed"])
    assert (absent["index"]["state"], absent["chunks"]) == ("absent", [])


def test_a_long_file_is_shown_in_parts_unless_the_last_line_is_given(upkeep: MaintenanceClient) -> None:
    text = "".join(f"line {number}\n" for number in range(1, 1201))
    upkeep.repository.write_file("long.txt", text)

    parts = [upkeep.expect_result("show_file", path="long.txt")]
    warnings = upkeep.warnings
    while parts[-1]["truncated"]:
        parts.append(upkeep.expect_result("show_file", path="long.txt", startLine=parts[-1]["nextLine"]))
    whole = upkeep.expect_result("show_file", path="long.txt", endLine=1200)

    assert [part["endLine"] for part in parts] == [500, 1000, 1200]
    assert "".join(part["text"] for part in parts) == whole["text"] == text
    assert warnings == ["file_cut"]
    assert (whole["truncated"], "nextLine" in whole, "nextLine" in parts[-1]) == (False, False, False)


def test_a_file_with_long_lines_is_shown_in_parts_that_fit(upkeep: MaintenanceClient) -> None:
    text = "".join(f"{number} {'x' * 1000}\n" for number in range(100))
    upkeep.repository.write_file("wide.txt", text)

    first = upkeep.expect_result("show_file", path="wide.txt")
    rest = upkeep.expect_result("show_file", path="wide.txt", startLine=first["nextLine"])

    assert 50_000 < len(first["text"]) <= 64_000
    assert first["text"] + rest["text"] == text


def test_too_much_text_is_cut_after_a_whole_line(upkeep: MaintenanceClient) -> None:
    cut = upkeep.expect_result("show_file", path="app/core.py", maxBytes=30)
    upkeep.repository.write_file("long.txt", "ä" * 100)
    line = upkeep.expect_result("show_file", path="long.txt", maxBytes=9)

    assert (cut["text"], cut["endLine"], cut["truncated"]) == ('"""A module."""\n\n\n', 3, True)
    assert (line["text"], line["endLine"], line["truncated"]) == ("ää" * 2, 1, True)
    assert (cut["nextLine"], "nextLine" in line) == (4, False)


def test_an_empty_file_and_one_in_another_encoding_are_shown(upkeep: MaintenanceClient) -> None:
    upkeep.repository.write_file("empty.txt", "")
    upkeep.repository.write_file("latin.txt", "caf\xe9\n".encode("latin-1"))

    empty = upkeep.expect_result("show_file", path="empty.txt")
    latin = upkeep.expect_result("show_file", path="latin.txt")

    assert (empty["text"], empty["startLine"], empty["endLine"]) == ("", 1, 0)
    assert latin["text"] == "caf\ufffd\n"
    assert upkeep.warnings == ["not_utf8"]


def test_lines_that_make_no_sense_are_refused(upkeep: MaintenanceClient) -> None:
    refused = ErrorCode.INVALID_REQUEST

    late = upkeep.expect_error("show_file", refused, path="app/core.py", startLine=12)
    upkeep.expect_error("show_file", refused, path="app/core.py", startLine=5, endLine=4)
    upkeep.expect_error("show_file", refused, path="app/core.py", startLine=0)
    upkeep.expect_error("show_file", refused, path="")

    assert "11 lines" in late.message


def test_what_is_no_text_file_is_refused(upkeep: MaintenanceClient, monkeypatch: pytest.MonkeyPatch) -> None:
    upkeep.repository.write_file("blob.bin", b"PNG\0\0")
    os.mkfifo(upkeep.repository.root / "pipe")
    monkeypatch.setattr(excerpt, "MAX_FILE_BYTES", 20)

    endless = "n/" * 500_000
    for path in ("blob.bin", "pipe", "app", ".", "x\0y", "n" * 5000, endless, "README.md"):
        upkeep.expect_error("show_file", ErrorCode.INVALID_REQUEST, path=path)


@requirement("a:tools:show_file")
def test_nothing_outside_of_the_repository_is_shown(upkeep: MaintenanceClient) -> None:
    root, outside = upkeep.repository.root, upkeep.repository.folder / "secret.txt"
    outside.write_text("secret")
    (root / "link.txt").symlink_to(outside)
    (root / "folder").symlink_to(upkeep.repository.folder)
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("password")

    for path in (
        *("../secret.txt", "app/../../secret.txt", str(outside), "/etc/passwd", "/dev/zero"),
        *("link.txt", "folder/secret.txt", "../nothing-there", ".git/config", "app/../.git/config"),
    ):
        upkeep.expect_error("show_file", ErrorCode.FORBIDDEN, path=path)


def test_links_and_paths_that_stay_inside_are_followed(upkeep: MaintenanceClient) -> None:
    root = upkeep.repository.root
    (root / "alias.py").symlink_to("app/core.py")

    for path in ("alias.py", "./app/core.py", "app/../app/core.py", str(root / "app/core.py")):
        assert upkeep.expect_result("show_file", path=path)["path"] == "app/core.py"


def test_a_link_that_appears_after_the_check_is_not_followed(upkeep: MaintenanceClient) -> None:
    root = upkeep.repository.root
    path = excerpt.resolve_file(root, "app/core.py")
    (root / "app").rename(upkeep.repository.folder / "moved")
    (root / "app").symlink_to(upkeep.repository.folder / "moved")

    with pytest.raises(Exception, match=r"link|folder|does not exist"):
        excerpt.open_file(root, path)


def test_a_file_that_is_not_there_is_not_found_and_others_are_suggested(upkeep: MaintenanceClient) -> None:
    plain = upkeep.expect_error("show_file", ErrorCode.NOT_FOUND, path="core.py")
    upkeep.repository.build_index()
    advised = upkeep.expect_error("show_file", ErrorCode.NOT_FOUND, path="src/core.py")
    upkeep.expect_error("show_file", ErrorCode.NOT_FOUND, path="README.md/x")
    misspelt = upkeep.expect_error("show_file", ErrorCode.NOT_FOUND, path="app/croe.py")
    assert (misspelt.hint or "").startswith("Did you mean 'app/core.py'? ")
    upkeep.expect_error("show_file", ErrorCode.INVALID_REQUEST, path="README.md", repoPath="nowhere")

    assert "app/core.py" not in plain.hint
    assert advised.hint == "Did you mean app/core.py?"


@pytest.mark.parametrize("built", [False, True])
def test_a_place_for_a_path_is_told_where_lines_go(upkeep: MaintenanceClient, built: bool) -> None:
    if built:
        upkeep.repository.build_index()

    one = upkeep.expect_error("show_file", ErrorCode.NOT_FOUND, path="app/core.py:3")
    some = upkeep.expect_error("show_file", ErrorCode.NOT_FOUND, path="app/core.py:3-5")

    message = "Give the lines as separate arguments: path app/core.py, startLine 3, endLine"
    assert (one.hint, some.hint) == (f"{message} 3.", f"{message} 5.")


def test_a_file_that_is_only_in_the_index_is_not_suggested_for_itself(upkeep: MaintenanceClient) -> None:
    upkeep.repository.build_index()
    (upkeep.repository.root / "app/core.py").unlink()

    gone = upkeep.expect_error("show_file", ErrorCode.NOT_FOUND, path="app/core.py")

    assert gone.hint.startswith("The file is in the index but not on disk")


def test_a_file_that_may_not_be_read_is_forbidden(upkeep: MaintenanceClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse_open(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(excerpt, "open_file_below", refuse_open)

    upkeep.expect_error("show_file", ErrorCode.FORBIDDEN, path="README.md")


@LAW_SETTINGS
@given(
    st.binary(max_size=60).filter(lambda data: b"\0" not in data),
    st.integers(1, 8),
    st.integers(0, 8),
    st.integers(1, 80),
)
def test_an_excerpt_is_what_the_lines_are(data: bytes, start: int, more: int, most: int) -> None:
    lines = _split_lines(data)
    if start > max(len(lines), 1):
        return
    blocks = iter([data[:7], data[7:30], data[30:], b""])

    class BlockFile:
        def read(self, _size: int) -> bytes:
            return next((block for block in blocks if block), b"")

    span = excerpt.LineSpan(start, start + more, most)
    read = excerpt.read_excerpt(BlockFile(), span, lambda: False)  # type: ignore[arg-type]

    expected = b"".join(lines[start - 1 : start + more])
    assert read.lines == len(lines)
    assert read.truncated == (len(expected) > most)
    if not read.truncated:
        assert read.text == expected.decode(errors="replace")
        assert read.end == start - 1 + len(lines[start - 1 : start + more])


def _split_lines(data: bytes) -> list[bytes]:
    parts = data.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])

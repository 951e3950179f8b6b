"""`download_models` and `download_dictionaries` as a server runs them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cleats.contract.errors import ErrorCode
from cleats.toolsets.code.dense.table import WordTable
from tests.download_world import Downloads, digest
from tests.file_server import Files, serving
from tests.requirements import requirement

WORDS = b"# a comment\nhaus\nbaum\n\nwald\n"


@pytest.fixture
def files() -> Iterator[Files]:
    with serving(Files({"/de.txt": WORDS, "/fr.txt": "été\n".encode()})) as files:
        yield files


@pytest.fixture
def world(tmp_path: Path) -> Downloads:
    return Downloads(tmp_path)


# Models


@requirement("b:tools:required:download_models")
def test_the_model_comes_with_the_program_and_nothing_is_downloaded(world: Downloads) -> None:
    table = WordTable.load()

    found = world.result("download_models")

    assert (found["available"], found["shipped"], found["downloaded"]) == (True, True, False)
    assert (found["dims"], found["words"]) == (table.dims, len(table.known))
    assert found["bytes"] == sum(path.stat().st_size for path in Path(found["output"]).glob("*.*"))
    assert world.tree() == {}


def test_the_model_has_a_short_name_too_and_another_is_refused(world: Downloads) -> None:
    name = world.result("download_models")["model"]

    assert world.result("download_models", model=name.rpartition("/")[2].upper())["model"] == name
    error = world.error("download_models", model="acme/other")

    assert error.code is ErrorCode.INVALID_REQUEST
    assert error.hint


def test_a_folder_for_models_is_checked_and_said_to_be_unused(world: Downloads) -> None:
    world.result("download_models", cacheDir=str(world.cache / "models"))

    assert world.warnings == ["nothing_downloaded"]
    assert world.error("download_models", cacheDir="/etc").code is ErrorCode.FORBIDDEN


# Dictionaries


@requirement("b:tools:required:download_dictionaries")
def test_a_list_is_downloaded_counted_and_noted(world: Downloads, files: Files) -> None:
    found = world.result("download_dictionaries", url=f"de={files.url('/de.txt')}?key=secret")

    folder = world.cache / "dictionaries"
    assert found["output"] == str(folder)
    assert found["skipped"] == []
    assert found["downloaded"] == [
        {
            "name": "de",
            "url": files.url("/de.txt"),
            "path": str(folder / "de.txt"),
            "sha256": digest(WORDS),
            "bytes": len(WORDS),
            "words": 3,
            "resumed": 0,
        }
    ]
    manifest = json.loads((folder / "dictionaries.json").read_bytes())["dictionaries"]
    assert manifest["de"]["sha256"] == digest(WORDS)
    assert manifest["de"]["etag"]
    assert (folder / "de.txt").read_bytes() == WORDS
    assert {path.name for path in folder.iterdir()} == {"de.txt", "dictionaries.json"}
    assert world.warnings == ["dictionaries_unused"]
    assert "bytes" in world.reports[-1].message


def test_without_a_source_there_is_the_built_in_list(world: Downloads) -> None:
    found = world.result("download_dictionaries")

    assert [(each["name"], each["reason"]) for each in found["skipped"]] == [("en", "built-in")]
    assert found["skipped"][0]["words"] > 10_000
    assert world.warnings == []


def test_a_list_without_a_source_is_refused(world: Downloads) -> None:
    assert world.error("download_dictionaries", lang="en,xx").code is ErrorCode.INVALID_REQUEST


def test_several_lists_come_in_one_call_and_progress_only_rises(
    world: Downloads, files: Files
) -> None:
    urls = [f"de={files.url('/de.txt')}", f"fr={files.url('/fr.txt')}"]

    found = world.result("download_dictionaries", url=urls, lang="en")

    assert [each["name"] for each in found["downloaded"]] == ["de", "fr"]
    assert [each["name"] for each in found["skipped"]] == ["en"]
    numbers = [report.number for report in world.reports]
    assert numbers == sorted(numbers)


def test_what_is_in_place_is_downloaded_again_only_when_asked(
    world: Downloads, files: Files
) -> None:
    url = f"de={files.url('/de.txt')}"
    world.result("download_dictionaries", url=url)

    plain = world.result("download_dictionaries", url=url)
    updated = world.result("download_dictionaries", lang="de", update=True)
    forced = world.result("download_dictionaries", force=True)

    assert plain["skipped"][0]["reason"] == "present"
    assert updated["skipped"][0]["reason"] == "not-modified"
    assert [each["name"] for each in forced["downloaded"]] == ["de"]
    assert files.asked("if-none-match")[0] == ""
    assert files.asked("if-none-match")[1].startswith('"')
    assert len(files.seen) == 3


def test_a_list_without_validators_is_compared_by_its_content(
    world: Downloads, files: Files
) -> None:
    files.validators = False
    url = f"de={files.url('/de.txt')}"
    world.result("download_dictionaries", url=url)

    found = world.result("download_dictionaries", url=url, update=True)

    assert found["skipped"] == [{"name": "de", "reason": "unchanged", "words": 3}]


def test_the_manifest_pins_a_list_until_an_update_is_asked_for(
    world: Downloads, files: Files
) -> None:
    url = f"de={files.url('/de.txt')}"
    world.result("download_dictionaries", url=url)
    (world.cache / "dictionaries/de.txt").write_bytes(b"tampered\n")
    files.content["/de.txt"] = b"anders\n"

    error = world.error("download_dictionaries", lang="de")
    found = world.result("download_dictionaries", lang="de", update=True)

    assert error.code is ErrorCode.DOWNLOAD_VERIFY_FAILED
    assert error.retryable
    assert found["downloaded"][0]["sha256"] == digest(b"anders\n")
    assert (world.cache / "dictionaries/de.txt").read_bytes() == b"anders\n"


def test_a_damaged_list_is_brought_back(world: Downloads, files: Files) -> None:
    world.result("download_dictionaries", url=f"de={files.url('/de.txt')}")
    (world.cache / "dictionaries/de.txt").write_bytes(b"tampered\n")

    assert world.result("download_dictionaries")["downloaded"][0]["sha256"] == digest(WORDS)


@pytest.mark.parametrize(
    "content", [b"", b"\n# only\n", b"\xff\xfe", b"a\0b\n", b"<html>\n", b"x" * 999]
)
def test_what_is_no_list_of_words_is_not_put_in_place(
    content: bytes, world: Downloads, files: Files
) -> None:
    files.content["/odd"] = content

    error = world.error("download_dictionaries", url=f"odd={files.url('/odd')}")

    assert (error.code, error.retryable) == (ErrorCode.DOWNLOAD_VERIFY_FAILED, False)
    assert world.tree() == {}


def test_a_wrong_hash_keeps_the_list_that_is_there(world: Downloads, files: Files) -> None:
    address = files.url("/de.txt")
    world.result("download_dictionaries", url=f"de={address}#sha256={digest(WORDS)}")
    before = world.tree()

    for more in ({}, {"update": True}, {"force": True}):
        error = world.error("download_dictionaries", url=f"de={address}#sha256={'0' * 64}", **more)

        assert error.code is ErrorCode.DOWNLOAD_VERIFY_FAILED
        assert world.tree() == before


def test_lists_can_be_kept_in_the_repository_and_nowhere_else(world: Downloads) -> None:
    (world.root / "mine.txt").write_bytes(WORDS)
    (world.root / "out").symlink_to(world.folder)

    found = world.result("download_dictionaries", url="mine=mine.txt", dir="words")

    assert found["output"] == str(world.root / "words")
    assert (world.root / "words/mine.txt").read_bytes() == WORDS
    before = world.tree()
    outside = ["/etc", "..", "out/words", ".git/hooks", str(world.cache / "repos/x")]
    codes = {
        world.error("download_dictionaries", url="mine=mine.txt", dir=each).code for each in outside
    }
    assert codes == {ErrorCode.FORBIDDEN}
    assert world.tree() == before


@pytest.mark.parametrize("url", ["de=", "../x=a", "De=x", "en=words.txt", "de=ftp://x/y", "de=a#b"])
def test_a_source_that_makes_no_sense_is_refused(url: str, world: Downloads) -> None:
    error = world.error("download_dictionaries", url=url)

    assert error.code is ErrorCode.INVALID_REQUEST


def test_files_from_elsewhere_need_the_permission_of_the_operator(world: Downloads) -> None:
    elsewhere = world.folder / "elsewhere.txt"
    elsewhere.write_bytes(WORDS)
    (world.root / "link").symlink_to(elsewhere)

    for source in (elsewhere, f"file://{elsewhere}", "link", "../elsewhere.txt"):
        error = world.error("download_dictionaries", url=f"de={source}")
        assert error.code is ErrorCode.FORBIDDEN
    world.more["download_roots"] = (world.folder,)

    assert world.result("download_dictionaries", url="de=link")["downloaded"]


def test_a_manifest_that_cannot_be_read_is_said_to_be(world: Downloads) -> None:
    folder = world.cache / "dictionaries"
    folder.mkdir(parents=True)
    for text in ("{", '{"dictionaries": {"../x": {}}}', '{"format": 9}'):
        (folder / "dictionaries.json").write_text(text)

        assert world.error("download_dictionaries").code is ErrorCode.INVALID_REQUEST


def test_a_folder_that_is_a_file_is_said_to_be(world: Downloads) -> None:
    (world.root / "file").write_bytes(b"")

    error = world.error("download_dictionaries", dir="file/below")

    assert error.code is ErrorCode.INVALID_REQUEST

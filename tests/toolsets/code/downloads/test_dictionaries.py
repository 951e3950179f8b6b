"""`download_models` and `download_dictionaries` as a server runs them."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cleats.contract.errors import ErrorCode
from cleats.toolsets.code.analysis.embedding.table import WordTable
from tests.support.downloads import DownloadClient, compute_sha256
from tests.support.file_server import ServedFiles, serve_files
from tests.support.requirements import requirement

WORD_LIST = b"# a comment\nhaus\nbaum\n\nwald\n"


@pytest.fixture
def files() -> Iterator[ServedFiles]:
    with serve_files(ServedFiles({"/de.txt": WORD_LIST, "/fr.txt": "été\n".encode()})) as files:
        yield files


@pytest.fixture
def world(tmp_path: Path) -> DownloadClient:
    return DownloadClient(tmp_path)


# Models


@requirement("b:tools:required:download_models")
def test_the_model_comes_with_the_program_and_nothing_is_downloaded(world: DownloadClient) -> None:
    table = WordTable.load()

    result = world.expect_result("download_models")

    assert (result["available"], result["shipped"], result["downloaded"]) == (True, True, False)
    assert (result["dims"], result["words"]) == (table.dims, len(table.row_by_word))
    assert result["bytes"] == sum(path.stat().st_size for path in Path(result["output"]).glob("*.*"))
    assert world.hash_files() == {}


def test_the_model_has_a_short_name_too_and_another_is_refused(world: DownloadClient) -> None:
    name = world.expect_result("download_models")["model"]

    assert world.expect_result("download_models", model=name.rpartition("/")[2].upper())["model"] == name
    error = world.expect_error("download_models", model="acme/other")

    assert error.code is ErrorCode.INVALID_REQUEST
    assert error.hint


def test_a_folder_is_looked_at_for_a_copy_of_the_model(world: DownloadClient) -> None:
    folder = world.cache / "models"
    without = world.expect_result("download_models", cacheDir=str(folder))
    warnings = world.warnings
    shutil.copytree(world.expect_result("download_models")["output"], folder)

    copied = world.expect_result("download_models", cacheDir=str(folder))
    (folder / "words.txt").write_text("changed")
    changed = world.expect_result("download_models", cacheDir=str(folder))

    assert (without["available"], without["output"], warnings) == (False, str(folder), ["model_elsewhere"])
    assert copied["available"]
    assert not changed["available"]
    assert world.expect_error("download_models", cacheDir="/etc").code is ErrorCode.FORBIDDEN


# Dictionaries


@requirement("b:tools:required:download_dictionaries")
def test_a_list_is_downloaded_counted_and_noted(world: DownloadClient, files: ServedFiles) -> None:
    result = world.expect_result("download_dictionaries", url=f"de={files.build_url('/de.txt')}?key=secret")

    folder = world.cache / "dictionaries"
    assert result["output"] == str(folder)
    assert result["skipped"] == []
    assert result["downloaded"] == [
        {
            "name": "de",
            "url": files.build_url("/de.txt"),
            "path": str(folder / "de.txt"),
            "sha256": compute_sha256(WORD_LIST),
            "bytes": len(WORD_LIST),
            "words": 3,
            "resumed": 0,
        }
    ]
    manifest = json.loads((folder / "dictionaries.json").read_bytes())["dictionaries"]
    assert manifest["de"]["sha256"] == compute_sha256(WORD_LIST)
    assert manifest["de"]["etag"]
    assert (folder / "de.txt").read_bytes() == WORD_LIST
    assert {path.name for path in folder.iterdir()} == {"de.txt", "dictionaries.json"}
    assert world.warnings == ["dictionaries_unused"]
    assert "bytes" in world.reports[-1].message


def test_without_a_source_there_is_the_built_in_list(world: DownloadClient) -> None:
    result = world.expect_result("download_dictionaries")

    assert [(entry["name"], entry["reason"]) for entry in result["skipped"]] == [("en", "built-in")]
    assert result["skipped"][0]["words"] > 10_000
    assert world.warnings == []


def test_a_list_without_a_source_is_refused(world: DownloadClient) -> None:
    assert world.expect_error("download_dictionaries", lang="en,xx").code is ErrorCode.INVALID_REQUEST


def test_several_lists_come_in_one_call_and_progress_only_rises(world: DownloadClient, files: ServedFiles) -> None:
    urls = [f"de={files.build_url('/de.txt')}", f"fr={files.build_url('/fr.txt')}"]

    result = world.expect_result("download_dictionaries", url=urls, lang="en,de,fr")

    assert [entry["name"] for entry in result["downloaded"]] == ["de", "fr"]
    assert [entry["name"] for entry in result["skipped"]] == ["en"]
    numbers = [report.number for report in world.reports]
    assert numbers == sorted(numbers)


def test_what_is_in_place_is_downloaded_again_only_when_asked(world: DownloadClient, files: ServedFiles) -> None:
    url = f"de={files.build_url('/de.txt')}"
    world.expect_result("download_dictionaries", url=url)

    plain = world.expect_result("download_dictionaries", url=url)
    updated = world.expect_result("download_dictionaries", lang="de", update=True)
    forced = world.expect_result("download_dictionaries", force=True)

    assert plain["skipped"][0]["reason"] == "present"
    assert updated["skipped"][0]["reason"] == "not-modified"
    assert [entry["name"] for entry in forced["downloaded"]] == ["de"]
    assert files.list_header_values("if-none-match")[0] == ""
    assert files.list_header_values("if-none-match")[1].startswith('"')
    assert len(files.requests) == 3


def test_a_list_without_validators_is_compared_by_its_content(world: DownloadClient, files: ServedFiles) -> None:
    files.validators = False
    url = f"de={files.build_url('/de.txt')}"
    world.expect_result("download_dictionaries", url=url)

    result = world.expect_result("download_dictionaries", url=url, update=True)

    assert result["skipped"] == [{"name": "de", "reason": "unchanged", "words": 3}]


def test_the_manifest_pins_a_list_until_an_update_is_asked_for(world: DownloadClient, files: ServedFiles) -> None:
    url = f"de={files.build_url('/de.txt')}"
    world.expect_result("download_dictionaries", url=url)
    (world.cache / "dictionaries/de.txt").write_bytes(b"tampered\n")
    files.content["/de.txt"] = b"anders\n"

    error = world.expect_error("download_dictionaries", lang="de")
    result = world.expect_result("download_dictionaries", lang="de", update=True)

    assert error.code is ErrorCode.DOWNLOAD_VERIFY_FAILED
    assert error.retryable
    assert result["downloaded"][0]["sha256"] == compute_sha256(b"anders\n")
    assert (world.cache / "dictionaries/de.txt").read_bytes() == b"anders\n"


def test_a_damaged_list_is_brought_back(world: DownloadClient, files: ServedFiles) -> None:
    world.expect_result("download_dictionaries", url=f"de={files.build_url('/de.txt')}")
    (world.cache / "dictionaries/de.txt").write_bytes(b"tampered\n")

    assert world.expect_result("download_dictionaries")["downloaded"][0]["sha256"] == compute_sha256(WORD_LIST)


@pytest.mark.parametrize("content", [b"", b"\n# only\n", b"\xff\xfe", b"a\0b\n", b"<html>\n", b"x" * 999])
def test_what_is_no_list_of_words_is_not_put_in_place(
    content: bytes, world: DownloadClient, files: ServedFiles
) -> None:
    files.content["/odd"] = content

    error = world.expect_error("download_dictionaries", url=f"odd={files.build_url('/odd')}")

    assert (error.code, error.retryable) == (ErrorCode.DOWNLOAD_VERIFY_FAILED, False)
    assert world.hash_files() == {}


def test_a_wrong_hash_keeps_the_list_that_is_there(world: DownloadClient, files: ServedFiles) -> None:
    address = files.build_url("/de.txt")
    world.expect_result("download_dictionaries", url=f"de={address}#sha256={compute_sha256(WORD_LIST)}")
    before = world.hash_files()

    for more in ({}, {"update": True}, {"force": True}):
        error = world.expect_error("download_dictionaries", url=f"de={address}#sha256={'0' * 64}", **more)

        assert error.code is ErrorCode.DOWNLOAD_VERIFY_FAILED
        assert world.hash_files() == before


def test_lists_can_be_kept_in_the_repository_and_nowhere_else(world: DownloadClient) -> None:
    (world.root / "mine.txt").write_bytes(WORD_LIST)
    (world.root / "out").symlink_to(world.folder)

    result = world.expect_result("download_dictionaries", url="mine=mine.txt", dir="words")

    assert result["output"] == str(world.root / "words")
    assert (world.root / "words/mine.txt").read_bytes() == WORD_LIST
    before = world.hash_files()
    outside = ["/etc", "..", "out/words", ".git/hooks", str(world.cache / "repos/x")]
    codes = {world.expect_error("download_dictionaries", url="mine=mine.txt", dir=folder).code for folder in outside}
    assert codes == {ErrorCode.FORBIDDEN}
    assert world.hash_files() == before


@pytest.mark.parametrize("url", ["de=", "../x=a", "De=x", "en=words.txt", "de=ftp://x/y", "de=a#b"])
def test_a_source_that_makes_no_sense_is_refused(url: str, world: DownloadClient) -> None:
    error = world.expect_error("download_dictionaries", url=url)

    assert error.code is ErrorCode.INVALID_REQUEST


def test_files_from_elsewhere_need_the_permission_of_the_operator(world: DownloadClient) -> None:
    elsewhere = world.folder / "elsewhere.txt"
    elsewhere.write_bytes(WORD_LIST)
    (world.root / "link").symlink_to(elsewhere)

    for source in (elsewhere, f"file://{elsewhere}", "link", "../elsewhere.txt"):
        error = world.expect_error("download_dictionaries", url=f"de={source}")
        assert error.code is ErrorCode.FORBIDDEN
    world.extra_settings["download_roots"] = (world.folder,)

    assert world.expect_result("download_dictionaries", url="de=link")["downloaded"]


def test_a_manifest_that_cannot_be_read_is_said_to_be(world: DownloadClient) -> None:
    folder = world.cache / "dictionaries"
    folder.mkdir(parents=True)
    for text in ("{", '{"dictionaries": {"../x": {}}}', '{"format": 9}'):
        (folder / "dictionaries.json").write_text(text)

        assert world.expect_error("download_dictionaries").code is ErrorCode.INVALID_REQUEST


def test_a_folder_that_is_a_file_is_said_to_be(world: DownloadClient) -> None:
    (world.root / "file").write_bytes(b"")

    error = world.expect_error("download_dictionaries", dir="file/below")

    assert error.code is ErrorCode.INVALID_REQUEST


def test_nothing_is_downloaded_if_one_of_the_wanted_lists_has_no_source(world: DownloadClient) -> None:
    (world.root / "pt.txt").write_text("pt\n")

    error = world.expect_error("download_dictionaries", url="pt=pt.txt", lang="pt,xx")

    assert (error.code, "'xx'" in error.message) == (ErrorCode.INVALID_REQUEST, True)
    downloaded = world.expect_result("download_dictionaries", url="pt=pt.txt")["downloaded"]
    assert [item["name"] for item in downloaded] == ["pt"]


def test_only_the_wanted_lists_of_several_are_downloaded(world: DownloadClient) -> None:
    for name in ("nl", "pt"):
        (world.root / f"{name}.txt").write_text(f"{name}\n")
    urls = ["nl=nl.txt", "pt=pt.txt"]

    chosen = world.expect_result("download_dictionaries", url=urls, lang="pt")
    both = world.expect_result("download_dictionaries", url=urls)

    assert [item["name"] for item in chosen["downloaded"]] == ["pt"]
    assert [item["name"] for item in both["downloaded"]] == ["nl"]
    assert [item["name"] for item in both["skipped"]] == ["pt"]

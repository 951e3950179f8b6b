"""`download_extensions` and `verify_extensions` as a server runs them."""

import io
import shutil
import stat
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cleats.contract.errors import ErrorCode
from cleats.toolsets.code.downloads import libraries
from tests.support.downloads import DownloadClient, compute_sha256
from tests.support.file_server import ServedFiles, serve_files
from tests.support.hostile_archives import ZipEntry, build_zip
from tests.support.requirements import requirement

ELF_BYTES = b"\x7fELF and so on"
LINUX_PLATFORM = {"platform": "linux", "arch": "x64"}
EXTENSION_FOLDER = "extensions/sqlite-vec/linux-x64"

EXTENSION_SOURCE = """
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT1
int sqlite3_extension_init(sqlite3 *db, char **error, const sqlite3_api_routines *api) {
  SQLITE_EXTENSION_INIT2(api);
  BODY
  return SQLITE_OK;
}
"""


@pytest.fixture
def world(tmp_path: Path) -> DownloadClient:
    return DownloadClient(tmp_path)


@pytest.fixture
def files() -> Iterator[ServedFiles]:
    with serve_files(ServedFiles()) as files:
        yield files


def pack_tar(**content: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, data in content.items():
            member = tarfile.TarInfo(name.replace("__", "/").replace("_", "."))
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return file.getvalue()


# Downloading


@requirement("b:tools:required:download_extensions")
def test_an_archive_is_downloaded_checked_and_unpacked(world: DownloadClient, files: ServedFiles) -> None:
    files.content["/vec.tgz"] = pack_tar(lib__vec0_so=ELF_BYTES, readme_txt=b"hello")
    url = f"{files.build_url('/vec.tgz')}#sha256={compute_sha256(files.content['/vec.tgz'])}"

    result = world.expect_result("download_extensions", url=url, **LINUX_PLATFORM)

    library = Path(result["extensionPath"])
    assert library.read_bytes() == ELF_BYTES
    assert library.is_relative_to(world.cache / EXTENSION_FOLDER)
    assert result["output"] == str(world.cache / EXTENSION_FOLDER)
    assert result["downloaded"][0]["files"] == 2
    assert len(world.hash_files()) == 3  # with the manifest
    assert world.warnings == ["extension_unused"]


def test_a_library_by_itself_will_do_and_is_replaced_all_at_once(world: DownloadClient) -> None:
    source = world.root / "vec0.so"
    source.write_bytes(ELF_BYTES)
    first = world.expect_result("download_extensions", url="vec0.so", **LINUX_PLATFORM)
    second = world.expect_result("download_extensions", **LINUX_PLATFORM)
    source.write_bytes(ELF_BYTES + b"2")

    pinned = world.expect_error("download_extensions", force=True, **LINUX_PLATFORM)
    updated = world.expect_result("download_extensions", update=True, **LINUX_PLATFORM)

    assert second["skipped"] == [{"name": "sqlite-vec", "reason": "present"}]
    assert second["extensionPath"] == first["extensionPath"]
    assert pinned.code is ErrorCode.DOWNLOAD_VERIFY_FAILED
    assert Path(updated["extensionPath"]).read_bytes() == ELF_BYTES + b"2"
    assert not Path(first["extensionPath"]).exists()


def test_an_update_of_the_same_file_changes_nothing(world: DownloadClient, files: ServedFiles) -> None:
    files.content["/vec0.so"] = ELF_BYTES
    url = f"{files.build_url('/vec0.so')}#sha256={compute_sha256(ELF_BYTES)}"
    first = world.expect_result("download_extensions", url=url, **LINUX_PLATFORM)

    result = world.expect_result("download_extensions", update=True, **LINUX_PLATFORM)
    files.validators = False
    compared = world.expect_result("download_extensions", update=True, **LINUX_PLATFORM)

    wrong = f"{files.build_url('/vec0.so')}#sha256={'0' * 64}"
    error = world.expect_error("download_extensions", url=wrong, update=True, **LINUX_PLATFORM)

    assert error.code is ErrorCode.DOWNLOAD_VERIFY_FAILED
    assert result["skipped"][0]["reason"] == "not-modified"
    assert compared["skipped"][0]["reason"] == "unchanged"
    assert compared["extensionPath"] == first["extensionPath"]


def test_without_a_source_there_is_nothing_to_do_and_the_hint_says_why(world: DownloadClient) -> None:
    error = world.expect_error("download_extensions")

    assert error.code is ErrorCode.INVALID_REQUEST
    assert "built in" in error.hint


def test_a_program_over_plain_http_needs_a_hash(world: DownloadClient, files: ServedFiles) -> None:
    error = world.expect_error("download_extensions", url=files.build_url("/vec.tgz"))

    assert error.code is ErrorCode.INVALID_REQUEST
    assert files.requests == []


def test_an_update_over_plain_http_brings_no_other_program(world: DownloadClient, files: ServedFiles) -> None:
    files.content["/vec0.so"] = ELF_BYTES
    url = f"{files.build_url('/vec0.so')}#sha256={compute_sha256(ELF_BYTES)}"
    result = world.expect_result("download_extensions", url=url, **LINUX_PLATFORM)
    files.content["/vec0.so"] = ELF_BYTES + b"other"

    error = world.expect_error("download_extensions", update=True, **LINUX_PLATFORM)

    assert error.code is ErrorCode.DOWNLOAD_VERIFY_FAILED
    assert Path(result["extensionPath"]).read_bytes() == ELF_BYTES


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (build_zip(ZipEntry(b"../evil.so", ELF_BYTES)), ErrorCode.ARCHIVE_UNSAFE),
        (build_zip(ZipEntry(b"vec0.so", ELF_BYTES, mode=stat.S_IFLNK)), ErrorCode.ARCHIVE_UNSAFE),
        (build_zip(*[ZipEntry(b"%d" % n, b"") for n in range(2049)]), ErrorCode.ARCHIVE_TOO_LARGE),
        (build_zip(ZipEntry(b"readme", b"x")), ErrorCode.INVALID_REQUEST),
        (build_zip(ZipEntry(b"a.so", ELF_BYTES), ZipEntry(b"b.so", ELF_BYTES)), ErrorCode.INVALID_REQUEST),
        (build_zip(ZipEntry(b"vec0.so", b"text")), ErrorCode.DOWNLOAD_VERIFY_FAILED),
        (b"<html>not what you wanted</html>", ErrorCode.DOWNLOAD_VERIFY_FAILED),
    ],
)
def test_an_archive_that_is_refused_leaves_what_was_there(data: bytes, code: ErrorCode, world: DownloadClient) -> None:
    (world.root / "good").write_bytes(build_zip(ZipEntry(b"vec0.so", ELF_BYTES)))
    (world.root / "bad").write_bytes(data)
    result = world.expect_result("download_extensions", url="good", **LINUX_PLATFORM)
    before = world.hash_files()

    error = world.expect_error("download_extensions", url="bad", **LINUX_PLATFORM)

    assert (error.code, error.retryable) == (code, False)
    assert world.hash_files() == before
    assert world.expect_result("download_extensions", **LINUX_PLATFORM)["extensionPath"] == result["extensionPath"]


def test_a_folder_with_other_files_is_not_touched(world: DownloadClient) -> None:
    (world.root / "vec0.so").write_bytes(ELF_BYTES)
    (world.root / "src").mkdir()
    (world.root / "src/main.py").write_bytes(b"mine")
    before = world.hash_files()

    error = world.expect_error("download_extensions", url="vec0.so", out="src", **LINUX_PLATFORM)
    inside = world.expect_result("download_extensions", url="vec0.so", out="src/new", **LINUX_PLATFORM)

    assert error.code is ErrorCode.INVALID_REQUEST
    assert inside["output"] == str(world.root / "src/new")
    assert before.items() <= world.hash_files().items()
    for outside in ("..", "/", ".git"):
        refused = world.expect_error("download_extensions", url="vec0.so", out=outside, **LINUX_PLATFORM)
        assert refused.code is ErrorCode.FORBIDDEN


# Trying


@pytest.fixture(scope="module")
def compile_library(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function that compiles a library with the given code in its initializer."""
    if shutil.which("cc") is None or not Path("/usr/include/sqlite3ext.h").exists():
        pytest.skip("there is no compiler for C, or no SQLite to compile against")
    folder = tmp_path_factory.mktemp("libraries")

    def make(body: str) -> Path:
        library = folder / f"lib{compute_sha256(body.encode())[:8]}.so"
        text = EXTENSION_SOURCE.replace("BODY", body)
        command = ["cc", "-shared", "-fPIC", "-w", "-x", "c", "-", "-o", str(library)]
        subprocess.run(command, input=text.encode(), check=True)
        return library

    return make


@requirement("b:tools:required:verify_extensions")
def test_a_missing_extension_is_an_answer_and_no_error(world: DownloadClient) -> None:
    result = world.expect_result("verify_extensions")

    machine = libraries.detect_platform()
    assert result["exists"] is False
    assert result["load"] == result["smoke"]
    assert result["load"]["attempted"] is False
    assert result["config"]["platformKey"] == machine.key
    assert result["path"].endswith(f"{machine.key}/vec0{machine.library_suffix}")
    assert world.hash_files() == {}


@pytest.mark.parametrize("argument", ["dir", "path"])
def test_a_name_that_no_file_can_have_is_that_of_no_library(world: DownloadClient, argument: str) -> None:
    result = world.expect_result("verify_extensions", **{argument: "x" * 300})

    assert result["exists"] is False
    assert result["load"]["reason"] == "the library does not exist"


def test_a_library_that_loads_is_tried_and_told_apart_from_one_that_works(
    world: DownloadClient, compile_library: Callable[[str], Path]
) -> None:
    shutil.copy(compile_library(""), world.root / "vec0.so")
    world.expect_result("download_extensions", url="vec0.so")

    result = world.expect_result("verify_extensions")

    assert result["exists"]
    assert result["load"] == {"attempted": True, "ok": True, "reason": None}
    assert (result["smoke"]["attempted"], result["smoke"]["ok"]) == (True, False)
    assert "vec0" in result["smoke"]["reason"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("abort();", "signal 6"),
        ("*(volatile int *)0 = 1;", "signal 11"),
        ("_exit(7);", "exit code 7"),
        ('*error = sqlite3_mprintf("not today"); return 1;', "not today"),
        ('puts("{}"); puts("noise"); fflush(0); abort();', "signal 6"),
    ],
)
def test_a_bad_library_takes_only_its_own_process_along(
    body: str, reason: str, world: DownloadClient, compile_library: Callable[[str], Path]
) -> None:
    world.cache.mkdir()
    shutil.copy(compile_library(body), world.cache / "bad.so")

    result = world.expect_result("verify_extensions", path=str(world.cache / "bad.so"))

    assert (result["load"]["attempted"], result["load"]["ok"]) == (True, False)
    assert reason in result["load"]["reason"]
    assert result["smoke"]["attempted"] is False


def test_a_library_that_hangs_is_given_up(
    world: DownloadClient, compile_library: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libraries, "TRIAL_TIMEOUT_SECONDS", 1.0)
    world.cache.mkdir()
    shutil.copy(compile_library("for (;;) sleep(1);"), world.cache / "slow.so")

    result = world.expect_result("verify_extensions", path=str(world.cache / "slow.so"))

    assert "did not answer" in result["load"]["reason"]


def test_code_of_a_repository_is_not_loaded(world: DownloadClient, compile_library: Callable[[str], Path]) -> None:
    shutil.copy(compile_library("abort();"), world.root / "vec0.so")
    (world.cache).mkdir()
    (world.cache / "link.so").symlink_to(world.root / "vec0.so")

    direct = world.expect_result("verify_extensions", path="vec0.so")
    linked = world.expect_result("verify_extensions", path=str(world.cache / "link.so"))
    outside = world.expect_error("verify_extensions", path="/bin/sh")

    for result in (direct, linked):
        assert result["exists"]
        assert result["load"]["attempted"] is False
        assert "cache" in result["load"]["reason"]
    assert outside.code is ErrorCode.FORBIDDEN


def test_a_library_that_was_changed_after_its_download_is_not_loaded(world: DownloadClient) -> None:
    (world.root / "vec0.so").write_bytes(ELF_BYTES)
    result = world.expect_result("download_extensions", url="vec0.so")
    Path(result["extensionPath"]).write_bytes(ELF_BYTES + b"changed")

    checked = world.expect_result("verify_extensions")

    assert checked["load"]["attempted"] is False
    assert "not the library" in checked["load"]["reason"]


def test_what_is_not_to_be_loaded_is_only_looked_for(world: DownloadClient) -> None:
    (world.root / "vec0.so").write_bytes(ELF_BYTES)
    world.expect_result("download_extensions", url="vec0.so")
    other = next(key for key in ("x64", "arm64") if key != libraries.detect_platform().arch)
    world.expect_result("download_extensions", url="vec0.so", arch=other)

    for arguments in ({"load": False}, {"annMode": "built-in"}, {"arch": other}):
        result = world.expect_result("verify_extensions", **arguments)

        assert result["exists"]
        assert result["load"]["attempted"] is False


def test_the_names_of_a_trial_cannot_carry_sql(world: DownloadClient) -> None:
    for arguments in ({"table": 'a"; DROP'}, {"module": "a(b)"}, {"options": "x); SELECT (1"}):
        assert world.expect_error("verify_extensions", **arguments).code is ErrorCode.INVALID_REQUEST


def test_the_real_extension_works_where_it_is_installed(world: DownloadClient) -> None:
    installed = pytest.importorskip("sqlite_vec", reason="sqlite-vec is not installed")
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.write(f"{installed.loadable_path()}.so", "vec0.so")
    (world.root / "vec.zip").write_bytes(data.getvalue())
    world.expect_result("download_extensions", url="vec.zip")

    for arguments in ({}, {"encoding": "json", "options": "distance_metric=cosine"}):
        result = world.expect_result("verify_extensions", **arguments)

        assert result["smoke"] == {"attempted": True, "ok": True, "reason": None}

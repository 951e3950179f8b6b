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
from cleats.toolsets.code.downloads import libraries, verification
from tests.download_world import Downloads, digest
from tests.file_server import Files, serving
from tests.hostile_archives import ZipEntry, zipped
from tests.requirements import requirement

ELF = b"\x7fELF and so on"
LINUX = {"platform": "linux", "arch": "x64"}
PLACE = "extensions/sqlite-vec/linux-x64"

PLAIN = """
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT1
int sqlite3_extension_init(sqlite3 *db, char **error, const sqlite3_api_routines *api) {
  SQLITE_EXTENSION_INIT2(api);
  BODY
  return SQLITE_OK;
}
"""


@pytest.fixture
def world(tmp_path: Path) -> Downloads:
    return Downloads(tmp_path)


@pytest.fixture
def files() -> Iterator[Files]:
    with serving(Files()) as files:
        yield files


def tar(**content: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, data in content.items():
            member = tarfile.TarInfo(name.replace("__", "/").replace("_", "."))
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return file.getvalue()


# Downloading


@requirement("b:tools:required:download_extensions")
def test_an_archive_is_downloaded_checked_and_unpacked(world: Downloads, files: Files) -> None:
    files.content["/vec.tgz"] = tar(lib__vec0_so=ELF, readme_txt=b"hello")
    url = f"{files.url('/vec.tgz')}#sha256={digest(files.content['/vec.tgz'])}"

    found = world.result("download_extensions", url=url, **LINUX)

    library = Path(found["extensionPath"])
    assert library.read_bytes() == ELF
    assert library.is_relative_to(world.cache / PLACE)
    assert found["output"] == str(world.cache / PLACE)
    assert found["downloaded"][0]["files"] == 2
    assert len(world.tree()) == 3  # with the manifest
    assert world.warnings == ["extension_unused"]


def test_a_library_by_itself_will_do_and_is_replaced_all_at_once(world: Downloads) -> None:
    source = world.root / "vec0.so"
    source.write_bytes(ELF)
    first = world.result("download_extensions", url="vec0.so", **LINUX)
    again = world.result("download_extensions", **LINUX)
    source.write_bytes(ELF + b"2")

    pinned = world.error("download_extensions", force=True, **LINUX)
    updated = world.result("download_extensions", update=True, **LINUX)

    assert again["skipped"] == [{"name": "sqlite-vec", "reason": "present"}]
    assert again["extensionPath"] == first["extensionPath"]
    assert pinned.code is ErrorCode.DOWNLOAD_VERIFY_FAILED
    assert Path(updated["extensionPath"]).read_bytes() == ELF + b"2"
    assert not Path(first["extensionPath"]).exists()


def test_an_update_of_the_same_file_changes_nothing(world: Downloads, files: Files) -> None:
    files.content["/vec0.so"] = ELF
    url = f"{files.url('/vec0.so')}#sha256={digest(ELF)}"
    first = world.result("download_extensions", url=url, **LINUX)

    known = world.result("download_extensions", update=True, **LINUX)
    files.validators = False
    compared = world.result("download_extensions", update=True, **LINUX)

    wrong = f"{files.url('/vec0.so')}#sha256={'0' * 64}"
    error = world.error("download_extensions", url=wrong, update=True, **LINUX)

    assert error.code is ErrorCode.DOWNLOAD_VERIFY_FAILED
    assert known["skipped"][0]["reason"] == "not-modified"
    assert compared["skipped"][0]["reason"] == "unchanged"
    assert compared["extensionPath"] == first["extensionPath"]


def test_without_a_source_there_is_nothing_to_do_and_the_hint_says_why(world: Downloads) -> None:
    error = world.error("download_extensions")

    assert error.code is ErrorCode.INVALID_REQUEST
    assert "built in" in error.hint


def test_a_program_over_plain_http_needs_a_hash(world: Downloads, files: Files) -> None:
    error = world.error("download_extensions", url=files.url("/vec.tgz"))

    assert error.code is ErrorCode.INVALID_REQUEST
    assert files.seen == []


def test_an_update_over_plain_http_brings_no_other_program(world: Downloads, files: Files) -> None:
    files.content["/vec0.so"] = ELF
    url = f"{files.url('/vec0.so')}#sha256={digest(ELF)}"
    found = world.result("download_extensions", url=url, **LINUX)
    files.content["/vec0.so"] = ELF + b"other"

    error = world.error("download_extensions", update=True, **LINUX)

    assert error.code is ErrorCode.DOWNLOAD_VERIFY_FAILED
    assert Path(found["extensionPath"]).read_bytes() == ELF


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (zipped(ZipEntry(b"../evil.so", ELF)), ErrorCode.ARCHIVE_UNSAFE),
        (zipped(ZipEntry(b"vec0.so", ELF, mode=stat.S_IFLNK)), ErrorCode.ARCHIVE_UNSAFE),
        (zipped(*[ZipEntry(b"%d" % n, b"") for n in range(2049)]), ErrorCode.ARCHIVE_TOO_LARGE),
        (zipped(ZipEntry(b"readme", b"x")), ErrorCode.INVALID_REQUEST),
        (zipped(ZipEntry(b"a.so", ELF), ZipEntry(b"b.so", ELF)), ErrorCode.INVALID_REQUEST),
        (zipped(ZipEntry(b"vec0.so", b"text")), ErrorCode.DOWNLOAD_VERIFY_FAILED),
        (b"<html>not what you wanted</html>", ErrorCode.DOWNLOAD_VERIFY_FAILED),
    ],
)
def test_an_archive_that_is_refused_leaves_what_was_there(
    data: bytes, code: ErrorCode, world: Downloads
) -> None:
    (world.root / "good").write_bytes(zipped(ZipEntry(b"vec0.so", ELF)))
    (world.root / "bad").write_bytes(data)
    kept = world.result("download_extensions", url="good", **LINUX)
    before = world.tree()

    error = world.error("download_extensions", url="bad", **LINUX)

    assert (error.code, error.retryable) == (code, False)
    assert world.tree() == before
    assert world.result("download_extensions", **LINUX)["extensionPath"] == kept["extensionPath"]


def test_a_folder_with_other_files_is_not_touched(world: Downloads) -> None:
    (world.root / "vec0.so").write_bytes(ELF)
    (world.root / "src").mkdir()
    (world.root / "src/main.py").write_bytes(b"mine")
    before = world.tree()

    error = world.error("download_extensions", url="vec0.so", out="src", **LINUX)
    inside = world.result("download_extensions", url="vec0.so", out="src/new", **LINUX)

    assert error.code is ErrorCode.INVALID_REQUEST
    assert inside["output"] == str(world.root / "src/new")
    assert before.items() <= world.tree().items()
    for outside in ("..", "/", ".git"):
        refused = world.error("download_extensions", url="vec0.so", out=outside, **LINUX)
        assert refused.code is ErrorCode.FORBIDDEN


# Trying


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes a library that does something when it is loaded."""
    if shutil.which("cc") is None or not Path("/usr/include/sqlite3ext.h").exists():
        pytest.skip("there is no compiler for C, or no SQLite to compile against")
    folder = tmp_path_factory.mktemp("libraries")

    def make(body: str) -> Path:
        library = folder / f"lib{digest(body.encode())[:8]}.so"
        text = PLAIN.replace("BODY", body)
        command = ["cc", "-shared", "-fPIC", "-w", "-x", "c", "-", "-o", str(library)]
        subprocess.run(command, input=text.encode(), check=True)
        return library

    return make


@requirement("b:tools:required:verify_extensions")
def test_a_missing_extension_is_an_answer_and_no_error(world: Downloads) -> None:
    found = world.result("verify_extensions")

    machine = libraries.this_machine()
    assert found["exists"] is False
    assert found["load"] == found["smoke"]
    assert found["load"]["attempted"] is False
    assert found["config"]["platformKey"] == machine.key
    assert found["path"].endswith(f"{machine.key}/vec0{machine.ending}")
    assert world.tree() == {}


@pytest.mark.parametrize("argument", ["dir", "path"])
def test_a_name_that_no_file_can_have_is_that_of_no_library(
    world: Downloads, argument: str
) -> None:
    found = world.result("verify_extensions", **{argument: "x" * 300})

    assert found["exists"] is False
    assert found["load"]["reason"] == "there is no such library"


def test_a_library_that_loads_is_tried_and_told_apart_from_one_that_works(
    world: Downloads, compiled: Callable[[str], Path]
) -> None:
    shutil.copy(compiled(""), world.root / "vec0.so")
    world.result("download_extensions", url="vec0.so")

    found = world.result("verify_extensions")

    assert found["exists"]
    assert found["load"] == {"attempted": True, "ok": True, "reason": None}
    assert (found["smoke"]["attempted"], found["smoke"]["ok"]) == (True, False)
    assert "vec0" in found["smoke"]["reason"]


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
    body: str, reason: str, world: Downloads, compiled: Callable[[str], Path]
) -> None:
    world.cache.mkdir()
    shutil.copy(compiled(body), world.cache / "bad.so")

    found = world.result("verify_extensions", path=str(world.cache / "bad.so"))

    assert (found["load"]["attempted"], found["load"]["ok"]) == (True, False)
    assert reason in found["load"]["reason"]
    assert found["smoke"]["attempted"] is False


def test_a_library_that_hangs_is_given_up(
    world: Downloads, compiled: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "PATIENCE", 1.0)
    world.cache.mkdir()
    shutil.copy(compiled("for (;;) sleep(1);"), world.cache / "slow.so")

    found = world.result("verify_extensions", path=str(world.cache / "slow.so"))

    assert "did not answer" in found["load"]["reason"]


def test_code_of_a_repository_is_not_loaded(
    world: Downloads, compiled: Callable[[str], Path]
) -> None:
    shutil.copy(compiled("abort();"), world.root / "vec0.so")
    (world.cache).mkdir()
    (world.cache / "link.so").symlink_to(world.root / "vec0.so")

    direct = world.result("verify_extensions", path="vec0.so")
    linked = world.result("verify_extensions", path=str(world.cache / "link.so"))
    outside = world.error("verify_extensions", path="/bin/sh")

    for found in (direct, linked):
        assert found["exists"]
        assert found["load"]["attempted"] is False
        assert "cache" in found["load"]["reason"]
    assert outside.code is ErrorCode.FORBIDDEN


def test_a_library_that_was_changed_after_its_download_is_not_loaded(world: Downloads) -> None:
    (world.root / "vec0.so").write_bytes(ELF)
    found = world.result("download_extensions", url="vec0.so")
    Path(found["extensionPath"]).write_bytes(ELF + b"changed")

    checked = world.result("verify_extensions")

    assert checked["load"]["attempted"] is False
    assert "not the library" in checked["load"]["reason"]


def test_what_is_not_to_be_loaded_is_only_looked_for(world: Downloads) -> None:
    (world.root / "vec0.so").write_bytes(ELF)
    world.result("download_extensions", url="vec0.so")
    other = next(key for key in ("x64", "arm64") if key != libraries.this_machine().arch)
    world.result("download_extensions", url="vec0.so", arch=other)

    for given in ({"load": False}, {"annMode": "built-in"}, {"arch": other}):
        found = world.result("verify_extensions", **given)

        assert found["exists"]
        assert found["load"]["attempted"] is False


def test_the_names_of_a_trial_cannot_carry_sql(world: Downloads) -> None:
    for given in ({"table": 'a"; DROP'}, {"module": "a(b)"}, {"options": "x); SELECT (1"}):
        assert world.error("verify_extensions", **given).code is ErrorCode.INVALID_REQUEST


def test_the_real_extension_works_where_it_is_installed(world: Downloads) -> None:
    installed = pytest.importorskip("sqlite_vec", reason="sqlite-vec is not installed")
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.write(f"{installed.loadable_path()}.so", "vec0.so")
    (world.root / "vec.zip").write_bytes(data.getvalue())
    world.result("download_extensions", url="vec.zip")

    for given in ({}, {"encoding": "json", "options": "distance_metric=cosine"}):
        found = world.result("verify_extensions", **given)

        assert found["smoke"] == {"attempted": True, "ok": True, "reason": None}

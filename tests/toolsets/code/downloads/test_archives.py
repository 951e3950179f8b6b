"""Archives: hostile ones are refused without a trace, good ones are extracted exactly."""

import bz2
import gzip
import io
import lzma
import random
import shutil
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.code.downloads import archives
from cleats.toolsets.code.downloads.archives import DEFAULT_ARCHIVE_LIMITS, ArchiveTally
from cleats.toolsets.code.downloads.unpacking import ArchiveLimits
from tests.support.hostile_archives import ZipEntry, build_tar, build_tar_entry, build_zip, generate_hostile_archives
from tests.support.shell import LAW_SETTINGS

TREE_CONTENT = {
    "readme.txt": b"hello\n",
    "bin/run": b"#!/bin/sh\n",
    "data/empty": b"",
    "data/deep/er/zeros": b"\0" * 70_000,
    "data/näme with spaces.txt": b"x",
    "nested.zip": build_zip(ZipEntry(b"../evil")),
    f"long/{'n' * 120}/{'m' * 90}.txt": b"long",
}


def read_tree(folder: Path) -> dict[str, bytes | str | None]:
    """Return all entries below a folder: contents of files, targets of links, None for the rest."""
    entries: dict[str, bytes | str | None] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            entries[name] = str(path.readlink())
        else:
            entries[name] = path.read_bytes() if path.is_file() else None
    return entries


def read_files(folder: Path) -> dict[str, bytes | str | None]:
    return {name: content for name, content in read_tree(folder).items() if content is not None}


def extract_names(data: bytes, target: Path, limits: ArchiveLimits = DEFAULT_ARCHIVE_LIMITS) -> list[str]:
    return [entry.name for entry in archives.extract_archive(io.BytesIO(data), target, limits)]


def pack_archive(kind: str, content: dict[str, bytes]) -> bytes:
    """Return an archive as the standard libraries write it."""
    file = io.BytesIO()
    if kind.startswith("zip"):
        method = zipfile.ZIP_STORED if kind == "zip stored" else zipfile.ZIP_DEFLATED
        with zipfile.ZipFile(_UnseekableFile(file) if kind == "zip streamed" else file, "w", method) as zip_archive:
            for name, data in content.items():
                info = zipfile.ZipInfo(name)
                info.external_attr = (0o755 if name.startswith("bin/") else 0o644) << 16
                info.compress_type = method
                with zip_archive.open(info, "w", force_zip64=kind == "zip large") as entry:
                    entry.write(data)
        return file.getvalue()
    formats = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
    form, _, wrapping = kind.partition(" ")
    with tarfile.open(fileobj=file, mode="w", format=formats[form]) as archive:
        for name, data in content.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o755 if name.startswith("bin/") else 0o644
            archive.addfile(member, io.BytesIO(data))
    wrap: dict[str, Callable[[bytes], bytes]] = {
        "gz": gzip.compress,
        "bz2": bz2.compress,
        "xz": lzma.compress,
        "": bytes,
    }
    return wrap[wrapping](file.getvalue())


class _UnseekableFile(io.RawIOBase):
    """A file that cannot seek, so that sizes are written after the contents."""

    def __init__(self, file: io.BytesIO) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        return self._file.write(data)  # type: ignore[arg-type]


TAR_KINDS = [f"{form} {wrap}".strip() for form in ("ustar", "gnu", "pax") for wrap in ("", "gz", "bz2", "xz")]
ARCHIVE_KINDS = ["zip", "zip stored", "zip large", "zip streamed", *TAR_KINDS]


def test_two_hundred_hostile_archives_and_more_are_refused_without_a_trace(tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "place"
    folder.mkdir(parents=True)
    (tmp_path / "canary").write_bytes(b"alive")
    (folder / "neighbour").write_bytes(b"alive")
    (folder / "good.txt").symlink_to(tmp_path / "canary")
    before = read_tree(tmp_path)
    cases = generate_hostile_archives()
    wrong = {}

    for label, data, code in cases:
        try:
            wrong[label] = str(extract_names(data, folder / "target"))
        except ToolError as error:
            if error.code.name != code:
                wrong[label] = error.message

    assert len({label for label, _, _ in cases}) == len(cases) >= 200
    assert wrong == {}
    assert read_tree(tmp_path) == before
    assert not Path("/tmp/evil").exists()


@pytest.mark.parametrize("kind", ARCHIVE_KINDS)
def test_a_good_archive_comes_out_exactly(kind: str, tmp_path: Path) -> None:
    target = tmp_path / "target"

    names = extract_names(pack_archive(kind, TREE_CONTENT), target)

    assert sorted(names) == sorted(TREE_CONTENT)
    assert read_files(target) == TREE_CONTENT
    assert list(tmp_path.iterdir()) == [target]
    assert (target / "bin/run").stat().st_mode & 0o777 == 0o755
    assert (target / "readme.txt").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("wrapping", ["--gzip", "--bzip2", "--xz", "--format=posix"])
def test_what_the_command_tar_writes_of_a_folder_comes_out(wrapping: str, tmp_path: Path) -> None:
    if wrapping in {"--bzip2", "--xz"} and shutil.which(wrapping.strip("-")) is None:
        pytest.skip("tar leaves this to a program that is not there")
    source = tmp_path / "source"
    for name, data in TREE_CONTENT.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(data)
    command = ["tar", wrapping, "-C", str(source), "-cf", str(tmp_path / "a"), "."]
    subprocess.run(command, check=True)

    extract_names((tmp_path / "a").read_bytes(), tmp_path / "target")

    assert read_files(tmp_path / "target") == TREE_CONTENT


@settings(LAW_SETTINGS, max_examples=60)
@given(
    content=st.dictionaries(
        st.from_regex(r"x[a-z0-9]{1,8}\.[a-z]{1,3}(/x[a-z0-9]{1,8}\.[a-z]{1,3}){0,2}", fullmatch=True),
        st.binary(max_size=600),
        min_size=1,
        max_size=6,
    ),
    kind=st.sampled_from(ARCHIVE_KINDS),
)
def test_any_plain_tree_survives_any_format(
    content: dict[str, bytes], kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    names = list(content)
    content = {n: c for n, c in content.items() if not any(o.startswith(f"{n}/") for o in names)}
    target = tmp_path_factory.mktemp("law") / "target"

    extract_names(pack_archive(kind, content), target)

    assert read_files(target) == content


@settings(LAW_SETTINGS, max_examples=150)
@given(kind=st.sampled_from(ARCHIVE_KINDS), seed=st.integers(0, 2**32), hits=st.integers(1, 8))
def test_a_damaged_archive_is_refused_or_harmless_and_never_a_crash(
    kind: str, seed: int, hits: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("law")
    rng = random.Random(seed)
    data = bytearray(pack_archive(kind, {"a/b.txt": b"text" * 50, "c": b"c"}))
    for _ in range(hits):
        data[rng.randrange(len(data))] = rng.randrange(256)

    try:
        extract_names(bytes(data), folder / "target")
    except ToolError as error:
        code, leftovers = error.code, []
    else:
        code, leftovers = ErrorCode.ARCHIVE_UNSAFE, [folder / "target"]

    assert code in (ErrorCode.ARCHIVE_UNSAFE, ErrorCode.ARCHIVE_TOO_LARGE)
    assert list(folder.iterdir()) == leftovers
    assert not any(path.is_symlink() for path in folder.rglob("*"))


def test_several_streams_in_a_row_are_one_archive(tmp_path: Path) -> None:
    plain_archive = build_tar(build_tar_entry(b"a", b"first" * 300), build_tar_entry(b"b"))
    data = gzip.compress(plain_archive[:700]) + gzip.compress(plain_archive[700:]) + b"\0" * 100

    assert extract_names(data, tmp_path / "target") == ["a", "b"]


def test_limits_count_what_comes_out(tmp_path: Path) -> None:
    data = pack_archive("zip", {"a": b"x" * 900, "b": b"y" * 900})
    for limits in (ArchiveLimits(total=1799), ArchiveLimits(entry=899), ArchiveLimits(entries=1)):
        with pytest.raises(ToolError) as refused:
            extract_names(data, tmp_path / "target", limits)

        assert refused.value.code is ErrorCode.ARCHIVE_TOO_LARGE

    assert extract_names(data, tmp_path / "target", ArchiveLimits(total=1800, entry=900, entries=2))


def test_padding_and_headers_have_a_limit_too(tmp_path: Path) -> None:
    data = gzip.compress(build_tar(build_tar_entry(b"a")) + b"\0" * (17 << 20))

    with pytest.raises(ToolError) as refused:
        extract_names(data, tmp_path / "target", ArchiveLimits(total=1000))

    assert refused.value.code is ErrorCode.ARCHIVE_TOO_LARGE
    with pytest.raises(ToolError):
        ArchiveTally(ArchiveLimits(total=10), packed=10).add_bytes(11)


def test_text_without_an_archive_is_refused(tmp_path: Path) -> None:
    for data in (b"", b"hello", b"\0" * 4096, b"x" * 4096):
        with pytest.raises(ToolError) as refused:
            extract_names(data, tmp_path / "target")

        assert refused.value.code is ErrorCode.ARCHIVE_UNSAFE


def test_a_target_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "target").symlink_to(tmp_path / "nowhere")

    with pytest.raises(FileExistsError):
        extract_names(pack_archive("zip", TREE_CONTENT), tmp_path / "target")

    assert read_tree(tmp_path) == {"target": str(tmp_path / "nowhere")}


def test_an_extraction_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    data = pack_archive("gnu gz", TREE_CONTENT)
    for patience in (2, 9):
        alive = partial(next, iter(range(patience)))

        with pytest.raises(StopIteration):
            archives.extract_archive(io.BytesIO(data), tmp_path / "t", check_cancelled=alive)

        assert list(tmp_path.iterdir()) == []

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cleats.toolsets.code.discovery.files import Discovery, DiscoveryLimits, discover_files

GIT_OPTIONS = ("-c", "user.name=N", "-c", "user.email=n@example.org", "-c", "protocol.file.allow=always")


def run_git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *GIT_OPTIONS, *arguments], cwd=root, check=True, capture_output=True)


def write_files(root: Path, *paths: str, text: str = "text\n") -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def make_repository(root: Path, *paths: str) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    run_git(root, "init", "-q")
    write_files(root, *paths)
    if paths:
        run_git(root, "add", "-f", "--all")
        run_git(root, "commit", "-qm", "All")
    return root


def list_paths(discovery: Discovery) -> list[str]:
    return [file.path for file in discovery.files]


def collect_reasons(discovery: Discovery) -> dict[str, str]:
    return {skipped.path: skipped.reason for skipped in discovery.skipped}


def test_tracked_files_and_new_ones_that_are_not_ignored_are_found(tmp_path: Path) -> None:
    root = make_repository(tmp_path, "a.py", "kept.log")
    write_files(root, ".gitignore", text="*.log\n")
    write_files(root, "new.py", "new.log")

    discovery = discover_files(root)

    assert discovery.source == "git"
    assert list_paths(discovery) == [".gitignore", "a.py", "kept.log", "new.py"]


def test_a_file_says_its_size_time_language_and_where_to_open_it(tmp_path: Path) -> None:
    root = make_repository(tmp_path, "src/a.py")

    (file,) = discover_files(root).files

    status = (root / "src/a.py").stat()
    assert (file.size, file.mtime_ns) == (status.st_size, status.st_mtime_ns)
    assert (file.lang, file.mode) == ("python", "code")
    assert Path(file.fs_path).samefile(root / "src/a.py")


def test_a_deleted_file_that_is_still_tracked_is_not_found(tmp_path: Path) -> None:
    root = make_repository(tmp_path, "a.py", "gone.py", "folder/gone.py")
    (root / "gone.py").unlink()
    (root / "folder" / "gone.py").unlink()
    (root / "folder").rmdir()
    write_files(root, "folder")

    assert list_paths(discover_files(root)) == ["a.py", "folder"]


def test_a_repository_without_commits_has_files(tmp_path: Path) -> None:
    run_git(tmp_path, "init", "-q")
    write_files(tmp_path, "a.py")

    discovery = discover_files(tmp_path)

    assert (discovery.source, list_paths(discovery)) == ("git", ["a.py"])


def test_an_empty_repository_has_none(tmp_path: Path) -> None:
    run_git(tmp_path, "init", "-q")

    assert discover_files(tmp_path) == Discovery([], [], "git")


def test_a_file_in_conflict_is_found_once(tmp_path: Path) -> None:
    root = make_repository(tmp_path, "a.py")
    run_git(root, "checkout", "-qb", "other")
    write_files(root, "a.py", text="other\n")
    run_git(root, "commit", "-qam", "Other")
    run_git(root, "checkout", "-q", "-")
    write_files(root, "a.py", text="mine\n")
    run_git(root, "commit", "-qam", "Mine")
    subprocess.run(["git", *GIT_OPTIONS, "merge", "other"], cwd=root, check=False, capture_output=True)

    assert list_paths(discover_files(root)) == ["a.py"]


def test_submodules_and_repositories_within_are_read_to_any_depth(tmp_path: Path) -> None:
    inner = make_repository(tmp_path / "inner", "inner.py")
    middle = make_repository(tmp_path / "middle", "middle.py")
    run_git(middle, "submodule", "--quiet", "add", str(inner), "deep")
    run_git(middle, "commit", "-qm", "Deep")
    root = make_repository(tmp_path / "root", "outer.py")
    run_git(root, "submodule", "--quiet", "add", str(middle), "sub")
    run_git(root, "submodule", "--quiet", "update", "--init", "--recursive")
    make_repository(root / "nested", "own.py")

    assert list_paths(discover_files(root)) == [
        ".gitmodules",
        "nested/own.py",
        "outer.py",
        "sub/.gitmodules",
        "sub/deep/inner.py",
        "sub/middle.py",
    ]


def test_a_submodule_that_was_not_fetched_is_empty(tmp_path: Path) -> None:
    inner = make_repository(tmp_path / "inner", "inner.py")
    root = make_repository(tmp_path / "root", "outer.py")
    run_git(root, "submodule", "--quiet", "add", str(inner), "sub")
    run_git(root, "commit", "-qm", "Sub")
    run_git(root, "submodule", "--quiet", "deinit", "-f", "sub")

    assert list_paths(discover_files(root)) == [".gitmodules", "outer.py"]


def test_a_part_of_a_repository_can_be_named(tmp_path: Path) -> None:
    root = make_repository(tmp_path, "top.py", "part/a.py", "part/deep/b.py")

    assert list_paths(discover_files(root / "part")) == ["a.py", "deep/b.py"]


def test_an_ignored_folder_that_is_named_itself_is_read(tmp_path: Path) -> None:
    root = make_repository(tmp_path, "top.py")
    write_files(root, ".gitignore", text="out/\n")
    write_files(root, "out/a.py")

    discovery = discover_files(root / "out")

    assert (discovery.source, list_paths(discovery)) == ("walk", ["a.py"])


def test_our_own_ignore_file_holds_in_a_repository_and_in_a_walk(tmp_path: Path) -> None:
    for root in (make_repository(tmp_path / "git"), tmp_path / "walk"):
        write_files(root, "a.py", "drop.py", "sub/drop.py", "sub/keep.py", "vendor/x/y.py")
        write_files(root, ".cleatsignore", text="drop.py\nvendor/\n")
        write_files(root, "sub/.cleatsignore", text="!drop.py\nkeep.py\n")

        discovery = discover_files(root)

        paths = [path for path in list_paths(discovery) if not path.endswith(".cleatsignore")]
        assert paths == ["a.py", "sub/drop.py"]
        assert discovery.count_reasons()["ignored"] >= 3


def test_our_own_ignore_file_holds_when_git_ignores_it(tmp_path: Path) -> None:
    root = make_repository(tmp_path, "a.py", "drop.py")
    write_files(root, ".gitignore", text=".cleatsignore\n")
    write_files(root, ".cleatsignore", text="drop.py\n")

    assert list_paths(discover_files(root)) == [".gitignore", "a.py"]


@pytest.mark.parametrize("name", ["tools", "build", "dist", "img", "gen", "node_modules", ".tox"])
def test_no_folder_is_skipped_for_its_name_when_its_files_are_tracked(tmp_path: Path, name: str) -> None:
    root = make_repository(tmp_path, f"{name}/a.py")

    assert list_paths(discover_files(root)) == [f"{name}/a.py"]


def test_what_tools_made_is_skipped_and_said_once(tmp_path: Path) -> None:
    for root in (make_repository(tmp_path / "git", "a.py"), tmp_path / "walk"):
        write_files(root, "a.py", "node_modules/x/i.js", "node_modules/y.js", "p/__pycache__/a.txt")
        write_files(root, "env/pyvenv.cfg", "env/lib/x.py", "cache/CACHEDIR.TAG", "cache/y.py")
        write_files(root, ".svn/entries")

        discovery = discover_files(root)

        assert list_paths(discovery) == ["a.py"]
        skipped = {path: why for path, why in collect_reasons(discovery).items() if path != ".git"}
        assert skipped == {
            ".svn": "version_control",
            "cache": "tool_output",
            "env": "tool_output",
            "node_modules": "tool_output",
            "p/__pycache__": "tool_output",
        }
        assert all(skip.detail for skip in discovery.skipped if skip.reason == "tool_output")


def test_a_bare_repository_on_the_way_is_left_out(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin", "a.py")
    home = tmp_path / "home"
    run_git(tmp_path, "clone", "-q", "--bare", str(origin), str(home / ".bare"))
    write_files(home, ".git", text="gitdir: ./.bare\n")
    write_files(home, "b.py")

    discovery = discover_files(home)

    assert (discovery.source, list_paths(discovery)) == ("walk", ["b.py"])
    assert collect_reasons(discovery) == {".bare": "version_control", ".git": "version_control"}


def test_links_are_reported_and_never_followed(tmp_path: Path) -> None:
    write_files(tmp_path / "outside", "secret.py")
    for root in (make_repository(tmp_path / "git", "a.py", "was/x.py"), tmp_path / "walk"):
        write_files(root, "a.py")
        (root / "loop").symlink_to(root)
        (root / "file").symlink_to(root / "a.py")
        (root / "broken").symlink_to("nowhere")
        if (root / "was").exists():
            (root / "was").rename(root / "moved")
        (root / "was").symlink_to(tmp_path / "outside")
        write_files(tmp_path / "outside", "x.py")

        discovery = discover_files(root)

        assert [path for path in list_paths(discovery) if path != "moved/x.py"] == ["a.py"]
        assert {"loop", "file", "broken", "was"} <= {
            path for path, reason in collect_reasons(discovery).items() if reason == "symlink"
        }


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes in folders")
def test_pipes_and_sockets_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket may not be long
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / ".gitignore")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")

        discovery = discover_files(tmp_path)

    assert collect_reasons(discovery) == {".gitignore": "special", "pipe": "special", "sock": "special"}


def test_names_of_any_bytes_are_found_and_told_apart(tmp_path: Path) -> None:
    names = [b"new\nline.py", b"b\xff%.py", "é.py".encode(), b'"q".py', b" lead.py", b"-x.py"]
    for name in names:
        (tmp_path / os.fsdecode(name)).write_text("x\n")
    for root in (tmp_path, make_repository(tmp_path)):
        discovery = discover_files(root)

        assert list_paths(discovery) == [
            " lead.py",
            '"q".py',
            "-x.py",
            "b%FF%25.py",
            "new\nline.py",
            "é.py",
        ]
        for file in discovery.files:
            assert Path(file.fs_path).read_text() == "x\n"
            assert file.path.encode()


def test_two_names_that_read_the_same_are_not_mixed_up(tmp_path: Path) -> None:
    make_repository(tmp_path)
    for name in (b"b\xff.py", b"b%FF.py"):
        (tmp_path / os.fsdecode(name)).write_text("x\n")

    discovery = discover_files(tmp_path)

    assert (list_paths(discovery), collect_reasons(discovery)) == (["b%FF.py"], {"b%FF.py": "unnameable"})
    assert discovery.files[0].fs_path.endswith("b%FF.py")


def test_a_folder_made_by_a_tool_is_read_when_it_is_named_itself(tmp_path: Path) -> None:
    write_files(tmp_path, "pyvenv.cfg", "lib/a.py")

    assert list_paths(discover_files(tmp_path)) == ["lib/a.py", "pyvenv.cfg"]


def test_a_very_deep_tree_is_walked_or_reported(tmp_path: Path) -> None:
    folder = tmp_path
    here = Path.cwd()
    try:
        for _ in range(2200):
            os.chdir(folder)
            Path("d").mkdir()
            folder = Path("d")
        Path("deep.py").write_text("x\n")
    finally:
        os.chdir(here)

    discovery = discover_files(tmp_path)

    assert list_paths(discovery) == []
    assert list(collect_reasons(discovery).values()) == ["unreadable"]
    subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)


def test_large_files_are_reported_without_being_read(tmp_path: Path) -> None:
    with (tmp_path / "huge.py").open("wb") as file:
        file.truncate(50 * 1024 * 1024)
    write_files(tmp_path, "a.py")

    discovery = discover_files(tmp_path)

    assert list_paths(discovery) == ["a.py"]
    assert discovery.skipped[0] == ("huge.py", "too_large", "52428800 bytes")


def test_files_beyond_the_limit_are_reported_together(tmp_path: Path) -> None:
    write_files(tmp_path, "a.py", "b.py", "c.py")

    discovery = discover_files(tmp_path, DiscoveryLimits(max_files=1))

    assert list_paths(discovery) == ["a.py"]
    assert discovery.skipped == [("b.py", "too_many_files", "this and 1 more")]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("uv.lock", "lockfile"),
        (".env", "secret"),
        ("deploy/.env.production", "secret"),
        ("keys/server.pem", "secret"),
        ("sub/package-lock.json", "lockfile"),
        ("api_pb2.py", "generated"),
        ("api.pb.go", "generated"),
        ("jquery.min.js", "minified"),
        ("logo.PNG", "binary"),
    ],
)
def test_a_name_alone_may_be_a_reason(tmp_path: Path, name: str, reason: str) -> None:
    write_files(tmp_path, name)

    assert collect_reasons(discover_files(tmp_path)) == {name: reason}

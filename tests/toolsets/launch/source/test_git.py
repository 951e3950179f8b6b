"""Tests of fetching a repository at one commit, whatever it holds."""

import os
from pathlib import Path

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system.git import filter_git_environment
from cleats.toolsets.launch.git import client
from cleats.toolsets.launch.git.client import classify_fault
from cleats.toolsets.launch.patching.path_guard import list_changed_paths
from tests.support.git_repositories import GitCheckout, is_trap_sprung, write_trap_program
from tests.support.requirements import requirement

pytestmark = pytest.mark.anyio


GIT_ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
MISSING_COMMIT = "0" * 40


def create_origin(tmp_path: Path) -> GitCheckout:
    checkout = GitCheckout.create(tmp_path / "origin")
    checkout.commit(a__py="1\n")
    return checkout


async def test_a_commit_that_is_no_longer_the_head_is_fetched_with_its_files_only(
    tmp_path: Path,
) -> None:
    source = create_origin(tmp_path)
    first = source.head_commit
    source.commit(b__py="2\n")

    await client.clone_commit(source.root.as_uri(), first, tmp_path / "repo", GIT_ENVIRON)

    assert sorted(path.name for path in (tmp_path / "repo").iterdir()) == [".git", "a.py"]
    assert await client.is_clean_checkout(tmp_path / "repo", first, GIT_ENVIRON)


async def test_a_server_that_gives_no_single_commits_is_asked_for_its_branches(
    tmp_path: Path,
) -> None:
    source = create_origin(tmp_path)
    first = source.head_commit
    source.commit(b__py="2\n")
    source.run_git("config", "protocol.version", "0")
    env = {**GIT_ENVIRON, **_build_config_environ(("protocol.version", "0"))}

    await client.clone_commit(source.root.as_uri(), first, tmp_path / "repo", env)

    assert (tmp_path / "repo" / "a.py").is_file()


async def test_a_right_checkout_is_kept_and_a_half_or_changed_one_made_again(
    tmp_path: Path,
) -> None:
    source = create_origin(tmp_path)
    target = tmp_path / "repo"
    (tmp_path / "repo.part").mkdir()
    (tmp_path / "repo.part" / "half").write_text("half")
    target.mkdir()
    (target / "stray").write_text("stray")

    await client.clone_commit(str(source.root), source.head_commit, target, GIT_ENVIRON)
    inode_after = (target / "a.py").stat().st_ino
    await client.clone_commit(str(source.root), source.head_commit, target, GIT_ENVIRON)
    inode_before = (target / "a.py").stat().st_ino
    (target / "a.py").write_text("changed\n")
    await client.clone_commit(str(source.root), source.head_commit, target, GIT_ENVIRON)

    assert inode_after == inode_before
    assert (target / "a.py").read_text() == "1\n"
    assert not (target / "stray").exists()
    assert not (tmp_path / "repo.part").exists()


async def test_an_unknown_commit_and_an_unknown_repository_are_told_apart(tmp_path: Path) -> None:
    source = create_origin(tmp_path)

    with pytest.raises(ToolError) as commit:
        await client.clone_commit(str(source.root), MISSING_COMMIT, tmp_path / "a", GIT_ENVIRON)
    with pytest.raises(ToolError) as repository:
        await client.clone_commit(str(tmp_path / "none"), MISSING_COMMIT, tmp_path / "b", GIT_ENVIRON)
    with pytest.raises(ToolError) as name:
        await client.clone_commit(str(source.root), "main", tmp_path / "c", GIT_ENVIRON)

    assert commit.value.code is ErrorCode.INVALID_INPUT
    assert repository.value.code is ErrorCode.REPO_NOT_FOUND
    assert name.value.code is ErrorCode.INVALID_INPUT
    assert [commit.value.retryable, repository.value.retryable] == [False, False]
    assert not any((tmp_path / name).exists() for name in "abc")
    assert str(tmp_path) not in str(commit.value) + str(repository.value)


async def test_only_a_failing_network_is_worth_another_try(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as refused:
        await client.find_remote_commit("http://127.0.0.1:9/owner/name", GIT_ENVIRON)

    assert refused.value.retryable
    assert refused.value.details == {"reason": "network"}


@pytest.mark.parametrize(
    ("stderr", "fault"),
    [
        ("fatal: unable to access 'https://x/': The requested URL returned error: 503", "network"),
        ("fatal: unable to access 'https://x/': Could not resolve host: x", "network"),
        ("remote: Repository not found.\nfatal: repository 'https://x/' not found", "not_found"),
        ("fatal: could not read Username for 'https://x': terminal prompts disabled", "no_access"),
        ("fatal: transport 'ext' not allowed", "protocol_not_allowed"),
        ("fatal: remote error: upload-pack: not our ref 0000", "unknown_commit"),
        (
            "git@x: Permission denied (publickey).\nfatal: Could not read from remote repository.",
            "no_access",
        ),
        ("error: unable to write file x\nfatal: write error: No space left on device", "no_room"),
        (
            "remote: GH006: failed.\n ! [remote rejected] x -> x (protected branch hook declined)",
            "push_refused",
        ),
        (" ! [rejected] x -> x (stale info)\nerror: failed to push some refs", "push_raced"),
        (
            "remote: error: cannot lock ref 'x'.\n ! [remote rejected] x (failed to update ref)",
            "push_raced",
        ),
        (" ! [remote rejected] x -> x (Internal Server Error)", "network"),
        ("fatal: something new", "git_failed"),
    ],
)
async def test_what_git_says_is_understood(stderr: str, fault: str) -> None:
    assert classify_fault(stderr).reason == fault


@requirement("e:code:internal")
async def test_a_full_disk_is_an_internal_failure_that_names_its_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_MIN_FREE_BYTES", 1 << 80)

    with pytest.raises(ToolError) as failed:
        await client.HardenedGit(GIT_ENVIRON, tmp_path).run("", "config", "--get", "no.such")

    assert failed.value.code is ErrorCode.INTERNAL
    assert failed.value.details == {"reason": "no_room", "cause_class": "OSError"}


async def test_nothing_of_a_repository_or_its_address_runs_a_program(tmp_path: Path) -> None:
    source = create_origin(tmp_path)
    program = write_trap_program(source, "trap")
    source.write_file(".gitattributes", "* filter=lfs\n")
    source.commit()
    env = {**GIT_ENVIRON, **_build_config_environ(("filter.lfs.smudge", str(program)))}

    await client.clone_commit(str(source.root), source.head_commit, tmp_path / "repo", env)
    with pytest.raises(ToolError) as refused:
        await client.find_remote_commit(f"ext::{program}", env)

    assert not is_trap_sprung(source)
    assert refused.value.code is ErrorCode.INVALID_INPUT


TAMPERED_CONFIGS = {
    "a filter": '[filter "x"]\n\tclean = {0}\n',
    "on one line": "[core] fsmonitor = {0}\n",
    "in a quote": '[user]\n\tname = "a\n[filter \\"x\\"]\n\tclean = {0}"\n',
    "in another file": "[include]\n\tpath = {0}\n",
    "a helper": "[credential]\n\thelper = {0}\n",
    "another address": '[url "{0}"]\n\tinsteadOf = https://\n',
}


@pytest.mark.parametrize("how", TAMPERED_CONFIGS)
async def test_a_checkout_whose_settings_were_changed_is_asked_nothing(tmp_path: Path, how: str) -> None:
    source = create_origin(tmp_path)
    source.write_file(".gitattributes", "* filter=x\n")
    source.commit()
    program = write_trap_program(source, "trap")
    target = tmp_path / "repo"
    await client.clone_commit(str(source.root), source.head_commit, target, GIT_ENVIRON)
    file = target / ".git/config"
    file.write_text(f"{file.read_text()}[user]\n\tname = Ann\n")
    assert await client.is_clean_checkout(target, source.head_commit, GIT_ENVIRON)

    file.write_text(file.read_text() + TAMPERED_CONFIGS[how].format(program))
    (target / "a.py").write_text("2\n")
    with pytest.raises(ToolError) as refused:
        await list_changed_paths(target, source.head_commit, GIT_ENVIRON)

    assert refused.value.code is ErrorCode.ILLEGAL_STATE
    assert not is_trap_sprung(source)


async def test_a_checkout_whose_settings_lie_elsewhere_is_asked_nothing(tmp_path: Path) -> None:
    source = create_origin(tmp_path)
    target = tmp_path / "repo"
    await client.clone_commit(str(source.root), source.head_commit, target, GIT_ENVIRON)
    (target / ".git/commondir").write_text(f"{source.root}/.git\n")

    with pytest.raises(ToolError) as refused:
        await list_changed_paths(target, source.head_commit, GIT_ENVIRON)

    assert refused.value.code is ErrorCode.ILLEGAL_STATE


async def test_a_repository_inside_the_checkout_is_not_asked_for_its_changes(
    tmp_path: Path,
) -> None:
    source = create_origin(tmp_path)
    first = source.head_commit
    source.run_git("update-index", "--add", "--cacheinfo", f"160000,{first},part")
    source.run_git("commit", "--quiet", "--message", "part")
    program = write_trap_program(source, "trap")
    target = tmp_path / "repo"
    await client.clone_commit(str(source.root), source.head_commit, target, GIT_ENVIRON)
    await client.clone_commit(str(source.root), first, target / "part", GIT_ENVIRON)
    GitCheckout(target / "part").run_git("config", "filter.x.clean", str(program))
    (target / "part/.gitattributes").write_text("* filter=x\n")
    (target / "part/a.py").write_text("2\n")

    changes = await list_changed_paths(target, source.head_commit, GIT_ENVIRON)
    await client.is_clean_checkout(target, source.head_commit, GIT_ENVIRON)

    assert not is_trap_sprung(source)
    assert changes == []


async def test_a_link_out_of_the_repository_is_a_plain_file(tmp_path: Path) -> None:
    source = create_origin(tmp_path)
    (source.root / "README.md").symlink_to("/etc/passwd")
    source.commit()

    await client.clone_commit(str(source.root), source.head_commit, tmp_path / "repo", GIT_ENVIRON)

    link = tmp_path / "repo" / "README.md"
    assert not link.is_symlink()
    assert link.read_text() == "/etc/passwd"


async def test_a_repository_over_the_limit_is_refused_before_its_files_are_written(
    tmp_path: Path,
) -> None:
    source = create_origin(tmp_path)
    source.commit(zeros__txt="0" * 100_000)

    with pytest.raises(ToolError) as refused:
        await client.clone_commit(
            str(source.root), source.head_commit, tmp_path / "repo", GIT_ENVIRON, size_limit=50_000
        )

    assert refused.value.details["reason"] == "too_large"
    assert not (tmp_path / "repo").exists()


async def test_a_remote_tells_its_head_its_branches_and_what_its_tags_point_at(
    tmp_path: Path,
) -> None:
    source = create_origin(tmp_path)
    first = source.head_commit
    source.run_git("tag", "--annotate", "v1.0", "--message", "one")
    source.commit(b__py="2\n")

    names = ("", "HEAD", "main", "refs/heads/main", "v1.0", "none")
    commits = [await client.find_remote_commit(str(source.root), GIT_ENVIRON, name) for name in names]

    assert commits == [*[source.head_commit] * 4, first, ""]


async def test_an_address_is_mapped_by_the_settings_of_the_environment(tmp_path: Path) -> None:
    source = create_origin(tmp_path)
    settings = tmp_path / "gitconfig"
    settings.write_text(f'[url "file://{tmp_path}/"]\n\tinsteadOf = https://github.com/owner/\n')
    env = {**GIT_ENVIRON, "GIT_CONFIG_GLOBAL": str(settings), "GIT_DIR": "/nonexistent", "LANG": "de_DE"}

    assert await client.find_remote_commit("https://github.com/owner/origin", env) == source.head_commit
    assert "GIT_DIR" not in filter_git_environment(env)


def _build_config_environ(*pairs: tuple[str, str]) -> dict[str, str]:
    environ = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (key, value) in enumerate(pairs):
        environ |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return environ

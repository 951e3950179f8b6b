"""Repositories fetched at one commit, whatever they hold."""

import os
from pathlib import Path

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.toolsets.launch.patching.worktree import changed_paths
from cleats.toolsets.launch.source import git
from cleats.toolsets.launch.source.git_faults import Fault, fault_of
from tests.git_world import Checkout, sprung, trap
from tests.requirements import requirement

pytestmark = pytest.mark.anyio


ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}
NOWHERE = "0" * 40


def origin(tmp_path: Path) -> Checkout:
    checkout = Checkout.new(tmp_path / "origin")
    checkout.commit(a__py="1\n")
    return checkout


async def test_a_commit_that_is_no_longer_the_head_is_fetched_with_its_files_only(
    tmp_path: Path,
) -> None:
    source = origin(tmp_path)
    first = source.head
    source.commit(b__py="2\n")

    await git.clone_at(source.root.as_uri(), first, tmp_path / "repo", ENV)

    assert sorted(path.name for path in (tmp_path / "repo").iterdir()) == [".git", "a.py"]
    assert await git.is_at(tmp_path / "repo", first, ENV)


async def test_a_server_that_gives_no_single_commits_is_asked_for_its_branches(
    tmp_path: Path,
) -> None:
    source = origin(tmp_path)
    first = source.head
    source.commit(b__py="2\n")
    source.git("config", "protocol.version", "0")
    env = {**ENV, **_settings(("protocol.version", "0"))}

    await git.clone_at(source.root.as_uri(), first, tmp_path / "repo", env)

    assert (tmp_path / "repo" / "a.py").is_file()


async def test_a_right_checkout_is_kept_and_a_half_or_changed_one_made_again(
    tmp_path: Path,
) -> None:
    source = origin(tmp_path)
    target = tmp_path / "repo"
    (tmp_path / "repo.part").mkdir()
    (tmp_path / "repo.part" / "half").write_text("half")
    target.mkdir()
    (target / "stray").write_text("stray")

    await git.clone_at(str(source.root), source.head, target, ENV)
    made = (target / "a.py").stat().st_ino
    await git.clone_at(str(source.root), source.head, target, ENV)
    kept = (target / "a.py").stat().st_ino
    (target / "a.py").write_text("changed\n")
    await git.clone_at(str(source.root), source.head, target, ENV)

    assert made == kept
    assert (target / "a.py").read_text() == "1\n"
    assert not (target / "stray").exists()
    assert not (tmp_path / "repo.part").exists()


async def test_an_unknown_commit_and_an_unknown_repository_are_told_apart(tmp_path: Path) -> None:
    source = origin(tmp_path)

    with pytest.raises(ToolError) as commit:
        await git.clone_at(str(source.root), NOWHERE, tmp_path / "a", ENV)
    with pytest.raises(ToolError) as repository:
        await git.clone_at(str(tmp_path / "none"), NOWHERE, tmp_path / "b", ENV)
    with pytest.raises(ToolError) as name:
        await git.clone_at(str(source.root), "main", tmp_path / "c", ENV)

    assert commit.value.code is ErrorCode.INVALID_INPUT
    assert repository.value.code is ErrorCode.REPO_NOT_FOUND
    assert name.value.code is ErrorCode.INVALID_INPUT
    assert [commit.value.retryable, repository.value.retryable] == [False, False]
    assert not any((tmp_path / name).exists() for name in "abc")
    assert str(tmp_path) not in str(commit.value) + str(repository.value)


async def test_only_a_failing_network_is_worth_another_try(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as refused:
        await git.ls_remote("http://127.0.0.1:9/owner/name", ENV)

    assert refused.value.retryable
    assert refused.value.details == {"reason": "network"}


@pytest.mark.parametrize(
    ("said", "fault"),
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
async def test_what_git_says_is_understood(said: str, fault: str) -> None:
    assert fault_of(said) is Fault(fault)


@requirement("e:code:internal")
async def test_a_full_disk_is_an_internal_failure_that_names_its_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git, "_ROOM", 1 << 80)

    with pytest.raises(ToolError) as failed:
        await git.Git(ENV, tmp_path).ask("", "config", "--get", "no.such")

    assert failed.value.code is ErrorCode.INTERNAL
    assert failed.value.details == {"reason": "no_room", "cause_class": "OSError"}


async def test_nothing_of_a_repository_or_its_address_runs_a_program(tmp_path: Path) -> None:
    source = origin(tmp_path)
    program = trap(source, "trap")
    source.write(".gitattributes", "* filter=lfs\n")
    source.commit()
    env = {**ENV, **_settings(("filter.lfs.smudge", str(program)))}

    await git.clone_at(str(source.root), source.head, tmp_path / "repo", env)
    with pytest.raises(ToolError) as refused:
        await git.ls_remote(f"ext::{program}", env)

    assert not sprung(source)
    assert refused.value.code is ErrorCode.INVALID_INPUT


MEDDLED = {
    "a filter": '[filter "x"]\n\tclean = {0}\n',
    "on one line": "[core] fsmonitor = {0}\n",
    "in a quote": '[user]\n\tname = "a\n[filter \\"x\\"]\n\tclean = {0}"\n',
    "in another file": "[include]\n\tpath = {0}\n",
    "a helper": "[credential]\n\thelper = {0}\n",
    "another address": '[url "{0}"]\n\tinsteadOf = https://\n',
}


@pytest.mark.parametrize("how", MEDDLED)
async def test_a_checkout_whose_settings_were_changed_is_asked_nothing(
    tmp_path: Path, how: str
) -> None:
    source = origin(tmp_path)
    source.write(".gitattributes", "* filter=x\n")
    source.commit()
    program = trap(source, "trap")
    target = tmp_path / "repo"
    await git.clone_at(str(source.root), source.head, target, ENV)
    file = target / ".git/config"
    file.write_text(f"{file.read_text()}[user]\n\tname = Ann\n")
    assert await git.is_at(target, source.head, ENV)

    file.write_text(file.read_text() + MEDDLED[how].format(program))
    (target / "a.py").write_text("2\n")
    with pytest.raises(ToolError) as refused:
        await changed_paths(target, source.head, ENV)

    assert refused.value.code is ErrorCode.ILLEGAL_STATE
    assert not sprung(source)


async def test_a_checkout_whose_settings_lie_elsewhere_is_asked_nothing(tmp_path: Path) -> None:
    source = origin(tmp_path)
    target = tmp_path / "repo"
    await git.clone_at(str(source.root), source.head, target, ENV)
    (target / ".git/commondir").write_text(f"{source.root}/.git\n")

    with pytest.raises(ToolError) as refused:
        await changed_paths(target, source.head, ENV)

    assert refused.value.code is ErrorCode.ILLEGAL_STATE


async def test_a_repository_inside_the_checkout_is_not_asked_for_its_changes(
    tmp_path: Path,
) -> None:
    source = origin(tmp_path)
    first = source.head
    source.git("update-index", "--add", "--cacheinfo", f"160000,{first},part")
    source.git("commit", "--quiet", "--message", "part")
    program = trap(source, "trap")
    target = tmp_path / "repo"
    await git.clone_at(str(source.root), source.head, target, ENV)
    await git.clone_at(str(source.root), first, target / "part", ENV)
    Checkout(target / "part").git("config", "filter.x.clean", str(program))
    (target / "part/.gitattributes").write_text("* filter=x\n")
    (target / "part/a.py").write_text("2\n")

    found = await changed_paths(target, source.head, ENV)
    await git.is_at(target, source.head, ENV)

    assert not sprung(source)
    assert found == []


async def test_a_link_out_of_the_repository_is_a_plain_file(tmp_path: Path) -> None:
    source = origin(tmp_path)
    (source.root / "README.md").symlink_to("/etc/passwd")
    source.commit()

    await git.clone_at(str(source.root), source.head, tmp_path / "repo", ENV)

    link = tmp_path / "repo" / "README.md"
    assert not link.is_symlink()
    assert link.read_text() == "/etc/passwd"


async def test_a_repository_over_the_limit_is_refused_before_its_files_are_written(
    tmp_path: Path,
) -> None:
    source = origin(tmp_path)
    source.commit(zeros__txt="0" * 100_000)

    with pytest.raises(ToolError) as refused:
        await git.clone_at(str(source.root), source.head, tmp_path / "repo", ENV, size_limit=50_000)

    assert refused.value.details["reason"] == "too_large"
    assert not (tmp_path / "repo").exists()


async def test_a_remote_tells_its_head_its_branches_and_what_its_tags_point_at(
    tmp_path: Path,
) -> None:
    source = origin(tmp_path)
    first = source.head
    source.git("tag", "--annotate", "v1.0", "--message", "one")
    source.commit(b__py="2\n")

    remote = await git.ls_remote(str(source.root), ENV)

    assert remote.head == source.head
    assert remote.find("v1.0") == first
    assert remote.find("main") == remote.find("HEAD") == source.head
    assert remote.find("none") == ""


async def test_an_address_is_mapped_by_the_settings_of_the_environment(tmp_path: Path) -> None:
    source = origin(tmp_path)
    settings = tmp_path / "gitconfig"
    settings.write_text(f'[url "file://{tmp_path}/"]\n\tinsteadOf = https://github.com/owner/\n')
    env = {**ENV, "GIT_CONFIG_GLOBAL": str(settings), "GIT_DIR": "/nonexistent", "LANG": "de_DE"}

    remote = await git.ls_remote("https://github.com/owner/origin", env)

    assert remote.head == source.head
    assert "GIT_DIR" not in git.kept(env)


def _settings(*pairs: tuple[str, str]) -> dict[str, str]:
    given = {"GIT_CONFIG_COUNT": str(len(pairs))}
    for number, (key, value) in enumerate(pairs):
        given |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return given

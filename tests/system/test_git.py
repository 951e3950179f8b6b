"""Tests of the one hardened git: no use of it runs anything that a checkout names."""

import os
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system import git
from cleats.system.git import GitError, ReadOnlyGit
from cleats.toolsets.code.analysis.history.head import read_git_state
from cleats.toolsets.code.analysis.history.replay import History
from cleats.toolsets.code.discovery.files import discover_files
from cleats.toolsets.launch.git.client import HardenedGit
from tests.support.git_repositories import GitCheckout, configure_trap, is_trap_sprung, write_trap_program

LAUNCH_ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1"}

TRAP_SETTINGS = [
    "core.fsmonitor",
    "core.sshCommand",
    "core.askPass",
    "core.pager",
    "core.editor",
    "core.alternateRefsCommand",
    "credential.helper",
    "diff.external",
    "diff.evil.command",
    "diff.evil.textconv",
    "filter.evil.clean",
    "filter.evil.smudge",
    "filter.evil.process",
    "gpg.program",
    "pager.log",
    "pager.diff",
]


@pytest.fixture
def checkout(tmp_path: Path) -> GitCheckout:
    return GitCheckout.create(tmp_path / "repo")


def list_settings(argv: list[str]) -> list[str]:
    return [word for option, word in pairwise(argv) if option == "-c"]


@pytest.mark.parametrize(
    "setting",
    [
        "core.fsmonitor=false",
        "core.hooksPath=/dev/null",
        "core.sshCommand=false",
        "core.askPass=",
        "diff.external=",
        "gpg.program=false",
        "gpg.ssh.program=false",
        "gpg.x509.program=false",
        "log.showSignature=false",
        "commit.gpgSign=false",
        "core.protectHFS=true",
        "core.protectNTFS=true",
        "submodule.recurse=false",
        "fetch.recurseSubmodules=false",
        "gc.auto=0",
        "maintenance.auto=false",
        "protocol.allow=never",
        "protocol.ext.allow=never",
    ],
)
def test_every_command_disables_what_is_dangerous(setting: str) -> None:
    assert setting in list_settings(git.build_argv("/usr/bin/git", ["status"], ()))


def test_a_command_that_reads_may_use_no_protocol_and_no_credentials() -> None:
    environment = git.build_environment("/usr/bin/git", {"PATH": "/evil", "GIT_DIR": "/evil"}, online=False)

    assert {"credential.helper=", "protocol.file.allow=never", "protocol.https.allow=never"} <= set(
        git.OFFLINE_SETTINGS
    )
    assert environment["GIT_ALLOW_PROTOCOL"] == "none"
    assert environment["GIT_NO_LAZY_FETCH"] == "1"
    assert environment["PATH"] == "/usr/bin"


@pytest.mark.parametrize("online", [False, True])
def test_the_environment_has_no_prompt_and_nothing_of_a_hook(online: bool) -> None:
    hook = {
        "GIT_DIR": "/x",
        "GIT_INDEX_FILE": "/x",
        "GIT_WORK_TREE": "/x",
        "GIT_EXTERNAL_DIFF": "/x",
        "LD_PRELOAD": "x",
    }

    environment = git.build_environment("/usr/bin/git", hook, online=online)

    assert not hook.keys() & environment.keys()
    assert environment["GIT_TERMINAL_PROMPT"] == "0"
    assert environment["GIT_ASKPASS"] == environment["SSH_ASKPASS"] == ""


@pytest.mark.parametrize("command", ["diff", "log", "show"])
def test_drivers_of_diffs_are_disabled_wherever_one_could_run(command: str) -> None:
    argv = git.build_argv("/usr/bin/git", [command, "HEAD"], ())

    assert argv[-4:] == [command, "--no-ext-diff", "--no-textconv", "HEAD"]


@pytest.mark.parametrize("setting", TRAP_SETTINGS)
@pytest.mark.anyio
async def test_no_use_of_git_runs_a_program_that_the_checkout_names(checkout: GitCheckout, setting: str) -> None:
    configure_trap(checkout, setting)
    hook = checkout.root / ".git/hooks/post-index-change"
    hook.parent.mkdir(exist_ok=True)
    (checkout.root / "trap").rename(hook)
    checkout.run_git("config", setting, str(hook))

    discovery = discover_files(checkout.root)
    state = read_git_state(checkout.root)
    History.from_commit(checkout.root, checkout.head_commit)
    with pytest.raises(ToolError) as refused:
        await HardenedGit(LAUNCH_ENVIRON, checkout.root).run("", "status")

    assert not is_trap_sprung(checkout)
    assert discovery.source == "git"
    assert state is not None
    assert refused.value.code is ErrorCode.ILLEGAL_STATE


@pytest.mark.parametrize("setting", [name for name in TRAP_SETTINGS if not name.startswith("filter.")])
@pytest.mark.anyio
async def test_a_launch_that_trusts_its_folder_runs_no_program_of_it_either(
    checkout: GitCheckout, setting: str
) -> None:
    configure_trap(checkout, setting)
    runner = HardenedGit(LAUNCH_ENVIRON, checkout.root, is_private=True)

    for args in (("status",), ("diff", "HEAD"), ("log", "-p"), ("show", "HEAD:a.py"), ("ls-files", "--others")):
        await runner.run("", *args)
    with suppress(ToolError):
        await runner.run("", "fetch", "http://127.0.0.1:9/none")

    assert not is_trap_sprung(checkout)


@pytest.mark.anyio
async def test_a_git_that_lies_in_the_checkout_is_never_run(
    checkout: GitCheckout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    checkout.commit(a__py="1\n")
    write_trap_program(checkout, "git")
    link = tmp_path / "link"
    link.symlink_to(checkout.root)
    for folder in (checkout.root, link):
        monkeypatch.setenv("PATH", str(folder))

        with pytest.raises(GitError):
            ReadOnlyGit.from_root(checkout.root)
        with pytest.raises(ToolError) as refused:
            await HardenedGit({"PATH": str(folder)}, checkout.root).run("", "status")
        discovery = discover_files(checkout.root)

        assert refused.value.code is ErrorCode.TOOLCHAIN_MISSING
        assert discovery.source == "walk"
    assert not is_trap_sprung(checkout)


def test_a_relative_folder_in_the_search_path_has_no_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "git").write_text("#!/bin/sh\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.chdir(tmp_path)

    with pytest.raises(GitError):
        git.find_git(None, ".")


def test_a_filter_whose_name_cannot_be_disabled_is_an_error(checkout: GitCheckout) -> None:
    checkout.run_git("config", "filter.a=b.clean", "x")

    with pytest.raises(GitError, match="cannot be disabled"):
        ReadOnlyGit.from_root(checkout.root).with_filters_disabled()

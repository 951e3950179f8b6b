"""Git for checkouts from anywhere: nothing of a repository is ever run.

The `.git/config` and `.gitattributes` of a checkout can name programs: a file monitor, hooks,
filters, external diffs, text converters, signature checkers, remote helpers. One list of settings
disables them all. The environment is built from scratch, because a server that was itself started by
a git hook would inherit `GIT_DIR`. The launch toolset has its own client, which fetches and pushes.
"""

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from cleats.system.processes import blocking

COMMAND_TIMEOUT_SECONDS = 60.0
"""Time limit of a command with a short output; a cold disk and a million files take a while."""

SILENCE_TIMEOUT_SECONDS = 300.0
"""Time without output after which a long command is aborted. The log of a large repository takes a
while to begin; a pipe in place of a file would block git for ever."""

MAX_OUTPUT_BYTES: Final = 256 * 1024 * 1024

MAX_CONFIG_BYTES: Final = 1 << 16
"""Longest accepted configuration file; the one that git creates has about two hundred bytes."""

SECURITY_SETTINGS: Final = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.sshCommand=false",
    "core.askPass=",
    "core.editor=false",
    "core.alternateRefsCommand=true",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "credential.interactive=false",
    "diff.external=",
    "gpg.program=false",
    "gpg.ssh.program=false",
    "gpg.ssh.defaultKeyCommand=",
    "gpg.x509.program=false",
    "log.showSignature=false",
    "commit.gpgSign=false",
    "push.gpgSign=false",
    "tag.gpgSign=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    "protocol.ext.allow=never",
)
"""Settings of every command: what would start a program, or write a name that a file system reads
as another one. Drivers of diffs are disabled by options, filters by their names."""

OFFLINE_SETTINGS: Final = (
    "credential.helper=",
    *(f"protocol.{name}.allow=never" for name in ("file", "git", "http", "https", "ssh")),
)
"""Settings of commands that open no connection."""

ONLINE_SETTINGS: Final = tuple(f"protocol.{name}.allow=always" for name in ("file", "http", "https", "ssh"))
"""Settings of commands that may connect, with the credentials of the user."""

_READING_SETTINGS: Final = (
    "core.quotePath=false",
    # Larger files count as binary, as in the index; git would hold both sides in memory.
    "core.bigFileThreshold=16m",
    "log.showRoot=true",
)
"""Settings that would change the output."""

_COMMANDS_WITH_DIFF_DRIVERS: Final = frozenset({"diff", "log", "show"})

_FILTER_KEYS: Final = ("clean=", "smudge=", "process=", "required=false")

_PASSED_VARIABLES: Final = frozenset(
    {
        *("HOME", "PATH", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME"),
        *("SSH_AUTH_SOCK", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "SSL_CERT_FILE", "SSL_CERT_DIR"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM"),
        *("SYSTEMROOT", "USERPROFILE", "APPDATA", "PATHEXT", "COMSPEC"),
    }
)

_FIXED_VARIABLES: Final = {
    "LC_ALL": "C",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS": "",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}

_HARMLESS_LINE_PATTERN: Final = re.compile(
    r"\s*|\s*[#;].*"
    r"|\[(core|extensions|user)\]|\[(remote|branch) \"[\w./-]+\"\]"
    r"|\s*(repositoryformatversion|filemode|bare|logallrefupdates|symlinks|autocrlf|ignorecase"
    r"|precomposeunicode|objectformat|refstorage)\s*=\s*\w+"
    r"|\s*hooksPath\s*=\s*/dev/null"
    r"|\s*(name|email|url|fetch|remote|merge)\s*=[^\\\"]*",
    re.IGNORECASE,
)
"""A permitted line; continued lines and quoted values never match. A remote may be configured,
since no remote is ever used by its name."""


class GitError(Exception):
    """Raised when git is missing or a command fails; the message is meant for people."""

    def __init__(self, message: str, stderr: str = "") -> None:
        super().__init__(message)
        self.stderr = stderr
        """The error output of git."""


class SilentGitError(GitError):
    """Raised when git writes nothing for too long because the repository blocks it."""


def find_git(checkout: Path | None = None, search_path: str | None = None) -> str:
    """Return the path of git, looked up in `search_path` or in the PATH of this process.

    Raises:
        GitError: Git is not installed, or lies in the checkout.
    """
    program = shutil.which("git", path=search_path)
    # With a relative folder in PATH, or on Windows, this could find a git in the checkout.
    if program is None or not Path(program).is_absolute():
        raise GitError("git is not installed")
    folders = () if checkout is None else (checkout, checkout.resolve())
    if any(path.is_relative_to(folder) for path in (Path(program), Path(program).resolve()) for folder in folders):
        raise GitError("git is not installed")
    return program


def build_argv(program: str, args: Sequence[str], settings: Sequence[str], filters: Sequence[str] = ()) -> list[str]:
    """Return a command line in which everything is disabled that could start another program.

    `filters` are the names of the filters in the configuration.
    """
    filter_settings = [f"filter.{name}.{key}" for name in filters for key in _FILTER_KEYS]
    all_settings = (*SECURITY_SETTINGS, *settings, *filter_settings)
    setting_args = (word for setting in all_settings for word in ("-c", setting))
    driver_options = ("--no-ext-diff", "--no-textconv") if args[0] in _COMMANDS_WITH_DIFF_DRIVERS else ()
    return [program, "--no-pager", "--no-optional-locks", *setting_args, args[0], *driver_options, *args[1:]]


def build_environment(program: str, environ: Mapping[str, str], *, online: bool) -> dict[str, str]:
    """Return the environment of a git command."""
    # An empty PATH would mean the current folder, which is the checkout.
    folder = str(Path(program).parent)
    environment = {**filter_git_environment(environ), **_FIXED_VARIABLES}
    if online:
        environment = {"PATH": folder, "GIT_SSH_COMMAND": "ssh -oBatchMode=yes", **environment}
    else:
        environment |= {"PATH": folder, "GIT_SSH_COMMAND": "false", "GIT_ALLOW_PROTOCOL": "none"}
        environment["GIT_NO_LAZY_FETCH"] = "1"
    with suppress(RuntimeError):  # where the user says which repositories are safe
        environment.setdefault("HOME", str(Path.home()))
    return environment


def filter_git_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that git may see: the user, the network, and settings for git."""
    return {
        name: value
        for name, value in environ.items()
        if name.upper() in _PASSED_VARIABLES or name.startswith("GIT_CONFIG_")
    }


def has_harmless_settings(root: Path) -> bool:
    """Return whether the checkout in a folder has only harmless settings, or does not exist yet."""
    git_folder = root / ".git"
    if git_folder.is_symlink() or git_folder.is_file() or (git_folder / "commondir").exists():
        return False  # its settings are somewhere else
    file = git_folder / "config"
    if not file.exists():
        return not file.is_symlink()
    try:
        with file.open("rb") as stream:
            text = stream.read(MAX_CONFIG_BYTES + 1).decode()
    except (OSError, UnicodeDecodeError):
        return False
    return len(text) <= MAX_CONFIG_BYTES and all(_HARMLESS_LINE_PATTERN.fullmatch(line) for line in text.split("\n"))


class ReadOnlyGit(Struct, frozen=True):
    """Git in one folder, for reading. `filters` are the names of the filters in its configuration."""

    root: Path
    program: str
    filters: tuple[str, ...] = ()

    @classmethod
    def from_root(cls, root: Path) -> "ReadOnlyGit":
        """Find the git program for a folder.

        Raises:
            GitError: Git is not installed.
        """
        return cls(root, find_git(root))

    def run(
        self,
        *args: str,
        stdin: bytes | None = None,
        timeout: float | None = COMMAND_TIMEOUT_SECONDS,
        output_limit: int = MAX_OUTPUT_BYTES,
    ) -> bytes:
        """Run a command and return its output; `stdin` is its input.

        Raises:
            GitError: The command cannot be started, or fails.
        """
        try:
            completed = blocking.run_command(
                self._build_argv(args),
                cwd=self.root,
                env=self._build_environment(),
                stdin=stdin,
                timeout=timeout,
                output_limit=output_limit,
            )
        except TimeoutError as error:
            raise GitError(f"git {args[0]} took longer than {timeout:.0f} s") from error
        except blocking.StartError as error:
            raise GitError(str(error)) from error
        if completed.exit_code != 0 or completed.truncated:
            stderr = completed.stderr.decode(errors="replace").strip()
            reason = stderr.partition("\n")[0].removeprefix("fatal: ") or "no reason given"
            raise GitError(f"git {args[0]} failed: {reason}", stderr)
        return completed.stdout

    @contextmanager
    def stream(self, *args: str) -> Iterator[Iterator[bytes]]:
        """Run a command with a long output, and yield its pieces.

        Raises:
            GitError: The command cannot be started, or fails after its last output.
        """
        try:
            with blocking.stream_output(
                self._build_argv(args),
                cwd=self.root,
                env=self._build_environment(),
                silence_timeout=SILENCE_TIMEOUT_SECONDS,
            ) as pieces:
                yield pieces
        except blocking.StartError as error:
            raise GitError(str(error)) from error
        except TimeoutError as error:
            raise SilentGitError(f"git {args[0]} printed nothing for {SILENCE_TIMEOUT_SECONDS:.0f} s") from error
        except blocking.CommandError as error:
            raise GitError(f"git {args[0]} failed with {error}") from error

    def _build_argv(self, args: Sequence[str]) -> list[str]:
        return build_argv(self.program, args, (*OFFLINE_SETTINGS, *_READING_SETTINGS), self.filters)

    def _build_environment(self) -> dict[str, str]:
        return build_environment(self.program, os.environ, online=False)  # noqa: TID251 - filtered there

    def with_filters_disabled(self) -> "ReadOnlyGit":
        """Return a copy that disables all filters of the configuration.

        Required for every command that reads files of the work tree.

        Raises:
            GitError: Git cannot read this repository, or a filter name cannot be disabled.
        """
        config_keys = self.run("config", "--null", "--name-only", "--list")
        names = {_parse_filter_name(key) for key in config_keys.decode(errors="surrogateescape").split("\0")}
        if any("=" in name for name in names):
            raise GitError("a git filter has a name that cannot be disabled")
        return ReadOnlyGit(self.root, self.program, tuple(sorted(names - {""})))


def _parse_filter_name(key: str) -> str:
    section, _, rest = key.partition(".")
    return rest.rpartition(".")[0] if section.lower() == "filter" else ""

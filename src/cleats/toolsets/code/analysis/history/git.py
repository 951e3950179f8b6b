"""Read-only git commands that run nothing from the repository and write nothing to it.

A checkout may come from anywhere, and its `.git/config` and `.gitattributes` can name programs: a
file monitor, hooks, filters, external diffs, text converters, signature checkers, remote helpers.
Every command goes through here, where each of them is disabled. The environment is built from
scratch, because a server that was itself started by a git hook would inherit `GIT_DIR`.

Objects missing from a partial clone are not fetched. No command opens a connection.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from cleats.system.processes import blocking

COMMAND_TIMEOUT_SECONDS = 60.0
"""Time limit of a command with a short output; a cold disk and a million files take a while."""

SILENCE_TIMEOUT_SECONDS = 300.0
"""Time without output after which a long command is aborted. The log of a large repository takes a
while to begin; a pipe in place of a file would block git for ever."""

_DISABLED_SETTINGS = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.sshCommand=false",
    "core.askPass=",
    "credential.helper=",
    "diff.external=",
    "gpg.program=false",
    "gpg.ssh.program=false",
    "gpg.x509.program=false",
    "log.showSignature=false",
    "protocol.allow=never",
)
"""Repository settings that would start a program."""

_FIXED_SETTINGS = (
    "core.quotePath=false",
    # Larger files count as binary, as in the index; git would hold both sides in memory.
    "core.bigFileThreshold=16m",
    "log.showRoot=true",
)
"""Settings that would change the output."""

DIFF_OPTIONS = (
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--submodule=short",
    "--ignore-submodules=all",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--inter-hunk-context=0",
    "--diff-algorithm=myers",
    "--relative",
    "-O/dev/null",
    "-U0",
    "-M",
    "-p",
)
"""Options of every patch, whatever the repository configures."""


class GitError(Exception):
    """Raised when git is missing or a command fails; the message is meant for people."""

    def __init__(self, message: str, stderr: str = "") -> None:
        super().__init__(message)
        self.stderr = stderr
        """The error output of git."""


class SilentGitError(GitError):
    """Raised when git writes nothing for too long because the repository blocks it."""


class ReadOnlyGit(Struct, frozen=True):
    """Git in one folder. `filters` are the names of the filters in its configuration."""

    root: Path
    program: str
    filters: tuple[str, ...] = ()

    @classmethod
    def from_root(cls, root: Path) -> "ReadOnlyGit":
        """Find the git program for a folder.

        Raises:
            GitError: Git is not installed.
        """
        program = shutil.which("git")
        # With a relative folder in PATH, or on Windows, this could find a git in the checkout.
        if program is None or not Path(program).is_absolute() or Path(program).is_relative_to(root):
            raise GitError("git is not installed")
        return cls(root, program)

    def build_argv(self, args: Sequence[str]) -> list[str]:
        settings = [*_DISABLED_SETTINGS, *_FIXED_SETTINGS]
        for name in self.filters:
            keys = ("clean=", "smudge=", "process=", "required=false")
            settings += (f"filter.{name}.{key}" for key in keys)
        setting_args = (word for setting in settings for word in ("-c", setting))
        return [self.program, "--no-pager", "--no-optional-locks", *setting_args, *args]

    def run(self, *args: str, stdin: bytes | None = None) -> bytes:
        """Run a command and return its output; `stdin` is its input.

        Raises:
            GitError: The command cannot be started, or fails.
        """
        try:
            completed = blocking.run_command(
                self.build_argv(args),
                cwd=self.root,
                env=self._build_environment(),
                stdin=stdin,
                timeout=COMMAND_TIMEOUT_SECONDS,
                output_limit=_MAX_OUTPUT_BYTES,
            )
        except TimeoutError as error:
            raise GitError(f"git {args[0]} took longer than {COMMAND_TIMEOUT_SECONDS:.0f} s") from error
        except blocking.StartError as error:
            raise GitError(str(error)) from error
        if completed.exit_code != 0 or completed.truncated:
            stderr = completed.stderr.decode(errors="replace").strip()
            raise GitError(f"git {args[0]} failed: {_first_error_line(stderr)}", stderr)
        return completed.stdout

    @contextmanager
    def stream(self, *args: str) -> Iterator[Iterator[bytes]]:
        """Run a command with a long output, and yield its pieces.

        Raises:
            GitError: The command cannot be started, or fails after its last output.
        """
        try:
            with blocking.stream_output(
                self.build_argv(args),
                cwd=self.root,
                env=self._build_environment(),
                silence_timeout=SILENCE_TIMEOUT_SECONDS,
            ) as pieces:
                yield pieces
        except blocking.StartError as error:
            raise GitError(str(error)) from error
        except TimeoutError as error:
            raise SilentGitError(f"git {args[0]} said nothing for {SILENCE_TIMEOUT_SECONDS:.0f} s") from error
        except blocking.CommandError as error:
            raise GitError(f"git {args[0]} failed with {error}") from error

    def _build_environment(self) -> dict[str, str]:
        environment = {
            "LC_ALL": "C",
            # An empty PATH would mean the current folder, which is the checkout.
            "PATH": str(Path(self.program).parent),
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
        }
        with suppress(RuntimeError):  # where the user says which repositories are safe
            environment["HOME"] = str(Path.home())
        return environment

    def with_filters_disabled(self) -> "ReadOnlyGit":
        """Return a copy that disables all filters of the configuration.

        Required for every command that reads files of the work tree.

        Raises:
            GitError: Git cannot read this repository, or a filter name cannot be disabled.
        """
        config_keys = self.run("config", "--null", "--name-only", "--list")
        names = {_parse_filter_name(key) for key in config_keys.decode(errors="surrogateescape").split("\0")}
        if any("=" in name for name in names):
            raise GitError("a filter has a name that cannot be switched off")
        return ReadOnlyGit(self.root, self.program, tuple(sorted(names - {""})))


_MAX_OUTPUT_BYTES = 256 * 1024 * 1024


def _parse_filter_name(key: str) -> str:
    section, _, rest = key.partition(".")
    return rest.rpartition(".")[0] if section.lower() == "filter" else ""


def _first_error_line(stderr: str) -> str:
    return stderr.partition("\n")[0].removeprefix("fatal: ") or "it did not say why"

"""Git, asked so that nothing of the repository is run and nothing in it is written.

A checkout may come from anywhere, and its `.git/config` and `.gitattributes` can name programs:
a file monitor, hooks, filters, external diffs, text converters, signature checkers, remote
helpers. Every question goes through here, where each of them is switched off. The environment is
made from nothing, because a server that was itself started by a git hook would inherit `GIT_DIR`.

Objects that a partial clone has left behind are not fetched. No question opens a connection.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from cleats.runtime import blocking

TIMEOUT = 60.0
"""Seconds for a question with a short answer; a cold disk and a million files need some."""

SILENCE = 300.0
"""Seconds without a word in a long answer. The log of a large repository takes a while to begin; a
pipe in the place of a file would hold git up for ever."""

_SWITCHED_OFF = (
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
"""Settings of a repository that would start a program."""

_SETTLED = (
    "core.quotePath=false",
    # Larger ones count as binary, as they do for the index; git would hold both sides in memory.
    "core.bigFileThreshold=16m",
    "log.showRoot=true",
)
"""Settings that would change an answer."""

DIFF = (
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
"""How every patch is made, whatever the repository is set to."""


class GitError(Exception):
    """Raised when git is missing, or answers with a failure; the message is for people."""

    def __init__(self, message: str, said: str = "") -> None:
        super().__init__(message)
        self.said = said
        """What git wrote about it."""


class SilentGitError(GitError):
    """Raised when git says nothing for too long: something of the repository holds it up."""


class Git(Struct, frozen=True):
    """Git in one folder. `filters` are the names of the filters its configuration knows."""

    root: Path
    program: str
    filters: tuple[str, ...] = ()

    @classmethod
    def at(cls, root: Path) -> "Git":
        """Find git.

        Raises:
            GitError: there is none.
        """
        found = shutil.which("git")
        # A search path with a relative folder in it, or Windows, would find one in the checkout.
        if found is None or not Path(found).is_absolute() or Path(found).is_relative_to(root):
            raise GitError("git is not installed")
        return cls(root, found)

    def argv(self, words: Sequence[str]) -> list[str]:
        settings = [*_SWITCHED_OFF, *_SETTLED]
        for name in self.filters:
            keys = ("clean=", "smudge=", "process=", "required=false")
            settings += (f"filter.{name}.{key}" for key in keys)
        spread = (word for setting in settings for word in ("-c", setting))
        return [self.program, "--no-pager", "--no-optional-locks", *spread, *words]

    def ask(self, *words: str, given: bytes | None = None) -> bytes:
        """Return what git answers; `given` is what it reads.

        Raises:
            GitError: it cannot be started, or fails.
        """
        try:
            done = blocking.run(
                self.argv(words),
                cwd=self.root,
                env=self._environment(),
                stdin=given,
                timeout=TIMEOUT,
                output_limit=_MOST,
            )
        except TimeoutError as error:
            raise GitError(f"git {words[0]} took longer than {TIMEOUT:.0f} s") from error
        except blocking.StartError as error:
            raise GitError(str(error)) from error
        if done.exit_code != 0 or done.truncated:
            said = done.stderr.decode(errors="replace").strip()
            raise GitError(f"git {words[0]} failed: {_first_line(said)}", said)
        return done.stdout

    @contextmanager
    def read(self, *words: str) -> Iterator[Iterator[bytes]]:
        """Read a long answer piece by piece.

        Raises:
            GitError: it cannot be started, or fails at the end of the answer.
        """
        try:
            with blocking.reading(
                self.argv(words), cwd=self.root, env=self._environment(), silence=SILENCE
            ) as pieces:
                yield pieces
        except blocking.StartError as error:
            raise GitError(str(error)) from error
        except TimeoutError as error:
            raise SilentGitError(f"git {words[0]} said nothing for {SILENCE:.0f} s") from error
        except blocking.CommandError as error:
            raise GitError(f"git {words[0]} failed with {error}") from error

    def _environment(self) -> dict[str, str]:
        made = {
            "LC_ALL": "C",
            # An empty one would mean the current folder, which is the checkout.
            "PATH": str(Path(self.program).parent),
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
        }
        with suppress(RuntimeError):  # where the user says which repositories are safe
            made["HOME"] = str(Path.home())
        return made

    def tamed(self) -> "Git":
        """Learn the names of all filters, so that they can be switched off.

        Anything that looks at the files of the work tree needs this.

        Raises:
            GitError: this is no repository that git would read, or a filter cannot be named.
        """
        listed = self.ask("config", "--null", "--name-only", "--list")
        names = {_filter_of(key) for key in listed.decode(errors="surrogateescape").split("\0")}
        if any("=" in name for name in names):
            raise GitError("a filter has a name that cannot be switched off")
        return Git(self.root, self.program, tuple(sorted(names - {""})))


_MOST = 256 * 1024 * 1024


def _filter_of(key: str) -> str:
    section, _, rest = key.partition(".")
    return rest.rpartition(".")[0] if section.lower() == "filter" else ""


def _first_line(said: str) -> str:
    return said.partition("\n")[0].removeprefix("fatal: ") or "it did not say why"

"""A repository made with the real git, with given authors and dates."""

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

ANN_IDENTITY = "Ann <ann@example.com>"
BEN_IDENTITY = "Ben <ben@example.com>"


@dataclass
class GitCheckout:
    """A work tree in which each commit is a minute newer than the one before."""

    root: Path
    elapsed_minutes: int = field(default=0)

    @classmethod
    def create(cls, root: Path, *words: str) -> "GitCheckout":
        root.mkdir(parents=True, exist_ok=True)
        checkout = cls(root)
        checkout.run_git("init", "--quiet", "--initial-branch=main", *words, ".")
        return checkout

    def run_git(self, *words: str, author: str = ANN_IDENTITY) -> str:
        name, _, email = author.removesuffix(">").partition(" <")
        commit_date = f"{1_700_000_000 + 60 * self.elapsed_minutes} +0000"
        completed = subprocess.run(
            ["git", *words],
            cwd=self.root,
            env={
                "PATH": os.environ["PATH"],
                "HOME": "/nonexistent",
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_AUTHOR_NAME": name,
                "GIT_AUTHOR_EMAIL": email,
                "GIT_AUTHOR_DATE": commit_date,
                "GIT_COMMITTER_NAME": name,
                "GIT_COMMITTER_EMAIL": email,
                "GIT_COMMITTER_DATE": commit_date,
            },
            capture_output=True,
            check=False,
        )
        assert completed.returncode == 0, completed.stderr.decode()
        return completed.stdout.decode(errors="surrogateescape").strip()

    def write_file(self, path: str, text: str | bytes) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)

    def commit(self, author: str = ANN_IDENTITY, **files: str) -> str:
        """Commit all files; `files` are written first, with `__` in a name meaning a dot."""
        for name, text in files.items():
            self.write_file(name.replace("__", "."), text)
        self.elapsed_minutes += 1
        self.run_git("add", "--all")
        self.run_git("commit", "--quiet", "--allow-empty", "--message", "work", author=author)
        return self.head_commit

    @property
    def head_commit(self) -> str:
        return self.run_git("rev-parse", "HEAD")


def configure_trap(checkout: GitCheckout, setting: str) -> None:
    """Set up a repository in which nearly every git command would run one of its programs."""
    name = setting.split(".", 1)[1].rpartition(".")[0] if setting.count(".") > 1 else "none"
    checkout.write_file(".gitattributes", f"* filter={name} diff={name}\n")
    checkout.commit(a__py="1\n")
    program = write_trap_program(checkout, "trap")
    checkout.run_git("config", setting, str(program))
    checkout.write_file("a.py", "2\n")


def write_trap_program(checkout: GitCheckout, name: str) -> Path:
    program = checkout.root / name
    program.write_text(f"#!/bin/sh\n/bin/date > '{checkout.root}/sprung'\n")
    program.chmod(0o755)
    return program


def is_trap_sprung(checkout: GitCheckout) -> bool:
    return (checkout.root / "sprung").exists()

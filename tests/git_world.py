"""A repository made with the real git, with authors and dates of our choosing."""

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

ANN = "Ann <ann@example.com>"
BEN = "Ben <ben@example.com>"


@dataclass
class Checkout:
    """A work tree; each commit is a minute younger than the one before."""

    root: Path
    minutes: int = field(default=0)

    @classmethod
    def new(cls, root: Path, *words: str) -> "Checkout":
        root.mkdir(parents=True, exist_ok=True)
        made = cls(root)
        made.git("init", "--quiet", "--initial-branch=main", *words, ".")
        return made

    def git(self, *words: str, author: str = ANN) -> str:
        name, _, mail = author.removesuffix(">").partition(" <")
        when = f"{1_700_000_000 + 60 * self.minutes} +0000"
        done = subprocess.run(
            ["git", *words],
            cwd=self.root,
            env={
                "PATH": os.environ["PATH"],
                "HOME": "/nonexistent",
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_AUTHOR_NAME": name,
                "GIT_AUTHOR_EMAIL": mail,
                "GIT_AUTHOR_DATE": when,
                "GIT_COMMITTER_NAME": name,
                "GIT_COMMITTER_EMAIL": mail,
                "GIT_COMMITTER_DATE": when,
            },
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode(errors="surrogateescape").strip()

    def write(self, path: str, text: str | bytes) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)

    def commit(self, author: str = ANN, **files: str) -> str:
        """Commit everything there is; `files` are written first, `__` stands for a dot."""
        for name, text in files.items():
            self.write(name.replace("__", "."), text)
        self.minutes += 1
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "work", author=author)
        return self.head

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")


def set_trap(checkout: Checkout, setting: str) -> None:
    """Have a repository in which nearly every git command would run a program of its own."""
    name = setting.split(".", 1)[1].rpartition(".")[0] if setting.count(".") > 1 else "none"
    checkout.write(".gitattributes", f"* filter={name} diff={name}\n")
    checkout.commit(a__py="1\n")
    program = trap(checkout, "trap")
    checkout.git("config", setting, str(program))
    checkout.write("a.py", "2\n")


def trap(checkout: Checkout, name: str) -> Path:
    program = checkout.root / name
    program.write_text(f"#!/bin/sh\n/bin/date > '{checkout.root}/sprung'\n")
    program.chmod(0o755)
    return program


def sprung(checkout: Checkout) -> bool:
    return (checkout.root / "sprung").exists()

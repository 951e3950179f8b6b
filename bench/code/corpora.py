"""Real repositories to search in, put together from package registries.

Each corpus is a git repository of its own under `.bench/`, so that nothing of ours is searched and
a project that ignores `.bench/` does not hide it.
"""

import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.calls.servers import CACHE, NotInstalled

LIMIT = 900.0
"""Seconds for one download; a source distribution has its metadata built on the way."""

SOURCES = CACHE / "code"


@dataclass(frozen=True, slots=True)
class Package:
    """One release. A wheel holds what is installed, a source distribution the tests as well."""

    registry: str
    """`sdist`, `wheel` or `npm`."""
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True, slots=True)
class Corpus:
    """A repository to search in."""

    name: str
    packages: Sequence[Package]

    @property
    def folder(self) -> Path:
        versions = "-".join(package.version for package in self.packages)
        return SOURCES / f"{self.name}-{versions}"

    def prepare(self) -> Path:
        """Download what is missing and return the repository.

        Raises:
            NotInstalled: a package cannot be had here.
        """
        ready = self.folder.with_name(f"{self.folder.name}.ready")
        if not ready.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
            for package in self.packages:
                with tempfile.TemporaryDirectory() as name:
                    _unpack(_download(package, Path(name)), self.folder / _plain(package.name))
            commit(self.folder)
            ready.touch()
        return self.folder

    def files(self) -> Iterator[Path]:
        for path in sorted(self.folder.rglob("*")):
            if path.is_file() and ".git" not in path.relative_to(self.folder).parts:
                yield path


CORPORA: Sequence[Corpus] = (
    Corpus(
        "small",
        (
            Package("sdist", "flask", "3.1.3"),
            Package("sdist", "werkzeug", "3.1.9"),
            Package("sdist", "click", "8.5.1"),
            Package("sdist", "requests", "2.34.2"),
        ),
    ),
    Corpus("medium", (Package("sdist", "django", "5.2.19"),)),
    Corpus("script", (Package("npm", "ol", "10.10.0"), Package("npm", "rxjs", "7.8.2"))),
    Corpus("crawl", (Package("sdist", "scrapy", "2.19.0"),)),
    Corpus(
        "state",
        (
            Package("npm", "@reduxjs/toolkit", "2.14.0"),
            Package("npm", "@tanstack/query-core", "5.107.1"),
            Package("npm", "mobx", "7.1.3"),
            Package("npm", "yjs", "13.6.33"),
        ),
    ),
    Corpus("android", (Package("npm", "@capacitor/android", "8.5.2"),)),
    Corpus("large", (Package("wheel", "ansible", "12.3.0"),)),
)
"""Python of two sizes, JavaScript with TypeScript, one more package of Python, TypeScript with what
was built of it, Java, and some twenty thousand files."""


def commit(folder: Path) -> None:
    """Make a folder a repository with one commit."""
    who = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    quiet = ["-c", "core.autocrlf=false", "-c", "gc.auto=0"]
    for command in (["init", "--quiet"], ["add", "--all", "--force"]):
        _run(["git", *quiet, *command], folder)
    _run(["git", *quiet, *who, "commit", "--quiet", "--no-verify", "-m", "all"], folder)


def _plain(name: str) -> str:
    return name.replace("@", "").replace("/", "-")


def _download(package: Package, folder: Path) -> Path:
    if package.registry == "npm":
        npm = shutil.which("npm")
        if npm is None:
            raise NotInstalled("install Node.js, with npm")
        _run([npm, "pack", "--silent", f"{package.name}@{package.version}"], folder)
    else:
        form = "--no-binary" if package.registry == "sdist" else "--only-binary"
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        _run([*pip, "--no-deps", form, ":all:", f"{package.name}=={package.version}"], folder)
    return next(folder.iterdir())


def _unpack(archive: Path, folder: Path) -> None:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(folder)
    else:
        with tarfile.open(archive) as packed:
            packed.extractall(folder, filter="data")


def _run(command: Sequence[str], folder: Path) -> None:
    try:
        subprocess.run(
            command, cwd=folder, check=True, capture_output=True, text=True, timeout=LIMIT
        )
    except subprocess.CalledProcessError as error:
        said = [line for line in error.stderr.splitlines() if line.strip()] or ["no reason given"]
        raise NotInstalled(f"`{Path(command[0]).name}` failed: {said[-1][:200]}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(f"`{Path(command[0]).name}` failed: {error}") from None

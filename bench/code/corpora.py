"""Real repositories to search in, assembled from package registries.

Each corpus is a git repository of its own in `.bench/`, so that no file of ours is searched and a
project that ignores `.bench/` does not hide the corpus.
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

from bench.calls.servers import CACHE_FOLDER, PeerNotInstalledError

DOWNLOAD_TIMEOUT_SECONDS = 900.0
"""Seconds for one download; pip also builds the metadata of a source distribution."""

CORPORA_FOLDER = CACHE_FOLDER / "code"


@dataclass(frozen=True, slots=True)
class CorpusPackage:
    """One release. A wheel has the installed files, a source distribution also has the tests."""

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
    packages: Sequence[CorpusPackage]

    @property
    def folder(self) -> Path:
        versions = "-".join(package.version for package in self.packages)
        return CORPORA_FOLDER / f"{self.name}-{versions}"

    def prepare(self) -> Path:
        """Download what is missing and return the repository.

        Raises:
            PeerNotInstalledError: A package cannot be downloaded here.
        """
        ready_marker = self.folder.with_name(f"{self.folder.name}.ready")
        if not ready_marker.exists():
            shutil.rmtree(self.folder, ignore_errors=True)
            for package in self.packages:
                with tempfile.TemporaryDirectory() as name:
                    _unpack_archive(
                        _download_package(package, Path(name)), self.folder / _make_folder_name(package.name)
                    )
            commit_folder(self.folder)
            ready_marker.touch()
        return self.folder

    def iterate_files(self) -> Iterator[Path]:
        for path in sorted(self.folder.rglob("*")):
            if path.is_file() and ".git" not in path.relative_to(self.folder).parts:
                yield path


ALL_CORPORA: Sequence[Corpus] = (
    Corpus(
        "small",
        (
            CorpusPackage("sdist", "flask", "3.1.3"),
            CorpusPackage("sdist", "werkzeug", "3.1.9"),
            CorpusPackage("sdist", "click", "8.5.1"),
            CorpusPackage("sdist", "requests", "2.34.2"),
        ),
    ),
    Corpus("medium", (CorpusPackage("sdist", "django", "5.2.19"),)),
    Corpus("script", (CorpusPackage("npm", "ol", "10.10.0"), CorpusPackage("npm", "rxjs", "7.8.2"))),
    Corpus("crawl", (CorpusPackage("sdist", "scrapy", "2.19.0"),)),
    Corpus(
        "state",
        (
            CorpusPackage("npm", "@reduxjs/toolkit", "2.14.0"),
            CorpusPackage("npm", "@tanstack/query-core", "5.107.1"),
            CorpusPackage("npm", "mobx", "7.1.3"),
            CorpusPackage("npm", "yjs", "13.6.33"),
        ),
    ),
    Corpus("android", (CorpusPackage("npm", "@capacitor/android", "8.5.2"),)),
    Corpus("large", (CorpusPackage("wheel", "ansible", "12.3.0"),)),
)
"""Python in two sizes, JavaScript with TypeScript, one more Python package, TypeScript with its
build output, Java, and some twenty thousand files."""


def commit_folder(folder: Path) -> None:
    """Make a folder a repository with one commit."""
    identity_options = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
    git_options = ["-c", "core.autocrlf=false", "-c", "gc.auto=0"]
    for command in (["init", "--quiet"], ["add", "--all", "--force"]):
        _run_command(["git", *git_options, *command], folder)
    _run_command(["git", *git_options, *identity_options, "commit", "--quiet", "--no-verify", "-m", "all"], folder)


def _make_folder_name(name: str) -> str:
    return name.replace("@", "").replace("/", "-")


def _download_package(package: CorpusPackage, folder: Path) -> Path:
    if package.registry == "npm":
        npm = shutil.which("npm")
        if npm is None:
            raise PeerNotInstalledError("install Node.js, with npm")
        _run_command([npm, "pack", "--silent", f"{package.name}@{package.version}"], folder)
    else:
        form = "--no-binary" if package.registry == "sdist" else "--only-binary"
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        _run_command([*pip, "--no-deps", form, ":all:", f"{package.name}=={package.version}"], folder)
    return next(folder.iterdir())


def _unpack_archive(archive: Path, folder: Path) -> None:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(folder)
    else:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")


def _run_command(command: Sequence[str], folder: Path) -> None:
    try:
        subprocess.run(
            command, cwd=folder, check=True, capture_output=True, text=True, timeout=DOWNLOAD_TIMEOUT_SECONDS
        )
    except subprocess.CalledProcessError as error:
        error_lines = [line for line in error.stderr.splitlines() if line.strip()] or ["no reason given"]
        raise PeerNotInstalledError(f"`{Path(command[0]).name}` failed: {error_lines[-1][:200]}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PeerNotInstalledError(f"`{Path(command[0]).name}` failed: {error}") from None

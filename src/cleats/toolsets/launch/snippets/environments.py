"""A Python environment that has a package, made from a checkout without running its code outside the fence.

pip fetches the requirements as wheels only, so nothing of them is run. The build backend of the repository and the
installation run behind the fence, without network: they see a copy of the checkout and the wheels. An environment is
kept per commit and Python version; outside the fence it is never used.
"""

import re
import shutil
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import anyio

from cleats.system.processes import process
from cleats.system.processes.fenced_command import FencedCommand, FencedResult, FenceLimits, get_interpreter, run_fenced
from cleats.toolsets.launch.snippets.programs import find_error_line

MAX_KEPT_ENVIRONMENTS: Final = 8
"""Environments that stay on the disk; the one that was used longest ago is removed first."""

MAX_METADATA_BYTES: Final = 1 << 20

FETCH_TIMEOUT_SECONDS: Final = 300.0
"""Time limit for pip to fetch requirements; a large wheel on a slow line takes minutes."""

PROGRAM_LIMITS: Final = FenceLimits()

_BUILD_LIMITS: Final = FenceLimits(
    wall_seconds=300.0, cpu_seconds=240, memory_bytes=2 << 30, disk_bytes=512 << 20, file_bytes=512 << 20
)

_REQUIREMENT_PATTERN: Final = re.compile(
    r"[A-Za-z0-9][\w.-]*\s*(\[[\w\s,.-]*\])?\s*(\(?[\w\s.,*+!=<>~-]*\)?)(;.*)?", re.DOTALL
)
"""A requirement by name. One with a URL could make pip run code of a source archive outside the fence."""

_EXTRA_PATTERN: Final = re.compile(r";.*\bextra\s*==")
_PIP_ERROR_PATTERN: Final = re.compile(r"^ERROR: (.+)$", re.MULTILINE)
_DEFAULT_BUILD_REQUIREMENTS: Final = ("setuptools",)

PYTHON: Final = "/env/bin/python"
PYTHON_OPTIONS: Final = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "NO_COLOR": "1"}
"""The order of sets is the same in every run, so that outputs can be compared."""


class PackageUnavailable(Exception):  # noqa: N818 - a condition of the package and this machine
    """Raised when no environment can be made; the message says why, in words for people."""


@dataclass(frozen=True, slots=True)
class PythonEnvironment:
    """A virtual environment behind the fence, and the sources that are added to its path."""

    folder: Path
    root: Path
    """An empty folder for the fence."""
    source: Path | None = None
    """The folder of the package's source, if the package is not installed."""

    async def run(self, *args: str, files: Mapping[str, str] | None = None) -> FencedResult:
        """Run its Python behind the fence.

        Raises:
            FenceUnavailable: This machine cannot fence a command.
        """
        folders = {"/env": self.folder, **({"/source": self.source} if self.source else {})}
        path = {"PYTHONPATH": "/source"} if self.source else {}
        env = {**PYTHON_OPTIONS, **path, "PATH": "/env/bin:/usr/local/bin:/usr/bin:/bin"}
        command = FencedCommand(
            argv=[PYTHON, *args], env=env, files=files or {}, folders=folders, limits=PROGRAM_LIMITS
        )
        return await run_fenced(command, self.root)


@dataclass(frozen=True, slots=True)
class EnvironmentBuilder:
    """Makes environments in a folder of this machine."""

    cache: Path
    pip_env: Mapping[str, str]
    """The user's settings of pip: its index, its folders of wheels, proxies and certificates."""
    offline: bool
    """True if pip must not use its index, only the folders of wheels that the user names (`PIP_FIND_LINKS`)."""

    @property
    def root(self) -> Path:
        """An empty folder for fences."""
        folder = self.cache / "fence"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    async def make_empty(self) -> PythonEnvironment:
        """Return an environment without packages.

        Raises:
            FenceUnavailable: This machine cannot fence a command.
            PackageUnavailable: Python cannot create environments.
        """
        folder = self.cache / f"empty-{_describe_python()}"
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=_create(self.cache), prefix=".build-") as name:
                await self._create_venv(Path(name) / "env")
                _move(Path(name) / "env", folder)
        return PythonEnvironment(folder, self.root)

    async def install(self, checkout: Path, commit: str) -> PythonEnvironment:
        """Return an environment in which the package of a checkout is installed.

        Raises:
            FenceUnavailable: This machine cannot fence a command.
            PackageUnavailable: The package cannot be built, or a requirement cannot be had.
        """
        folder = self.cache / f"{commit}-{_describe_python()}"
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=_create(self.cache), prefix=".build-") as name:
                await self._build(checkout, Path(name))
                _move(Path(name) / "env", folder)
            self._evict_old()
        folder.touch()
        return PythonEnvironment(folder, self.root)

    async def _build(self, checkout: Path, work: Path) -> None:
        folders = {name: _create(work / name) for name in ("env", "wheels", "build", "out")}
        await self._create_venv(folders["env"])
        shutil.copytree(checkout, work / "source", symlinks=True)
        writable = {f"/{name}": folders[name] for name in ("env", "build", "out")} | {"/source": work / "source"}
        requirements = _read_build_requirements(work / "source")
        await self._fetch(requirements, folders["wheels"])
        find_links = ("--no-index", "--find-links", "/wheels", "--disable-pip-version-check")
        install_options = (*find_links, "--no-compile", "--no-warn-script-location")

        async def run_pip(*args: str) -> None:
            env = {**PYTHON_OPTIONS, "PYTHONPATH": "/build", "PIP_NO_CACHE_DIR": "1"}
            readable = {"/wheels": folders["wheels"], f"/pip/{find_pip().name}": find_pip()}
            argv = [PYTHON, f"/pip/{find_pip().name}" + ("/pip" if find_pip().suffix == ".whl" else ""), *args]
            command = FencedCommand(
                argv=argv, env=env, folders=readable, writable_folders=writable, limits=_BUILD_LIMITS
            )
            result = await run_fenced(command, self.root)
            if result.exit_code != 0:
                raise PackageUnavailable(f"the package could not be built: {_describe_failure(result)}")

        if requirements:
            await run_pip("install", *install_options, "--target", "/build", *requirements)
        await run_pip("wheel", *find_links, "--no-deps", "--no-build-isolation", "--wheel-dir", "/out", "/source")
        wheels = sorted(folders["out"].glob("*.whl"))
        if len(wheels) != 1 or wheels[0].is_symlink() or not wheels[0].is_file():
            raise PackageUnavailable("the build backend has not made one wheel")
        await self._fetch(_read_wheel_requirements(wheels[0]), folders["wheels"])
        await run_pip("install", *install_options, f"/out/{wheels[0].name}")

    async def _create_venv(self, folder: Path) -> None:
        interpreter, _ = get_interpreter()
        command = FencedCommand(
            argv=[str(interpreter), "-I", "-m", "venv", "--without-pip", "/env"],
            writable_folders={"/env": _create(folder)},
        )
        result = await run_fenced(command, self.root)
        if result.exit_code != 0:
            raise PackageUnavailable(f"Python cannot create an environment: {_describe_failure(result)}")

    async def _fetch(self, requirements: Sequence[str], wheels: Path) -> None:
        """Fetch wheels: from the folders that the user names, then from the index of the user's pip."""
        if not requirements:
            return
        for requirement in requirements:
            if not _REQUIREMENT_PATTERN.fullmatch(requirement):
                raise PackageUnavailable(f"it requires {requirement[:80]!r}, which is not a package of an index")
        pip = find_pip()
        interpreter, _ = get_interpreter()
        program = str(pip / "pip" if pip.suffix == ".whl" else pip)
        options = ("--only-binary", ":all:", "--disable-pip-version-check", "--no-input", "--dest", str(wheels))
        reason = ""
        for source in (("--no-index",), *(() if self.offline else ((),))):
            argv = [
                str(interpreter),
                "-I",
                program,
                "download",
                *options,
                *source,
                "--find-links",
                str(wheels),
                "--",
                *requirements,
            ]
            try:
                with anyio.fail_after(FETCH_TIMEOUT_SECONDS):
                    completed = await process.run(
                        argv, cwd=wheels, env={**self.pip_env, "PYTHONDONTWRITEBYTECODE": "1"}
                    )
            except (process.StartError, TimeoutError):
                reason = f"pip did not end within {FETCH_TIMEOUT_SECONDS:g} seconds"
                continue
            if completed.exit_code == 0:
                return
            errors = _PIP_ERROR_PATTERN.findall(completed.stderr.decode(errors="replace"))
            reason = errors[-1] if errors else f"pip ended with exit code {completed.exit_code}"
        raise PackageUnavailable(f"its requirements could not be fetched as wheels: {reason[:200]}")

    def _evict_old(self) -> None:
        folders = [folder for folder in self.cache.iterdir() if re.match(r"[0-9a-f]{40}-", folder.name)]
        for folder in sorted(folders, key=lambda item: item.stat().st_mtime, reverse=True)[MAX_KEPT_ENVIRONMENTS:]:
            shutil.rmtree(folder, ignore_errors=True)


def find_pip() -> Path:
    """Return pip as a wheel that comes with Python, or as the folder of an installed pip.

    Raises:
        PackageUnavailable: There is none.
    """
    import ensurepip  # noqa: PLC0415 - some systems leave it out
    import sysconfig  # noqa: PLC0415

    folders = [Path(ensurepip.__file__).parent / "_bundled", Path(sysconfig.get_config_var("WHEEL_PKG_DIR") or "/-")]
    for folder in folders:
        for wheel in sorted(folder.glob("pip-*.whl"), reverse=True):
            return wheel
    spec = find_spec("pip")
    if spec is None or not spec.submodule_search_locations:
        raise PackageUnavailable("pip is not installed")
    return Path(spec.submodule_search_locations[0])


def _describe_python() -> str:
    return f"{sys.implementation.cache_tag}-{sys.version_info.micro}"


def _create(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _move(folder: Path, target: Path) -> None:
    try:
        folder.rename(target)
    except OSError:
        if not target.is_dir():  # else another run was faster
            raise


def _read_build_requirements(source: Path) -> list[str]:
    path = source / "pyproject.toml"
    try:
        document = {} if path.is_symlink() else tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        document = {}
    table: Any = document.get("build-system")
    listed = table.get("requires") if isinstance(table, dict) else None
    requirements = [str(item) for item in listed] if isinstance(listed, list) else [*_DEFAULT_BUILD_REQUIREMENTS]
    needs_wheel = any(re.match(r"setuptools\b", item) for item in requirements)
    return [*requirements, *(["wheel"] if needs_wheel else [])]  # older versions build wheels with it


def _read_wheel_requirements(wheel: Path) -> list[str]:
    """Return the requirements of a wheel; the build made it, so nothing in it is trusted.

    Raises:
        PackageUnavailable: It is not a wheel.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name)]
            with archive.open(names[0]) as file:
                text = file.read(MAX_METADATA_BYTES).decode(errors="replace")
    except (OSError, ValueError, IndexError, zipfile.BadZipFile, NotImplementedError) as error:
        raise PackageUnavailable("the build backend has not made a wheel") from error
    requirements: Iterable[str] = HeaderParser().parsestr(text).get_all("Requires-Dist") or ()
    return [item for item in requirements if not _EXTRA_PATTERN.search(item)]


def _describe_failure(result: FencedResult) -> str:
    if result.limit:
        return f"it exceeded the limit of {result.limit}"
    output = (result.stderr.strip() or result.stdout.strip()).decode(errors="replace")
    error = find_error_line(output) or next(iter(_PIP_ERROR_PATTERN.findall(output)), "")
    return (error or output.rpartition("\n")[2] or f"exit code {result.exit_code}")[:200]

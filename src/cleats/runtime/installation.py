"""How this copy of Cleats was installed, and the commands that add packages to it.

`pip install` does not reach an environment that pipx or `uv tool` manages, so a hint has to name the right program.
Only the standard library is imported: a broken installation needs these hints most.
"""

import re
import shlex
import sys
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

DISTRIBUTION_NAME: Final = "cleats"

Installer: TypeAlias = Literal["pip", "pipx", "uv"]
"""The program that manages an environment; `uv` is `uv tool`."""

PIPX_METADATA_NAME: Final = "pipx_metadata.json"
UV_RECEIPT_NAME: Final = "uv-receipt.toml"
"""The files that pipx and `uv tool` leave in the environments they manage."""

_EXTRA_PATTERN: Final = re.compile(rf"{DISTRIBUTION_NAME}\[(?P<extra>[\w-]+)\]")
_MARKER_PATTERN: Final = re.compile(r"""extra\s*==\s*["']([\w-]+)["']""")


def detect_installer(prefix: Path | None = None) -> Installer:
    """Return the program that manages the environment at a prefix, by default of this process."""
    prefix = prefix or Path(sys.prefix)
    if (prefix / UV_RECEIPT_NAME).is_file():
        return "uv"
    return "pipx" if (prefix / PIPX_METADATA_NAME).is_file() else "pip"


def format_install_command(target: str, prefix: Path | None = None) -> str:
    """Return the shell command that installs a package or an extra, such as `ruff` or `cleats[otlp]`, for Cleats."""
    prefix = prefix or Path(sys.prefix)
    match detect_installer(prefix):
        case "pipx":
            return shlex.join(["pipx", "inject", DISTRIBUTION_NAME, *_list_packages(target)])
        case "uv":
            return _format_uv_command(prefix, _list_packages(target))
        case _:
            return shlex.join(["pip", "install", target])


def format_reinstall_command(prefix: Path | None = None) -> str:
    """Return the shell command that installs Cleats and its libraries again."""
    prefix = prefix or Path(sys.prefix)
    match detect_installer(prefix):
        case "pipx":
            return f"pipx reinstall {DISTRIBUTION_NAME}"
        case "uv":
            return _format_uv_command(prefix, ["--reinstall"])
        case _:
            return f"pip install --force-reinstall {DISTRIBUTION_NAME}"


def _list_packages(target: str) -> list[str]:
    """Return the packages of an extra, because pipx and `uv tool` add packages and not extras; else the target."""
    match = _EXTRA_PATTERN.fullmatch(target)
    if match is None:
        return [target]
    from importlib import metadata  # noqa: PLC0415 - only hints need it

    packages = []
    for line in metadata.requires(DISTRIBUTION_NAME) or ():
        requirement, _, marker = line.partition(";")
        if match["extra"] in _MARKER_PATTERN.findall(marker):
            packages.append(requirement.strip())
    return packages or [target]


def _format_uv_command(prefix: Path, additions: list[str]) -> str:
    """Return the `uv tool install` command with everything that is installed already, because uv replaces the set."""
    import tomllib  # noqa: PLC0415 - only hints need it

    try:
        receipt = tomllib.loads((prefix / UV_RECEIPT_NAME).read_text(encoding="utf-8"))
        requirements: list[dict[str, Any]] = receipt["tool"]["requirements"]
    except (OSError, ValueError, KeyError, TypeError):
        requirements = []
    source, packages = DISTRIBUTION_NAME, []
    for requirement in requirements:
        if requirement.get("name") == DISTRIBUTION_NAME:
            source = _format_uv_source(requirement)
        else:
            packages.append(_format_uv_source(requirement))
    words = ["uv", "tool", "install"]
    words += [word for word in additions if word.startswith("-")]
    for package in dict.fromkeys([*packages, *(word for word in additions if not word.startswith("-"))]):
        words += ["--with", package]
    return shlex.join([*words, source])


def _format_uv_source(requirement: dict[str, Any]) -> str:
    name = requirement.get("name", DISTRIBUTION_NAME)
    extras = f"[{','.join(requirement['extras'])}]" if requirement.get("extras") else ""
    for key in ("directory", "editable", "path"):
        if key in requirement:
            return f"{requirement[key]}{extras}"
    if "git" in requirement:
        return f"{name}{extras} @ git+{requirement['git']}"
    if "url" in requirement:
        return f"{name}{extras} @ {requirement['url']}"
    return f"{name}{extras}{requirement.get('specifier', '')}"

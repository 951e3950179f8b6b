"""Servers for the tests of the console."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.console import ConsoleBrowser
from tests.support.http_client import CLEATS_COMMAND, run_web_server
from tests.support.paths import REPOSITORY_ROOT

HOSTILE_NAME = "<img src=x onerror=alert(1)>.py"
HOSTILE_CODE = '''def greet(name):
    """Say hello <script>alert("code")</script> to somebody."""
    return f"<b onmouseover=alert(2)>{name}</b>"
'''
HOSTILE_SKILL = """---
name: hostile
description: "Shows <script>alert('skill')</script> things. Use when testing."
---

# Hostile <script>alert("text")</script>

[press](javascript:alert(1)) ![picture](https://evil.example/x.png) <iframe src="https://evil.example"></iframe>
"""


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a repository with hostile names and code, and a hostile skill."""
    home = tmp_path_factory.mktemp("console")
    (home / "repo/app").mkdir(parents=True)
    (home / "repo/app/greeting.py").write_text(HOSTILE_CODE)
    (home / "repo/app" / HOSTILE_NAME).write_text(HOSTILE_CODE.replace("greet", "greet_again"))
    (home / "repo/app/use.py").write_text("from app.greeting import greet\n\n\ndef main():\n    return greet('x')\n")
    (home / "repo/.agents/skills/hostile").mkdir(parents=True)
    (home / "repo/.agents/skills/hostile/SKILL.md").write_text(HOSTILE_SKILL)
    subprocess.run(["git", "init", "-q", "."], cwd=home / "repo", check=True)
    return home


@pytest.fixture(scope="session")
def browser(shop: Path) -> Iterator[ConsoleBrowser]:
    """Open a browser on a server without tokens, whose repository is indexed."""
    assets = REPOSITORY_ROOT / "examples" / "assets"
    environ = {
        "CLEATS_SKILL_TOOLS": "all",
        "CLEATS_TELEMETRY": "off",
        "SYN_SCHEMAS_DIR": str(assets / "jsonschema"),
        "SYN_EXAMPLES_DIR": str(assets / "examples"),
    }
    with run_web_server(*CLEATS_COMMAND, "--repo", str(shop / "repo"), home=shop, **environ) as web:
        assert web.call_tool("build_index").status == 200
        yield ConsoleBrowser(web)

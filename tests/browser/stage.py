"""A server with something to see: a repository with findings and hostile content, a launch run, skills and assets."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.http_client import CLEATS_COMMAND, WebServer, run_web_server
from tests.support.paths import REPOSITORY_ROOT

HOSTILE_SCRIPT = "<script>window.owned = 1; alert('owned')</script>"
HOSTILE_FILE = "<img src=x onerror=alert(1)>.py"
HOSTILE_CODE = f'''"""Orders of attackers {HOSTILE_SCRIPT}."""


def hostile_orders(name):
    """Return <img src=x onerror="window.owned=1;alert(2)"> orders."""
    return "</code></td></table><script>alert(3)</script>" + name
'''
HOSTILE_SKILL = f"""---
name: hostile
description: "Shows {HOSTILE_SCRIPT.replace(chr(39), "")} things. Use when testing."
---

# Hostile {HOSTILE_SCRIPT}

[press](javascript:alert(4)) ![picture](https://evil.example/x.png)
"""
SARIF_REPORT = {
    "version": "2.1.0",
    "runs": [
        {
            "tool": {"driver": {"name": "Bandit"}},
            "results": [
                {
                    "ruleId": "B608",
                    "level": "error",
                    "message": {"text": "SQL built from strings"},
                    "locations": [
                        {
                            "physicalLocation": {
                                "artifactLocation": {"uri": "shop/web.py"},
                                "region": {"startLine": 18},
                            }
                        }
                    ],
                },
                {
                    "ruleId": "B000",
                    "level": "warning",
                    "message": {"text": f"Hostile {HOSTILE_SCRIPT}"},
                    "locations": [
                        {"physicalLocation": {"artifactLocation": {"uri": "shop/web.py"}, "region": {"startLine": 3}}}
                    ],
                },
            ],
        }
    ],
}
GIT_IDENTITY = {f"GIT_{role}_{part}": "sample" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}


@dataclass
class ConsoleStage:
    """The server and what is on it."""

    web: WebServer
    home: Path
    run_id: str

    @property
    def repository(self) -> Path:
        return self.home / "shop"

    @property
    def big_repository(self) -> Path:
        return self.home / "big"

    def find_run_page(self, run_id: str) -> Path:
        """Return a page in the worktree of a run, which the sample allows to be edited."""
        runs = self.home / ".local/share/cleats/launch/runs"
        return runs / run_id / "work/site/content/docs/measurekit/_index.md"

    def run_command(self, *words: str) -> str:
        """Run a command of Cleats as the person who runs the server."""
        return run_cleats(self.home, *words)


def run_cleats(home: Path, *words: str) -> str:
    environ = {**os.environ, **GIT_IDENTITY, "HOME": str(home), "PYTHONPATH": str(REPOSITORY_ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", "cleats", *words], cwd=home, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode in {0, 3}, done.stderr
    return done.stdout


def commit_folder(folder: Path) -> str:
    environ = {**os.environ, **GIT_IDENTITY}
    for words in (("init", "-qb", "main"), ("add", "-A"), ("commit", "-qm", "The sample")):
        subprocess.run(["git", *words], cwd=folder, env=environ, check=True)
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.strip()


def write_shop(home: Path, *, hostile: bool) -> None:
    """Write the shop, its skills and the report of a scanner, with hostile content in all of them or without."""
    shutil.copytree(REPOSITORY_ROOT / "examples/shop", home / "shop")
    skills = home / "shop/.agents/skills"
    skills.mkdir(parents=True)
    shutil.copytree(REPOSITORY_ROOT / "examples/skills/release-notes", skills / "release-notes")
    if hostile:
        (home / "shop/shop" / HOSTILE_FILE).write_text(HOSTILE_CODE)
        (skills / "hostile").mkdir()
        (skills / "hostile/SKILL.md").write_text(HOSTILE_SKILL)
    report: Any = json.loads(json.dumps(SARIF_REPORT))
    if not hostile:
        report["runs"][0]["results"][1]["message"]["text"] = "Consider possible security implications of sqlite3"
    (home / "bandit.sarif").write_text(json.dumps(report))
    commit_folder(home / "shop")


def write_big_repository(home: Path) -> None:
    """Write a repository that is large enough for its build to be cancelled."""
    shutil.copytree(REPOSITORY_ROOT / "src/cleats", home / "big/cleats", ignore=shutil.ignore_patterns("__pycache__"))
    for number in range(3):
        shutil.copytree(home / "big/cleats/toolsets", home / f"big/copy_{number}")
    commit_folder(home / "big")


def write_run_config(home: Path) -> Path:
    """Write the repositories of the launch sample and the configuration of a run."""
    commits = {}
    for name in ("source", "site"):
        shutil.copytree(REPOSITORY_ROOT / "examples/launch" / name, home / name)
        commits[name] = commit_folder(home / name)
    subprocess.run(["git", "clone", "-q", "--bare", "site", "site.git"], cwd=home, check=True)
    config: dict[str, Any] = {
        "profile": "plain",
        "family": "measurekit",
        "target_platform": "python",
        "github_repo_url": str(home / "source"),
        "github_ref": commits["source"],
        "site_repo_url": str(home / "site.git"),
        "required_sections": ["docs", "reference"],
        "allow_manual_edits": True,
    }
    path = home / "run.json"
    path.write_text(json.dumps(config))
    return path


@contextmanager
def open_stage(home: Path, *, hostile: bool = True) -> Iterator[ConsoleStage]:
    """Prepare everything and start the server."""
    write_shop(home, hostile=hostile)
    write_big_repository(home)
    config = write_run_config(home)
    run_cleats(home, "launch", "start", str(config), "--key", "first", "--json")
    run_id = json.loads(run_cleats(home, "launch", "list", "--json"))["runs"][0]["run_id"]
    assets = REPOSITORY_ROOT / "examples/assets"
    environ = {
        **GIT_IDENTITY,
        "CLEATS_SKILL_TOOLS": "all",
        "CLEATS_HTTP_ROOTS": str(home),
        "SYN_SCHEMAS_DIR": str(assets / "jsonschema"),
        "SYN_EXAMPLES_DIR": str(assets / "examples"),
    }
    with run_web_server(*CLEATS_COMMAND, "--repo", str(home / "shop"), home=home, **environ) as web:
        reply = web.call_tool("triage_ingest", source="sarif", inputPath=str(home / "bandit.sarif"), buildIndex=True)
        assert reply.status == 200, reply.body
        assert web.call_tool("build_index", repoPath=str(home / "source")).status == 200
        yield ConsoleStage(web, home, run_id)

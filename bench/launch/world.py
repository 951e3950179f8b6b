"""A store full of runs, and a sample to launch."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from cleats.toolsets.launch.events import NO_TRACE, Draft
from cleats.toolsets.launch.states import State
from cleats.toolsets.launch.store.journal import to_state
from cleats.toolsets.launch.store.port import NewRun, Step
from cleats.toolsets.launch.store.sqlite import SqliteStore

EXAMPLES = Path(__file__).parents[2] / "examples" / "launch"
FIRST = "r_2026-01-21T10-00-00Z_00000000"
PRODUCTS = ("3d", "cells", "pdf", "slides", "words")


def place(home: Path) -> Path:
    """The file that a server with this home keeps its runs in."""
    return home / ".local" / "share" / "cleats" / "launch" / "runs.sqlite"


def name(number: int) -> str:
    return f"r_2026-01-21T10-00-00Z_{number:08x}"


def fill(home: Path, count: int) -> None:
    """Have so many runs, each as large as a run of a small package at its request."""
    store = SqliteStore(place(home))
    config = {"product_slug": PRODUCTS[0], "required_sections": ["docs"], "notes": "x" * 2000}
    new = NewRun(
        run_id=FIRST,
        product_slug=PRODUCTS[0],
        config=config,
        shown_config=config,
        config_hash="a" * 64,
    )
    created = Draft("RUN_CREATED", {"required_sections": ["docs"], "product_slug": PRODUCTS[0]})
    store.create(new, [created], NO_TRACE)
    lease = store.acquire(FIRST, "bench", 1e9)
    assert lease is not None
    for number, drafts in enumerate(_story()):
        store.record(lease, drafts, NO_TRACE, step=Step(f"step{number}", {"n": number}, 0.1))
    store.close()
    _copy(place(home), count)


def _story() -> Iterator[list[Draft]]:
    chain = [state for state in State if state is not State.FIXING][:10]
    for number, (old, new) in enumerate(pairwise(chain)):
        item = {"work_item_id": f"w{number}", "scope_key": f"step{number}", "worker": "W1"}
        yield [
            Draft("WORK_ITEM_STARTED", {**item, "attempt": 1, "inputs": ["page_plan.json"] * 5}),
            *(_artifact(f"drafts/docs/page{number}{letter}.md") for letter in "abc"),
            Draft("WORK_ITEM_FINISHED", {**item, "outputs": []}),
            to_state(old, new),
        ]


def _artifact(name: str) -> Draft:
    payload: dict[str, Any] = {"name": name, "path": f"objects/{'0' * 64}", "sha256": "0" * 64}
    return Draft("ARTIFACT_WRITTEN", {**payload, "schema_id": "text", "writer_worker": "W5"})


def _copy(file: Path, count: int) -> None:
    """Copy the first run within the file: recording each would take longer than measuring."""
    with sqlite3.connect(file) as database:
        (run,) = database.execute("SELECT * FROM runs").fetchall()
        heads = [each[1] for each in database.execute("PRAGMA table_info(runs)")]
        steps = database.execute("SELECT * FROM steps").fetchall()
        events = database.execute("SELECT * FROM events").fetchall()
        for number in range(1, count):
            copied = dict(zip(heads, run, strict=True))
            copied |= {"number": number + 1, "run_id": name(number), "owner": ""}
            copied["product_slug"] = PRODUCTS[number % len(PRODUCTS)]
            copied["snapshot"] = copied["snapshot"].replace(FIRST, name(number))
            _insert(database, "runs", [tuple(copied.values())])
            _insert(database, "steps", [(name(number), *each[1:]) for each in steps])
            _insert(database, "events", [(name(number), *each[1:]) for each in events])
    database.close()


def _insert(database: sqlite3.Connection, table: str, rows: list[tuple[Any, ...]]) -> None:
    marks = ",".join("?" * len(rows[0]))
    database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def sample(folder: Path) -> dict[str, Any]:
    """Make repositories of the bundled sample; return the configuration of a run."""
    for part in ("source", "site"):
        shutil.copytree(EXAMPLES / part, folder / part)
        for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "All"]):
            _git(folder / part, *words)
    _git(folder, "clone", "-q", "--bare", str(folder / "site"), str(folder / "site.git"))
    return {
        "profile": "plain",
        "family": "sample",
        "target_platform": "python",
        "github_repo_url": str(folder / "source"),
        "github_ref": _git(folder / "source", "rev-parse", "HEAD").strip(),
        "site_repo_url": str(folder / "site.git"),
        "required_sections": ["docs"],
        "drive": {"mode": "auto", "auto_fix": True, "auto_pr": True},
    }


def _git(folder: Path, *words: str) -> str:
    names = {f"GIT_{who}_NAME": "Ann" for who in ("AUTHOR", "COMMITTER")}
    mails = {f"GIT_{who}_EMAIL": "ann@example.com" for who in ("AUTHOR", "COMMITTER")}
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **names, **mails}
    done = subprocess.run(
        ["git", *words], cwd=folder, env=env, check=True, capture_output=True, text=True
    )
    return done.stdout

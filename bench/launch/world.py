"""A store full of runs, and a sample to launch."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from cleats.toolsets.launch.runs.events import NO_TRACE, EventDraft
from cleats.toolsets.launch.runs.states import RunState
from cleats.toolsets.launch.store.databases import SqliteStore
from cleats.toolsets.launch.store.model import RecordedStep, Run, make_state_event

EXAMPLES_FOLDER = Path(__file__).parents[2] / "examples" / "launch"
FIRST_RUN_ID = "r_2026-01-21T10-00-00Z_00000000"
PRODUCT_SLUGS = ("3d", "cells", "pdf", "slides", "words")


def locate_store(home: Path) -> Path:
    """Return the file in which a server with this home keeps its runs."""
    return home / ".local" / "share" / "cleats" / "launch" / "runs.sqlite"


def format_run_id(number: int) -> str:
    return f"r_2026-01-21T10-00-00Z_{number:08x}"


def create_runs(home: Path, count: int) -> None:
    """Create this many runs, each as large as a run of a small package at its request."""
    store = SqliteStore(locate_store(home))
    config = {"product_slug": PRODUCT_SLUGS[0], "required_sections": ["docs"], "notes": "x" * 2000}
    new = Run(
        run_id=FIRST_RUN_ID,
        product_slug=PRODUCT_SLUGS[0],
        config=config,
        shown_config=config,
        config_hash="a" * 64,
    )
    created = EventDraft("RUN_CREATED", {"required_sections": ["docs"], "product_slug": PRODUCT_SLUGS[0]})
    store.create(new, [created], NO_TRACE)
    lease = store.acquire(FIRST_RUN_ID, "bench", 1e9)
    assert lease is not None
    for number, drafts in enumerate(_build_history()):
        store.record(lease, drafts, NO_TRACE, step=RecordedStep(f"step{number}", {"n": number}, 0.1))
    store.close()
    _copy_first_run(locate_store(home), count)


def _build_history() -> Iterator[list[EventDraft]]:
    chain = [state for state in RunState if state is not RunState.FIXING][:10]
    for number, (old, new) in enumerate(pairwise(chain)):
        item = {"work_item_id": f"w{number}", "scope_key": f"step{number}", "worker": "W1"}
        yield [
            EventDraft("WORK_ITEM_STARTED", {**item, "attempt": 1, "inputs": ["page_plan.json"] * 5}),
            *(_build_artifact_event(f"drafts/docs/page{number}{letter}.md") for letter in "abc"),
            EventDraft("WORK_ITEM_FINISHED", {**item, "outputs": []}),
            make_state_event(old, new),
        ]


def _build_artifact_event(name: str) -> EventDraft:
    payload: dict[str, Any] = {"name": name, "path": f"objects/{'0' * 64}", "sha256": "0" * 64}
    return EventDraft("ARTIFACT_WRITTEN", {**payload, "schema_id": "text", "writer_worker": "W5"})


def _copy_first_run(file: Path, count: int) -> None:
    """Copy the first run within the file: recording each run would take longer than measuring."""
    with sqlite3.connect(file) as database:
        (run,) = database.execute("SELECT * FROM runs").fetchall()
        column_names = [row[1] for row in database.execute("PRAGMA table_info(runs)")]
        steps = database.execute("SELECT * FROM steps").fetchall()
        events = database.execute("SELECT * FROM events").fetchall()
        for number in range(1, count):
            copied = dict(zip(column_names, run, strict=True))
            copied |= {"number": number + 1, "run_id": format_run_id(number), "owner": ""}
            copied["product_slug"] = PRODUCT_SLUGS[number % len(PRODUCT_SLUGS)]
            copied["snapshot"] = copied["snapshot"].replace(FIRST_RUN_ID, format_run_id(number))
            _insert_rows(database, "runs", [tuple(copied.values())])
            _insert_rows(database, "steps", [(format_run_id(number), *row[1:]) for row in steps])
            _insert_rows(database, "events", [(format_run_id(number), *row[1:]) for row in events])
    database.close()


def _insert_rows(database: sqlite3.Connection, table: str, rows: list[tuple[Any, ...]]) -> None:
    marks = ",".join("?" * len(rows[0]))
    database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


def prepare_sample(folder: Path) -> dict[str, Any]:
    """Make repositories of the bundled sample; return the configuration of a run."""
    for part in ("source", "site"):
        shutil.copytree(EXAMPLES_FOLDER / part, folder / part)
        for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "All"]):
            _run_git(folder / part, *words)
    _run_git(folder, "clone", "-q", "--bare", str(folder / "site"), str(folder / "site.git"))
    return {
        "profile": "plain",
        "family": "sample",
        "target_platform": "python",
        "github_repo_url": str(folder / "source"),
        "github_ref": _run_git(folder / "source", "rev-parse", "HEAD").strip(),
        "site_repo_url": str(folder / "site.git"),
        "required_sections": ["docs"],
        "drive": {"mode": "auto", "auto_fix": True, "auto_pr": True},
    }


def _run_git(folder: Path, *words: str) -> str:
    names = {f"GIT_{role}_NAME": "Ann" for role in ("AUTHOR", "COMMITTER")}
    emails = {f"GIT_{role}_EMAIL": "ann@example.com" for role in ("AUTHOR", "COMMITTER")}
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **names, **emails}
    completed = subprocess.run(["git", *words], cwd=folder, env=env, check=True, capture_output=True, text=True)
    return completed.stdout

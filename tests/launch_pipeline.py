"""The workers of a launch one after another, in this process: real git, real Hugo, no engine."""

import asyncio
import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from cleats.settings import Settings
from cleats.toolsets.launch.config.normal import normalise
from cleats.toolsets.launch.folder import RunFolder
from cleats.toolsets.launch.source.git import kept
from cleats.toolsets.launch.workers.job import Job
from tests.launch_sites import committed

READING = ("clone", "inventory", "facts", "snippets")


class Pipeline:
    """A run from two folders, which become repositories of one commit each."""

    def __init__(
        self, root: Path, source: Path, site: Path, *, profiles: tuple[Path, ...] = (), **given: Any
    ) -> None:
        self.folder = RunFolder(root / "run")
        self.folder.root.mkdir(parents=True)
        self.inputs: dict[str, str] = {}
        self.facts: dict[str, Any] = {}
        self.events: list[dict[str, Any]] = []
        self.config = normalise(
            {
                "github_repo_url": str(source),
                "github_ref": committed(source),
                "site_repo_url": str(site),
                "target_platform": "python",
                **given,
            },
            Settings(launch_profiles=profiles),
        )
        self.settings = {"git_env": kept(os.environ), "profiles": [str(each) for each in profiles]}

    @property
    def site(self) -> Path:
        return self.folder.site

    def job(self, step: str, **more: Any) -> Job:
        kind, _, scope = step.partition(":")
        return Job(
            run_id="r_2026-01-21T10-00-00Z_0123abcd",
            step=step,
            worker=kind,
            scope=scope,
            attempt=1,
            config=self.config,
            root=self.folder.root,
            inputs=dict(self.inputs),
            facts=dict(self.facts),
            **{"settings": self.settings, **more},
        )

    def do(self, *steps: str, **more: Any) -> "Pipeline":
        """Do steps; what they write counts only when they succeed."""
        for step in steps:
            job = self.job(step, **more)
            worker = import_module(f"cleats.toolsets.launch.workers.{step.partition(':')[0]}")
            try:
                self.facts[step] = asyncio.run(worker.run(job))
            finally:
                self.events += job.events
            self.inputs.update(job.outputs)
        return self

    def all(self, **more: Any) -> "Pipeline":
        """Do everything up to the changed worktree."""
        drafts = [f"draft:{section}" for section in self.config["required_sections"]]
        return self.do(*READING, "plan", *drafts, "link", "apply", **more)

    def json(self, name: str) -> Any:
        return self.job("look").json(name)

    def text(self, name: str) -> str:
        return self.job("look").read(name).decode()

    def pages(self) -> Mapping[str, str]:
        """The planned pages as they lie in the worktree."""
        plan = self.json("page_plan.json")["pages"]
        return {
            page["output_path"]: (self.site / page["output_path"]).read_text(encoding="utf-8")
            for page in plan
        }

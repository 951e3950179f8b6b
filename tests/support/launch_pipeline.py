"""The workers of a launch, run in order in this process: real git, real Hugo, no engine."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from cleats.settings import make_settings
from cleats.system.git import filter_git_environment
from cleats.toolsets.launch.config.normalise import normalise_config
from cleats.toolsets.launch.drive.pipeline import WORKER_FUNCTIONS
from cleats.toolsets.launch.runs.job import WorkerJob
from cleats.toolsets.launch.runs.storage import RunFolder
from tests.support.launch_sites import commit_folder

SOURCE_STEPS = ("clone", "inventory", "facts", "snippets")


class Pipeline:
    """A run on two folders, each of which becomes a repository of one commit."""

    def __init__(
        self, root: Path, source: Path, site: Path, *, profiles: tuple[Path, ...] = (), **config_values: Any
    ) -> None:
        self.folder = RunFolder(root / "run")
        self.folder.root.mkdir(parents=True)
        self.inputs: dict[str, str] = {}
        self.facts: dict[str, Any] = {}
        self.events: list[dict[str, Any]] = []
        self.config = normalise_config(
            {
                "github_repo_url": str(source),
                "github_ref": commit_folder(source),
                "site_repo_url": str(site),
                "target_platform": "python",
                **config_values,
            },
            make_settings(launch_profiles=profiles),
        )
        self.settings: dict[str, Any] = {
            "git_env": filter_git_environment(os.environ),
            "profiles": [str(profile) for profile in profiles],
        }

    @property
    def site(self) -> Path:
        return self.folder.site

    def build_job(self, step: str, **overrides: Any) -> WorkerJob:
        kind, _, scope = step.partition(":")
        return WorkerJob(
            run_id="r_2026-01-21T10-00-00Z_0123abcd",
            step=step,
            worker=kind,
            scope=scope,
            attempt=1,
            config=self.config,
            root=self.folder.root,
            inputs=dict(self.inputs),
            facts=dict(self.facts),
            **{"settings": self.settings, **overrides},
        )

    def run_steps(self, *steps: str, **overrides: Any) -> "Pipeline":
        """Run steps; their outputs count only if they succeed."""
        for step in steps:
            job = self.build_job(step, **overrides)
            run_step = resolve_name(WORKER_FUNCTIONS[step.partition(":")[0]])
            try:
                self.facts[step] = asyncio.run(run_step(job))
            finally:
                self.events += job.events
            self.inputs.update(job.outputs)
        return self

    def run_all(self, **overrides: Any) -> "Pipeline":
        """Run every step up to the changed worktree."""
        drafts = [f"draft:{section}" for section in self.config["required_sections"]]
        return self.run_steps(*SOURCE_STEPS, "plan", *drafts, "link", "apply", **overrides)

    def read_json(self, name: str) -> Any:
        return self.build_job("look").read_json(name)

    def read_text(self, name: str) -> str:
        return self.build_job("look").read(name).decode()

    def read_pages(self) -> Mapping[str, str]:
        """Return the planned pages as they are in the worktree."""
        plan = self.read_json("page_plan.json")["pages"]
        return {page["output_path"]: (self.site / page["output_path"]).read_text(encoding="utf-8") for page in plan}

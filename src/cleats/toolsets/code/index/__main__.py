"""The builder's process."""

# ruff: noqa: E402 - a build makes no garbage worth collecting, and the collector costs a tenth
import gc

gc.disable()

import os
from pathlib import Path

from cleats.system.worker_process import run_task
from cleats.toolsets.code.index.build import build_index
from cleats.toolsets.code.index.generations import GenerationStore
from cleats.toolsets.code.index.options import BuildRequest
from cleats.toolsets.code.index.progress import BuildReport, ProgressCallback
from cleats.toolsets.code.repository import Repository

BACKGROUND_NICENESS = 10
"""Gives the calls of an agent about ten times the processor time of a build."""


def _build_index(order: BuildRequest, report: ProgressCallback) -> BuildReport:
    if order.in_background and hasattr(os, "nice"):
        os.nice(BACKGROUND_NICENESS)
    repository = Repository(Path(order.root))
    store = GenerationStore(Path(order.cache_dir), repository)
    return build_index(repository.root, store, order.options, report)


run_task(BuildRequest, _build_index)
os._exit(0)  # all output is written; freeing everything piece by piece takes another tenth

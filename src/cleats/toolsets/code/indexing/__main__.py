"""The builder's process."""

# ruff: noqa: E402 - nothing that a build loads is garbage, and to look for it takes a tenth of it
import gc

gc.disable()

import os
from pathlib import Path

from cleats.toolsets.code.errands import carry_out
from cleats.toolsets.code.indexing.builder import Order
from cleats.toolsets.code.indexing.progress import Report
from cleats.toolsets.code.indexing.report import BuildReport
from cleats.toolsets.code.indexing.run import build
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.store.generations import Shelf


def _build(order: Order, report: Report) -> BuildReport:
    repository = Repository(Path(order.root))
    shelf = Shelf(Path(order.cache_dir), repository)
    return build(repository.root, shelf, order.options, report)


carry_out(Order, _build)
os._exit(0)  # all is said; to free everything piece by piece takes another tenth

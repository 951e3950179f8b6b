"""What the workers of one server share, made before they are: a folder, the tokens and the rate limits."""

import gc
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from cleats.contract.tools import Toolset
from cleats.settings import Settings
from cleats.system.processes.worker_group import WorkerGroup, WorkerSeat
from cleats.transports.http.caller_access import load_served_tokens
from cleats.transports.http.service import CLEANUP_TIMEOUT_SECONDS
from cleats.transports.http.tokens import AccessToken, RateLimiter
from cleats.transports.http.workers.rates import SharedLimits

MAX_PARENT_BYTES = 70
"""The length of a path in which a socket of a worker still has a valid address; an address has 108 bytes."""

STOP_MARGIN_SECONDS = 15.0
"""The time that a worker has to end beyond its drain, for answers, sessions and clean-up."""


@dataclass(frozen=True)
class HttpWorker:
    """One of several processes of a server."""

    seat: WorkerSeat
    count: int
    folder: Path
    address: tuple[str, int]
    tokens: Sequence[AccessToken]
    limiters: dict[str, RateLimiter]


@dataclass(frozen=True)
class GroupEnd:
    """The end of a group, in its supervisor."""

    exit_code: int


def _create_folder() -> Path:
    """Create a folder that only this user can open, with a path short enough for the sockets in it."""
    parent = tempfile.gettempdir()
    is_short = len(os.fsencode(parent)) <= MAX_PARENT_BYTES
    return Path(tempfile.mkdtemp(prefix="cleats-http-", dir=parent if is_short else "/tmp"))  # noqa: S108 - mode 0700


def run_workers(
    settings: Settings,
    served_toolsets: Sequence[Toolset],
    listener: socket.socket,
    count: int,
    on_ready: Callable[[], None],
) -> HttpWorker | GroupEnd:
    """Run a group of workers to its end; in a worker, return at once what it needs to serve.

    Raises:
        SettingError: The tokens file is invalid.
    """
    tokens = load_served_tokens(settings, served_toolsets)
    import_module("cleats.transports.mcp.http")  # so that the SDK is in memory once for all workers
    gc.freeze()
    folder = _create_folder()
    limits = SharedLimits(folder, len(tokens))
    limiters: dict[str, RateLimiter] = {
        token.name: limits.build_limiter(index, token.per_minute, token.burst)
        for index, token in enumerate(tokens)
        if token.per_minute is not None
    }
    host, port = listener.getsockname()[:2]
    group = WorkerGroup(
        listener,
        count,
        on_ready=on_ready,
        linger_seconds=settings.http.linger,
        stop_seconds=settings.drain + CLEANUP_TIMEOUT_SECONDS + STOP_MARGIN_SECONDS,
    )
    seat = group.run()
    if seat is not None:
        return HttpWorker(seat, count, folder, (host, port), tokens, limiters)
    shutil.rmtree(folder, ignore_errors=True)
    return GroupEnd(group.exit_code)

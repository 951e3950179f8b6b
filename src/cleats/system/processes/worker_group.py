"""Processes that share one listening socket, and the supervisor that starts them and hands them connections.

The supervisor accepts connections and passes each to the worker with the fewest, so that load spreads evenly and a
connection that a dead worker had not taken yet goes to another one. It forks the workers from a process without
threads; they share its memory until they write to it. It does nothing else, so that nothing in it can fail.

The two ends of a worker's channel send single bytes. A worker that reads the end of the channel has lost its
supervisor and stops.
"""

import errno
import logging
import os
import selectors
import signal
import socket
import time
import warnings
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

log = logging.getLogger(__name__)

CONNECTION_BYTE: Final = b"c"
"""To a worker: a connection, whose descriptor comes with the byte."""

STOP_BYTE: Final = b"s"
"""To a worker: the server will stop; more connections may come."""

CLOSED_BYTE: Final = b"e"
"""To a worker: no more connections will come."""

READY_BYTE: Final = b"r"
"""From a worker: it accepts connections."""

TAKEN_BYTE: Final = b"t"
"""From a worker: it has the next of the connections that were sent to it."""

ENDED_BYTE: Final = b"x"
"""From a worker: one of its connections has ended."""

MAX_UNTAKEN_CONNECTIONS: Final = 64
"""The number of connections that may wait for one worker; further ones wait in the queue of the listening socket."""

LOST_WORKER_ERRORS: Final = frozenset({errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN})
"""The errors of a channel whose other end is closed."""

ACCEPT_PAUSE_SECONDS: Final = 0.1
"""The pause after a connection that could not be accepted or passed on."""

FIRST_RESTART_SECONDS: Final = 0.1
"""The delay before a worker that has crashed is started again; every further crash doubles it."""

MAX_RESTART_SECONDS: Final = 30.0

STABLE_SECONDS: Final = 60.0
"""The life after which a crash counts as the first one."""

SIGNAL_ECHO_SECONDS: Final = 0.5
"""Time in which a second signal counts as the first one, as in `runtime.shutdown`."""


@dataclass(frozen=True, slots=True)
class WorkerSeat:
    """The place of one worker in its group, as the worker itself sees it."""

    slot: int
    channel: socket.socket


@dataclass(eq=False, slots=True)
class _Worker:
    slot: int
    pid: int
    channel: socket.socket
    started_at: float
    is_ready: bool = False
    open_connections: int = 0
    untaken: deque[socket.socket] = field(default_factory=deque)


class WorkerGroup:
    """The supervisor of `count` workers on one listening socket."""

    def __init__(
        self,
        listener: socket.socket,
        count: int,
        *,
        on_ready: Callable[[], None],
        linger_seconds: float,
        stop_seconds: float,
    ) -> None:
        self.exit_code = 0
        self._listener, self._on_ready = listener, on_ready
        self._linger_seconds, self._stop_seconds = linger_seconds, stop_seconds
        self._workers: dict[int, _Worker] = {}
        self._start_times: dict[int, float] = dict.fromkeys(range(count), 0.0)
        """When each missing worker is due, by slot."""
        self._crash_counts: dict[int, int] = dict.fromkeys(range(count), 0)
        self._unplaced: deque[socket.socket] = deque()
        """Connections that a worker left behind."""
        self._selector = selectors.DefaultSelector()
        self._signals, self._signal_writer = socket.socketpair()
        self._is_announced = self._is_accepting = False
        self._stopping_at: float | None = None
        self._close_at: float | None = None
        self._kill_at: float | None = None

    def run(self) -> WorkerSeat | None:
        """Supervise until a signal arrives and every worker has ended; in a worker, return its seat at once."""
        self._listener.setblocking(False)
        self._watch_signals()
        while True:
            if (seat := self._start_due_workers()) is not None:
                return seat
            if self._stopping_at is not None and not self._workers:
                self._leave()
                return None
            self._place_connections()
            self._watch_listener()
            for key, _ in self._selector.select(self._find_timeout()):
                if self._selector.get_map().get(key.fd) is key:  # else an earlier event has removed the worker
                    key.data()
            self._act_on_time()

    def _watch_signals(self) -> None:
        self._signals.setblocking(False)
        self._signal_writer.setblocking(False)
        signal.set_wakeup_fd(self._signal_writer.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, _ignore_signal)
        self._selector.register(self._signals, selectors.EVENT_READ, self._read_signals)

    def _read_signals(self) -> None:
        for number in self._signals.recv(4096):
            if number != signal.SIGCHLD:
                self._request_stop(signal.Signals(number).name)
        self._reap_workers()

    def _request_stop(self, reason: str) -> None:
        now = time.monotonic()
        if self._stopping_at is None:
            log.info("workers.stop reason=%s", reason)
            self._begin_stop(now)
        elif now - self._stopping_at > SIGNAL_ECHO_SECONDS:
            self.exit_code = 130
            self._kill_workers()

    def _begin_stop(self, now: float) -> None:
        self._stopping_at, self._close_at = now, now + self._linger_seconds
        self._start_times.clear()
        for worker in self._workers.values():
            self._send(worker, STOP_BYTE)

    def _find_timeout(self) -> float | None:
        times = [*self._start_times.values()]
        times += [when for when in (self._close_at, self._kill_at) if when is not None]
        now = time.monotonic()
        if self._unplaced and self._find_worker() is not None:
            times.append(now + ACCEPT_PAUSE_SECONDS)
        return max(0.0, min(times) - now) if times else None

    def _act_on_time(self) -> None:
        now = time.monotonic()
        if self._close_at is not None and now >= self._close_at:
            self._close_at, self._kill_at = None, now + self._stop_seconds
            self._accept_connections()
            if self._is_accepting:
                self._selector.unregister(self._listener)
                self._is_accepting = False
            self._listener.close()
            for worker in self._workers.values():
                self._send(worker, CLOSED_BYTE)
        if self._kill_at is not None and now >= self._kill_at:
            log.warning("workers.kill count=%d after=%gs", len(self._workers), self._stop_seconds)
            self._kill_workers()

    def _kill_workers(self) -> None:
        self._kill_at = None
        for worker in self._workers.values():
            with suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGKILL)

    def _start_due_workers(self) -> WorkerSeat | None:
        now = time.monotonic()
        for slot in [slot for slot, when in self._start_times.items() if when <= now]:
            if self._start_times.pop(slot, None) is None:  # the group was given up after an earlier slot
                continue
            if (seat := self._start_worker(slot)) is not None:
                return seat
        return None

    def _start_worker(self, slot: int) -> WorkerSeat | None:
        try:
            pid, our_end, worker_end = _fork_with_channel()
        except OSError as error:  # there are too many processes or open files, or too little memory
            log.error("worker.start_failed slot=%d error=%s", slot, error.strerror)  # noqa: TRY400 - the reason says it
            if self._is_announced:
                self._plan_restart(slot)
            else:
                self._give_up(exit_code=1)
            return None
        if pid == 0:
            our_end.close()
            self._become_worker()
            return WorkerSeat(slot, worker_end)
        worker_end.close()
        our_end.setblocking(False)
        worker = _Worker(slot, pid, our_end, time.monotonic())
        self._workers[slot] = worker
        self._selector.register(our_end, selectors.EVENT_READ, lambda: self._read_channel(worker))
        return None

    def _become_worker(self) -> None:
        """Close everything of the supervisor. A worker obeys its channel and goes on ignoring signals."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        for worker in self._workers.values():
            worker.channel.close()
            self._unplaced.extend(worker.untaken)
        for item in (self._listener, self._signals, self._signal_writer, *self._unplaced):
            item.close()

    def _read_channel(self, worker: _Worker) -> bool:
        """Read what a worker reports; return whether there may be more."""
        try:
            received = worker.channel.recv(4096)
        except BlockingIOError:
            return False
        except OSError:
            received = b""
        if not received:
            self._selector.unregister(worker.channel)
            return False
        for number in received:
            byte = bytes((number,))
            if byte == TAKEN_BYTE:
                worker.untaken.popleft().close()
            elif byte == ENDED_BYTE:
                worker.open_connections -= 1
            elif byte == READY_BYTE:
                self._mark_ready(worker)
        return True

    def _mark_ready(self, worker: _Worker) -> None:
        worker.is_ready = True
        log.info("worker.ready slot=%d pid=%d", worker.slot, worker.pid)
        workers = self._workers.values()
        if not self._is_announced and not self._start_times and all(item.is_ready for item in workers):
            self._is_announced = True
            self._on_ready()

    def _reap_workers(self) -> None:
        for worker in list(self._workers.values()):
            pid, status = os.waitpid(worker.pid, os.WNOHANG)
            if pid:
                self._remove_worker(worker, os.waitstatus_to_exitcode(status))

    def _remove_worker(self, worker: _Worker, exit_code: int) -> None:
        while worker.channel in self._selector.get_map() and self._read_channel(worker):
            pass
        if worker.channel in self._selector.get_map():
            self._selector.unregister(worker.channel)
        worker.channel.close()
        del self._workers[worker.slot]
        self._unplaced.extend(worker.untaken)
        if self._stopping_at is not None:
            return
        if not self._is_announced:
            self._give_up(exit_code)  # the worker has said why; starting it again would only repeat that
            return
        if time.monotonic() - worker.started_at > STABLE_SECONDS:
            self._crash_counts[worker.slot] = 0
        delay = self._plan_restart(worker.slot)
        log.error("worker.exit slot=%d pid=%d code=%d restart=%gs", worker.slot, worker.pid, exit_code, delay)

    def _give_up(self, exit_code: int) -> None:
        """Stop a group whose workers do not start."""
        self.exit_code = exit_code if exit_code > 0 else 1
        self._begin_stop(time.monotonic())

    def _plan_restart(self, slot: int) -> float:
        """Plan another start of a worker; return the delay."""
        delay: float = min(MAX_RESTART_SECONDS, FIRST_RESTART_SECONDS * 2 ** self._crash_counts[slot])
        self._crash_counts[slot] = min(self._crash_counts[slot] + 1, 20)
        self._start_times[slot] = time.monotonic() + delay
        return delay

    def _watch_listener(self) -> None:
        """Accept while there is a worker for the next connection; the kernel keeps the others."""
        wanted = self._listener.fileno() >= 0 and self._can_accept()
        if wanted == self._is_accepting:
            return
        self._is_accepting = wanted
        if wanted:
            self._selector.register(self._listener, selectors.EVENT_READ, self._accept_connections)
        else:
            self._selector.unregister(self._listener)

    def _accept_connections(self) -> None:
        while self._can_accept():
            try:
                connection, _ = self._listener.accept()
            except BlockingIOError:
                return
            except ConnectionError:  # the client has gone already
                continue
            except OSError as error:  # there are too many open files, and the listener stays readable
                log.warning("accept.failed error=%s", error.strerror)
                time.sleep(ACCEPT_PAUSE_SECONDS)
                return
            self._unplaced.append(connection)
            self._place_connections()

    def _can_accept(self) -> bool:
        return not self._unplaced and self._find_worker() is not None

    def _find_worker(self) -> _Worker | None:
        candidates = [
            worker
            for worker in self._workers.values()
            if worker.is_ready and len(worker.untaken) < MAX_UNTAKEN_CONNECTIONS
        ]
        return min(candidates, key=lambda worker: worker.open_connections, default=None)

    def _place_connections(self) -> None:
        while self._unplaced and (worker := self._find_worker()) is not None:
            connection = self._unplaced.popleft()
            try:
                socket.send_fds(worker.channel, [CONNECTION_BYTE], [connection.fileno()])
            except OSError as error:
                self._unplaced.appendleft(connection)
                if error.errno not in LOST_WORKER_ERRORS:  # the system has too many descriptors on the way
                    log.warning("connection.delayed slot=%d error=%s", worker.slot, error.strerror)
                    return
                worker.is_ready = False  # it is about to end, which is noticed later
            else:
                worker.open_connections += 1
                worker.untaken.append(connection)

    def _send(self, worker: _Worker, message: bytes) -> None:
        with suppress(OSError):
            worker.channel.send(message)

    def _leave(self) -> None:
        signal.set_wakeup_fd(-1)
        for item in (self._listener, self._signals, self._signal_writer, *self._unplaced):
            item.close()
        self._selector.close()


def _fork_with_channel() -> tuple[int, socket.socket, socket.socket]:
    """Fork; return the process id, which is 0 in the worker, and both ends of a new channel."""
    our_end, worker_end = socket.socketpair()
    try:
        with warnings.catch_warnings():
            # Python warns that threads do not survive a fork. The existing ones belong to numpy and to the log, which
            # starts another one.
            warnings.simplefilter("ignore", DeprecationWarning)
            return os.fork(), our_end, worker_end
    except OSError:
        our_end.close()
        worker_end.close()
        raise


def _ignore_signal(_number: int, _frame: object) -> None:
    """Do nothing. The supervisor reads signals from its socket; a process that a worker starts gets the defaults."""

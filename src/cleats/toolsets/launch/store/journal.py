"""How a write changes a run, before any database knows of it: the part that all stores share."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from cleats.contract.payload import timestamp
from cleats.toolsets.launch.events import Draft, Event, Tail, Trace, chain
from cleats.toolsets.launch.snapshot import empty, fold, state_of
from cleats.toolsets.launch.states import TERMINAL, State
from cleats.toolsets.launch.store.port import NewRun, Run


class Written(NamedTuple):
    """A run after a write, and the events that are new."""

    run: Run
    events: Sequence[Event]


def begin(
    new: NewRun, drafts: Iterable[Draft], trace: Trace, *, now: float | None = None
) -> Written:
    """A run before its first record, with its first events; its number is not known yet."""
    ts = timestamp(time.time() if now is None else now)
    blank = Run(
        run_id=new.run_id,
        number=0,
        product_slug=new.product_slug,
        config_hash=new.config_hash,
        request_hash=new.request_hash,
        started_at=ts,
        finished_at="",
        epoch=0,
        owner="",
        expires=0.0,
        config=new.config,
        shown_config=new.shown_config,
        snapshot=empty(new.run_id),
        tail=Tail(),
    )
    return append(blank, drafts, trace, now=now)


def append(run: Run, drafts: Iterable[Draft], trace: Trace, *, now: float | None = None) -> Written:
    """The run with more events.

    Raises:
        IllegalTransition: an event changes the state along no edge.
    """
    ts = timestamp(time.time() if now is None else now)
    events, tail = chain(run.run_id, run.tail, drafts, trace, ts)
    snapshot = run.snapshot
    for event in events:
        snapshot = fold(snapshot, event)
    ended = not run.finished_at and state_of(snapshot) in TERMINAL
    after = replace(run, snapshot=snapshot, tail=tail, finished_at=ts if ended else run.finished_at)
    return Written(after, events)


def to_state(old: State, new: State) -> Draft:
    """The event that changes the state of a run."""
    return Draft("RUN_STATE_CHANGED", {"old_state": old.value, "new_state": new.value})

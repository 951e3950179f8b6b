"""The history of a fleet's runs, and the invariants that it has to keep whatever the network did."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cleats.toolsets.launch.store.run_store import RunStore

RUN_STEPS = ["clone", "inventory", "facts", "snippets", "plan", "draft:docs", "link", "apply"]
PUBLISHED_STEPS = [*RUN_STEPS, "validate:1", "commit", "request"]


@dataclass(frozen=True)
class RunHistory:
    """What is known of one run at the end."""

    key: str
    run_ids: tuple[str, ...]
    """The ids that its starts were answered with; a start may be repeated."""
    steps: Sequence[str]
    is_intact: bool
    """True if the chain of its log holds and its snapshot is the fold of the log."""
    state: str
    epochs: Sequence[int]
    """The lease epochs that were seen, in the order in which they were seen."""


def read_history(
    store: RunStore, starts: Mapping[str, Sequence[str]], epochs: Mapping[str, Sequence[int]]
) -> list[RunHistory]:
    """Read the histories of all runs; `starts` has the answers by idempotency key."""
    return [
        RunHistory(
            key=key,
            run_ids=tuple(run_ids),
            steps=[step.step for step in store.list_steps(run_ids[0])],
            is_intact=store.verify(run_ids[0]),
            state=store.get(run_ids[0]).state.value,
            epochs=epochs.get(run_ids[0], ()),
        )
        for key, run_ids in starts.items()
    ]


def find_violations(histories: Sequence[RunHistory], stored_ids: Sequence[str], commits: Sequence[str]) -> list[str]:
    """Return every broken promise: nothing is lost, and nothing happens twice."""
    started_ids = {history.run_ids[0] for history in histories}
    commit_counts = Counter(commits)
    violations = [f"{run_id}: nobody started it" for run_id in stored_ids if run_id not in started_ids]
    violations += [f"{run_id}: it is lost" for run_id in started_ids.difference(stored_ids)]
    violations += [f"{commit}: nobody asked for it" for commit in commits if commit.split("/")[1] not in started_ids]
    for history in histories:
        run_id = history.run_ids[0]
        commit_count = commit_counts[f"launch/{run_id}/x"]
        promises = {
            f"one start made several runs: {history.run_ids}": set(history.run_ids) == {run_id},
            f"it ended as {history.state}": history.state == "DONE",
            f"its steps are {history.steps}": history.steps == PUBLISHED_STEPS,
            "the snapshot is not the fold of the log": history.is_intact,
            f"it has {commit_count} commits": commit_count == 1,
            f"an older lease came back: {history.epochs}": list(history.epochs) == sorted(history.epochs),
        }
        violations += [f"{run_id}: {text}" for text, is_kept in promises.items() if not is_kept]
    return violations

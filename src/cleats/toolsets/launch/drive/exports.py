"""A run as files for people and other programs. The store is the truth; these are copies."""

import logging
from hashlib import sha256

from cleats.contract.errors import ToolError
from cleats.toolsets.launch.artifacts import canonical
from cleats.toolsets.launch.folder import RunFolder
from cleats.toolsets.launch.store.port import Run, RunStore

log = logging.getLogger(__name__)

EVENTS, SNAPSHOT, CONFIG = "events.ndjson", "snapshot.json", "run_config.yaml"
VIEWS = (EVENTS, SNAPSHOT, CONFIG)
"""What can be read of every run beside its artifacts."""


def render(store: RunStore, run: Run, name: str) -> bytes:
    """One of the views, as it is now."""
    if name == EVENTS:
        import msgspec  # noqa: PLC0415 - only for those who look

        events = store.events(run.run_id)
        return b"".join(msgspec.json.encode(event.as_json()) + b"\n" for event in events)
    if name == SNAPSHOT:
        return canonical(run.snapshot)
    import yaml  # noqa: PLC0415 - as above

    text: str = yaml.safe_dump(dict(run.shown_config), sort_keys=True, allow_unicode=True)
    return text.encode()


def export(store: RunStore, folder: RunFolder) -> None:
    """Write the views and the artifacts of a run. A failure is logged: nothing depends on them."""
    try:
        run = store.get(folder.root.name)
        for name in VIEWS:
            folder.view(name, render(store, run, name))
        for name, entry in run.snapshot["artifacts_index"].items():
            place = folder.root / "artifacts" / name
            if not place.is_file() or sha256(place.read_bytes()).hexdigest() != entry["sha256"]:
                folder.view(f"artifacts/{name}", folder.get(entry["sha256"]))
    except (OSError, ToolError):
        log.exception("export.fail run=%s", folder.root.name)

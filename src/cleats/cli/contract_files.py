"""The files of contracts: the committed snapshot with its results, the released versions, and locks."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from cleats.cli.output import UnusableInput
from cleats.contract.snapshot import align_with_listing, attach_results, encode_snapshot, extract_results
from cleats.contract.versions import RELEASE_VERSION_PATTERN
from cleats.settings import Settings

COMMITTED_SNAPSHOT_PATH = Path("contracts/tools.json")
RESULTS_NAME = "results.json"
"""The file beside the committed snapshot with the result schemas in full."""
RELEASED_NAME = "released"
"""The folder beside the committed snapshot with one full snapshot per released version."""


def load_pair(old: Path, new: Path) -> tuple[Any, Any]:
    """Load two snapshots; our own contract is limited to what the listing of a running server has."""
    old_snapshot, new_snapshot = load_snapshot(old), load_snapshot(new)
    with suppress(TypeError, KeyError, AttributeError):  # not a snapshot, which the comparison reports
        if "server" in new_snapshot and "server" not in old_snapshot and "envelope" in old_snapshot:
            return align_with_listing(old_snapshot, new_snapshot)
    return old_snapshot, new_snapshot


def build_contract_files(
    settings: Settings, toolset: str | None, path: Path
) -> tuple[dict[Path, bytes], dict[str, Any]]:
    """Return the committed files of a contract by path, and its snapshot with the results in full."""
    listed_snapshot = take_own_snapshot(settings, toolset)
    if toolset is not None:
        return {path: encode_snapshot(listed_snapshot)}, listed_snapshot
    full_snapshot = take_own_snapshot(settings, None, full_results=True)
    results = encode_snapshot(extract_results(full_snapshot))
    return {path: encode_snapshot(listed_snapshot), path.with_name(RESULTS_NAME): results}, full_snapshot


def find_newest_release(path: Path, *, without: Path | None = None) -> Path | None:
    """Return the file of the newest released version beside a committed snapshot, or None."""
    releases = [
        release_path
        for release_path in (path.parent / RELEASED_NAME).glob("*.json")
        if RELEASE_VERSION_PATTERN.fullmatch(release_path.stem) and release_path != without
    ]
    return max(releases, key=lambda release_path: [int(part) for part in release_path.stem.split(".")], default=None)


def load_contract(path: Path, ref: str | None) -> Any:
    """Load a committed contract, with the results in full if there is a file of them beside it."""
    results_path = path.with_name(RESULTS_NAME)
    if ref is None:
        snapshot = load_snapshot(path)
        return attach_results(snapshot, load_snapshot(results_path)) if results_path.exists() else snapshot
    snapshot = load_snapshot_at_ref(ref, path)
    with suppress(UnusableInput):  # before there was such a file, the snapshot itself had them in full
        return attach_results(snapshot, load_snapshot_at_ref(ref, results_path))
    return snapshot


def take_own_snapshot(settings: Settings, toolset: str | None, *, full_results: bool = False) -> dict[str, Any]:
    """Take the snapshot of our own contract, or of an installed toolset."""
    from cleats import app  # noqa: PLC0415 - only for our own contract
    from cleats.cli.tools import check_toolsets  # noqa: PLC0415

    if toolset in app.BUILTIN_TOOLSETS:
        raise click.UsageError(f"{toolset} is part of our own contract; leave --toolset out")
    if toolset is not None:
        check_toolsets((toolset,))
    return app.build_contract_snapshot(settings, toolset, full_results=full_results)


def load_snapshot(path: Path) -> Any:
    """Load a snapshot file."""
    try:
        return _parse_snapshot(path.read_bytes(), str(path))
    except OSError as error:
        raise UnusableInput(f"{path}: {error.strerror}") from None


def load_snapshot_at_ref(ref: str, path: Path) -> Any:
    """Load a snapshot file as it is in a git commit."""
    import anyio  # noqa: PLC0415

    from cleats.system.processes import process  # noqa: PLC0415

    object_name = f"{ref}:./{path.as_posix()}"
    try:
        completed = anyio.run(process.run, ["git", "show", "--end-of-options", object_name])
    except process.StartError as error:
        raise UnusableInput(str(error)) from None
    if completed.exit_code != 0:
        raise UnusableInput(completed.stderr.decode(errors="replace").strip())
    return _parse_snapshot(completed.stdout, object_name)


def _parse_snapshot(data: bytes, name: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise UnusableInput(f"{name} is not JSON") from None


def write_snapshot(path: Path, current_snapshot: dict[str, Any]) -> None:
    """Write a snapshot file and say so."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode_snapshot(current_snapshot))
    except OSError as error:
        raise UnusableInput(f"{path}: {error.strerror}") from None
    click.echo(f"Wrote {path}.", err=True)

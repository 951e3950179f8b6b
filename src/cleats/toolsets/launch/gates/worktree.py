"""The worktree is what the run made of it: its patches, and nothing that came in from elsewhere.

Not a gate that a profile can leave out. A report about files that somebody edited would be taken
for one about the launch.
"""

from collections.abc import Iterator

from cleats.toolsets.launch.gates.model import Said, blocker, error
from cleats.toolsets.launch.gates.site import Site
from cleats.toolsets.launch.patching.patches import digest

BUNDLE = "patch_bundle.json"
FIX = "apply:fix:"


def check(site: Site, edited: list[str], *, moved: bool) -> Iterator[Said]:
    """Say what was edited by hand, and whether the site changed under the gates."""
    if moved:
        message = "the worktree changed while it was validated"
        yield blocker("GATE_WORKTREE_MOVED", message)
    if site.config.get("allow_manual_edits", False):
        yield from (f"edited by hand, which this run allows: {path}" for path in edited)
        return
    for path in edited:
        yield error("GATE_MANUAL_EDIT", "the file is not what the run wrote", path)


def bundles(site: Site) -> list[str]:
    """The names of the bundles that were applied, in order; one that only was planned is none."""
    applied = (step for step in site.job.facts if step.partition(":")[0] == "apply")
    names = (
        f"patch_bundle.delta.{step.removeprefix(FIX)}.json" if step.startswith(FIX) else BUNDLE
        for step in applied
    )
    return list(dict.fromkeys(names))


def promised(site: Site) -> dict[str, str]:
    """The hash that each file has after the last patch of it."""
    return {
        patch["path"]: patch["content_hash"]
        for name in bundles(site)
        for patch in site.job.json(name)["patches"]
    }


def edited(site: Site) -> list[str]:
    """The files that differ from what the patches of the run lead to."""
    wanted = promised(site)
    changed = {change.path for change in site.changes}
    odd = changed - wanted.keys()
    for path, expected in wanted.items():
        file = site.job.site / path
        plain = file.is_file() and not file.is_symlink()
        if digest(file.read_bytes() if plain else None) != expected:
            odd.add(path)
    return sorted(odd)

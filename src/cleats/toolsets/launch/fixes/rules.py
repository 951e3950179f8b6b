"""All fix rules, by the error code that they repair."""

from collections.abc import Mapping

from cleats.contract.errors import ToolError
from cleats.toolsets.launch.fixes import (
    consistency,
    front_matter,
    internal_links,
    leftover_marks,
    markdown_lint,
    snippets,
    truth_lock,
)
from cleats.toolsets.launch.fixes.model import FileRemoval, FixResult, FixRule
from cleats.toolsets.launch.gates.model import LaunchSite
from cleats.toolsets.launch.gates.worktree import list_applied_bundles
from cleats.toolsets.launch.git.client import HardenedGit
from cleats.toolsets.launch.patching.patches import ConflictError, apply_patch

MANUAL_EDIT_CODE = "GATE_MANUAL_EDIT"


async def restore_file(site: LaunchSite, path: str, base: str, env: Mapping[str, str]) -> FixResult:
    """Return the file as the run's patches leave it, or None when that cannot be determined."""
    data = await _read_base_file(site, path, base, env)
    for name in list_applied_bundles(site):
        for patch in site.job.read_json(name)["patches"]:
            if patch["path"] != path:
                continue
            try:
                data = apply_patch(patch, data)
            except ConflictError:
                return None
    if data is None:
        return FileRemoval.REMOVED
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


async def _read_base_file(site: LaunchSite, path: str, base: str, env: Mapping[str, str]) -> bytes | None:
    git = HardenedGit(env, site.job.site)
    try:
        listing = await git.run("", "ls-tree", "-z", "--name-only", base, "--", path)
        return await git.run("", "cat-file", "blob", f"{base}:{path}") if listing else None
    except ToolError:
        return None


FIX_RULES: Mapping[str, FixRule] = {
    **consistency.CONSISTENCY_FIXES,
    **snippets.SNIPPET_FIXES,
    **consistency.CONTENTS_FIXES,
    **front_matter.FRONT_MATTER_FIXES,
    **markdown_lint.LINT_FIXES,
    **internal_links.LINK_FIXES,
    **leftover_marks.LEAK_FIXES,
    **truth_lock.TRUTH_FIXES,
}

FIXABLE_CODES = frozenset(FIX_RULES) | {MANUAL_EDIT_CODE}
"""The error codes that can be repaired."""

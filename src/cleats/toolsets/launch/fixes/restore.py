"""Undoes edits by hand, in runs that do not allow them: the file becomes what the run wrote.

What was edited is not lost: the report of the fix holds the difference.
"""

from collections.abc import Mapping

from cleats.contract.errors import ToolError
from cleats.toolsets.launch.fixes.model import Answer, Gone
from cleats.toolsets.launch.gates.site import Site
from cleats.toolsets.launch.gates.worktree import bundles
from cleats.toolsets.launch.patching.patches import ConflictError, result
from cleats.toolsets.launch.source.git import Git

CODE = "GATE_MANUAL_EDIT"


async def restored(site: Site, path: str, base: str, env: Mapping[str, str]) -> Answer:
    """The file as the run's patches leave it; None when that cannot be told."""
    data = await _at_base(site, path, base, env)
    for name in bundles(site):
        for patch in site.job.json(name)["patches"]:
            if patch["path"] != path:
                continue
            try:
                data = result(patch, data)
            except ConflictError:
                return None
    if data is None:
        return Gone.GONE
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


async def _at_base(site: Site, path: str, base: str, env: Mapping[str, str]) -> bytes | None:
    git = Git(env, site.job.site)
    try:
        listed = await git.ask("", "ls-tree", "-z", "--name-only", base, "--", path)
        return await git.ask("", "cat-file", "blob", f"{base}:{path}") if listed else None
    except ToolError:
        return None

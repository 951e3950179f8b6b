"""The guard for repositories and files that a caller from the network may name.

It wraps the tools and not the routes, so that it also holds for calls over `/mcp`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.tools import Context, Handler, Tool, Toolset
from cleats.system.safe_paths import resolve_path

REPOSITORY_ARGUMENT: Final = "repoPath"
"""The argument that names a repository, in every tool that has one."""

WORKSPACE_ARGUMENT: Final = "workspacePath"
"""The argument that names a file that lists repositories."""

PATH_ARGUMENTS: Final = ("inputPath", "artifactsDir", WORKSPACE_ARGUMENT)
"""Arguments that name files to read, absolute or relative to the root of the repository.

Tools that stay inside the repository by themselves need no guard."""

CONFIG_ARGUMENT: Final = "run_config"
"""The argument whose repository addresses may be paths on this machine."""


@dataclass(frozen=True)
class PathGuard:
    """The default repository and the folders that may contain others."""

    repo: Path
    roots: Sequence[Path] = ()
    default_root: Path | None = None
    """The repository of calls that name none: the one around `repo`, or `repo` itself."""
    find_root: Callable[[Path], Path] = lambda folder: folder
    """Returns the root of the repository that contains a folder."""
    restricted: bool = False
    """True if `repo` and `roots` belong to one caller, which may not learn of other
    repositories."""

    @cached_property
    def _allowed_roots(self) -> tuple[Path, ...]:
        return tuple(root.resolve() for root in (self.repo, *self.roots))

    @property
    def readable_folders(self) -> tuple[Path, ...]:
        """The folders whose paths the caller may read."""
        return (self.repo, *self.roots, self._default_root)

    @cached_property
    def _default_root(self) -> Path:
        return self.default_root or self._allowed_roots[0]

    def guard_toolset(self, toolset: Toolset) -> Toolset:
        """Return the toolset with tools that refuse paths outside."""
        return replace(toolset, tools=[self._guard_tool(tool) for tool in toolset.tools])

    def _guard_tool(self, tool: Tool) -> Tool:
        argument_names = set(tool.input.get("properties", {}))
        if not self.restricted and not {REPOSITORY_ARGUMENT, CONFIG_ARGUMENT, *PATH_ARGUMENTS} & argument_names:
            return tool
        errors = tuple(dict.fromkeys((*tool.errors, ErrorCode.FORBIDDEN)))
        takes_repository = REPOSITORY_ARGUMENT in argument_names
        force_repository = takes_repository and (self.restricted or tool.hints.destructive)
        run = self._guard_handler(tool.run, force_repository=force_repository)
        return replace(tool, run=run, errors=errors)

    def _guard_handler(self, run: Handler, *, force_repository: bool) -> Handler:
        async def run_guarded(arguments: Mapping[str, Any], context: Context) -> Any:
            if force_repository and not arguments.get(WORKSPACE_ARGUMENT):
                # Without a repository, they use the server's own or every one on this machine.
                arguments = {REPOSITORY_ARGUMENT: str(self._default_root), **arguments}
            answer = await run(self.check_arguments(arguments), context)
            return self._drop_foreign_repositories(answer) if self.restricted else answer

        return run_guarded

    def check_arguments(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments of a call with every path checked and the repository resolved.

        Raises:
            ToolError: FORBIDDEN if a path is outside; INVALID_REQUEST if it is not a valid path.
        """
        if REPOSITORY_ARGUMENT in arguments:
            folder = self.resolve_repository(arguments[REPOSITORY_ARGUMENT])
            arguments = {**arguments, REPOSITORY_ARGUMENT: str(folder)}
            base = self.find_root(folder)
        elif arguments.get(WORKSPACE_ARGUMENT):
            return {**arguments, **self._confine_workspace(arguments[WORKSPACE_ARGUMENT])}
        else:  # tools use the server's repository, or none at all
            base = self._default_root
        for name in PATH_ARGUMENTS:
            if arguments.get(name):
                self._check_path(name, base / arguments[name])
        for name, address in arguments.get(CONFIG_ARGUMENT, {}).items():
            if isinstance(address, str) and address.startswith(("/", "file:")):
                self._check_path(name, Path(address.removeprefix("file:").removeprefix("//")))
        return arguments

    def resolve_repository(self, path: str) -> Path:
        """Return the folder that a caller named, with links resolved.

        Raises:
            ToolError: FORBIDDEN outside the allowed folders, whether or not it exists, and inside a
                repository that extends beyond them; INVALID_REQUEST inside them if it is not a
                folder.
        """
        folder, is_folder = _resolve_path(REPOSITORY_ARGUMENT, self.repo / path)
        if not self._is_allowed(folder):
            raise _outside_error(REPOSITORY_ARGUMENT)
        if not is_folder:
            raise ToolError(ErrorCode.INVALID_REQUEST, "repoPath is not an existing folder")
        if not self._is_allowed(self.find_root(folder)):
            raise _outside_error("The repository around repoPath")
        return folder

    def _check_path(self, name: str, path: Path) -> Path:
        resolved, _ = _resolve_path(name, path)
        if not self._is_allowed(resolved) and not resolved.is_relative_to(self._default_root):
            raise _outside_error(name)
        return resolved

    def _confine_workspace(self, workspace: str) -> dict[str, str]:
        """Return the arguments that confine a workspace to the widest allowed folder around it.

        Only the tool knows the repositories in it; it keeps them inside `repoPath`.
        """
        file = self._check_path(WORKSPACE_ARGUMENT, self.repo / workspace)
        enclosing = [root for root in (*self._allowed_roots, self._default_root) if file.is_relative_to(root)]
        widest = min(enclosing, key=lambda root: len(root.parts))
        return {WORKSPACE_ARGUMENT: str(file), REPOSITORY_ARGUMENT: str(self.resolve_repository(str(widest)))}

    def _drop_foreign_repositories(self, answer: Any) -> Any:
        """Return an answer without details of repositories that the caller may not see."""
        if not isinstance(answer, Mapping):
            return answer
        filtered = dict(answer)
        repository = filtered.get("repository")  # check_status
        if isinstance(repository, Mapping) and not self._is_visible(repository.get(REPOSITORY_ARGUMENT)):
            del filtered["repository"]
        if isinstance(all_repositories := filtered.get("allRepos"), list):  # report_artifacts
            filtered["allRepos"] = [entry for entry in all_repositories if self._is_visible(entry.get("root"))]
        return filtered

    def _is_visible(self, root: object) -> bool:
        return isinstance(root, str) and self._is_allowed(Path(root))

    def _is_allowed(self, path: Path) -> bool:
        return path == self._default_root or any(path.is_relative_to(root) for root in self._allowed_roots)


def _resolve_path(name: str, path: Path) -> tuple[Path, bool]:
    try:
        resolved = resolve_path(Path(), str(path))
        return resolved, resolved.is_dir()
    except (OSError, ValueError):
        raise ToolError(ErrorCode.INVALID_REQUEST, f"{name} is no usable path") from None


def _outside_error(subject: str) -> ToolError:
    return ToolError(
        ErrorCode.FORBIDDEN,
        f"{subject} is outside the folders that this server may serve",
        hint="The operator can allow more with CLEATS_HTTP_ROOTS.",
    )

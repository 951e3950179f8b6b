"""The access of each caller: the toolsets of its token, limited to the repositories and files that it may name.

Every caller has a separate registry. A tool outside it cannot be listed, found or called, over routes or over MCP,
because nothing else is ever searched. The path guard wraps tools and not routes, so that it also holds over `/mcp`.
"""

import os.path
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from cleats.contract.errors import ErrorCode, ToolError, unwrap_tool_error
from cleats.contract.outcome import Cancelled, Done, Outcome
from cleats.contract.registry import Registry
from cleats.contract.tools import Context, Tool, Toolset
from cleats.runtime.call import ToolCall
from cleats.runtime.dispatcher import Dispatcher
from cleats.runtime.recent_calls import RecentCalls
from cleats.settings import Settings
from cleats.system.safe_paths import resolve_path
from cleats.transports.http.monitoring import WriteRecord, build_writer, clean_text, open_outlet
from cleats.transports.http.tokens import ANONYMOUS_TOKEN, AccessToken, load_tokens

REPOSITORY_ARGUMENT: Final = "repoPath"
"""The argument that names a repository, in every tool that has one, except for those of `explore`."""

REPOSITORY_ARGUMENTS_BY_TOOLSET: Final = {"explore": "repo"}
"""Toolsets whose tools have another name for it. A plugin may mean something else by `repo`."""

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
    """True if `repo` and `roots` belong to one caller, which may not learn of other repositories."""

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
        repository_argument = REPOSITORY_ARGUMENTS_BY_TOOLSET.get(toolset.name, REPOSITORY_ARGUMENT)
        return replace(toolset, tools=[self._guard_tool(tool, repository_argument) for tool in toolset.tools])

    def _guard_tool(self, tool: Tool, repository_argument: str) -> Tool:
        argument_names = set(tool.input.get("properties", {}))
        if not self.restricted and not {repository_argument, CONFIG_ARGUMENT, *PATH_ARGUMENTS} & argument_names:
            return tool
        forces_repository = repository_argument in argument_names and (self.restricted or tool.hints.destructive)

        async def run_guarded(arguments: Mapping[str, Any], context: Context) -> Any:
            if forces_repository and not arguments.get(WORKSPACE_ARGUMENT):
                # Without a repository, they use the server's own or every one on this machine.
                arguments = {repository_argument: str(self._default_root), **arguments}
            if repository_argument != REPOSITORY_ARGUMENT and repository_argument in arguments:
                folder = self.resolve_repository(arguments[repository_argument])
                arguments = {**arguments, repository_argument: str(folder)}
            answer = await tool.run(self.check_arguments(arguments), context)
            return self._drop_foreign_repositories(answer) if self.restricted else answer

        return replace(tool, run=run_guarded, errors=tuple(dict.fromkeys((*tool.errors, ErrorCode.FORBIDDEN))))

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
            ToolError: FORBIDDEN outside the allowed folders, whether or not it exists, and inside a repository that
                extends beyond them; INVALID_REQUEST inside them if it is not a folder.
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
        """Confine a workspace to the widest allowed folder: the tool, which reads it, keeps inside `repoPath`."""
        file = self._check_path(WORKSPACE_ARGUMENT, self.repo / workspace)
        enclosing = [root for root in (*self._allowed_roots, self._default_root) if file.is_relative_to(root)]
        widest = min(enclosing, key=lambda root: len(root.parts))
        return {WORKSPACE_ARGUMENT: str(file), REPOSITORY_ARGUMENT: str(self.resolve_repository(str(widest)))}

    def _drop_foreign_repositories(self, answer: Any) -> Any:
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
        raise ToolError(ErrorCode.INVALID_REQUEST, f"{name} is not a valid path") from None


def _outside_error(subject: str) -> ToolError:
    message = f"{subject} is outside the folders that this server may serve"
    return ToolError(ErrorCode.FORBIDDEN, message, hint="The operator can allow more with CLEATS_HTTP_ROOTS.")


P = ParamSpec("P")
T = TypeVar("T")

HIDDEN_PATH = "<path>"

# A word that may be a path: from a slash (or a drive letter) to a delimiter. The colon of `file.py:12` ends it too.
_PATH_END_CHARS = r"""\s'"`<>|;,()\[\]{}"""
_PATH_PATTERN = re.compile(rf"(?<![\w./<-])(?:/(?!/)[^:{_PATH_END_CHARS}]+|[A-Za-z]:\\[^{_PATH_END_CHARS}]+)")


class PathRedactor:
    """A redactor that knows the folders whose paths the caller may read."""

    def __init__(self, folders: Sequence[Path]) -> None:
        roots = {os.path.normpath(folder) for folder in folders}
        self._roots = sorted(roots | {os.path.realpath(folder) for folder in roots})

    def redact_toolset(self, toolset: Toolset) -> Toolset:
        """Return the toolset with tools and routes whose errors are redacted."""
        tools = [replace(tool, run=self._redact_errors(tool.run)) for tool in toolset.tools]
        routes = [replace(route, run=self._redact_errors(route.run)) for route in toolset.routes]
        return replace(toolset, tools=tools, routes=routes)

    def _redact_errors(self, run: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
        async def run_redacted(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return await run(*args, **kwargs)
            except Exception as crash:
                if (error := unwrap_tool_error(crash)) is None:
                    raise
                raise self.redact_error(error) from crash

        return run_redacted

    def redact_error(self, error: ToolError) -> ToolError:
        """Return a redacted copy of an error."""
        message, hint = self.redact_text(error.message), self.redact_text(error.hint)
        details = self.redact_value(error.details)
        return ToolError(error.code, message, hint=hint, retryable=error.retryable, details=details)

    def redact_value(self, value: Any) -> Any:
        """Return a JSON value with its texts redacted."""
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, Mapping):
            return {name: self.redact_value(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.redact_value(item) for item in value]
        return value

    def redact_text(self, text: str) -> str:
        """Return a text with hidden paths replaced."""
        return _PATH_PATTERN.sub(self._redact_match, text) if "/" in text or "\\" in text else text

    def _redact_match(self, match: "re.Match[str]") -> str:
        path = match[0].rstrip(".")
        normalized = os.path.normpath(path)
        is_visible = any(normalized == root or normalized.startswith(f"{root}{os.sep}") for root in self._roots)
        # JSON pointers and routes look like paths, but nothing here begins like them.
        is_foreign = normalized.startswith("/") and not os.path.exists(f"/{normalized.split('/')[1]}")  # noqa: PTH110
        return match[0] if is_visible or is_foreign else HIDDEN_PATH + match[0][len(path) :]


@dataclass(frozen=True)
class CallerAccess:
    """One caller and what it may use."""

    token: AccessToken
    path_guard: PathGuard
    toolsets: Sequence[Toolset]
    audit: WriteRecord | None = None
    recent_calls: RecentCalls | None = None

    def limit_dispatcher(self, dispatcher: Dispatcher) -> Dispatcher:
        """Return the dispatcher limited to this caller's tools."""

        def record_end(call: ToolCall, outcome: Outcome) -> None:
            if self.audit is not None:
                self.audit(build_audit_record(self.token.name, call, outcome))
            if self.recent_calls is not None:
                self.recent_calls.record_end(self.token.name, call, outcome)

        observes = self.audit is not None or self.recent_calls is not None
        return dispatcher.with_registry(Registry(self.toolsets), record_end if observes else None)


def build_audit_record(token: str, call: ToolCall, outcome: Outcome) -> dict[str, Any]:
    """Build the audit record of a call: caller, tool and outcome, never the arguments."""
    error_code = None if isinstance(outcome, Done | Cancelled) else outcome.error.code.name
    repo = None if call.meta.repo is None else clean_text(call.meta.repo)
    request_id = None if call.id is None else clean_text(call.id)
    end = {"outcome": type(outcome).__name__.lower(), "code": error_code, "ms": round(call.meta.duration_ms or 0.0, 1)}
    subject = {"token": token, "tool": clean_text(call.tool), "repo": repo}
    return {**subject, **end, "surface": call.surface, "requestId": request_id}


def build_accesses(
    settings: Settings,
    served_toolsets: Sequence[Toolset],
    *,
    find_root: Callable[[Path | None], Path],
    recent_calls: RecentCalls | None = None,
    tokens: Sequence[AccessToken] | None = None,
) -> list[CallerAccess]:
    """Return the access of every token, or of anyone if there are no tokens.

    `tokens` are those of the settings, if they were read already.

    `find_root` returns the root of the repository that contains a folder; for None, of the server's repository.

    Raises:
        SettingError: The tokens file is invalid.
    """
    if tokens is None:
        tokens = load_served_tokens(settings, served_toolsets)
    audit = build_writer(open_outlet(settings.http.audit_log, settings.http.log_bytes))
    accesses = []
    for token in tokens or (ANONYMOUS_TOKEN,):
        path_guard = _build_path_guard(settings, token, find_root)
        redactor = PathRedactor([*path_guard.readable_folders, settings.cache_dir])
        toolsets = [
            redactor.redact_toolset(path_guard.guard_toolset(candidate))
            for candidate in served_toolsets
            if token.toolsets is None or candidate.name in token.toolsets
        ]
        accesses.append(CallerAccess(token, path_guard, toolsets, audit, recent_calls))
    return accesses


def load_served_tokens(settings: Settings, served_toolsets: Sequence[Toolset]) -> Sequence[AccessToken]:
    """Return the tokens of the settings.

    Raises:
        SettingError: The tokens file is invalid.
    """
    names = [toolset.name for toolset in served_toolsets]
    return load_tokens(settings.http.token, settings.http.tokens, names)


def _build_path_guard(settings: Settings, token: AccessToken, find_root: Callable[[Path | None], Path]) -> PathGuard:
    project = settings.project_dir.resolve()
    if token.repositories is None:
        return PathGuard(project, settings.http.roots, default_root=find_root(None), find_root=find_root)
    server_root = find_root(None)
    is_allowed = any(server_root.is_relative_to(repository) for repository in token.repositories)
    home = project if is_allowed else token.repositories[0]
    return PathGuard(
        home, token.repositories, default_root=server_root if is_allowed else home, find_root=find_root, restricted=True
    )

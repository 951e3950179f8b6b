"""The access of each caller: the toolsets of its token, limited to its repositories.

Every caller has a separate registry. A tool outside it cannot be listed, found or called, over
routes or over MCP, because nothing else is ever searched.
"""

import os.path
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from cleats.contract.errors import ToolError
from cleats.contract.outcome import Cancelled, Done, Outcome
from cleats.contract.registry import Registry
from cleats.contract.tools import Toolset
from cleats.runtime.call import ToolCall
from cleats.runtime.dispatcher import CallEndCallback, Dispatcher
from cleats.settings import Settings
from cleats.transports.http.access_log import WriteRecord, build_writer, clean_text, open_outlet
from cleats.transports.http.path_access import PathGuard
from cleats.transports.http.tokens import ANONYMOUS_TOKEN, AccessToken, load_tokens

P = ParamSpec("P")
T = TypeVar("T")

HIDDEN_PATH = "<path>"

# A word that may be a path: from a slash (or a drive letter) to a delimiter. The colon of
# `file.py:12` ends it too.
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
            except ToolError as error:
                raise self.redact_error(error) from error
            except ExceptionGroup as group:
                crash: Exception = group
                while isinstance(crash, ExceptionGroup) and len(crash.exceptions) == 1:
                    crash = crash.exceptions[0]
                if isinstance(crash, ToolError):
                    raise self.redact_error(crash) from group
                raise

        return run_redacted

    def redact_error(self, error: ToolError) -> ToolError:
        """Return a redacted copy of an error."""
        return ToolError(
            error.code,
            self.redact_text(error.message),
            hint=self.redact_text(error.hint),
            retryable=error.retryable,
            details=self.redact_value(error.details),
        )

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
        if self._is_visible(normalized) or not _is_local_path(normalized):
            return match[0]
        return HIDDEN_PATH + match[0][len(path) :]

    def _is_visible(self, path: str) -> bool:
        return any(path == root or path.startswith(f"{root}{os.sep}") for root in self._roots)


def _is_local_path(path: str) -> bool:
    """Return whether a path exists on this machine; JSON pointers and routes look the same."""
    if not path.startswith("/"):
        return True  # from a drive
    top = path.split("/")[1]
    return os.path.exists(f"/{top}")  # noqa: PTH110 - text all along


@dataclass(frozen=True)
class CallerAccess:
    """One caller and what it may use."""

    token: AccessToken
    path_guard: PathGuard
    toolsets: Sequence[Toolset]
    audit: WriteRecord | None = None

    def limit_dispatcher(self, dispatcher: Dispatcher) -> Dispatcher:
        """Return the dispatcher limited to this caller's tools."""
        return dispatcher.with_registry(Registry(self.toolsets), self._audit_callback())

    def _audit_callback(self) -> CallEndCallback | None:
        write, name = self.audit, self.token.name
        if write is None:
            return None
        return lambda call, outcome: write(build_audit_record(name, call, outcome))


def build_audit_record(token: str, call: ToolCall, outcome: Outcome) -> dict[str, Any]:
    """Build the audit record of a call: caller, tool and outcome, never the arguments."""
    error_code = None if isinstance(outcome, Done | Cancelled) else outcome.error.code.name
    return {
        "token": token,
        "tool": clean_text(call.tool),
        "repo": None if call.meta.repo is None else clean_text(call.meta.repo),
        "outcome": type(outcome).__name__.lower(),
        "code": error_code,
        "ms": round(call.meta.duration_ms or 0.0, 1),
        "surface": call.surface,
        "requestId": None if call.id is None else clean_text(call.id),
    }


def build_accesses(
    settings: Settings, served_toolsets: Sequence[Toolset], *, find_root: Callable[[Path | None], Path]
) -> list[CallerAccess]:
    """Return the access of every token, or of anyone if there are no tokens.

    Args:
        settings: The settings of the server.
        served_toolsets: The toolsets that the server offers.
        find_root: Returns the root of the repository that contains a folder; for None, the root of
            the server's repository.

    Raises:
        SettingError: The tokens file is invalid.
    """
    names = [toolset.name for toolset in served_toolsets]
    tokens = load_tokens(settings.http.token, settings.http.tokens, names)
    audit = build_writer(open_outlet(settings.http.audit_log, settings.http.log_bytes))
    accesses = []
    for token in tokens or (ANONYMOUS_TOKEN,):
        path_guard = _build_path_guard(settings, token, find_root)
        visible_folders = [*path_guard.readable_folders, settings.cache_dir]
        toolsets = [
            PathRedactor(visible_folders).redact_toolset(path_guard.guard_toolset(candidate))
            for candidate in served_toolsets
            if token.toolsets is None or candidate.name in token.toolsets
        ]
        accesses.append(CallerAccess(token, path_guard, toolsets, audit))
    return accesses


def _build_path_guard(settings: Settings, token: AccessToken, find_root: Callable[[Path | None], Path]) -> PathGuard:
    project = settings.project_dir.resolve()
    if token.repositories is None:
        return PathGuard(project, settings.http.roots, default_root=find_root(None), find_root=find_root)
    server_root = find_root(None)
    is_allowed = any(server_root.is_relative_to(repository) for repository in token.repositories)
    home = project if is_allowed else token.repositories[0]
    return PathGuard(
        home,
        token.repositories,
        default_root=server_root if is_allowed else home,
        find_root=find_root,
        restricted=True,
    )

"""What each caller gets of the server: the toolsets of its token, fenced to its repositories.

Every caller has a registry of its own. What is not in it cannot be listed, found or called, over
routes and over MCP alike, because there is nothing else to look into.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cleats.contract.outcome import Cancelled, Done, Outcome
from cleats.contract.registry import Registry
from cleats.contract.tools import Toolset
from cleats.runtime.call import Call
from cleats.runtime.dispatcher import Dispatcher, Ended
from cleats.settings import Settings
from cleats.transports.http.fence import Fence
from cleats.transports.http.lines import Write, outlet, told, writer
from cleats.transports.http.redaction import Redaction
from cleats.transports.http.tokens import ANYONE, Token, configured


@dataclass(frozen=True)
class Share:
    """One caller, and what it has."""

    token: Token
    fence: Fence
    toolsets: Sequence[Toolset]
    audit: Write | None = None

    def of(self, dispatcher: Dispatcher) -> Dispatcher:
        """The dispatcher as this caller has it."""
        return dispatcher.over(Registry(self.toolsets), self._ended())

    def _ended(self) -> Ended | None:
        write, name = self.audit, self.token.name
        if write is None:
            return None
        return lambda call, outcome: write(facts(name, call, outcome))


def facts(token: str, call: Call, outcome: Outcome) -> dict[str, Any]:
    """A call as the audit log has it: who, what and how it ended, and never with what."""
    failed = None if isinstance(outcome, Done | Cancelled) else outcome.error.code.name
    return {
        "token": token,
        "tool": told(call.tool),
        "repo": None if call.meta.repo is None else told(call.meta.repo),
        "outcome": type(outcome).__name__.lower(),
        "code": failed,
        "ms": round(call.meta.duration_ms or 0.0, 1),
        "surface": call.surface,
        "requestId": None if call.id is None else told(call.id),
    }


def shares(
    settings: Settings, served: Sequence[Toolset], *, root: Callable[[Path | None], Path]
) -> list[Share]:
    """The share of every token, or of anyone when there is none.

    `root` gives the repository that a folder is part of; the server's own without one.

    Raises:
        SettingError: something is wrong with the file of the tokens.
    """
    names = [toolset.name for toolset in served]
    tokens = configured(settings.http_token, settings.http_tokens, names)
    audit = writer(outlet(settings.http_audit_log, settings.http_log_bytes))
    made = []
    for token in tokens or (ANYONE,):
        fence = _fence(settings, token, root)
        known = [*fence.places, settings.cache_dir]
        toolsets = [
            Redaction(known).around(fence.around(each))
            for each in served
            if token.toolsets is None or each.name in token.toolsets
        ]
        made.append(Share(token, fence, toolsets, audit))
    return made


def _fence(settings: Settings, token: Token, root: Callable[[Path | None], Path]) -> Fence:
    project = settings.project_dir.resolve()
    if token.repositories is None:
        return Fence(project, settings.http_roots, own=root(None), whole=root)
    own = root(None)
    is_theirs = any(own.is_relative_to(each) for each in token.repositories)
    home = project if is_theirs else token.repositories[0]
    return Fence(
        home,
        token.repositories,
        own=own if is_theirs else home,
        whole=root,
        narrow=True,
    )

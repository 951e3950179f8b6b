"""The opening messages of a connection, answered before the SDK is imported.

The import takes longer than everything else at start-up. Clients first send `initialize` or `server/discover`, then
`tools/list`; these need our own values only. Everything that is not exactly such a message (an error, an unknown field
of a wrong type, any other method) is left to the SDK, with all that follows it. The messages that change the state of
a session are then replayed to the SDK, which serves the connection from there on.
"""

import asyncio
import logging
from collections.abc import Collection, Mapping
from typing import Any, Literal

import msgspec

from cleats.contract.resources import ListName
from cleats.contract.versions import PROTOCOL_VERSION
from cleats.runtime.shutdown import Shutdown
from cleats.transports import jsonrpc
from cleats.transports.framing import LineFramer, OversizedFrame
from cleats.transports.mcp.description import ServerDescription
from cleats.transports.stdio import StdioWire

log = logging.getLogger(__name__)

ProtocolMode = Literal["pin", "negotiate"]
"""Answer every handshake with our one version (`pin`), or with the client's if we know it."""

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", PROTOCOL_VERSION)

LIST_WAIT_SECONDS = 1.0
"""The time after the handshake in which `tools/list` is expected; then the SDK is imported in advance of a call."""

PROTOCOL_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
"""The key of `_meta` that marks a request of 2026-07-28."""

JsonObject = dict[str, Any]


class ClientIcon(msgspec.Struct):
    """One icon of a client."""

    src: str
    mimeType: str = ""  # noqa: N815 - as on the wire
    sizes: list[str] = []
    theme: Literal["light", "dark", ""] = ""


class ClientInfo(msgspec.Struct):
    """The name of a client."""

    name: str
    version: str
    title: str = ""
    description: str = ""
    websiteUrl: str = ""  # noqa: N815 - as on the wire
    icons: list[ClientIcon] = []


class RootsCapability(msgspec.Struct):
    """What a client can do with roots."""

    listChanged: bool = False  # noqa: N815 - as on the wire


class ClientCapabilities(msgspec.Struct):
    """The capabilities of a client, as far as the SDK has rules about them."""

    roots: RootsCapability | None = None
    elicitation: dict[str, JsonObject] = {}
    sampling: dict[str, JsonObject] = {}
    experimental: dict[str, JsonObject] = {}
    extensions: dict[str, JsonObject] = {}
    tasks: dict[str, dict[str, dict[str, JsonObject]]] = {}


class InitializeParams(msgspec.Struct, forbid_unknown_fields=True):
    """The params of `initialize`, in the usual form."""

    protocolVersion: str  # noqa: N815 - as on the wire
    capabilities: ClientCapabilities
    clientInfo: ClientInfo  # noqa: N815 - as on the wire


class EnvelopeMeta(msgspec.Struct, forbid_unknown_fields=True):
    """The envelope of a request of 2026-07-28."""

    version: Literal["2026-07-28"] = msgspec.field(name=PROTOCOL_VERSION_KEY)
    capabilities: ClientCapabilities = msgspec.field(name="io.modelcontextprotocol/clientCapabilities")
    info: ClientInfo | None = msgspec.field(name="io.modelcontextprotocol/clientInfo", default=None)


class EnvelopeParams(msgspec.Struct, forbid_unknown_fields=True):
    """The params of a request of 2026-07-28 that has nothing but its envelope."""

    meta: EnvelopeMeta = msgspec.field(name="_meta")


class Handshake:
    """The opening of one connection: what was answered, and what is left for the SDK."""

    def __init__(self, wire: StdioWire, description: ServerDescription, *, limit: int, protocol: ProtocolMode) -> None:
        self.framer = LineFramer(limit)
        self.replayable: list[jsonrpc.Request | jsonrpc.Notification] = []
        """The answered messages that change the state of a session."""
        self.unanswered: list[bytes | OversizedFrame] = []
        """The frames that are left for the SDK."""
        self.has_input_ended = False
        self.changed_lists: set[ListName] = set()
        """The lists that changed since the client was told about them."""
        self._wire, self._description, self._protocol = wire, description, protocol
        self._over = asyncio.Event()
        self._era: Literal["handshake", "stateless"] | None = None
        self._is_initialized = False
        self._refusable_version = ""

    async def run(self, shutdown: Shutdown) -> bool:
        """Answer until the SDK has to take over; return False if it need not, because the client has left."""
        self._wire.receive(self._receive_chunk)
        waits = [asyncio.ensure_future(event.wait()) for event in (self._over, shutdown.requested)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        if self.has_input_ended and not self.unanswered:
            shutdown.request("end of input")
        if shutdown.requested.is_set() and self._refusable_version:
            log.warning(
                "handshake.refused requested=%s answered=%s: the client disconnected after this answer; "
                "set CLEATS_PROTOCOL=negotiate to answer with the version that it asks for",
                self._refusable_version[:40],
                PROTOCOL_VERSION,
            )
        return bool(self.unanswered) or not shutdown.requested.is_set()

    def announce_changes(self, lists: Collection[ListName]) -> None:
        """Let the SDK take over if the client has to be told about these lists."""
        if self._is_initialized:
            self.changed_lists.update(lists)
            self._end()

    def _end(self) -> None:
        if not self._over.is_set():
            self._over.set()
            self._wire.pause()

    def _receive_chunk(self, chunk: bytes) -> None:
        for frame in self.framer.feed(chunk) if chunk else self.framer.close():
            if self._over.is_set() or not self._try_answer(frame):
                self.unanswered.append(frame)
                self._end()
        if not chunk:
            self.has_input_ended = True
            self._end()

    def _try_answer(self, frame: bytes | OversizedFrame) -> bool:
        message = None if isinstance(frame, OversizedFrame) else jsonrpc.parse_message(frame)
        if isinstance(message, jsonrpc.Notification):
            return self._try_initialize(message)
        if not isinstance(message, jsonrpc.Request) or isinstance(message.id, float):
            return False
        try:
            result = self._build_result(message)
            if result is None:
                return False
            answer = jsonrpc.encode_result(message.id, result)
        except Exception:  # noqa: BLE001 - the SDK's path fails alike, and reports it
            return False
        if message.method == "tools/list":
            self._end()
        self._refusable_version = self._refusable_version if message.method == "initialize" else ""
        self._wire.write(answer + b"\n")
        return True

    def _build_result(self, request: jsonrpc.Request) -> dict[str, Any] | None:
        """Return the result of a request in its usual form, or None for all others."""
        params = request.params or {}
        match self._era, request.method:
            case None, "initialize" if is_instance(params, InitializeParams):
                self._era = "handshake"
                self.replayable.append(request)
                return self._description.build_initialize_result(self._select_version(params["protocolVersion"]))
            case "handshake", "ping" if not params:
                return {}
            case "handshake", "tools/list" if params.get("cursor") is None and not has_envelope(params):
                return self._description.build_tool_list(modern=False)
            case None | "stateless", "tools/list" | "server/discover" if is_instance(params, EnvelopeParams):
                if self._era is None:
                    self._era = "stateless"
                    self.replayable.append(request)
                if request.method == "server/discover":
                    return self._description.build_discover_result()
                return self._description.build_tool_list(modern=True)
        return None

    def _select_version(self, requested: str) -> str:
        is_known = requested in HANDSHAKE_VERSIONS
        version = requested if self._protocol == "negotiate" and is_known else PROTOCOL_VERSION
        self._refusable_version = requested if self._protocol == "pin" and requested != version else ""
        return version

    def _try_initialize(self, notification: jsonrpc.Notification) -> bool:
        is_expected = self._era == "handshake" and not self._is_initialized
        if not is_expected or notification.method != "notifications/initialized" or notification.params:
            return False
        self._is_initialized = True
        self.replayable.append(notification)
        asyncio.get_running_loop().call_later(LIST_WAIT_SECONDS, self._end)
        return True


def has_envelope(params: Mapping[str, Any]) -> bool:
    """Return whether the params of a request carry the envelope of 2026-07-28."""
    meta = params.get("_meta")
    return isinstance(meta, Mapping) and PROTOCOL_VERSION_KEY in meta


def is_instance(value: object, kind: type[msgspec.Struct]) -> bool:
    """Return whether a JSON value has the form of a struct."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True

"""`cleats call`: a surface like any other, for one call and one person."""

import logging
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec
from msgspec import structs

from cleats.cli import completing
from cleats.cli.printing import clip, width
from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.outcome import Cancelled, Failed, Outcome, Rejected
from cleats.contract.payload import ENVELOPE, Answer, Payload
from cleats.contract.soundness import names_of
from cleats.contract.tools import Toolset
from cleats.settings import Settings
from cleats.transports.parsing import NotJson, decode

if TYPE_CHECKING:
    from cleats.runtime.call import Call
    from cleats.runtime.progress import Report
    from cleats.runtime.shutdown import Shutdown

log = logging.getLogger(__name__)


@click.command()
@click.argument("tool", shell_complete=completing.tools)
@click.argument("json_text", default="{}", metavar="[JSON]")
@click.option("--arg", "pairs", multiple=True, metavar="NAME=VALUE", help="Set one argument.")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON, in a terminal too.")
@click.option("-v", "--verbose", count=True, help="Show the log of the call; -vv shows all of it.")
@click.pass_obj
def call(
    settings: Settings,
    tool: str,
    json_text: str,
    *,
    pairs: tuple[str, ...],
    as_json: bool,
    verbose: int,
) -> None:
    """Call TOOL once, as an agent would, and print its answer.

    JSON is the object of arguments; `-` reads it from stdin and `@FILE` from a file. Each --arg
    adds to it: VALUE is read as JSON where it is JSON, and is text otherwise.

    \b
    Examples:
      cleats call check_status
      cleats call search '{"query": "parse config", "top": 5}'
      cleats call search --arg query="parse config" --arg top=5
      cleats call search @query.json | jq .result

    The answer goes to stdout, progress and warnings to stderr. Ctrl-C cancels the call.

    \b
    Exits 0  when the tool is done,
          1  when it ran and failed, timed out or was cancelled,
          2  when it never ran: no such tool, or arguments that do not fit.
    """  # noqa: D301 - click reads the backspace
    arguments = {**_object(json_text), **dict(map(_pair, pairs))}
    settings = structs.replace(settings, log_level=_log_level(settings, verbose))
    ending = run(settings, tool, arguments, Ticker(), traces=bool(verbose))
    answer, text = _rendered(ending, as_json=as_json)
    click.echo(text, nl=False)
    for line in _advice(ending, verbose=verbose):
        click.echo(line, err=True)
    sys.exit(2 if isinstance(ending.outcome, Rejected) else int(not answer.ok))


class Ending(NamedTuple):
    """How the call went, and what is needed to print it."""

    call: "Call"
    outcome: Outcome
    payload: Payload
    near: str


def run(
    settings: Settings,
    tool: str,
    arguments: Mapping[str, Any],
    ticker: "Ticker",
    *,
    traces: bool = False,
) -> Ending:
    """Call a tool on a server of its own, which ends with the call."""
    from cleats.transports.stdio import claimed  # noqa: PLC0415 - help needs none of these

    # Whatever a tool or its children print while it runs is not its answer.
    with claimed():
        import anyio  # noqa: PLC0415

        from cleats.runtime.journal import JOURNAL, StderrHandler  # noqa: PLC0415

        handler = StderrHandler()
        handler.setFormatter(_Log(traces=traces))
        logging.basicConfig(handlers=[handler], level=settings.log_level.upper())
        try:
            return anyio.run(_dispatch, settings, tool, arguments, ticker)
        finally:
            JOURNAL.close()


async def _dispatch(
    settings: Settings, name: str, arguments: Mapping[str, Any], ticker: "Ticker"
) -> Ending:
    import asyncio  # noqa: PLC0415

    from cleats import app  # noqa: PLC0415
    from cleats.cli.tools import advice  # noqa: PLC0415
    from cleats.runtime import shutdown  # noqa: PLC0415
    from cleats.runtime.call import Call  # noqa: PLC0415
    from cleats.runtime.progress import Progress  # noqa: PLC0415
    from cleats.runtime.vitals import Vitals  # noqa: PLC0415

    vitals = Vitals()
    known = app.toolsets(settings, app.TOOLSETS, vitals)
    if not any(_has(toolset, name) for toolset in known):
        known += app.others(settings, known)
    served = [_started_for(name, toolset) for toolset in known]
    request = Call(tool=name, arguments=arguments, surface="cli", reporter=Progress(ticker.show))
    outcome: Outcome | None = None
    try:
        with shutdown.on_signals() as stop:
            async with app.dispatching(settings, served, vitals) as dispatcher:
                watching = asyncio.create_task(_cancel_when_asked(stop, request, ticker))
                outcome = await dispatcher.dispatch(request)
                watching.cancel()
                ticker.clear()
    except Exception:
        if outcome is None:
            raise
        log.exception("call.stop tool=%s: answered, but its toolset did not stop well", name)
    registry = dispatcher.registry
    try:
        return Ending(request, outcome, registry.find(name).payload, "")
    except ToolError:
        return Ending(request, outcome, ENVELOPE, advice(registry, name).strip())


def _started_for(name: str, toolset: Toolset) -> Toolset:
    """The toolset as it is when it has the tool; else its tools without its watchers and stores.

    So all tools are known, as on a server, and another toolset in trouble fails no call.
    """
    return toolset if _has(toolset, name) else replace(toolset, running=None)


def _has(toolset: Toolset, name: str) -> bool:
    return any(name in names_of(tool) for tool in toolset.tools)


async def _cancel_when_asked(stop: "Shutdown", request: "Call", ticker: "Ticker") -> None:
    await stop.asked.wait()
    ticker.say("cancelling; Ctrl-C again leaves at once")
    request.cancel()


class Ticker:
    """Progress on stderr: one line that changes in a terminal, a line each elsewhere, or none."""

    def __init__(self, *, elsewhere: bool = True) -> None:
        self._stream = sys.stderr
        self._live = self._stream.isatty()
        self._silent = not self._live and not elsewhere
        self._shown = False

    async def show(self, report: "Report") -> None:
        """Word a report. A counter without a total says nothing to a reader."""
        phase = "" if report.phase == "progress" else f"{report.phase}: "
        share = f" ({report.number / report.total:.0%})" if report.total else ""
        self.say(phase + report.message + share)

    def say(self, text: str) -> None:
        """Put a text where progress goes."""
        if self._silent:
            return
        line = "".join(c if c.isprintable() else " " for c in clip(text, width() - 1))
        self.clear()
        self._stream.write(line if self._live else f"{line}\n")
        self._stream.flush()
        self._shown = True

    def clear(self) -> None:
        """Leave no trace of it in a terminal."""
        if self._live and self._shown:
            self._stream.write("\r" + " " * (width() - 1) + "\r")
            self._stream.flush()


class _Log(logging.Formatter):
    """One line a record; where a crash came from is for those who ask."""

    def __init__(self, *, traces: bool) -> None:
        super().__init__("%(levelname)s %(name)s %(message)s")
        self._traces = traces

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        return super().formatException(ei) if self._traces else ""


def _log_level(settings: Settings, verbose: int) -> Any:
    """A person wants the answer, not the log line that every call has on a server."""
    if verbose:
        return "info" if verbose == 1 else "debug"
    return "error" if settings.log_level == "error" else "warning"


def _object(text: str) -> dict[str, Any]:
    """The arguments in a JSON text, or where it points."""
    try:
        if text == "-":
            raw = sys.stdin.buffer.read()
        elif text.startswith("@"):
            raw = Path(text[1:]).read_bytes()
        else:
            raw = text.encode(errors="surrogateescape")
        value = decode(raw)
    except OSError as error:
        raise click.UsageError(f"{text[1:]}: {error.strerror}") from None
    except NotJson as error:
        hint = " Use --arg for NAME=VALUE." if re.match(r"\w+=", text) else ""
        raise click.UsageError(f"The arguments are not JSON: {error}.{hint}") from None
    if not isinstance(value, dict):
        raise click.UsageError('The arguments must be a JSON object, such as {"name": "value"}.')
    return value


def _pair(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise click.UsageError(f"--arg takes NAME=VALUE, not {text!r}.")
    try:
        return name, decode(value.encode(errors="surrogateescape"))
    except NotJson:
        return name, value


def _rendered(ending: Ending, *, as_json: bool) -> tuple[Answer, bytes]:
    answer = ending.payload.seal(ending.outcome, ending.call.meta)
    try:
        return answer, _text(answer, as_json=as_json)
    except (TypeError, ValueError, OverflowError, RecursionError):
        unspeakable = Failed(ToolError(ErrorCode.INTERNAL, "The tool's answer is not JSON."))
        answer = ending.payload.seal(unspeakable, ending.call.meta)
        return answer, _text(answer, as_json=as_json)


def _text(answer: Answer, *, as_json: bool) -> bytes:
    """The answer for a reader: content as its text, anything else as JSON."""
    indent = 2 if sys.stdout.isatty() and not as_json else 0
    if answer.content is None or (as_json and answer.body is not None):
        return _json(answer.body, indent)
    if as_json:
        return _json({"content": answer.content}, indent)
    return b"".join(_block(block, indent) for block in answer.content)


def _json(value: object, indent: int) -> bytes:
    text = msgspec.json.encode(value, enc_hook=str)  # as every surface encodes answers
    return (msgspec.json.format(text, indent=indent) if indent else text) + b"\n"


def _block(block: Mapping[str, Any], indent: int) -> bytes:
    if block.get("type") == "text":
        return str(block["text"]).encode(errors="replace") + b"\n"
    return _json(block, indent)


def _advice(ending: Ending, *, verbose: int) -> Sequence[str]:
    """What a person can do next that the answer itself, made for programs, does not say."""
    match ending.outcome:
        case Rejected(error) if error.code is ErrorCode.UNKNOWN_TOOL:
            return [ending.near]
        case Rejected(error) if error.code is ErrorCode.INVALID_REQUEST:
            return [f"`cleats tools --show {ending.call.tool}` lists the arguments."]
        case Failed(error) if error.code is ErrorCode.INTERNAL and not verbose:
            return ["With -v the trace is shown."]
        case Failed(error) if error.code is ErrorCode.TOOL_TIMEOUT:
            return [f"CLEATS_TIMEOUTS={ending.call.tool}=SECONDS gives it more time."]
        case Cancelled() | _:
            return []

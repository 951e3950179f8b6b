"""A language model behind an OpenAI-compatible address, asked at most once for the same thing.

Every answer is written into the run's folder, under the hash of its question, before anybody uses
it. So a step that is done again after a crash finds its answers and asks only what was never
answered; budgets count what lies there. The key goes to the address that the operator allowed,
and nowhere else: no redirect is followed, no proxy of the environment used.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import anyio

from cleats.contract.errors import ErrorCode, ToolError
from cleats.contract.versions import TOOLING_VERSION
from cleats.toolsets.launch import artifacts

TRIES: Final = 3
PAUSE: Final = 0.5
"""Seconds before the second try of a model that is busy or away; twice as long before the next."""

LONGEST: Final = 30.0
"""Seconds that a busy model may tell us to wait."""

MOST: Final = 4 << 20
"""Bytes of an answer that are read."""

LATER: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
"""Statuses of a model that may answer later."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model said to one question."""

    prompt_hash: str
    text: str
    finish_reason: str
    tokens: Mapping[str, int]
    model: str

    @property
    def output_hash(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Target:
    """A model at an address."""

    base_url: str
    model: str
    key: str = field(default="", repr=False)
    timeout: float = 120.0

    @property
    def shown(self) -> str:
        """The address without anything that could be a secret."""
        parts = urlsplit(self.base_url)
        host = (parts.hostname or "") + (f":{parts.port}" if parts.port else "")
        return urlunsplit((parts.scheme, host, parts.path, "", ""))


@dataclass(frozen=True, slots=True)
class Budget:
    calls: int
    tokens: int


@dataclass(slots=True, kw_only=True)
class Model:
    """Asks the first target that answers; keeps and counts what was said."""

    targets: Sequence[Target]
    decoding: Mapping[str, Any]
    budget: Budget
    folder: Path
    event: Callable[..., None]
    pause: float = PAUSE
    _flying: int = 0
    """Questions that are out; they count before they are answered."""

    def question(self, messages: Sequence[Mapping[str, str]]) -> tuple[str, dict[str, Any]]:
        """The hash of a question and what is sent for it, apart from whom it is sent to."""
        body = {
            "model": self.targets[0].model,
            "messages": [dict(each) for each in messages],
            "temperature": self.decoding.get("temperature", 0),
        }
        body |= {k: self.decoding[k] for k in ("top_p", "max_tokens") if k in self.decoding}
        return hashlib.sha256(artifacts.compact(body).encode()).hexdigest(), body

    def recorded(self, prompt_hash: str) -> Answer | None:
        """The answer that was given before, whoever was driving the run then."""
        try:
            said = json.loads((self.folder / f"{prompt_hash}.json").read_bytes())
        except FileNotFoundError:
            return None
        return Answer(**said)

    def spent(self) -> Budget:
        """What all answers of the run have used."""
        answers = list(self._answers())
        return Budget(len(answers), sum(each.tokens["total_tokens"] for each in answers))

    async def ask(self, messages: Sequence[Mapping[str, str]]) -> Answer | None:
        """Return the answer to a question; None when the budget does not allow to ask.

        Raises:
            ToolError: the model cannot be reached or refuses; retryable where a later try can help.
        """
        prompt_hash, body = self.question(messages)
        if known := self.recorded(prompt_hash):
            return known
        spent = self.spent()
        if spent.calls + self._flying >= self.budget.calls or spent.tokens >= self.budget.tokens:
            return None
        self._flying += 1
        try:
            return await self._first_answer(prompt_hash, body)
        finally:
            self._flying -= 1

    async def _first_answer(self, prompt_hash: str, body: Mapping[str, Any]) -> Answer:
        failure: ToolError | None = None
        for target in self.targets:
            try:
                answer = await self._asked(target, prompt_hash, body)
            except ToolError as error:
                failure = error
                continue
            self._keep(answer)
            return answer
        assert failure is not None  # noqa: S101 - there is at least one target
        raise failure

    async def _asked(self, target: Target, prompt_hash: str, body: Mapping[str, Any]) -> Answer:
        call_id = f"llm_{prompt_hash[:16]}"
        self.event(
            "LLM_CALL_STARTED",
            call_id=call_id,
            model=target.model,
            provider_base_url=target.shown,
            prompt_hash=prompt_hash,
            temperature=body["temperature"],
            **({"max_tokens": body["max_tokens"]} if "max_tokens" in body else {}),
        )
        started = time.monotonic()
        try:
            said = await self._tried(target, {**body, "model": target.model})
            answer = _answer(said, prompt_hash, target)
        except ToolError as error:
            self.event(
                "LLM_CALL_FAILED",
                call_id=call_id,
                latency_ms=_ms(started),
                error_class=error.details["cause_class"],
                error_summary=error.message,
                retryable=error.retryable,
                **({"http_status": s} if (s := error.details.get("http_status")) else {}),
            )
            raise
        except anyio.get_cancelled_exc_class():  # another page of the section has failed
            self.event(
                "LLM_CALL_FAILED",
                call_id=call_id,
                latency_ms=_ms(started),
                error_class="Cancelled",
                error_summary="The call was given up before it was answered.",
                retryable=True,
            )
            raise
        self.event(
            "LLM_CALL_FINISHED",
            call_id=call_id,
            latency_ms=_ms(started),
            token_usage=dict(answer.tokens),
            finish_reason=answer.finish_reason,
            output_hash=answer.output_hash,
        )
        return answer

    async def _tried(self, target: Target, body: Mapping[str, Any]) -> Any:
        pause = self.pause
        for attempt in range(1, TRIES + 1):
            try:
                return await _once(target, body)
            except ToolError as error:
                if not error.retryable or attempt == TRIES:
                    raise
                await anyio.sleep(min(float(error.details.get("retry_after_s", pause)), LONGEST))
                pause *= 2
        raise AssertionError  # the last try returned or raised

    def _keep(self, answer: Answer) -> None:
        """Write an answer down before it is used: aside, synced, renamed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.folder / f"{answer.prompt_hash}.part"
        with part.open("wb") as stream:
            stream.write(
                artifacts.canonical(
                    {
                        "prompt_hash": answer.prompt_hash,
                        "text": answer.text,
                        "finish_reason": answer.finish_reason,
                        "tokens": dict(answer.tokens),
                        "model": answer.model,
                    }
                )
            )
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(self.folder / f"{answer.prompt_hash}.json")

    def _answers(self) -> Iterator[Answer]:
        for file in sorted(self.folder.glob("*.json")) if self.folder.is_dir() else ():
            yield Answer(**json.loads(file.read_bytes()))


async def _once(target: Target, body: Mapping[str, Any]) -> Any:
    import httpx2  # noqa: PLC0415 - most runs ask no model

    headers = {"accept": "application/json", "user-agent": f"cleats/{TOOLING_VERSION}"}
    if target.key:
        headers["authorization"] = f"Bearer {target.key}"
    url = target.base_url.rstrip("/") + "/chat/completions"
    try:
        with anyio.fail_after(target.timeout):
            async with (
                httpx2.AsyncClient(
                    headers=headers, timeout=target.timeout, trust_env=False, follow_redirects=False
                ) as client,
                client.stream("POST", url, json=dict(body)) as response,
            ):
                kept = bytearray()
                async for part in response.aiter_bytes():
                    kept += part
                    if len(kept) > MOST:
                        raise _failed("its answer is too large", "AnswerTooLarge")
                status, wait = response.status_code, response.headers.get("retry-after", "")
    except TimeoutError:
        raise _failed("it did not answer in time", "Timeout", retryable=True) from None
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
        raise _failed("it cannot be reached", type(error).__name__, retryable=True) from None
    if not 200 <= status < 300:
        facts: dict[str, Any] = {"http_status": status}
        if wait.isdigit():
            facts["retry_after_s"] = int(wait)
        later = status in LATER
        raise _failed(f"it answers {status}", "HttpStatus", retryable=later, **facts)
    try:
        return json.loads(bytes(kept))
    except ValueError:
        raise _failed("its answer is no JSON", "BadAnswer") from None


def _answer(said: Any, prompt_hash: str, target: Target) -> Answer:
    try:
        choice = said["choices"][0]
        text = choice["message"]["content"]
        usage = said.get("usage") or {}
        asked, answered = int(usage.get("prompt_tokens", 0)), int(usage.get("completion_tokens", 0))
        total = int(usage.get("total_tokens", asked + answered))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise _failed("its answer has another shape", "BadAnswer") from None
    reason = choice.get("finish_reason")
    return Answer(
        prompt_hash,
        text if isinstance(text, str) else "",
        reason if reason in ("stop", "length", "tool_calls") else "error",
        {"input_tokens": asked, "output_tokens": answered, "total_tokens": total},
        target.model,
    )


def _failed(why: str, cause: str, *, retryable: bool = False, **facts: Any) -> ToolError:
    return ToolError(
        ErrorCode.INTERNAL if retryable else ErrorCode.INVALID_INPUT,
        f"The model that the run names cannot be used: {why}.",
        retryable=retryable,
        hint="Resume the run when it is back."
        if retryable
        else "Check the `llm` block of the run.",
        details={"cause_class": cause, "error_code": "SECTION_WRITER_MODEL_FAILED", **facts},
    )


def _ms(started: float) -> int:
    return round((time.monotonic() - started) * 1000)

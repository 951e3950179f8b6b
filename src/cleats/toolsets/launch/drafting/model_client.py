"""A client for a language model at an OpenAI-compatible address; no question is asked twice.

Every answer is written to the folder of the run, under the hash of its question, before it is used.
A step that is repeated after a crash finds its answers and asks only the open questions; budgets
count the recorded answers. The API key is sent only to the address that the operator allowed:
redirects are not followed, and proxies of the environment are not used.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec

from cleats.contract.errors import ErrorCode, ToolError
from cleats.system.atomic_files import replace_file
from cleats.system.http_client import JSON_CONTENT_TYPE, HttpClient, RequestFailedError, RetryPolicy
from cleats.toolsets.launch.config.secrets import redact_url
from cleats.toolsets.launch.runs import artifacts

MAX_ATTEMPTS: Final = 3
RETRY_PAUSE_SECONDS: Final = 0.5
"""Seconds before the second attempt to reach a busy or unreachable model; doubled for each further
attempt."""

MAX_RETRY_AFTER_SECONDS: Final = 30.0
"""The longest wait that a busy model can request."""

MAX_ANSWER_BYTES: Final = 4 << 20
"""The largest answer that is read."""

RETRYABLE_STATUSES: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504})
"""Status codes after which the model may answer later."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The answer of a model to one question."""

    prompt_hash: str
    text: str
    finish_reason: str
    tokens: Mapping[str, int]
    model: str

    @property
    def output_hash(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """A model at an address."""

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    timeout: float = 120.0


@dataclass(slots=True, kw_only=True)
class ModelClient:
    """Asks the first endpoint that answers; records the answers and counts their cost."""

    endpoints: Sequence[ModelEndpoint]
    decoding: Mapping[str, Any]
    max_calls: int
    max_tokens: int
    folder: Path
    event: Callable[..., None]
    pause: float = RETRY_PAUSE_SECONDS
    _in_flight: int = 0
    """Questions without an answer yet; they count against the budget."""

    def build_request(self, messages: Sequence[Mapping[str, str]]) -> tuple[str, dict[str, Any]]:
        """Return the hash of a question and the request body for the first endpoint."""
        body = {
            "model": self.endpoints[0].model,
            "messages": [dict(message) for message in messages],
            "temperature": self.decoding.get("temperature", 0),
        }
        body |= {option: self.decoding[option] for option in ("top_p", "max_tokens") if option in self.decoding}
        return hashlib.sha256(artifacts.format_compact_json(body).encode()).hexdigest(), body

    def load_answer(self, prompt_hash: str) -> ModelAnswer | None:
        """Return the recorded answer to a question, or None."""
        try:
            answer_fields = json.loads((self.folder / f"{prompt_hash}.json").read_bytes())
        except FileNotFoundError:
            return None
        return ModelAnswer(**answer_fields)

    async def ask(self, messages: Sequence[Mapping[str, str]]) -> ModelAnswer | None:
        """Return the answer to a question, or None if the budget is exhausted.

        Raises:
            ToolError: The model cannot be reached or refuses; retryable if a later attempt can
                succeed.
        """
        prompt_hash, body = self.build_request(messages)
        if recorded_answer := self.load_answer(prompt_hash):
            return recorded_answer
        token_counts = [json.loads(file.read_bytes())["tokens"]["total_tokens"] for file in self.folder.glob("*.json")]
        if len(token_counts) + self._in_flight >= self.max_calls or sum(token_counts) >= self.max_tokens:
            return None
        self._in_flight += 1
        try:
            for endpoint in self.endpoints[:-1]:
                with suppress(ToolError):
                    return await self._ask_endpoint(endpoint, prompt_hash, body)
            return await self._ask_endpoint(self.endpoints[-1], prompt_hash, body)
        finally:
            self._in_flight -= 1

    async def _ask_endpoint(self, endpoint: ModelEndpoint, prompt_hash: str, body: Mapping[str, Any]) -> ModelAnswer:
        call_id = f"llm_{prompt_hash[:16]}"
        started = time.monotonic()

        def report_end(event: str, **details: Any) -> None:
            latency_ms = round((time.monotonic() - started) * 1000)
            self.event(event, call_id=call_id, latency_ms=latency_ms, **details)

        self.event(
            "LLM_CALL_STARTED",
            call_id=call_id,
            model=endpoint.model,
            provider_base_url=redact_url(endpoint.base_url),
            prompt_hash=prompt_hash,
            temperature=body["temperature"],
            **({"max_tokens": body["max_tokens"]} if "max_tokens" in body else {}),
        )
        try:
            response = await self._post_question(endpoint, {**body, "model": endpoint.model})
            answer = _parse_answer(response, prompt_hash, endpoint)
        except ToolError as error:
            report_end(
                "LLM_CALL_FAILED",
                error_class=error.details["cause_class"],
                error_summary=error.message,
                retryable=error.retryable,
                **({"http_status": http_status} if (http_status := error.details.get("http_status")) else {}),
            )
            raise
        except anyio.get_cancelled_exc_class():  # another page of the section has failed
            summary = "The call was abandoned before an answer arrived."
            report_end("LLM_CALL_FAILED", error_class="Cancelled", error_summary=summary, retryable=True)
            raise
        report_end(
            "LLM_CALL_FINISHED",
            token_usage=dict(answer.tokens),
            finish_reason=answer.finish_reason,
            output_hash=answer.output_hash,
        )
        self.folder.mkdir(parents=True, exist_ok=True)
        replace_file(self.folder / f"{prompt_hash}.json", artifacts.encode_canonical_json(asdict(answer)))
        return answer

    async def _post_question(self, endpoint: ModelEndpoint, body: Mapping[str, Any]) -> Any:
        client = HttpClient(
            base_url=endpoint.base_url.rstrip("/"),
            headers={"accept": JSON_CONTENT_TYPE},
            token=endpoint.api_key,
            timeout=endpoint.timeout,
            max_bytes=MAX_ANSWER_BYTES,
            retries=RetryPolicy(MAX_ATTEMPTS, self.pause, RETRYABLE_STATUSES, MAX_RETRY_AFTER_SECONDS),
        )
        try:
            async with client:
                reply = await client.send("POST", "/chat/completions", msgspec.json.encode(body))
        except RequestFailedError as error:
            reason = "it did not answer in time" if error.is_timeout else "it cannot be reached"
            cause = "Timeout" if error.is_timeout else str(error)
            raise _build_model_error(reason, cause, retryable=True) from None
        if reply.is_truncated:
            raise _build_model_error("its answer is too large", "AnswerTooLarge")
        if not reply.ok:
            details = {} if reply.retry_after is None else {"retry_after_s": reply.retry_after}
            raise _build_model_error(
                f"it answered with status {reply.status}",
                "HttpStatus",
                retryable=reply.status in RETRYABLE_STATUSES,
                http_status=reply.status,
                **details,
            )
        try:
            return json.loads(reply.body)
        except ValueError:
            raise _build_model_error("its answer is not valid JSON", "BadAnswer") from None


def _parse_answer(response: Any, prompt_hash: str, endpoint: ModelEndpoint) -> ModelAnswer:
    try:
        choice = response["choices"][0]
        text = choice["message"]["content"]
        usage = response.get("usage") or {}
        input_tokens, output_tokens = int(usage.get("prompt_tokens", 0)), int(usage.get("completion_tokens", 0))
        total_tokens = int(usage.get("total_tokens", input_tokens + output_tokens))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise _build_model_error("its answer has an unexpected format", "BadAnswer") from None
    reason = choice.get("finish_reason")
    return ModelAnswer(
        prompt_hash,
        text if isinstance(text, str) else "",
        reason if reason in ("stop", "length", "tool_calls") else "error",
        {"input_tokens": input_tokens, "output_tokens": output_tokens, "total_tokens": total_tokens},
        endpoint.model,
    )


def _build_model_error(reason: str, cause: str, *, retryable: bool = False, **extra_details: Any) -> ToolError:
    return ToolError(
        ErrorCode.INTERNAL if retryable else ErrorCode.INVALID_INPUT,
        f"The model of the run cannot be used: {reason}.",
        retryable=retryable,
        hint="Resume the run when the model is available again." if retryable else "Check the `llm` block of the run.",
        details={"cause_class": cause, "error_code": "SECTION_WRITER_MODEL_FAILED", **extra_details},
    )

"""The optional editor of a section: a language model that rewords the text of the templates."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio

from cleats.toolsets.launch.config.secrets import is_trusted_endpoint
from cleats.toolsets.launch.drafting.model_client import ModelAnswer, ModelClient, ModelEndpoint
from cleats.toolsets.launch.drafting.page import WrittenPage
from cleats.toolsets.launch.runs.job import WorkerJob
from cleats.toolsets.launch.site import claim_markers, pages

EDITOR_INSTRUCTIONS = Path(__file__).with_name("editor_instructions.md").read_text(encoding="utf-8")

_FENCED_ANSWER_PATTERN = re.compile(r"\A\s*```(?:markdown|md)?\n(.*)\n```\s*\Z", re.DOTALL)
_HTML_TAG_PATTERN = re.compile(r"<(?!!--|https?://)[A-Za-z/]")
_MAX_GROWTH_RATIO = 1.6
"""The length of an answer relative to the page: rewording adds little, invention much."""


def accept_answer(answer: str, body: str) -> tuple[str, str]:
    """Return the accepted answer and an empty text, or the original body and the problem."""
    fenced = _FENCED_ANSWER_PATTERN.match(answer)
    answer_body = (fenced.group(1) if fenced else answer).replace("\r\n", "\n").strip("\n") + "\n"
    problem = find_fault(answer_body, body)
    return (body, problem) if problem else (answer_body, "")


def _list_claim_ids(body: str) -> list[str]:
    return [claim.claim_id for claim in claim_markers.list_claim_markers(body)]


_KEPT_PARTS: Sequence[tuple[str, Callable[[str], object]]] = (
    ("a heading changed", lambda body: [(heading.level, heading.text) for heading in pages.list_headings(body)]),
    ("code changed", lambda body: [(fence.language, fence.code) for fence in pages.list_code_blocks(body)]),
    ("a link changed", lambda body: Counter(link.target for link in pages.list_links(body))),
    ("a claim was lost, added or repeated", lambda body: Counter(_list_claim_ids(body))),
)
"""What an answer must keep, with the problem if it does not."""


def find_fault(answer_body: str, body: str) -> str:
    """Describe what an answer changed against the rules; return an empty text if nothing."""
    for message, extract in _KEPT_PARTS:
        if extract(answer_body) != extract(body):
            return message
    if any(not claim.statement.strip(" .-|") for claim in claim_markers.list_claim_markers(answer_body)):
        return "a claim marker has no statement"
    if answer_body.startswith("---") or _HTML_TAG_PATTERN.search(_strip_code(answer_body)):
        return "it holds front matter or HTML"
    if len(answer_body) > _MAX_GROWTH_RATIO * len(body) + 200:
        return "it is much longer than the page"
    for line in _strip_code(answer_body).splitlines():
        item = re.match(r"\s*(?:[-*+]|\d+[.)])\s+(.*)", line)
        if item and not claim_markers.find_claim_ids(line) and not item.group(1).startswith("["):
            return "a bullet has no claim"
    return ""


def _strip_code(body: str) -> str:
    code_line_numbers = pages.find_code_lines(body)
    lines = (line for number, line in enumerate(body.splitlines(), 1) if number not in code_line_numbers)
    return re.sub(r"`[^`]*`", "", "\n".join(lines))


@dataclass(slots=True)
class PageEditor:
    """Rewords the pages of one section and records the calls."""

    product_name: str
    client: ModelClient
    limiter: anyio.CapacityLimiter
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def reword_page(self, path: str, page: WrittenPage) -> WrittenPage:
        """Return the page in the words of the model, or unchanged.

        Raises:
            ToolError: The model cannot be used.
        """
        question = f"Product: {self.product_name}\nPage: {page.title}\n\n{page.body}"
        messages = [{"role": "system", "content": EDITOR_INSTRUCTIONS}, {"role": "user", "content": question}]
        prompt_hash, _ = self.client.build_request(messages)
        async with self.limiter:
            answer = await self.client.ask(messages)
        if answer is None:
            self._record_call(path, prompt_hash, None, "the budget of the run is used up")
            return page
        body, problem = accept_answer(answer.text, page.body)
        if answer.finish_reason != "stop":
            body, problem = page.body, "the answer is not complete"
        self._record_call(path, prompt_hash, answer, problem)
        if problem:
            return page
        return replace(page, body=body, claim_ids=tuple(dict.fromkeys(_list_claim_ids(body))))

    def find_accepted_prompt(self, path: str) -> str:
        """Return the hash of the question whose answer became the page, or an empty text."""
        call = self.calls.get(path, {})
        return str(call["prompt_hash"]) if call.get("taken") else ""

    def _record_call(self, path: str, prompt_hash: str, answer: ModelAnswer | None, problem: str) -> None:
        call = {"output_path": path, "prompt_hash": prompt_hash, "taken": not problem, "reason": problem}
        answer_fields: dict[str, Any] = {}
        if answer is not None:
            names = ("model", "output_hash", "finish_reason")
            answer_fields = {name: getattr(answer, name) for name in names}
            answer_fields |= {"token_usage": dict(answer.tokens), "answer": answer.text}
        self.calls[path] = call | answer_fields

    def as_json(self, section: str) -> dict[str, Any]:
        """Return the recorded calls as the artifact of the section."""
        return {"schema_version": "1.0", "section": section, "calls": [self.calls[path] for path in sorted(self.calls)]}


def create_editor(job: WorkerJob) -> PageEditor | None:
    """Create the editor that the run requests and the operator allows, or return None."""
    llm_config: Mapping[str, Any] = job.config.get("llm") or {}
    offline = job.settings.get("offline", False) or job.config.get("offline_mode", False)
    if not llm_config or offline or not job.settings.get("models", False):
        return None
    endpoint_configs = [llm_config, *([llm_config["fallback"]] if "fallback" in llm_config else [])]
    model_endpoints = [
        ModelEndpoint(
            endpoint_config["api_base_url"],
            endpoint_config["model"],
            job.secrets.get(endpoint_config.get("api_key_env", ""), ""),
            float(endpoint_config.get("request_timeout_s", 120)),
        )
        for endpoint_config in endpoint_configs
        if is_trusted_endpoint(endpoint_config["api_base_url"], job.settings.get("endpoints", ()))
    ]
    if not model_endpoints:
        return None
    budgets = job.config["budgets"]
    return PageEditor(
        job.product_name,
        ModelClient(
            endpoints=model_endpoints,
            decoding=llm_config.get("decoding", {}),
            max_calls=budgets["max_llm_calls"],
            max_tokens=budgets["max_llm_tokens"],
            folder=job.root / "model",
            event=job.add_event,
        ),
        anyio.CapacityLimiter(int(llm_config.get("max_concurrency", 4))),
    )

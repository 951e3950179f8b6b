"""Who writes a section: the templates alone, or a language model after them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import anyio

from cleats.toolsets.launch import pages
from cleats.toolsets.launch.config.tokens import trusted
from cleats.toolsets.launch.drafting import model
from cleats.toolsets.launch.drafting.endpoint import Answer, Budget, Model, Target
from cleats.toolsets.launch.drafting.page import Written
from cleats.toolsets.launch.workers.job import Job


@dataclass(slots=True)
class Editor:
    """Rewords the pages of one section, and keeps account of it."""

    product_name: str
    asked: Model
    limiter: anyio.CapacityLimiter
    calls: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def reworded(self, path: str, written: Written) -> Written:
        """Return the page in the model's words, or as it was.

        Raises:
            ToolError: the model cannot be used.
        """
        question = model.messages(written.body, written.title, self.product_name)
        prompt_hash, _ = self.asked.question(question)
        async with self.limiter:
            answer = await self.asked.ask(question)
        if answer is None:
            self._account(path, prompt_hash, None, "the budget of the run is used up")
            return written
        body, wrong = model.taken(answer.text, written.body)
        if answer.finish_reason != "stop":
            body, wrong = written.body, "the answer is not complete"
        self._account(path, prompt_hash, answer, wrong)
        if wrong:
            return written
        ids = tuple(dict.fromkeys(claim.claim_id for claim in pages.claims(body)))
        return replace(written, body=body, claim_ids=ids)

    def took(self, path: str) -> str:
        """The hash of the question whose answer a page now is; empty when it is none."""
        call = self.calls.get(path, {})
        return str(call["prompt_hash"]) if call.get("taken") else ""

    def _account(self, path: str, prompt_hash: str, answer: Answer | None, wrong: str) -> None:
        call: dict[str, Any] = {
            "output_path": path,
            "prompt_hash": prompt_hash,
            "taken": not wrong,
            "reason": wrong,
        }
        if answer is not None:
            call |= {
                "model": answer.model,
                "output_hash": answer.output_hash,
                "finish_reason": answer.finish_reason,
                "token_usage": dict(answer.tokens),
                "answer": answer.text,
            }
        self.calls[path] = call

    def as_json(self, section: str) -> dict[str, Any]:
        """The account, as the artifact of the section."""
        calls = [self.calls[path] for path in sorted(self.calls)]
        return {"schema_version": "1.0", "section": section, "calls": calls}


def editor(job: Job) -> Editor | None:
    """The editor that a run wants and the operator allows; None for templates alone."""
    wanted: Mapping[str, Any] = job.config.get("llm") or {}
    offline = job.settings.get("offline", False) or job.config.get("offline_mode", False)
    if not wanted or offline or not job.settings.get("models", False):
        return None
    endpoints = job.settings.get("endpoints", ())
    blocks = [wanted, *([wanted["fallback"]] if "fallback" in wanted else [])]
    targets = [
        Target(
            block["api_base_url"],
            block["model"],
            job.secrets.get(block.get("api_key_env", ""), ""),
            float(block.get("request_timeout_s", 120)),
        )
        for block in blocks
        if trusted(block["api_base_url"], endpoints)
    ]
    if not targets:
        return None
    budgets = job.config["budgets"]
    return Editor(
        str(job.config["product_name"]),
        Model(
            targets=targets,
            decoding=wanted.get("decoding", {}),
            budget=Budget(budgets["max_llm_calls"], budgets["max_llm_tokens"]),
            folder=job.root / "model",
            event=job.event,
        ),
        anyio.CapacityLimiter(int(wanted.get("max_concurrency", 4))),
    )

"""Tests of drafts that a language model rewords: asked once, judged, and never trusted."""

import json
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import Settings
from cleats.system.git import filter_git_environment
from cleats.toolsets.launch.drafting.editor import accept_answer
from cleats.toolsets.launch.setup import build_worker_settings
from tests.support import launch_sites
from tests.support.launch_pipeline import SOURCE_STEPS, Pipeline
from tests.support.model_server import ModelServer, serve_model

API_KEY = "sk-very-secret-key"
DRAFT_STEPS = ("draft:docs", "draft:reference")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serve_model(ModelServer(reply=lambda body: body.replace("This page", "What follows"))) as model_server:
        yield model_server


@pytest.fixture(scope="module")
def planned_run(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    root = tmp_path_factory.mktemp("model")
    for folder_name in ("source", "site"):
        launch_sites.copy_sample(root / folder_name, folder_name)
    launch_sites.commit_folder(root / "site")
    run = Pipeline(
        root,
        root / "source",
        root / "site",
        profile="plain",
        family="measurekit",
        required_sections=["docs", "reference"],
    )
    return run.run_steps(*SOURCE_STEPS, "plan")


class DraftingRun:
    """A planned run that may ask a model, with fresh events and a fresh model cache."""

    def __init__(self, planned_run: Pipeline, server: ModelServer, **settings: Any) -> None:
        self.run = planned_run
        shutil.rmtree(planned_run.folder.root / "model", ignore_errors=True)
        planned_run.events.clear()
        planned_run.config["llm"] = {"api_base_url": server.url, "model": "m", "api_key_env": "K"}
        planned_run.config["budgets"]["max_llm_calls"] = 200
        planned_run.config["budgets"]["max_llm_tokens"] = 10**6
        self.settings = {
            "git_env": filter_git_environment(os.environ),
            "models": True,
            "endpoints": [],
            **settings,
        }

    def draft(self, *steps: str) -> None:
        for step in steps or DRAFT_STEPS:
            self.run.run_steps(step, settings=self.settings, secrets={"K": API_KEY})

    @property
    def manifests(self) -> list[dict[str, Any]]:
        names = [f"drafts/{section}/draft_manifest.json" for section in ("docs", "reference")]
        manifests = [self.run.read_json(name) for name in names if name in self.run.inputs]
        return [page for manifest in manifests for page in manifest["pages"]]

    def list_payloads(self, kind: str) -> list[dict[str, Any]]:
        return [event["payload"] for event in self.run.events if event["type"] == kind]


def test_without_the_operators_leave_no_model_is_asked(planned_run: Pipeline, server: ModelServer) -> None:
    assert build_worker_settings(Settings())["models"] is False
    for settings in ({"models": False}, {"offline": True}):
        DraftingRun(planned_run, server, **settings).draft()
    planned_run.config["offline_mode"] = True
    DraftingRun(planned_run, server).draft()
    planned_run.config["offline_mode"] = False

    assert server.requests == []
    assert {page["writer"] for page in DraftingRun(planned_run, server).manifests} == {"template"}


def test_only_an_address_of_the_operator_is_asked(planned_run: Pipeline, server: ModelServer) -> None:
    drafting_run = DraftingRun(planned_run, server)
    planned_run.config["llm"]["api_base_url"] = "https://models.example.com/v1"

    drafting_run.draft()

    assert {page["writer"] for page in drafting_run.manifests} == {"template"}


def test_pages_are_reworded_and_the_run_says_so(planned_run: Pipeline, server: ModelServer) -> None:
    drafting_run = DraftingRun(planned_run, server)

    drafting_run.draft()

    assert {page["writer"] for page in drafting_run.manifests} == {"model"}
    installation = planned_run.read_text("drafts/docs/content/docs/measurekit/installation.md")
    assert "What follows lists the requirements of measurekit" in installation
    assert len(server.requests) == len(drafting_run.manifests) == 5
    assert set(server.keys) == {f"Bearer {API_KEY}"}
    calls = planned_run.read_json("drafts/docs/model_calls.json")["calls"]
    assert [call["output_path"] for call in calls] == sorted(call["output_path"] for call in calls)
    started, finished = drafting_run.list_payloads("LLM_CALL_STARTED"), drafting_run.list_payloads("LLM_CALL_FINISHED")
    assert len(started) == len(finished) == 5
    assert started[0]["provider_base_url"] == server.url
    assert started[0]["temperature"] == 0
    assert finished[0]["token_usage"]["total_tokens"] == 150


def test_reworded_pages_pass_the_same_gates(planned_run: Pipeline, server: ModelServer) -> None:
    DraftingRun(planned_run, server).draft()

    planned_run.run_steps("link", "apply", "validate:1")

    assert planned_run.read_json("validation_report.json")["issues"] == []


def test_a_step_that_is_done_again_asks_nothing_and_gives_the_same_bytes(
    planned_run: Pipeline, server: ModelServer
) -> None:
    drafting_run = DraftingRun(planned_run, server)
    drafting_run.draft()
    first, count = dict(planned_run.inputs), len(server.requests)
    server.reply = lambda _body: "something else"

    drafting_run.draft()

    assert len(server.requests) == count
    assert planned_run.inputs == first


def test_after_a_failure_only_the_rest_is_asked(planned_run: Pipeline, server: ModelServer) -> None:
    drafting_run = DraftingRun(planned_run, server)
    planned_run.config["llm"]["max_concurrency"] = 1
    server.headers = {"retry-after": "0"}
    server.statuses = [200, 200, 503, 503, 503]

    with pytest.raises(ToolError) as caught:
        drafting_run.draft("draft:docs")
    failed = drafting_run.list_payloads("LLM_CALL_FAILED")
    drafting_run.draft("draft:docs")

    ends = [*drafting_run.list_payloads("LLM_CALL_FAILED"), *drafting_run.list_payloads("LLM_CALL_FINISHED")]
    assert caught.value.retryable
    assert caught.value.details["http_status"] == 503
    assert failed[0]["error_class"] == "HttpStatus"
    assert {failure["error_class"] for failure in failed[1:]} <= {"Cancelled"}
    assert all(failure["retryable"] for failure in failed)
    assert len(drafting_run.list_payloads("LLM_CALL_STARTED")) == len(ends)
    prompts = [request["messages"][1]["content"] for request in server.requests]
    assert len(prompts) == 2 + 3 + 2
    assert len(set(prompts)) == 4
    assert {page["writer"] for page in drafting_run.manifests[:4]} == {"model"}


def test_a_busy_model_is_asked_again(planned_run: Pipeline, server: ModelServer) -> None:
    server.headers = {"retry-after": "0"}
    server.statuses = [429, 500]

    DraftingRun(planned_run, server).draft("draft:reference")

    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [401, 404, 307])
def test_a_model_that_refuses_is_a_fault_of_the_configuration(
    planned_run: Pipeline, server: ModelServer, status: int
) -> None:
    with serve_model(ModelServer()) as other:
        server.headers = {"location": f"{other.url}/chat/completions"}
        server.statuses = [status]
        drafting_run = DraftingRun(planned_run, server)

        with pytest.raises(ToolError) as caught:
            drafting_run.draft("draft:reference")

    assert caught.value.code is ErrorCode.INVALID_INPUT
    assert not caught.value.retryable
    assert caught.value.details["error_code"] == "SECTION_WRITER_MODEL_FAILED"
    assert other.requests == [], "a redirect would carry the key elsewhere"


def test_another_model_is_asked_when_the_first_is_away(planned_run: Pipeline, server: ModelServer) -> None:
    server.headers = {"retry-after": "0"}
    server.statuses = [503] * 3
    with serve_model(ModelServer(reply=lambda body: body.replace("This page", "Below"))) as other:
        drafting_run = DraftingRun(planned_run, server)
        planned_run.config["llm"]["fallback"] = {"api_base_url": other.url, "model": "n"}
        drafting_run.draft("draft:reference")

    assert [request["model"] for request in other.requests] == ["n"]
    assert other.keys == [""], "the key is for the first address alone"
    assert planned_run.read_json("drafts/reference/model_calls.json")["calls"][0]["model"] == "n"


@pytest.mark.parametrize(("budget", "limit", "call_count"), [("max_llm_calls", 2, 2), ("max_llm_tokens", 300, 2)])
def test_a_run_asks_no_more_than_its_budget(
    planned_run: Pipeline, server: ModelServer, budget: str, limit: int, call_count: int
) -> None:
    drafting_run = DraftingRun(planned_run, server)
    planned_run.config["llm"]["max_concurrency"] = 1
    planned_run.config["budgets"][budget] = limit

    drafting_run.draft()

    assert len(server.requests) == call_count
    writers = [page["writer"] for page in drafting_run.manifests]
    assert sorted(writers) == ["model"] * 2 + ["template"] * 3
    reasons = {call["reason"] for call in planned_run.read_json("drafts/reference/model_calls.json")["calls"]}
    assert reasons == {"the budget of the run is used up"}


def test_an_answer_that_was_cut_off_is_not_taken(planned_run: Pipeline, server: ModelServer) -> None:
    server.finish_reason = "length"
    drafting_run = DraftingRun(planned_run, server)

    drafting_run.draft("draft:reference")

    assert drafting_run.manifests[-1]["writer"] == "template"


def test_no_key_is_written_anywhere(planned_run: Pipeline, server: ModelServer) -> None:
    drafting_run = DraftingRun(planned_run, server)
    drafting_run.draft()

    files = [path for path in planned_run.folder.root.rglob("*") if path.is_file()]
    assert any("model" in path.parts for path in files)
    assert not any(API_KEY.encode() in path.read_bytes() for path in files)
    assert API_KEY not in json.dumps(planned_run.events)


PAGE_BODY = """\
kit reads text. <!-- claims: a1 -->

## Use

- It writes text. <!-- claims: b2 -->
- [Guide](/guide/): how to.

```python
x = 1
```
"""


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("kit reads text.", "kit takes in text.", ""),
        ("- It writes", "- It also writes", ""),
        ("<!-- claims: a1 -->", "", "claim"),
        ("<!-- claims: a1 -->", "<!-- claims: a1 zz -->", "claim"),
        ("kit reads text. <", "<", "statement"),
        ("## Use", "## Usage", "heading"),
        ("## Use", "## Use\n\n### More", "heading"),
        ("x = 1", "x = 2", "code"),
        ("/guide/", "/elsewhere/", "link"),
        ("kit reads text.", "kit [reads](https://x.example) text.", "link"),
        ("- It writes", "- It is new.\n- It writes", "bullet"),
        ("kit reads text.", "kit <b>reads</b> text.", "HTML"),
        ("kit reads text.", "kit reads text. " + "More of it. " * 60, "longer"),
    ],
)
def test_an_answer_is_taken_only_when_nothing_but_words_changed(old: str, new: str, wrong: str) -> None:
    answer = PAGE_BODY.replace(old, new, 1)

    body, reason = accept_answer(answer, PAGE_BODY)

    assert wrong in reason
    assert bool(wrong) == bool(reason)
    assert body == (PAGE_BODY if wrong else answer)


def test_a_fence_around_the_answer_is_taken_off() -> None:
    assert accept_answer(f"```markdown\n{PAGE_BODY}```", PAGE_BODY) == (PAGE_BODY, "")

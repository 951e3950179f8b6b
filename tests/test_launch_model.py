"""Drafts that a language model reworded: asked once, judged, paid for, and never trusted."""

import json
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import Settings
from cleats.toolsets.launch.drafting.model import taken
from cleats.toolsets.launch.engine import worker_settings
from cleats.toolsets.launch.source.git import kept
from tests import launch_sites
from tests.launch_pipeline import READING, Pipeline
from tests.model_server import ModelServer, serving

KEY = "sk-very-secret-key"
SECTIONS = ("draft:docs", "draft:reference")


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with serving(ModelServer(reply=lambda body: body.replace("This page", "What follows"))) as made:
        yield made


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Pipeline:
    root = tmp_path_factory.mktemp("model")
    for part in ("source", "site"):
        launch_sites.sample(root / part, part)
    launch_sites.committed(root / "site")
    run = Pipeline(
        root,
        root / "source",
        root / "site",
        profile="plain",
        family="measurekit",
        required_sections=["docs", "reference"],
    )
    return run.do(*READING, "plan")


class Drafting:
    """A planned run that may ask a model, in a folder of its own."""

    def __init__(self, planned: Pipeline, server: ModelServer, **settings: Any) -> None:
        self.run = planned
        shutil.rmtree(planned.folder.root / "model", ignore_errors=True)
        planned.events.clear()
        planned.config["llm"] = {"api_base_url": server.url, "model": "m", "api_key_env": "K"}
        planned.config["budgets"]["max_llm_calls"] = 200
        planned.config["budgets"]["max_llm_tokens"] = 10**6
        self.settings = {
            "git_env": kept(os.environ),
            "models": True,
            "endpoints": [],
            **settings,
        }

    def draft(self, *steps: str) -> None:
        for step in steps or SECTIONS:
            self.run.do(step, settings=self.settings, secrets={"K": KEY})

    @property
    def manifests(self) -> list[dict[str, Any]]:
        names = [f"drafts/{section}/draft_manifest.json" for section in ("docs", "reference")]
        found = [self.run.json(name) for name in names if name in self.run.inputs]
        return [page for manifest in found for page in manifest["pages"]]

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [each["payload"] for each in self.run.events if each["type"] == kind]


def test_without_the_operators_leave_no_model_is_asked(
    planned: Pipeline, server: ModelServer
) -> None:
    assert worker_settings(Settings())["models"] is False
    for settings in ({"models": False}, {"offline": True}):
        Drafting(planned, server, **settings).draft()
    planned.config["offline_mode"] = True
    Drafting(planned, server).draft()
    planned.config["offline_mode"] = False

    assert server.asked == []
    assert {page["writer"] for page in Drafting(planned, server).manifests} == {"template"}


def test_only_an_address_of_the_operator_is_asked(planned: Pipeline, server: ModelServer) -> None:
    drafting = Drafting(planned, server)
    planned.config["llm"]["api_base_url"] = "https://models.example.com/v1"

    drafting.draft()

    assert {page["writer"] for page in drafting.manifests} == {"template"}


def test_pages_are_reworded_and_the_run_says_so(planned: Pipeline, server: ModelServer) -> None:
    drafting = Drafting(planned, server)

    drafting.draft()

    assert {page["writer"] for page in drafting.manifests} == {"model"}
    installation = planned.text("drafts/docs/content/docs/measurekit/installation.md")
    assert "What follows shows what measurekit needs" in installation
    assert len(server.asked) == len(drafting.manifests) == 5
    assert set(server.keys) == {f"Bearer {KEY}"}
    calls = planned.json("drafts/docs/model_calls.json")["calls"]
    assert [call["output_path"] for call in calls] == sorted(call["output_path"] for call in calls)
    started, finished = drafting.events("LLM_CALL_STARTED"), drafting.events("LLM_CALL_FINISHED")
    assert len(started) == len(finished) == 5
    assert started[0]["provider_base_url"] == server.url
    assert started[0]["temperature"] == 0
    assert finished[0]["token_usage"]["total_tokens"] == 150


def test_reworded_pages_pass_the_same_gates(planned: Pipeline, server: ModelServer) -> None:
    Drafting(planned, server).draft()

    planned.do("link", "apply", "validate:1")

    assert planned.json("validation_report.json")["issues"] == []


def test_a_step_that_is_done_again_asks_nothing_and_gives_the_same_bytes(
    planned: Pipeline, server: ModelServer
) -> None:
    drafting = Drafting(planned, server)
    drafting.draft()
    first, count = dict(planned.inputs), len(server.asked)
    server.reply = lambda _body: "something else"

    drafting.draft()

    assert len(server.asked) == count
    assert planned.inputs == first


def test_after_a_failure_only_the_rest_is_asked(planned: Pipeline, server: ModelServer) -> None:
    drafting = Drafting(planned, server)
    planned.config["llm"]["max_concurrency"] = 1
    server.headers = {"retry-after": "0"}
    server.statuses = [200, 200, 503, 503, 503]

    with pytest.raises(ToolError) as caught:
        drafting.draft("draft:docs")
    failed = drafting.events("LLM_CALL_FAILED")
    drafting.draft("draft:docs")

    ends = [*drafting.events("LLM_CALL_FAILED"), *drafting.events("LLM_CALL_FINISHED")]
    assert caught.value.retryable
    assert caught.value.details["http_status"] == 503
    assert failed[0]["error_class"] == "HttpStatus"
    assert {each["error_class"] for each in failed[1:]} <= {"Cancelled"}
    assert all(each["retryable"] for each in failed)
    assert len(drafting.events("LLM_CALL_STARTED")) == len(ends)
    asked = [request["messages"][1]["content"] for request in server.asked]
    assert len(asked) == 2 + 3 + 2
    assert len(set(asked)) == 4
    assert {page["writer"] for page in drafting.manifests[:4]} == {"model"}


def test_a_busy_model_is_asked_again(planned: Pipeline, server: ModelServer) -> None:
    server.headers = {"retry-after": "0"}
    server.statuses = [429, 500]

    Drafting(planned, server).draft("draft:reference")

    assert len(server.asked) == 3


@pytest.mark.parametrize("status", [401, 404, 307])
def test_a_model_that_refuses_is_a_fault_of_the_configuration(
    planned: Pipeline, server: ModelServer, status: int
) -> None:
    with serving(ModelServer()) as other:
        server.headers = {"location": f"{other.url}/chat/completions"}
        server.statuses = [status]
        drafting = Drafting(planned, server)

        with pytest.raises(ToolError) as caught:
            drafting.draft("draft:reference")

    assert caught.value.code is ErrorCode.INVALID_INPUT
    assert not caught.value.retryable
    assert caught.value.details["error_code"] == "SECTION_WRITER_MODEL_FAILED"
    assert other.asked == [], "a redirect would carry the key elsewhere"


def test_another_model_is_asked_when_the_first_is_away(
    planned: Pipeline, server: ModelServer
) -> None:
    server.headers = {"retry-after": "0"}
    server.statuses = [503] * 3
    with serving(ModelServer(reply=lambda body: body.replace("This page", "Below"))) as other:
        drafting = Drafting(planned, server)
        planned.config["llm"]["fallback"] = {"api_base_url": other.url, "model": "n"}
        drafting.draft("draft:reference")

    assert [request["model"] for request in other.asked] == ["n"]
    assert other.keys == [""], "the key is for the first address alone"
    assert planned.json("drafts/reference/model_calls.json")["calls"][0]["model"] == "n"


@pytest.mark.parametrize(
    ("budget", "most", "asked"), [("max_llm_calls", 2, 2), ("max_llm_tokens", 300, 2)]
)
def test_a_run_asks_no_more_than_its_budget(
    planned: Pipeline, server: ModelServer, budget: str, most: int, asked: int
) -> None:
    drafting = Drafting(planned, server)
    planned.config["llm"]["max_concurrency"] = 1
    planned.config["budgets"][budget] = most

    drafting.draft()

    assert len(server.asked) == asked
    writers = [page["writer"] for page in drafting.manifests]
    assert sorted(writers) == ["model"] * 2 + ["template"] * 3
    reasons = {
        call["reason"] for call in planned.json("drafts/reference/model_calls.json")["calls"]
    }
    assert reasons == {"the budget of the run is used up"}


def test_an_answer_that_was_cut_off_is_not_taken(planned: Pipeline, server: ModelServer) -> None:
    server.finish = "length"
    drafting = Drafting(planned, server)

    drafting.draft("draft:reference")

    assert drafting.manifests[-1]["writer"] == "template"


def test_no_key_is_written_anywhere(planned: Pipeline, server: ModelServer) -> None:
    drafting = Drafting(planned, server)
    drafting.draft()

    files = [path for path in planned.folder.root.rglob("*") if path.is_file()]
    assert any("model" in path.parts for path in files)
    assert not any(KEY.encode() in path.read_bytes() for path in files)
    assert KEY not in json.dumps(planned.events)


BODY = """\
kit reads text. <!-- claim_id: a1 -->

## Use

- It writes text. <!-- claim_id: b2 -->
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
        ("<!-- claim_id: a1 -->", "", "claim"),
        ("<!-- claim_id: a1 -->", "<!-- claim_id: a1 --> <!-- claim_id: zz -->", "claim"),
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
def test_an_answer_is_taken_only_when_nothing_but_words_changed(
    old: str, new: str, wrong: str
) -> None:
    answer = BODY.replace(old, new, 1)

    body, reason = taken(answer, BODY)

    assert wrong in reason
    assert bool(wrong) == bool(reason)
    assert body == (BODY if wrong else answer)


def test_a_fence_around_the_answer_is_taken_off() -> None:
    assert taken(f"```markdown\n{BODY}```", BODY) == (BODY, "")

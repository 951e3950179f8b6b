"""Runs as clients other than a tool caller see them: resources of MCP, and callers over HTTP."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import Settings
from cleats.toolsets.launch.resources import Artifacts
from cleats.toolsets.launch.service import Launches
from tests.launch_client import CONFIG, Client, client
from tests.web import CLEATS, Web, serving


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with client(tmp_path_factory.mktemp("home")) as made:
        yield made


@pytest.fixture(scope="module")
def run_id(asked: Client) -> str:
    asked.trouble(picture="ff00")
    run_id = asked.start()
    asked.on(run_id, "resume")
    return run_id


def ask(asked: Client, method: str, **params: Any) -> Any:
    asked.peer.request(method, method, params)
    return asked.peer.answer(method)


def test_the_main_artifacts_of_the_latest_runs_are_listed(asked: Client, run_id: str) -> None:
    listed = ask(asked, "resources/list")["result"]["resources"]

    found = {each["uri"]: each["mimeType"] for each in listed}
    assert found[f"resource://run/{run_id}/page_plan.json"] == "application/json"
    assert f"resource://run/{run_id}/snapshot.json" in found
    assert f"resource://run/{run_id}/validation_report.json" not in found
    assert "resource://launch/run_config.schema.json" in found


def test_every_artifact_can_be_read_by_the_template(asked: Client, run_id: str) -> None:
    [template] = ask(asked, "resources/templates/list")["result"]["resourceTemplates"]
    uri = template["uriTemplate"].replace("{run_id}", run_id).replace("{+name}", "page_plan.json")

    [contents] = ask(asked, "resources/read", uri=uri)["result"]["contents"]

    assert contents["text"] == asked.text(run_id, "page_plan.json")


def test_the_schema_of_a_configuration_is_there_to_be_read(asked: Client) -> None:
    uri = "resource://launch/run_config.schema.json"

    [contents] = ask(asked, "resources/read", uri=uri)["result"]["contents"]

    assert json.loads(contents["text"])["required"] == [
        "github_repo_url",
        "github_ref",
        "target_platform",
        "required_sections",
    ]


@pytest.mark.parametrize(
    "uri",
    [
        "resource://run/{run_id}/nothing.json",
        "resource://run/{run_id}/../../runs.sqlite",
        "resource://run/{run_id}/..%2F..%2Fruns.sqlite",
        "resource://run/{run_id}",
        "resource://run/r_00000000/snapshot.json",
        "resource://run//etc/passwd",
        "resource://launch/other.json",
    ],
)
def test_what_is_not_in_the_index_is_no_resource(asked: Client, run_id: str, uri: str) -> None:
    answer = ask(asked, "resources/read", uri=uri.format(run_id=run_id))

    assert answer["error"]["code"] == -32002


def test_a_resource_that_cannot_be_looked_for_is_not_said_to_be_missing(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    (tmp_path / "launch").mkdir()
    (tmp_path / "launch" / "runs.sqlite").write_bytes(b"this is no database\n" * 500)
    known = Artifacts(Launches(settings))

    with pytest.raises(ToolError) as caught:
        anyio.run(known.read, "resource://run/r_00000000/snapshot.json")

    assert caught.value.code is ErrorCode.INTERNAL


def test_who_lists_resources_is_told_that_the_store_is_damaged(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "launch").mkdir(parents=True)
    (data / "launch" / "runs.sqlite").write_bytes(b"this is no database\n" * 500)

    with client(tmp_path, CLEATS_DATA_DIR=str(data)) as asked:
        error = ask(asked, "resources/list")["error"]

    assert error["data"]["code"] == "INTERNAL"
    assert "is damaged" in error["message"]
    assert error["data"]["hint"]


# Over HTTP: the payload in the envelope, the status by the code, no place of this machine.


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    home = tmp_path_factory.mktemp("web")
    for name in ("repo", "outside"):
        (home / name).mkdir()
    command = (*CLEATS, "launch", "--repo", str(home / "repo"))
    with serving(*command, home=home, CLEATS_TELEMETRY="off") as web:
        yield web


def config(**changes: Any) -> dict[str, Any]:
    return {"run_config": {**CONFIG, "drive": {"mode": "stepwise"}, **changes}}


def test_over_http_a_run_is_started_read_and_cancelled(web: Web) -> None:
    started = web.call("launch_start_run", **config()).result
    run_id = started["run_id"]
    status = web.call("launch_get_status", run_id=run_id).result
    missing = web.call("launch_get_status", run_id="r_00000000")
    cancelled = web.call("launch_cancel", run_id=run_id).result
    late = web.call("launch_resume", run_id=run_id)

    assert (started["ok"], started["state"]) == (True, "CREATED")
    assert status["status"]["state"] == "CREATED"
    assert (missing.status, missing.error["code"]) == (404, "RUN_NOT_FOUND")
    assert cancelled["cancelled"] is True
    assert late.error["code"] == "CANCELLED"


@pytest.mark.parametrize("field", ["github_repo_url", "site_repo_url", "workflows_repo_url"])
@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_over_http_no_repository_outside_the_fence_can_be_named(
    web: Web, tmp_path: Path, field: str, form: str
) -> None:
    reply = web.call("launch_start_run", **config(**{field: form.format(tmp_path)}))

    assert (reply.status, reply.error["code"]) == (403, "FORBIDDEN")
    assert str(tmp_path) not in reply.body.decode()

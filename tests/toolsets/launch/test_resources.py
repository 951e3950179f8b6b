"""Tests of runs as other clients see them: MCP resources, and callers over HTTP."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import Settings
from cleats.toolsets.launch.service import LaunchService
from cleats.toolsets.launch.tools import RunResources
from tests.support.http_client import CLEATS_COMMAND, WebServer, run_web_server
from tests.support.launch_client import RUN_CONFIG, LaunchToolClient, open_launch_client


@pytest.fixture(scope="module")
def launch_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LaunchToolClient]:
    with open_launch_client(tmp_path_factory.mktemp("home")) as new_client:
        yield new_client


@pytest.fixture(scope="module")
def run_id(launch_client: LaunchToolClient) -> str:
    launch_client.set_trouble(picture="ff00")
    run_id = launch_client.start_run()
    launch_client.call_for_run(run_id, "resume")
    return run_id


def send_request(launch_client: LaunchToolClient, method: str, **params: Any) -> Any:
    launch_client.peer.send_request(method, method, params)
    return launch_client.peer.wait_for_answer(method)


def test_the_main_artifacts_of_the_latest_runs_are_listed(launch_client: LaunchToolClient, run_id: str) -> None:
    resources = send_request(launch_client, "resources/list")["result"]["resources"]

    mime_types = {resource["uri"]: resource["mimeType"] for resource in resources}
    assert mime_types[f"resource://run/{run_id}/page_plan.json"] == "application/json"
    assert f"resource://run/{run_id}/snapshot.json" in mime_types
    assert f"resource://run/{run_id}/validation_report.json" not in mime_types
    assert "resource://launch/run_config.schema.json" in mime_types


def test_every_artifact_can_be_read_by_the_template(launch_client: LaunchToolClient, run_id: str) -> None:
    [template] = send_request(launch_client, "resources/templates/list")["result"]["resourceTemplates"]
    uri = template["uriTemplate"].replace("{run_id}", run_id).replace("{+name}", "page_plan.json")

    [contents] = send_request(launch_client, "resources/read", uri=uri)["result"]["contents"]

    assert contents["text"] == launch_client.read_artifact_text(run_id, "page_plan.json")


def test_the_schema_of_a_configuration_is_there_to_be_read(launch_client: LaunchToolClient) -> None:
    uri = "resource://launch/run_config.schema.json"

    [contents] = send_request(launch_client, "resources/read", uri=uri)["result"]["contents"]

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
def test_what_is_not_in_the_index_is_no_resource(launch_client: LaunchToolClient, run_id: str, uri: str) -> None:
    answer = send_request(launch_client, "resources/read", uri=uri.format(run_id=run_id))

    assert answer["error"]["code"] == -32002


def test_a_resource_that_cannot_be_looked_for_is_not_said_to_be_missing(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    (tmp_path / "launch").mkdir()
    (tmp_path / "launch" / "runs.sqlite").write_bytes(b"this is no database\n" * 500)
    artifact_resources = RunResources(LaunchService(settings))

    with pytest.raises(ToolError) as caught:
        anyio.run(artifact_resources.read, "resource://run/r_00000000/snapshot.json")

    assert caught.value.code is ErrorCode.INTERNAL


def test_who_lists_resources_is_told_that_the_store_is_damaged(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "launch").mkdir(parents=True)
    (data / "launch" / "runs.sqlite").write_bytes(b"this is no database\n" * 500)

    with open_launch_client(tmp_path, CLEATS_DATA_DIR=str(data)) as damaged_client:
        error = send_request(damaged_client, "resources/list")["error"]

    assert error["data"]["code"] == "INTERNAL"
    assert "is damaged" in error["message"]
    assert error["data"]["details"]["hint"]


# Over HTTP: the payload in the envelope, the status by the code, no place of this machine.


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    home = tmp_path_factory.mktemp("web")
    for name in ("repo", "outside"):
        (home / name).mkdir()
    command = (*CLEATS_COMMAND, "launch", "--repo", str(home / "repo"))
    with run_web_server(*command, home=home, CLEATS_TELEMETRY="off") as web:
        yield web


def build_arguments(**changes: Any) -> dict[str, Any]:
    return {"run_config": {**RUN_CONFIG, "drive": {"mode": "stepwise"}, **changes}}


def test_over_http_a_run_is_started_read_and_cancelled(web: WebServer) -> None:
    start_result = web.call_tool("launch_start_run", **build_arguments()).result
    run_id = start_result["run_id"]
    status = web.call_tool("launch_get_status", run_id=run_id).result
    missing = web.call_tool("launch_get_status", run_id="r_00000000")
    cancel_result = web.call_tool("launch_cancel", run_id=run_id).result
    late = web.call_tool("launch_resume", run_id=run_id)

    assert (start_result["ok"], start_result["state"]) == (True, "CREATED")
    assert status["status"]["state"] == "CREATED"
    assert (missing.status, missing.error["code"]) == (404, "RUN_NOT_FOUND")
    assert cancel_result["cancelled"] is True
    assert late.error["code"] == "CANCELLED"


@pytest.mark.parametrize("field", ["github_repo_url", "site_repo_url", "workflows_repo_url"])
@pytest.mark.parametrize("form", ["{}", "file://{}"])
def test_over_http_no_repository_outside_the_fence_can_be_named(
    web: WebServer, tmp_path: Path, field: str, form: str
) -> None:
    reply = web.call_tool("launch_start_run", **build_arguments(**{field: form.format(tmp_path)}))

    assert (reply.status, reply.error["code"]) == (403, "FORBIDDEN")
    assert str(tmp_path) not in reply.body.decode()

"""Tests that every surface answers alike: MCP, rpc, legacy, HTTP and the CLI."""

import copy
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from cleats import app
from cleats.contract.toolset_rules import list_tool_names
from cleats.settings import make_settings
from tests.support.assets import SHOWCASE_FOLDER
from tests.support.paths import REPOSITORY_ROOT
from tests.support.requirements import requirement
from tests.support.surfaces import SurfaceAnswer, SurfaceClient, open_all_surfaces

TONE_ASSET = {"name": "lead", "waveform": "sine", "frequency": 440}

CALL_CASES: list[tuple[str, dict[str, Any]]] = [
    ("check_status", {}),
    ("check_status", {"verbose": True}),
    ("index_status", {}),
    ("index_status", {"repoPath": 7}),
    ("search", {"query": "x"}),
    ("search", {}),
    ("find_code", {"query": "x"}),
    ("grep_code", {"pattern": "x"}),
    ("grep_code", {"pattern": "(", "regex": True}),
    ("read_symbol", {"name": "x"}),
    ("find_references", {"name": "x"}),
    ("outline", {}),
    ("read_lines", {"path": "nothing.txt"}),
    ("show_file", {"path": "nothing.txt"}),
    ("show_file", {"path": "../outside.txt"}),
    ("config_status", {"repoPath": 7}),
    ("report_artifacts", {}),
    ("build_sqlite_index", {}),
    ("compact_sqlite_index", {"mode": "all", "dryRun": True}),
    ("cache_gc", {"dryRun": True}),
    ("cache_gc", {"maxBytes": -1}),
    ("clean_artifacts", {"dryRun": True}),
    ("bootstrap", {"skipIndex": True}),
    ("workspace_status", {"workspacePath": "none.jsonc"}),
    ("triage_ingest", {"source": "sarif", "inputPath": "none.sarif"}),
    ("triage_ingest", {"source": "unknown", "inputPath": "none.json"}),
    ("triage_decision", {"finding": "none", "status": "fix"}),
    ("triage_context_pack", {"recordId": "../none"}),
    ("skill", {"name": "release-notes"}),
    ("skill", {"name": "no-such-skill"}),
    ("skill", {"nom": "x"}),
    ("skill_search", {"query": "release"}),
    ("skill_search", {"query": 7}),
    ("skill_file", {"name": "release-notes", "path": "../SKILL.md"}),
    ("skill_diagnostics", {}),
    ("list_schemas", {}),
    ("list_schemas", {"extra": 1}),
    ("list_examples", {}),
    ("get_schema", {"name": "tone"}),
    ("get_schema", {"name": "no-such-schema"}),
    ("get_schema", {}),
    ("get_example", {"path": "Tone_Example.json"}),
    ("get_example", {"path": "../../etc/passwd"}),
    ("validate_asset", {"asset": TONE_ASSET, "schema": "tone"}),
    ("validate_asset", {"asset": {"name": 7}, "schema": "tone"}),
    ("validate_asset", {"asset": TONE_ASSET, "schema": "nope"}),
    ("validate_many", {"assets": [TONE_ASSET], "schema": "tone"}),
    ("diff_assets", {"base": TONE_ASSET, "new": {**TONE_ASSET, "frequency": 220}}),
    ("populate_backend", {"asset": TONE_ASSET}),
    ("launch_list_runs", {}),
    ("launch_list_runs", {"filter": {"state": "DONE"}, "limit": 3}),
    ("launch_list_runs", {"cursor": "nowhere"}),
    ("launch_list_runs", {"filter": {"colour": "red"}}),
    ("launch_start_run", {"run_config": {"family": "3d"}}),
    ("launch_start_run", {}),
    ("launch_start_run_from_product_url", {"url": "https://example.org/"}),
    ("launch_start_run_from_url", {"url": "https://docs.aspose.org/3d/en/cobol/"}),
    ("launch_start_run_from_github_repo_url", {"github_repo_url": "https://example.org/o/n"}),
    ("launch_get_status", {"run_id": "r_00000000"}),
    ("launch_get_status", {"run_id": "../x"}),
    ("launch_get_artifact", {"run_id": "r_00000000", "artifact_name": "page_plan.json"}),
    ("launch_validate", {"run_id": "r_00000000"}),
    ("launch_fix_next", {"run_id": "r_00000000"}),
    ("launch_resume", {"run_id": "r_00000000"}),
    ("launch_cancel", {"run_id": "r_00000000"}),
    ("launch_open_pr", {"run_id": "r_00000000"}),
]
"""One call that works and some that fail, for each tool; a new tool needs only a row."""

VOLATILE_FIELDS = {"uptimeMs", "queue", "calls", "ms", "durationMs"}
"""The fields that differ between any two calls."""


@pytest.fixture(scope="module")
def surfaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, SurfaceClient]]:
    home = tmp_path_factory.mktemp("home")
    (home / "set").symlink_to(SHOWCASE_FOLDER)
    with open_all_surfaces(
        home,
        SYN_SCHEMAS_DIR="set/jsonschema",
        SYN_EXAMPLES_DIR="set/examples",
        CLEATS_SKILL_TOOLS="all",
        CLEATS_SKILL_DIRS=str(REPOSITORY_ROOT / "examples" / "skills"),
        CLEATS_TELEMETRY="off",
    ) as surfaces_by_name:
        yield surfaces_by_name


TOOL_PAYLOADS = {
    name: tool.payload
    for tool in app.build_registry(make_settings(skill_tools="all"))
    for name in list_tool_names(tool)
}


def drop_volatile_fields(value: Any) -> Any:
    """Return a payload without the fields that differ between any two calls."""
    if isinstance(value, dict):
        return {name: drop_volatile_fields(item) for name, item in value.items() if name not in VOLATILE_FIELDS}
    return [drop_volatile_fields(item) for item in value] if isinstance(value, list) else value


@requirement("b:parity:outputs", "b:tools:one-registry", "a:tests:snapshot")
@pytest.mark.parametrize(("tool", "arguments"), CALL_CASES)
def test_a_call_has_the_same_end_on_every_surface(
    surfaces: dict[str, SurfaceClient], tool: str, arguments: dict[str, Any]
) -> None:
    payload = TOOL_PAYLOADS[tool]

    results = {name: surface.call(tool, payload, copy.deepcopy(arguments)) for name, surface in surfaces.items()}

    expected = results.pop("mcp")
    for name, other in results.items():
        result = SurfaceAnswer(other.ok, drop_volatile_fields(other.payload))
        assert result == SurfaceAnswer(expected.ok, drop_volatile_fields(expected.payload)), name


def test_the_matrix_has_a_good_and_a_bad_call_of_each_shape(
    surfaces: dict[str, SurfaceClient],
) -> None:
    ends = {
        (TOOL_PAYLOADS[tool].name, surfaces["mcp"].call(tool, TOOL_PAYLOADS[tool], arguments).ok)
        for tool, arguments in CALL_CASES
    }

    assert ends == set(product(("content", "envelope", "flat", "launch"), (True, False)))

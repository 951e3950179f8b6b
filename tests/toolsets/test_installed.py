"""Tests of toolsets from other packages: found, checked, and served everywhere."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cleats import app
from cleats.cli.main import cli
from cleats.contract.payload import CONTENT
from cleats.contract.tools import Alias, Context, Tool, Toolset, arguments
from cleats.contract.toolset_rules import find_flaws
from cleats.runtime.server_status import ServerStatus
from cleats.settings import Settings
from cleats.toolsets import plugins
from tests.support.example_toolset import EXAMPLE_FOLDER, install_example, install_toolset
from tests.support.http_client import CLEATS_COMMAND, run_web_server
from tests.support.mcp_client import start_server
from tests.support.paths import REPOSITORY_ROOT
from tests.support.shell import EXIT_TIMEOUT_SECONDS, Shell

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # of importlib.metadata


ROUTED_TOOLSET_SCRIPT = """
from cleats.contract.routes import Route

make = toolset

def toolset(settings):
    return make(settings, routes=[Route("GET", "/health", run, "Mine.")])
"""


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_example(tmp_path_factory.mktemp("installed"))


def build_python_path(*folders: Path) -> str:
    return os.pathsep.join(map(str, (REPOSITORY_ROOT, *folders)))


@dataclass
class CliHost:
    """The command line in this process, with packages on its path."""

    folder: Path
    add_path: Callable[[str], None]

    def install(self, name: str, code: str = "", *, package: str = "") -> None:
        self.add_path(str(install_toolset(self.folder / (package or name), name, code, package=package)))
        plugins.installed_toolsets.cache_clear()

    def run(self, *words: str) -> Result:
        result = CliRunner().invoke(cli, words)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    known_modules = set(sys.modules)
    plugins.installed_toolsets.cache_clear()
    yield CliHost(tmp_path, monkeypatch.syspath_prepend)
    plugins.installed_toolsets.cache_clear()
    for module in set(sys.modules) - known_modules:
        if module.startswith("acme"):
            del sys.modules[module]


# The example package


def test_the_example_passes_its_own_tests(example: Path, tmp_path: Path) -> None:
    copy = tmp_path / "toolset"
    shutil.copytree(EXAMPLE_FOLDER, copy, ignore=shutil.ignore_patterns("src", "__pycache__"))

    process = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'base'}", str(copy)],
        env={
            **os.environ,
            "HOME": str(tmp_path),
            "PYTHONPATH": build_python_path(example),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # it uses none
        },
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=EXIT_TIMEOUT_SECONDS,
        check=False,
    )

    assert process.returncode == 0, process.stdout + process.stderr
    assert "3 passed" in process.stdout


def test_an_installed_toolset_is_served_beside_ours(example: Path, tmp_path: Path) -> None:
    serve = (sys.executable, "-m", "cleats", "serve")
    with start_server(*serve, home=tmp_path, PYTHONPATH=build_python_path(example)) as peer:
        peer.send_request(1, "tools/list")
        names = {tool["name"] for tool in peer.wait_for_answer(1)["result"]["tools"]}
        peer.send_call(2, "todo_add", text="Water the plants.")
        added_item = peer.wait_for_answer(2)["result"]["structuredContent"]
        peer.send_call(3, "todo_add", txt="Water the plants.")
        refusal = peer.wait_for_answer(3)["error"]

    assert names >= {"search", "skill", "validate_asset", "todo_add", "todo_list", "todo_done"}
    assert added_item["result"]["item"]["text"] == "Water the plants."
    assert refusal["data"]["code"] == "INVALID_REQUEST"
    assert "Did you mean text?" in refusal["message"] == refusal["data"]["message"]


def test_it_answers_over_http_and_to_cleats_call(example: Path, shell: Shell) -> None:
    installed_here = {"PYTHONPATH": build_python_path(example)}
    with run_web_server(*CLEATS_COMMAND, "todo", home=shell.folder, **installed_here) as web:
        item = web.post("/tools/todo_add", {"text": "Read."}).result["item"]
        unknown = web.post("/tools/search", {"query": "x"})

    process = shell.run("call", "todo_list", **installed_here)

    assert unknown.status == 404
    assert json.loads(process.stdout)["result"]["items"] == [item]


def test_its_contract_check_passes_and_fails_on_a_change_without_a_bump(example: Path, shell: Shell) -> None:
    folder = shell.folder / "changed"
    # A change of a moment later that keeps the length of a file does not show in its time: Python
    # would go on with what it compiled before.
    shutil.copytree(example, folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(EXAMPLE_FOLDER / "contracts", shell.folder / "contracts")
    check = ("contract", "check", "--toolset", "todo")
    environ = {"PYTHONPATH": build_python_path(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    code = folder / "cleats_todo" / "tools.py"

    same = shell.run(*check, **environ)
    code.write_text(code.read_text().replace('"maxLength": 500', '"maxLength": 400'))
    changed = shell.run(*check, **environ)
    refusal = shell.run(*check, "--accept", **environ)
    bumped = code.read_text().replace('"1.0.0"', '"2.0.0"')
    code.write_text(bumped.replace('name="todo_add",', 'name="todo_add", version=2,'))
    accepted = shell.run(*check, "--accept", **environ)
    final_check = shell.run(*check, **environ)

    assert [process.returncode for process in (same, changed, refusal, accepted, final_check)] == [0, 1, 1, 0, 0]
    assert "the contract needs version 2.0.0, not 1.0.0" in changed.stdout
    assert "todo_add: its schemaVersion has to rise above 1" in changed.stdout
    assert json.loads((shell.folder / "contracts/tools.json").read_text())["schemaVersion"] == ("2.0.0")


# What is promised about any of them


def test_our_own_contract_holds_no_toolset_of_others(host: CliHost) -> None:
    before = host.run("contract", "snapshot").stdout
    host.install("waves")

    after = host.run("contract", "snapshot").stdout
    contract = json.loads(host.run("contract", "snapshot", "--toolset", "waves").stdout)

    assert "wave" in host.run("tools", "waves").stdout
    assert after == before
    assert contract.keys() == {"snapshot", "schemaVersion", "tools"}
    assert contract["schemaVersion"] == "1.0.0"
    assert contract["tools"]["wave"]["outputSchema"] == {"type": "object"}


def test_who_names_our_toolsets_does_not_look_at_what_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail_if_called() -> None:
        raise AssertionError

    monkeypatch.setattr(plugins, "entry_points", fail_if_called)

    assert app.find_unknown_toolsets(["code", "skills"]) == []
    assert [served_toolset.name for served_toolset in app.load_toolsets(Settings(), ["assets"], ServerStatus())] == [
        "assets"
    ]
    assert app.build_contract_snapshot(Settings())["tools"]


def test_tools_and_doctor_say_where_a_toolset_is_from(host: CliHost) -> None:
    host.install("waves")

    tools_text = host.run("tools").stdout
    one = host.run("tools", "--show", "wave").stdout
    doctor = host.run("doctor")
    findings = json.loads(host.run("doctor", "--json").stdout)

    assert "\nwaves  Be there. (from acme-waves 1.2)\n" in tools_text
    assert "\n  from     acme-waves 1.2\n" in one
    assert "  waves    1 tool    from acme-waves 1.2\n" in doctor.stdout
    assert findings["packages"] == {"waves": "acme-waves 1.2"}
    assert doctor.exit_code == 0


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("import no_such_module", "cannot be loaded: ModuleNotFoundError: No module named"),
        ("raise SystemExit(3)", "cannot be loaded: SystemExit: 3 ("),
        ("def toolset(settings): return 1 / 0", "ZeroDivisionError: division by zero ("),
        ("def toolset(settings): return [tool()]", "is not a Toolset but a list"),
        ("NAME = 'other'", "its name is 'other'"),
        (
            "make = toolset\ndef toolset(s): return make(s, schema_version='1')",
            "its schema_version is '1', not three numbers",
        ),
        (
            "make = toolset\ndef toolset(s): return make(s, tool(input={'type': 'object'}))",
            "wave: its input schema allows unknown arguments",
        ),
        (
            ROUTED_TOOLSET_SCRIPT,
            "its route /health is not below /toolsets/waves/",
        ),
        (
            "make = toolset\ndef toolset(s): return make(s, tool('search'))",
            "has a tool 'search', which is also in 'code'",
        ),
    ],
)
def test_a_broken_one_is_an_error_when_named_and_skipped_when_not(
    host: CliHost, caplog: pytest.LogCaptureFixture, code: str, cause: str
) -> None:
    host.install("waves", code)

    named_result = host.run("tools", "code", "waves")
    unnamed = host.run("tools")
    doctor = host.run("doctor")

    assert (named_result.exit_code, named_result.stdout) == (2, "")
    assert named_result.stderr.startswith("Error: toolset 'waves' of acme-waves 1.2 ")
    assert cause in named_result.stderr
    assert (unnamed.exit_code, "Be there." in unnamed.stdout) == (0, False)
    assert "check_status" in unnamed.stdout
    assert any(cause in message and message.endswith("; it is skipped") for message in caplog.messages)
    if "search" not in code:  # which clashes with another toolset and is well by itself
        assert doctor.exit_code == 1
        assert "  waves    cannot start  from acme-waves 1.2\n" in doctor.stdout
        assert cause in doctor.stdout


@pytest.mark.parametrize(
    ("answer", "error_part"),
    [
        ('{"waved": True}', None),
        ('{"waved": "much"}', "/waved"),
        ("{}", "required"),
        ('{"waved": {1: object()}}', "TypeError"),
    ],
)
def test_an_answer_that_does_not_fit_its_own_schema_never_reaches_the_caller(
    host: CliHost, answer: str, error_part: str | None
) -> None:
    shape = {
        "type": "object",
        "properties": {"waved": {"type": "boolean"}},
        "required": ["waved"],
    }
    host.install("waves", f"SHAPE = {shape!r}\nasync def run(given, context):\n    return {answer}\n")

    process = host.run("call", "wave", "--json")

    envelope = json.loads(process.stdout)
    if error_part is None:
        assert envelope["result"] == {"waved": True}
    else:
        assert envelope["error"]["code"] == "INTERNAL"
        assert error_part in process.stdout


def test_a_warning_goes_to_stderr_and_the_answer_is_there(shell: Shell) -> None:
    folder = install_toolset(shell.folder / "broken", "waves", "import no_such_module")

    process = shell.run("tools", PYTHONPATH=build_python_path(folder))

    assert "check_status" in process.stdout
    assert process.stderr.startswith("toolset 'waves' of acme-waves 1.2 cannot be loaded:")


def test_a_name_of_ours_stays_ours(host: CliHost, caplog: pytest.LogCaptureFixture) -> None:
    host.install("assets")

    tools_text = host.run("tools", "assets").stdout
    host.run("tools")
    doctor = host.run("doctor")

    assert "validate_asset" in tools_text
    assert "Be there." not in tools_text
    message = "toolset 'assets' of acme-assets 1.2 is skipped: a built-in toolset has this name"
    assert message in caplog.messages
    assert doctor.exit_code == 1
    assert "toolset 'assets' of acme-assets 1.2 is not served: a built-in toolset has this name" in doctor.stdout


def test_two_packages_with_one_name_are_both_named(host: CliHost) -> None:
    host.install("waves", package="acme-one")
    host.install("waves", package="acme-two")

    process = host.run("tools", "waves")

    assert process.exit_code == 2
    assert "toolset 'waves' is in acme-" in process.stderr
    assert {"acme-one", "acme-two"} <= set(process.stderr.replace("1.2", "").split())


def test_a_toolset_of_ours_has_no_contract_of_its_own_and_a_stranger_has_none(host: CliHost) -> None:
    own_result = host.run("contract", "check", "--toolset", "code")
    nobody = host.run("contract", "snapshot", "--toolset", "nobody")
    both = host.run("contract", "snapshot", "--toolset", "x", "--server", "y")

    assert [result.exit_code for result in (own_result, nobody, both)] == [2, 2, 2]
    assert "code is part of our own contract; leave --toolset out" in own_result.stderr
    assert "Unknown toolset 'nobody'. Known toolsets: code, " in nobody.stderr
    assert "--toolset is only for what is installed here" in both.stderr


async def return_nothing(args: Mapping[str, Any], context: Context) -> dict[str, Any]:
    return {}


def build_toolset(*tools: Tool, name: str = "waves", purpose: str = "Wave.") -> Toolset:
    return Toolset(name=name, purpose=purpose, tools=tools)


def build_wave_tool(name: str = "wave", **changes: Any) -> Tool:
    defaults = {"description": "Wave.", "input": arguments(), "output": {"type": "object"}}
    return Tool(name=name, run=return_nothing, **{**defaults, **changes})


@pytest.mark.parametrize(
    ("toolset", "expected_flaws"),
    [
        (build_toolset(build_wave_tool(), name="2 waves"), ["'2 waves' is not a valid name of a toolset"]),
        (build_toolset(build_wave_tool(), purpose=""), ["it has no purpose"]),
        (build_toolset(), ["it has no tools"]),
        (build_toolset(build_wave_tool(), build_wave_tool()), ["2 of its tools are called 'wave'"]),
        (
            build_toolset(build_wave_tool(aliases=(Alias("old wave", "1"),))),
            ["'old wave' is not a valid name of a tool"],
        ),
        (build_toolset(build_wave_tool(description="")), ["wave: it has no description"]),
        (build_toolset(build_wave_tool(version=0)), ["wave: its version is 0, and the first one is 1"]),
        (build_toolset(build_wave_tool(timeout=0)), ["wave: its timeout is 0 s"]),
        (build_toolset(build_wave_tool(errors=("NOT_FOUND",))), ["wave: 'NOT_FOUND' is not an error code"]),
        (build_toolset(build_wave_tool(output=None)), ["wave: it has no output schema"]),
        (build_toolset(build_wave_tool(output=None, payload=CONTENT)), []),
        (
            build_toolset(build_wave_tool(output={"type": "string"})),
            ["wave: its output schema does not describe an object"],
        ),
        (
            build_toolset(build_wave_tool(output={"type": "object", "properties": 3})),
            ['wave: its output schema is invalid: 3 is not of type "object"'],
        ),
        (build_toolset(build_wave_tool(input={})), ["wave: its input schema does not describe an object"]),
        (
            build_toolset(build_wave_tool(input={"type": "object"})),
            ["wave: its input schema allows unknown arguments; set additionalProperties to false"],
        ),
        (
            build_toolset(build_wave_tool(input={**arguments(), "properties": {"a": 3}})),
            ['wave: its input schema is invalid: 3 is not of types "boolean", "object"'],
        ),
        (
            build_toolset(build_wave_tool(examples=({"arguments": {"a": 1}},))),
            [
                'wave: its example 1 does not match the schema: wave: /a: unexpected property "a"',
            ],
        ),
    ],
)
def test_every_broken_rule_is_told_in_words(toolset: Toolset, expected_flaws: list[str]) -> None:
    assert list(find_flaws(toolset)) == expected_flaws


def test_our_own_toolsets_keep_the_rules() -> None:
    for toolset in app.load_toolsets(Settings(), app.BUILTIN_TOOLSETS, ServerStatus()):
        assert list(find_flaws(toolset)) == []

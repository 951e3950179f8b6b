"""Toolsets of other packages: found, held to the rules, served everywhere, and never in the way."""

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
from cleats.contract.soundness import flaws
from cleats.contract.tools import Alias, Context, Tool, Toolset, arguments
from cleats.runtime.vitals import Vitals
from cleats.settings import Settings
from cleats.toolsets import installed
from tests.peer import ROOT, started
from tests.shell import PATIENCE, Shell
from tests.toolset_world import EXAMPLE, install, install_example
from tests.web import CLEATS, serving

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")  # of importlib.metadata


ROUTED = """
from cleats.contract.routes import Route

make = toolset

def toolset(settings):
    return make(settings, routes=[Route("GET", "/health", run, "Mine.")])
"""


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_example(tmp_path_factory.mktemp("installed"))


def paths(*folders: Path) -> str:
    return os.pathsep.join(map(str, (ROOT, *folders)))


@dataclass
class Host:
    """The command line in this process, with packages of its own."""

    folder: Path
    find: Callable[[str], None]

    def install(self, name: str, code: str = "", *, package: str = "") -> None:
        self.find(str(install(self.folder / (package or name), name, code, package=package)))
        installed.offers.cache_clear()

    def run(self, *words: str) -> Result:
        done = CliRunner().invoke(cli, words)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    known = set(sys.modules)
    installed.offers.cache_clear()
    yield Host(tmp_path, monkeypatch.syspath_prepend)
    installed.offers.cache_clear()
    for module in set(sys.modules) - known:
        if module.startswith("acme"):
            del sys.modules[module]


# The example package


def test_the_example_passes_its_own_tests(example: Path, tmp_path: Path) -> None:
    copy = tmp_path / "toolset"
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("src", "__pycache__"))

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(copy)],
        env={**os.environ, "HOME": str(tmp_path), "PYTHONPATH": paths(example)},
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_an_installed_toolset_is_served_beside_ours(example: Path, tmp_path: Path) -> None:
    serve = (sys.executable, "-m", "cleats", "serve")
    with started(*serve, home=tmp_path, PYTHONPATH=paths(example)) as peer:
        peer.request(1, "tools/list")
        names = {tool["name"] for tool in peer.answer(1)["result"]["tools"]}
        peer.call(2, "todo_add", text="Water the plants.")
        added = peer.answer(2)["result"]["structuredContent"]
        peer.call(3, "todo_add", txt="Water the plants.")
        refused = peer.answer(3)["error"]

    assert names >= {"search", "skill", "validate_asset", "todo_add", "todo_list", "todo_done"}
    assert added["result"]["item"]["text"] == "Water the plants."
    assert refused["data"]["code"] == "INVALID_REQUEST"
    assert "Did you mean text?" in refused["data"]["hint"]


def test_it_answers_over_http_and_to_cleats_call(example: Path, shell: Shell) -> None:
    installed_here = {"PYTHONPATH": paths(example)}
    with serving(*CLEATS, "todo", home=shell.folder, **installed_here) as web:
        item = web.post("/tools/todo_add", {"text": "Read."}).result["item"]
        unknown = web.post("/tools/search", {"query": "x"})

    listed = shell.run("call", "todo_list", **installed_here)

    assert unknown.status == 404
    assert json.loads(listed.stdout)["result"]["items"] == [item]


def test_its_contract_check_passes_and_fails_on_a_change_without_a_bump(
    example: Path, shell: Shell
) -> None:
    folder = shell.folder / "changed"
    # A change of a moment later that keeps the length of a file does not show in its time: Python
    # would go on with what it compiled before.
    shutil.copytree(example, folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(EXAMPLE / "contracts", shell.folder / "contracts")
    check = ("contract", "check", "--toolset", "todo")
    here = {"PYTHONPATH": paths(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    code = folder / "cleats_todo" / "tools.py"

    same = shell.run(*check, **here)
    code.write_text(code.read_text().replace('"maxLength": 500', '"maxLength": 400'))
    changed = shell.run(*check, **here)
    refused = shell.run(*check, "--accept", **here)
    bumped = code.read_text().replace('"1.0.0"', '"2.0.0"')
    code.write_text(bumped.replace('name="todo_add",', 'name="todo_add", version=2,'))
    accepted = shell.run(*check, "--accept", **here)
    now = shell.run(*check, **here)

    assert [each.returncode for each in (same, changed, refused, accepted, now)] == [0, 1, 1, 0, 0]
    assert "the contract needs version 2.0.0, not 1.0.0" in changed.stdout
    assert "todo_add: its schemaVersion has to rise above 1" in changed.stdout
    assert json.loads((shell.folder / "contracts/tools.json").read_text())["schemaVersion"] == (
        "2.0.0"
    )


# What is promised about any of them


def test_our_own_contract_holds_no_toolset_of_others(host: Host) -> None:
    before = host.run("contract", "snapshot").stdout
    host.install("waves")

    after = host.run("contract", "snapshot").stdout
    theirs = json.loads(host.run("contract", "snapshot", "--toolset", "waves").stdout)

    assert "wave" in host.run("tools", "waves").stdout
    assert after == before
    assert theirs.keys() == {"snapshot", "schemaVersion", "tools"}
    assert theirs["schemaVersion"] == "1.0.0"
    assert theirs["tools"]["wave"]["outputSchema"] == {"type": "object"}


def test_who_names_our_toolsets_does_not_look_at_what_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def looked() -> None:
        raise AssertionError

    monkeypatch.setattr(installed, "entry_points", looked)

    assert app.unknown(["code", "skills"]) == []
    assert [each.name for each in app.toolsets(Settings(), ["assets"], Vitals())] == ["assets"]
    assert app.contract_snapshot(Settings())["tools"]


def test_tools_and_doctor_say_where_a_toolset_is_from(host: Host) -> None:
    host.install("waves")

    listed = host.run("tools").stdout
    one = host.run("tools", "--show", "wave").stdout
    doctor = host.run("doctor")
    findings = json.loads(host.run("doctor", "--json").stdout)

    assert "\nwaves  Be there. (from acme-waves 1.2)\n" in listed
    assert "\n  from     acme-waves 1.2\n" in one
    assert "  waves   1 tool    from acme-waves 1.2\n" in doctor.stdout
    assert findings["packages"] == {"waves": "acme-waves 1.2"}
    assert doctor.exit_code == 0


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("import no_such_module", "does not load: ModuleNotFoundError: No module named"),
        ("raise SystemExit(3)", "does not load: SystemExit: 3 ("),
        ("def toolset(settings): return 1 / 0", "ZeroDivisionError: division by zero ("),
        ("def toolset(settings): return [tool()]", "is no Toolset but list"),
        ("NAME = 'other'", "it calls itself 'other'"),
        (
            "make = toolset\ndef toolset(s): return make(s, schema_version='1')",
            "its schema_version is '1', not three numbers",
        ),
        (
            "make = toolset\ndef toolset(s): return make(s, tool(input={'type': 'object'}))",
            "wave: its input schema is open",
        ),
        (
            ROUTED,
            "its route /health is not below /toolsets/waves/",
        ),
        (
            "make = toolset\ndef toolset(s): return make(s, tool('search'))",
            "has a tool 'search', and so has 'code'",
        ),
    ],
)
def test_a_broken_one_is_an_error_when_named_and_skipped_when_not(
    host: Host, caplog: pytest.LogCaptureFixture, code: str, cause: str
) -> None:
    host.install("waves", code)

    named = host.run("tools", "code", "waves")
    unnamed = host.run("tools")
    doctor = host.run("doctor")

    assert (named.exit_code, named.stdout) == (2, "")
    assert named.stderr.startswith("Error: toolset 'waves' of acme-waves 1.2 ")
    assert cause in named.stderr
    assert (unnamed.exit_code, "Be there." in unnamed.stdout) == (0, False)
    assert "check_status" in unnamed.stdout
    assert any(cause in told and told.endswith("; it is skipped") for told in caplog.messages)
    if "search" not in code:  # which clashes with another toolset and is well by itself
        assert doctor.exit_code == 1
        assert "  waves   cannot start  from acme-waves 1.2\n" in doctor.stdout
        assert cause in doctor.stdout


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ('{"waved": True}', None),
        ('{"waved": "much"}', "/waved"),
        ("{}", "required"),
        ('{"waved": {1: object()}}', "TypeError"),
    ],
)
def test_an_answer_that_does_not_fit_its_own_schema_never_reaches_the_caller(
    host: Host, answer: str, told: str | None
) -> None:
    shape = {
        "type": "object",
        "properties": {"waved": {"type": "boolean"}},
        "required": ["waved"],
    }
    host.install(
        "waves", f"SHAPE = {shape!r}\nasync def run(given, context):\n    return {answer}\n"
    )

    done = host.run("call", "wave", "--json")

    said = json.loads(done.stdout)
    if told is None:
        assert said["result"] == {"waved": True}
    else:
        assert said["error"]["code"] == "INTERNAL"
        assert told in done.stdout


def test_a_warning_goes_to_stderr_and_the_answer_is_there(shell: Shell) -> None:
    folder = install(shell.folder / "broken", "waves", "import no_such_module")

    done = shell.run("tools", PYTHONPATH=paths(folder))

    assert "check_status" in done.stdout
    assert done.stderr.startswith("toolset 'waves' of acme-waves 1.2 does not load:")


def test_a_name_of_ours_stays_ours(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    host.install("assets")

    listed = host.run("tools", "assets").stdout
    host.run("tools")
    doctor = host.run("doctor")

    assert "validate_asset" in listed
    assert "Be there." not in listed
    told = "toolset 'assets' of acme-assets 1.2 is skipped: the name is ours"
    assert told in caplog.messages
    assert doctor.exit_code == 1
    assert "toolset 'assets' of acme-assets 1.2 is never served: the name is ours" in doctor.stdout


def test_two_packages_with_one_name_are_both_named(host: Host) -> None:
    host.install("waves", package="acme-one")
    host.install("waves", package="acme-two")

    done = host.run("tools", "waves")

    assert done.exit_code == 2
    assert "toolset 'waves' is in acme-" in done.stderr
    assert {"acme-one", "acme-two"} <= set(done.stderr.replace("1.2", "").split())


def test_a_toolset_of_ours_has_no_contract_of_its_own_and_a_stranger_has_none(host: Host) -> None:
    ours = host.run("contract", "check", "--toolset", "code")
    nobody = host.run("contract", "snapshot", "--toolset", "nobody")
    both = host.run("contract", "snapshot", "--toolset", "x", "--server", "y")

    assert [each.exit_code for each in (ours, nobody, both)] == [2, 2, 2]
    assert "code is part of our own contract; leave --toolset out" in ours.stderr
    assert "There is no toolset 'nobody'; there are: code, " in nobody.stderr
    assert "--toolset is only for what is installed here" in both.stderr


async def nothing(given: Mapping[str, Any], context: Context) -> dict[str, Any]:
    return {}


def made(*tools: Tool, name: str = "waves", purpose: str = "Wave.") -> Toolset:
    return Toolset(name=name, purpose=purpose, tools=tools)


def wave(name: str = "wave", **changed: Any) -> Tool:
    sound = {"description": "Wave.", "input": arguments(), "output": {"type": "object"}}
    return Tool(name=name, run=nothing, **{**sound, **changed})


@pytest.mark.parametrize(
    ("toolset", "told"),
    [
        (made(wave(), name="2 waves"), ["'2 waves' is no name for a toolset"]),
        (made(wave(), purpose=""), ["it has no purpose"]),
        (made(), ["it has no tools"]),
        (made(wave(), wave()), ["2 of its tools are called 'wave'"]),
        (made(wave(aliases=(Alias("old wave", "1"),))), ["'old wave' is no name for a tool"]),
        (made(wave(description="")), ["wave: it has no description"]),
        (made(wave(version=0)), ["wave: its version is 0, and the first one is 1"]),
        (made(wave(timeout=0)), ["wave: its timeout is 0 s"]),
        (made(wave(errors=("NOT_FOUND",))), ["wave: 'NOT_FOUND' is no error code"]),
        (made(wave(output=None)), ["wave: it has no output schema"]),
        (made(wave(output=None, payload=CONTENT)), []),
        (
            made(wave(output={"type": "string"})),
            ["wave: its output schema is not that of an object"],
        ),
        (
            made(wave(output={"type": "object", "properties": 3})),
            ['wave: its output schema is none: 3 is not of type "object"'],
        ),
        (made(wave(input={})), ["wave: its input schema is not that of an object"]),
        (
            made(wave(input={"type": "object"})),
            ["wave: its input schema is open, and unknown arguments would be ignored"],
        ),
        (
            made(wave(input={**arguments(), "properties": {"a": 3}})),
            ['wave: its input schema is none: 3 is not of types "boolean", "object"'],
        ),
        (
            made(wave(examples=({"arguments": {"a": 1}},))),
            [
                'wave: its example 1 does not fit: wave: /a: unexpected property "a"',
            ],
        ),
    ],
)
def test_every_broken_rule_is_told_in_words(toolset: Toolset, told: list[str]) -> None:
    assert list(flaws(toolset)) == told


def test_our_own_toolsets_keep_the_rules() -> None:
    for each in app.toolsets(Settings(), app.TOOLSETS, Vitals()):
        assert list(flaws(each)) == []

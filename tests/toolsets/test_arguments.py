"""Every argument of every tool has an effect that can be observed, or is refused.

The table of cases is walked against the registry: an argument without a case fails, and so does a case whose two values
have the same effect.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

from cleats import app
from cleats.contract.outcome import Done, Failed, Rejected
from cleats.runtime.call import ToolCall
from cleats.runtime.server_status import ServerStatus
from cleats.settings import Settings, make_settings
from cleats.toolsets.code.downloads import libraries
from cleats.toolsets.code.index.options import BuildOptions
from cleats.toolsets.code.search import tool as searching
from tests.support.argument_cases import ABSENT, ARGUMENT_CASES, FINDING, OTHER_FINDING, ArgumentCase, Named
from tests.support.assets import SHOWCASE_FOLDER
from tests.support.indexes import IndexedRepository
from tests.support.launch_client import RUN_CONFIG, LaunchToolClient, open_launch_client
from tests.support.launch_remotes import GITHUB_URL, create_repository, redirect_github
from tests.support.maintenance import MODULE_SOURCE
from tests.support.polyglot import POLYGLOT_FOLDER
from tests.support.requirements import requirement
from tests.support.skills import write_skill

TOOLSETS = ("code", "explore", "skills", "assets")
LONG_AGO, LATER = 1_577_836_800, 1_717_200_000
"""Seconds of the two commits of the shop: in 2020 and in 2024."""


@dataclass
class World:
    """A repository, its cache and a server for it, or another server; and what is known by a name."""

    repository: IndexedRepository
    names: dict[str, Any] = field(default_factory=dict)
    requests: list[Any] = field(default_factory=list)
    """What was sent to a child process."""
    dispatch: Callable[[str, dict[str, Any]], dict[str, Any]] = lambda _tool, _arguments: {}
    """Calls a tool; returns its code and its answer."""

    @property
    def settings(self) -> Settings:
        folder = self.repository.folder
        return make_settings(
            cache_dir=self.repository.cache,
            project_dir=self.repository.root,
            data_dir=folder / "data",
            home=folder / "home",
            config_home=folder / "home" / ".config",
            claude_dir=folder / "home" / ".claude",
            index_workers=1,
            index_lint="off",
            telemetry="off",
            skill_tools="all",
            schemas_dir=str(SHOWCASE_FOLDER / "jsonschema"),
            examples_dir=str(SHOWCASE_FOLDER / "examples"),
            backend_url="http://127.0.0.1:9",
        )

    def write_file(self, path: str, text: str) -> None:
        self.repository.write_file(path, text)

    def resolve(self, value: Any) -> Any:
        """Replace names in a value by what they stand for."""
        if isinstance(value, Named):
            return self.names[value.name]
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        return {name: self.resolve(item) for name, item in value.items()} if isinstance(value, dict) else value

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return self.dispatch(tool, self.resolve(arguments))

    def observe(self, case: ArgumentCase, value: Any) -> Any:
        """Call the tool of a case with a value, and return what is in the place where the effects differ."""
        arguments = case.base if value is ABSENT else {**case.base, case.argument: value}
        self.requests.clear()
        seen = self.call(case.tool, arguments)
        if case.after:
            seen["after"] = self.call(*case.after)["answer"]
        seen["requests"] = list(self.requests)
        seen["files"] = self.list_files()
        seen["record"] = _read_record(seen["answer"])
        if case.differs not in ("code", "answer") and not case.differs.startswith("answer.error"):
            assert seen["code"] == "OK", seen["answer"]  # an error would differ from any answer
        place: Any = seen
        for key in case.differs.split("."):
            place = place.get(key) if isinstance(place, dict) else None
        return place

    def list_files(self) -> list[str]:
        """Return the files with their folders, except for folders that every build names anew."""
        files = [path for path in self.repository.folder.rglob("*") if path.is_file() and path.name[0] != "."]
        return sorted(
            {path.name if "generations" in path.parts else f"{path.parent.name}/{path.name}" for path in files}
        )


def _read_record(answer: dict[str, Any]) -> Any:
    records = answer.get("records") or [answer]
    path = records[0].get("jsonPath") if isinstance(records[0], dict) else None
    return json.loads(Path(path).read_text()) if path else None


@contextmanager
def serve_world(world: World) -> Iterator[World]:
    """Open a server in this process for the world."""
    status = ServerStatus()
    toolsets = app.load_toolsets(world.settings, TOOLSETS, status)

    async def call_tool(dispatcher: Any, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        outcome = await dispatcher.dispatch(ToolCall(tool=tool, arguments=arguments))
        if isinstance(outcome, Failed | Rejected):
            return {"code": outcome.error.code.name, "answer": outcome.error.as_json()}
        assert isinstance(outcome, Done)
        result = outcome.result
        return {"code": "OK", "answer": dict(result) if isinstance(result, dict) else {"result": result}}

    async def try_extension(trial: libraries.ExtensionTrial, _grace: float) -> dict[str, Any]:
        world.requests.append(trial)
        return {step: {"attempted": True, "ok": True, "reason": None} for step in ("load", "smoke")}

    with pytest.MonkeyPatch.context() as patch, start_blocking_portal() as portal:
        patch.setattr(searching, "WARM_UP_DELAY_SECONDS", 3600.0)
        patch.setattr(libraries, "try_extension", try_extension)
        opened = app.open_dispatcher(world.settings, toolsets, status)
        with portal.wrap_async_context_manager(opened) as dispatcher:
            world.dispatch = partial(portal.call, call_tool, dispatcher)
            yield world


def create_shop(folder: Path) -> World:
    """Create the polyglot shop with two commits and an index, more repositories, workspaces, skills and a library."""
    shop = IndexedRepository(folder, BuildOptions(sqlite=True, workers=1), clock=LONG_AGO)
    for file in POLYGLOT_FOLDER.iterdir():
        shop.write_file(file.name, file.read_bytes())
    shop.run_git("init", "--quiet", "--initial-branch", "main")
    shop.commit(author="Ada")
    shop.clock = LATER
    shop.write_file("desk.py", (POLYGLOT_FOLDER / "desk.py").read_text().replace("pass", "self.closed = True"))
    shop.write_file("config.toml", '[desk]\nowner = "Ada"\nlimit = 10\n')
    shop.commit(author="Grace")
    shop.build_index()
    other = IndexedRepository(folder / "next", cache_name="../cache")
    other.write_file("only.py", MODULE_SOURCE)
    other.build_index()
    unread = IndexedRepository(folder / "unread", cache_name="../cache")  # an index that is open is not removed
    unread.write_file("only.py", MODULE_SOURCE)
    unread.build_index()
    library = shop.cache / "vec0.so"
    library.write_bytes(b"\x7fELF")
    for name, about in (("brewing", "Knows tea"), ("baking", "Knows bread")):
        write_skill(folder / "home" / ".claude" / "skills" / name, about)
    write_skill(folder / "home" / ".claude" / "skills" / "broken", name="")
    repos = [{"root": str(shop.root), "alias": "shop"}, {"root": str(other.root), "alias": "next"}]
    workspaces = {"workspace": repos, "empty workspace": []}
    for name, members in workspaces.items():
        (folder / f"{name}.json").write_text(json.dumps({"schemaVersion": 1, "repos": members}))
    paths = {"other": other.root, "root": shop.root, "library": library}
    paths |= {name: folder / f"{name}.json" for name in workspaces}
    tone = json.loads((SHOWCASE_FOLDER / "examples" / "Tone_Example.json").read_text())
    return World(shop, {**{name: str(path) for name, path in paths.items()}, "tone": tone})


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with serve_world(create_shop(tmp_path_factory.mktemp("shop"))) as world:
        yield world


@contextmanager
def create_fresh_world(folder: Path, case: ArgumentCase) -> Iterator[World]:
    """Create a small repository as a case needs it, at the same path each time."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "home").mkdir(parents=True)
    world = World(IndexedRepository(folder))
    sources = {"app/core.py": MODULE_SOURCE, "README.md": "# Title\n\nSome words about unsafe loading.\n"}
    sources |= {"finding.json": json.dumps(FINDING), "other.json": json.dumps(OTHER_FINDING)}
    for path, text in {**sources, "words.txt": "eins\nzwei\n", "vec0.dll": "MZ and so on"}.items():
        world.write_file(path, text)
    with serve_world(world):
        for tool, arguments in case.before:
            seen = world.call(tool, arguments)
            assert seen["code"] == "OK", seen
            if tool == "triage_ingest":
                world.names["finding" if "finding" not in world.names else "other finding"] = seen["answer"][
                    "recordIds"
                ][0]
        if case.prepare:
            case.prepare(world)
        yield world


PRODUCT_REPOSITORY = "aspose-3d/Aspose.3D-for-Python-via-.NET"


@pytest.fixture(scope="module")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Serve the launch tools with two runs that wait, and a repository that git finds under its address."""
    home = tmp_path_factory.mktemp("launch")
    address = f"{GITHUB_URL}/{PRODUCT_REPOSITORY}"
    repository = create_repository(home / "named", {"README.md": "# Aspose.3D\n"})
    environ = redirect_github(home, {PRODUCT_REPOSITORY: repository.root})
    del environ["HOME"]
    (home / "registry.toml").write_text(f'[[product]]\nfamily = "3d"\nplatform = "python"\nrepo_url = "{address}"\n')
    environ |= {"CLEATS_LAUNCH_REGISTRY": str(home / "registry.toml"), "CLEATS_LAUNCH_SITE": f"{GITHUB_URL}/o/site"}
    with open_launch_client(home, **environ) as client:
        config = {**RUN_CONFIG, "drive": {"mode": "stepwise"}}
        runs = {"run": client.start_run(), "other run": client.start_run()}
        client.call("launch_start_run", run_config=config, idempotency_key="first")
        client.call("launch_start_run_from_github_repo_url", github_repo_url=address, idempotency_key="repository")
        product = "https://products.aspose.org/3d/en/python/"
        client.call("launch_start_run_from_product_url", url=product, idempotency_key="product")
        names = {**runs, "config": config, "repository": address, "product": product}
        names["cursor"] = client.call("launch_list_runs", limit=1)["next_cursor"]
        yield World(IndexedRepository(home / "none"), names, dispatch=partial(_call_launch_tool, client))


def _call_launch_tool(client: LaunchToolClient, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    answer = client.call(tool, **arguments)
    return {"code": "OK" if answer["ok"] else answer["error"]["code"], "answer": answer}


def _list_cases(world: str) -> list[Any]:
    return [pytest.param(case, id=case.id) for case in ARGUMENT_CASES if case.world == world]


@requirement("a:arguments:none-ignored", "a:tests:arguments", "b:search:nothing-ignored")
def test_every_argument_of_every_tool_has_a_case() -> None:
    registry = app.build_registry(make_settings(skill_tools="all"))
    arguments = {f"{tool.name}.{name}" for tool in registry for name in tool.input.get("properties", {})}
    cases = {case.id for case in ARGUMENT_CASES}

    assert arguments - cases == set()
    assert cases - arguments == set()
    assert len(arguments) >= 180


@requirement("a:arguments:none-ignored", "a:tests:arguments", "b:search:nothing-ignored")
@pytest.mark.parametrize("case", _list_cases("shop"))
def test_an_argument_of_a_tool_that_changes_nothing_has_an_effect(case: ArgumentCase, shop: World) -> None:
    first, again, second = (shop.observe(case, value) for value in (case.first, case.first, case.second))

    assert first == again  # otherwise any two calls would differ
    assert first != second


@requirement("a:arguments:none-ignored", "a:tests:arguments")
@pytest.mark.parametrize("case", _list_cases("fresh"))
def test_an_argument_of_a_tool_that_writes_has_an_effect(case: ArgumentCase, tmp_path: Path) -> None:
    seen = []
    for value in (case.first, case.second):
        with create_fresh_world(tmp_path / "world", case) as world:
            seen.append(world.observe(case, value))

    assert seen[0] != seen[1]


@requirement("a:arguments:none-ignored", "a:tests:arguments")
@pytest.mark.parametrize("case", _list_cases("launch"))
def test_an_argument_of_a_launch_tool_has_an_effect(case: ArgumentCase, launch: World) -> None:
    first, again, second = (launch.observe(case, value) for value in (case.first, case.first, case.second))

    assert first == again
    assert first != second

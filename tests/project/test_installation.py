"""The package installs from its repository, and the lock installs as it is."""

import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import cleats
from cleats.settings import make_settings
from cleats.toolsets.assets.tools import load_assets
from tests.support.paths import REPOSITORY_ROOT
from tests.support.requirements import SPEC_REQUIREMENTS, requirement

PIP_COMMAND = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
OFFLINE_OPTIONS = ("--no-index", "--no-deps")
"""Everything that is needed is installed here, so nothing is fetched."""

INSTALL_TIMEOUT_SECONDS = 200


def run_command(*command: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        timeout=INSTALL_TIMEOUT_SECONDS,
    )


@requirement("d:package:install")
def test_pip_takes_requirements_txt_and_finds_every_pin_installed() -> None:
    process = run_command(
        *PIP_COMMAND, "install", "--dry-run", *OFFLINE_OPTIONS, "-r", REPOSITORY_ROOT / "requirements.txt"
    )

    assert (process.returncode, process.stdout) == (0, ""), process.stderr


@requirement("d:package:install", "d:package:version")
@pytest.mark.parametrize("options", [("-e",), ()], ids=["editable", "wheel"])
def test_the_package_installs_into_an_empty_environment_and_answers_the_first_question(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY_ROOT / name, source / name)
    shutil.copytree(REPOSITORY_ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__"))
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False)
    [packages] = environment.glob("lib/python*/site-packages")
    installed_packages = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "dependencies.pth").write_text("\n".join(installed_packages))  # they are installed above

    python = str(environment / "bin" / "python")
    install_options = (*OFFLINE_OPTIONS, "--no-build-isolation", *options)
    install = run_command(*PIP_COMMAND, "--python", python, "install", *install_options, source)
    version = run_command(environment / "bin" / "cleats", "--version", cwd=tmp_path)
    place = run_command(python, "-I", "-c", "import cleats; print(cleats.__file__)", cwd=tmp_path)
    shop = shutil.copytree(REPOSITORY_ROOT / "examples" / "shop", tmp_path / "shop")
    index = run_command(environment / "bin" / "cleats", "index", "--quiet", cwd=shop)
    question = ("search", "where are expired sessions closed?", "--mode", "code", "--top", "1")
    search = run_command(environment / "bin" / "cleats", *question, cwd=shop)

    assert install.returncode == 0, install.stderr
    assert index.returncode == 0, index.stderr
    assert search.stdout.startswith("shop/sessions.py:36-41  method Sessions.close_expired"), search.stderr
    assert version.stdout.startswith(f"cleats {cleats.__version__} ")
    assert place.stdout.startswith(str(source if options else environment))


@requirement("d:package:tests")
def test_pytest_runs_without_any_option_from_the_top_of_the_repository() -> None:
    process = run_command(sys.executable, "-m", "pytest", "-q", "tests/contract/test_pointer.py", cwd=REPOSITORY_ROOT)

    assert process.returncode == 0, process.stdout


@requirement("d:dependencies")
def test_assets_need_jsonschema_rs_and_httpx2_and_neither_jsonschema_nor_httpx() -> None:
    project = tomllib.loads((REPOSITORY_ROOT / "pyproject.toml").read_text())["project"]
    names = {Requirement(line).name for line in project["dependencies"]}
    program = """
import sys
sys.modules["jsonschema"] = sys.modules["httpx"] = None  # importing them fails
import cleats.system.http_client
from cleats.settings import make_settings
from cleats.toolsets.assets.tools import load_assets
tools = load_assets(make_settings(schemas_dir=sys.argv[1]))
print(tools.validator.validate({}, "tone")["ok"])
"""

    process = run_command(sys.executable, "-c", program, REPOSITORY_ROOT / "examples" / "assets")

    assert {"jsonschema-rs", "httpx2"} <= names
    assert names.isdisjoint({"jsonschema", "httpx"})
    assert process.stdout == "False\n", process.stderr


@requirement("d:package:match")
def test_every_tool_of_spec_d_is_served_documented_and_tied_to_a_sentence() -> None:
    spec_tools = {
        *("list_schemas", "get_schema", "list_examples", "get_example"),
        *("validate_asset", "diff_assets", "populate_backend"),
    }
    served_tools = {tool.name for tool in load_assets(make_settings()).build_tools()}
    page = (REPOSITORY_ROOT / "docs" / "assets.md").read_text()
    sentences = " ".join(text for key, text in SPEC_REQUIREMENTS.items() if key.startswith("d:"))

    assert spec_tools <= served_tools
    assert {tool for tool in served_tools if f"`{tool}`" not in page} == set()
    assert {tool for tool in spec_tools if tool not in sentences} == set()

"""Tests of guessing a product from its repository: signals, weights and the threshold."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import make_settings
from cleats.toolsets.launch.profiles import model
from cleats.toolsets.launch.quickstart import derive, signals
from cleats.toolsets.launch.quickstart.signals import GUESSED_FIELDS, MIN_CONFIDENCE, Guess, Signal, guess_value
from cleats.toolsets.launch.quickstart.urls import HostedRepository
from tests.support.launch_remotes import GITHUB_URL, create_repository, redirect_github
from tests.support.requirements import requirement
from tests.support.shell import LAW_SETTINGS

ASPOSE_PROFILE = model.load_named_profile("aspose")
PLAIN_PROFILE = model.load_named_profile("plain")


def make_guesses(
    name: str = "stuff",
    texts: Mapping[str, str] | None = None,
    *,
    owner: str = "someone",
    names: tuple[str, ...] = (),
    profile: model.Profile = ASPOSE_PROFILE,
) -> dict[str, Guess]:
    texts = texts or {}
    repository = HostedRepository("github.com", owner, name)
    observed_signals = signals.collect_signals(repository, (*texts, *names), texts, profile)
    return {field: guess_value(field, observed_signals) for field in GUESSED_FIELDS}


def read_values(guesses: Mapping[str, Guess]) -> tuple[str, str]:
    return guesses["family"].value, guesses["target_platform"].value


README_TEXT = """# Aspose.3D FOSS for Python

Aspose.3D reads scenes. Aspose.3D writes scenes.

    pip install aspose-3d-foss
"""


@requirement("e:repo:signals", "e:repo:threshold")
def test_a_name_that_follows_the_convention_is_enough() -> None:
    guesses = make_guesses("Aspose.3D-for-Python-via-.NET")

    assert read_values(guesses) == ("3d", "python")
    assert {family_guess.confidence for family_guess in guesses.values()} == {0.95}


@requirement("e:repo:signals", "e:repo:threshold")
def test_a_readme_alone_never_is() -> None:
    guesses = make_guesses(texts={"README.md": README_TEXT})

    assert read_values(guesses) == ("", "")
    assert guesses["family"].suggested_values == ["3d"]
    assert guesses["target_platform"].suggested_values == ["python"]


def test_the_owner_alone_is_not_enough_but_helps_a_readme() -> None:
    owner_guesses = make_guesses(owner="aspose-3d")
    helped = make_guesses(texts={"README.md": README_TEXT}, owner="aspose-3d")

    assert owner_guesses["family"].confidence == 0.45
    assert helped["family"].value == "3d"


MANIFEST_CASES = {
    "pyproject.toml": ('[project]\nname = "aspose-cells-foss"\n', "cells", "python"),
    "setup.py": ("setup(name='aspose-cells')", "cells", "python"),
    "setup.cfg": ("[metadata]\nname = aspose-cells\n", "cells", "python"),
    "package.json": ('{"name": "@scope/aspose-cells"}', "cells", "javascript"),
    "Cargo.toml": ('[package]\nname = "aspose-cells"\n', "cells", "rust"),
    "go.mod": ("module github.com/o/aspose-cells\n", "cells", "go"),
    "pom.xml": ("<artifactId>aspose-cells</artifactId>", "cells", "java"),
    "composer.json": ('{"name": "aspose/aspose-cells"}', "cells", "php"),
    "x.csproj": ("<PackageId>Aspose.Cells</PackageId>", "cells", "dotnet"),
    "x.gemspec": ("spec.name = 'aspose-cells'", "cells", "ruby"),
    "Package.swift": ('let p = Package(\n  name: "aspose-cells")', "cells", "swift"),
}


@requirement("e:repo:signals")
@pytest.mark.parametrize("name", MANIFEST_CASES)
def test_package_files_say_what_a_product_is_and_runs_on(name: str) -> None:
    text, family, platform = MANIFEST_CASES[name]

    guesses = make_guesses(texts={name: text})

    assert guesses["family"].candidates == ((family, 0.8),)
    assert guesses["target_platform"].candidates == ((platform, 0.75),)


def test_a_platform_needs_more_than_a_manifest() -> None:
    texts = {"pyproject.toml": '[project]\nname = "x"\n'}

    manifest_guess = make_guesses(texts=texts)["target_platform"]
    written = make_guesses(texts=texts, names=("src/x.py",))["target_platform"]

    assert (manifest_guess.value, written.value) == ("", "python")


def test_a_c_file_list_makes_cmake_a_manifest_of_cpp() -> None:
    texts = {"CMakeLists.txt": "project(aspose-cells)"}

    assert make_guesses(texts=texts)["target_platform"].candidates == ()
    assert make_guesses(texts=texts, names=("a.cpp",))["target_platform"].value == "cpp"


def test_typescript_is_told_from_javascript_by_its_configuration() -> None:
    texts = {"package.json": "{}"}

    guesses = make_guesses(texts=texts, names=("tsconfig.json", "a.ts"))

    assert guesses["target_platform"].value == "typescript"


@requirement("e:repo:signals")
def test_a_repository_may_say_itself_what_it_is() -> None:
    texts = {"launch.toml": 'family = "pdf"\ntarget_platform = "golang"\n'}

    assert read_values(make_guesses(texts=texts)) == ("pdf", "go")


def test_a_strong_rival_leaves_the_question_open() -> None:
    guesses = make_guesses("aspose-3d-foss-python", {"pyproject.toml": '[project]\nname = "aspose-cells"\n'})

    assert guesses["family"].value == ""
    assert guesses["family"].suggested_values == ["3d", "cells"]
    assert guesses["family"].rival == 0.8


@requirement("e:repo:ambiguous")
def test_the_rival_that_caused_the_doubt_is_suggested_however_weak_it_is() -> None:
    texts = {"README.md": "# Aspose.3D and Aspose.Cells\n", "pom.xml": "<artifactId>aspose-cells</artifactId>"}
    contested = make_guesses(texts=texts)["family"]
    weakened = guess_value("family", [Signal("family", "a", "x", 0.95), Signal("family", "b", "y", 0.4)])
    unclear = guess_value("family", [Signal("family", "a", "x", 0.5), Signal("family", "b", "y", 0.3)])

    assert (contested.value, contested.suggested_values) == ("", ["cells", "3d"])
    assert (weakened.value, weakened.suggested_values) == ("", ["a", "b"])
    assert (unclear.value, unclear.suggested_values) == ("", ["a"])


def test_a_weak_rival_takes_half_of_itself_off() -> None:
    family_guess = guess_value("family", [Signal("family", "a", "x", 0.95), Signal("family", "b", "y", 0.4)])

    assert (family_guess.value, family_guess.confidence) == ("", 0.75)
    assert family_guess.candidates == (("a", 0.75), ("b", 0.0))


def test_two_manifests_of_one_platform_are_one_observation() -> None:
    texts = {"pyproject.toml": "", "setup.py": "", "setup.cfg": ""}

    assert make_guesses(texts=texts)["target_platform"].candidates == (("python", 0.75),)


def test_a_family_that_is_a_common_word_is_not_seen_in_prose() -> None:
    texts = {"README.md": "# The page\n\nThis font is on a page; note the cells and words.\n"}

    assert make_guesses(texts=texts)["family"].candidates == ()


@pytest.mark.parametrize("text", ["[project", "{", "- x: [", "\0"])
def test_a_broken_manifest_is_no_signal_and_no_crash(text: str) -> None:
    texts = dict.fromkeys(("pyproject.toml", "package.json", "run_config.yaml"), text)

    assert make_guesses(texts=texts)["family"].candidates == ()


def test_where_any_name_is_a_family_the_package_and_the_title_have_to_agree() -> None:
    package = {"pyproject.toml": '[project]\nname = "greetings"\n'}

    package_guesses = make_guesses(texts=package, names=("a.py",), profile=PLAIN_PROFILE)
    titled = make_guesses(texts={**package, "README.md": "# greetings\n"}, names=("a.py",), profile=PLAIN_PROFILE)

    assert read_values(package_guesses) == ("", "python")
    assert read_values(titled) == ("greetings", "python")


weights = st.floats(0, 0.99, allow_nan=False)
signal_lists = st.lists(
    st.builds(Signal, st.just("family"), st.sampled_from("abc"), st.text(max_size=2), weights),
    max_size=6,
)


def compute_confidence(family_signals: list[Signal], value: str) -> float:
    return dict(guess_value("family", family_signals).candidates).get(value, 0.0)


@requirement("e:repo:deterministic")
@LAW_SETTINGS
@given(signal_lists, st.randoms())
def test_the_order_of_the_signals_changes_nothing(family_signals: list[Signal], random: Any) -> None:
    shuffled = list(family_signals)
    random.shuffle(shuffled)

    assert guess_value("family", shuffled) == guess_value("family", family_signals)


@LAW_SETTINGS
@given(signal_lists, weights)
def test_one_more_signal_makes_its_value_no_less_sure_and_no_other_more(
    family_signals: list[Signal], weight: float
) -> None:
    more = [*family_signals, Signal("family", "a", "more", weight)]

    assert compute_confidence(more, "a") >= compute_confidence(family_signals, "a")
    for other in "bc":
        assert compute_confidence(more, other) <= compute_confidence(family_signals, other)


@requirement("e:repo:threshold")
@LAW_SETTINGS
@given(signal_lists)
def test_a_guess_counts_only_above_the_threshold_with_no_rival_near_it(
    family_signals: list[Signal],
) -> None:
    family_guess = guess_value("family", family_signals)

    assert bool(family_guess.value) == (family_guess.confidence > MIN_CONFIDENCE and family_guess.rival < 0.5)
    assert list(family_guess.candidates) == sorted(
        family_guess.candidates, key=lambda candidate: (-candidate[1], candidate[0])
    )


@requirement("e:repo:threshold")
def test_exactly_eighty_percent_does_not_exceed_eighty_percent() -> None:
    assert guess_value("family", [Signal("family", "a", "x", 0.8)]).value == ""
    assert guess_value("family", [Signal("family", "a", "x", 0.8001)]).value == "a"


# Against repositories that git can reach: bare ones on this machine under the names of GitHub.


def derive_config(url: str, env: Mapping[str, str], **changes: Any) -> dict[str, Any]:
    settings = make_settings(**changes)
    return anyio.run(derive.derive_from_repository_url, url, settings, env)


@requirement("e:repo:pinned", "e:repo:defaults", "e:repo:start")
def test_a_repository_becomes_a_minimal_configuration_pinned_to_its_head(tmp_path: Path) -> None:
    files = {"README.md": README_TEXT, "pyproject.toml": '[project]\nname="x"\n'}
    repo = create_repository(tmp_path / "src", files)
    env = redirect_github(tmp_path, {"aspose-3d/Aspose.3D-for-Python-via-.NET": repo.root})
    url = f"{GITHUB_URL}/aspose-3d/Aspose.3D-for-Python-via-.NET"

    derived_config = derive_config(url + ".git", env)

    assert {name: derived_config[name] for name in derive.REPORTED_FIELDS} == {
        "family": "3d",
        "target_platform": "python",
        "locales": ["en"],
        "layout_mode": "auto",
        "allow_inference": False,
        "github_repo_url": url,
        "github_ref": repo.head_commit,
    }
    assert derived_config["required_sections"] == ["products", "docs", "reference", "kb", "blog"]


@requirement("e:repo:ambiguous", "e:repo:deterministic")
def test_doubt_is_answered_with_the_fields_the_candidates_and_every_signal(tmp_path: Path) -> None:
    text = "# Aspose.3D and Aspose.Cells\n\npip install x\n"
    repo = create_repository(tmp_path / "src", {"README.md": text})
    env = redirect_github(tmp_path, {"o/stuff": repo.root})

    with pytest.raises(ToolError) as first:
        derive_config(f"{GITHUB_URL}/o/stuff", env)
    with pytest.raises(ToolError) as second:
        derive_config(f"{GITHUB_URL}/o/stuff", env)

    assert first.value.code is ErrorCode.INVALID_INPUT
    assert first.value.message == "Could not unambiguously infer required fields"
    assert first.value.details["missing_fields"] == ["family", "target_platform"]
    assert first.value.details["suggested_values"] == {
        "family": ["3d", "cells"],
        "target_platform": ["python"],
    }
    assert {signal["source"] for signal in first.value.details["signals"]} == {
        "README",
        "README text",
        "README title",
    }
    assert first.value.details == second.value.details


@requirement("e:repo:threshold")
@pytest.mark.parametrize(
    ("launch_toml", "missing"),
    [('family = "3d"', ["target_platform"]), ('target_platform = "go"', ["family"])],
)
def test_one_field_that_is_sure_is_not_enough(tmp_path: Path, launch_toml: str, missing: list[str]) -> None:
    repo = create_repository(tmp_path / "src", {"launch.toml": launch_toml})
    env = redirect_github(tmp_path, {"o/stuff": repo.root})

    with pytest.raises(ToolError) as caught:
        derive_config(f"{GITHUB_URL}/o/stuff", env)

    assert caught.value.code is ErrorCode.INVALID_INPUT
    assert caught.value.details["missing_fields"] == missing


PACKAGE_FILES = {"README.md": "# greetings\n", "pyproject.toml": '[project]\nname = "greetings"\n', "a.py": ""}


def test_a_repository_that_no_profile_lists_gets_the_default_profile(tmp_path: Path) -> None:
    repo = create_repository(tmp_path / "src", PACKAGE_FILES)
    env = redirect_github(tmp_path, {"o/greetings": repo.root})

    derived_config = derive_config(f"{GITHUB_URL}/o/greetings", env)

    assert (derived_config["profile"], derived_config["family"]) == ("plain", "greetings")
    assert derived_config["required_sections"] == ["docs", "reference"]


def test_a_profile_that_lists_a_product_precedes_the_default(tmp_path: Path) -> None:
    name = "aspose-3d-foss"
    files = {**PACKAGE_FILES, "README.md": f"# {name}\n", "pyproject.toml": f'[project]\nname = "{name}"\n'}
    repo = create_repository(tmp_path / "src", files)
    env = redirect_github(tmp_path, {"o/stuff": repo.root})

    derived_config = derive_config(f"{GITHUB_URL}/o/stuff", env)

    assert (derived_config["profile"], derived_config["family"]) == ("aspose", "3d")


def test_a_mention_of_another_product_in_a_readme_leaves_the_default_profile(tmp_path: Path) -> None:
    files = {**PACKAGE_FILES, "README.md": "# greetings\n\nIt prints with Aspose.Words.\n"}
    repo = create_repository(tmp_path / "src", files)
    env = redirect_github(tmp_path, {"o/greetings": repo.root})

    derived_config = derive_config(f"{GITHUB_URL}/o/greetings", env)

    assert (derived_config["profile"], derived_config["family"]) == ("plain", "greetings")


@requirement("e:repo:not-found")
def test_a_repository_that_is_not_there_is_said_to_be_so(tmp_path: Path) -> None:
    env = redirect_github(tmp_path, {})

    with pytest.raises(ToolError) as caught:
        derive_config(f"{GITHUB_URL}/o/aspose-3d-foss-go", env)

    assert caught.value.code is ErrorCode.REPO_NOT_FOUND
    assert str(tmp_path) not in caught.value.message


def test_nothing_of_a_look_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = create_repository(tmp_path / "src", {"README.md": "x", "big/data.bin": "y" * 1000})
    looks_folder = tmp_path / "looks"
    monkeypatch.setattr(derive, "mkdtemp", lambda prefix: str(_create_folder(looks_folder / prefix)))

    sight = anyio.run(derive.preview_repository, str(repo.root), {"PATH": os.environ["PATH"]})

    assert (sight.head, sight.names) == (repo.head_commit, ("README.md", "big/data.bin"))
    assert sight.texts == {"README.md": "x"}
    assert list(looks_folder.iterdir()) == []


def _create_folder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder

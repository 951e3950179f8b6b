"""Guessing a product from its repository: what counts, how much, and when it is not enough."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import Settings
from cleats.toolsets.launch.profiles import model
from cleats.toolsets.launch.quickstart import deriving, discovery, signals
from cleats.toolsets.launch.quickstart.confidence import THRESHOLD, Guess, Signal, guess
from cleats.toolsets.launch.quickstart.repositories import Repository
from tests.launch_remotes import GITHUB, github, repository
from tests.requirements import requirement
from tests.shell import LAW

ASPOSE = model.load("aspose")
PLAIN = model.load("plain")


def guesses(
    name: str = "stuff",
    texts: Mapping[str, str] | None = None,
    *,
    owner: str = "someone",
    names: tuple[str, ...] = (),
    profile: model.Profile = ASPOSE,
) -> dict[str, Guess]:
    texts = texts or {}
    repository = Repository("github.com", owner, name)
    found = signals.observed(repository, (*texts, *names), texts, profile)
    return {field: guess(field, found) for field in deriving.FIELDS}


def values(found: Mapping[str, Guess]) -> tuple[str, str]:
    return found["family"].value, found["target_platform"].value


README = """# Aspose.3D FOSS for Python

Aspose.3D reads scenes. Aspose.3D writes scenes.

    pip install aspose-3d-foss
"""


@requirement("e:repo:signals", "e:repo:threshold")
def test_a_name_that_follows_the_convention_is_enough() -> None:
    found = guesses("Aspose.3D-for-Python-via-.NET")

    assert values(found) == ("3d", "python")
    assert {each.confidence for each in found.values()} == {0.95}


@requirement("e:repo:signals", "e:repo:threshold")
def test_a_readme_alone_never_is() -> None:
    found = guesses(texts={"README.md": README})

    assert values(found) == ("", "")
    assert found["family"].suggested == ["3d"]
    assert found["target_platform"].suggested == ["python"]


def test_the_owner_alone_is_not_enough_but_helps_a_readme() -> None:
    alone = guesses(owner="aspose-3d")
    helped = guesses(texts={"README.md": README}, owner="aspose-3d")

    assert alone["family"].confidence == 0.45
    assert helped["family"].value == "3d"


MANIFESTS = {
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
@pytest.mark.parametrize("name", MANIFESTS)
def test_package_files_say_what_a_product_is_and_runs_on(name: str) -> None:
    text, family, platform = MANIFESTS[name]

    found = guesses(texts={name: text})

    assert found["family"].candidates == ((family, 0.8),)
    assert found["target_platform"].candidates == ((platform, 0.75),)


def test_a_platform_needs_more_than_a_manifest() -> None:
    texts = {"pyproject.toml": '[project]\nname = "x"\n'}

    alone = guesses(texts=texts)["target_platform"]
    written = guesses(texts=texts, names=("src/x.py",))["target_platform"]

    assert (alone.value, written.value) == ("", "python")


def test_a_c_file_list_makes_cmake_a_manifest_of_cpp() -> None:
    texts = {"CMakeLists.txt": "project(aspose-cells)"}

    assert guesses(texts=texts)["target_platform"].candidates == ()
    assert guesses(texts=texts, names=("a.cpp",))["target_platform"].value == "cpp"


def test_typescript_is_told_from_javascript_by_its_configuration() -> None:
    texts = {"package.json": "{}"}

    found = guesses(texts=texts, names=("tsconfig.json", "a.ts"))

    assert found["target_platform"].value == "typescript"


@requirement("e:repo:signals")
def test_a_repository_may_say_itself_what_it_is() -> None:
    texts = {"launch.toml": 'family = "pdf"\ntarget_platform = "golang"\n'}

    assert values(guesses(texts=texts)) == ("pdf", "go")


def test_a_strong_rival_leaves_the_question_open() -> None:
    found = guesses(
        "aspose-3d-foss-python", {"pyproject.toml": '[project]\nname = "aspose-cells"\n'}
    )

    assert found["family"].value == ""
    assert found["family"].suggested == ["3d", "cells"]
    assert found["family"].rival == 0.8


def test_a_weak_rival_takes_half_of_itself_off() -> None:
    found = guess("family", [Signal("family", "a", "x", 0.95), Signal("family", "b", "y", 0.4)])

    assert (found.value, found.confidence) == ("", 0.75)
    assert found.candidates == (("a", 0.75), ("b", 0.0))


def test_two_manifests_of_one_platform_are_one_observation() -> None:
    texts = {"pyproject.toml": "", "setup.py": "", "setup.cfg": ""}

    assert guesses(texts=texts)["target_platform"].candidates == (("python", 0.75),)


def test_a_family_that_is_a_common_word_is_not_seen_in_prose() -> None:
    texts = {"README.md": "# The page\n\nThis font is on a page; note the cells and words.\n"}

    assert guesses(texts=texts)["family"].candidates == ()


@pytest.mark.parametrize("text", ["[project", "{", "- x: [", "\0"])
def test_a_broken_manifest_is_no_signal_and_no_crash(text: str) -> None:
    texts = dict.fromkeys(("pyproject.toml", "package.json", "run_config.yaml"), text)

    assert guesses(texts=texts)["family"].candidates == ()


def test_where_any_name_is_a_family_the_package_and_the_title_have_to_agree() -> None:
    package = {"pyproject.toml": '[project]\nname = "greetings"\n'}

    alone = guesses(texts=package, names=("a.py",), profile=PLAIN)
    titled = guesses(
        texts={**package, "README.md": "# greetings\n"}, names=("a.py",), profile=PLAIN
    )

    assert values(alone) == ("", "python")
    assert values(titled) == ("greetings", "python")


weights = st.floats(0, 0.99, allow_nan=False)
seen = st.lists(
    st.builds(Signal, st.just("family"), st.sampled_from("abc"), st.text(max_size=2), weights),
    max_size=6,
)


def sure(found: list[Signal], value: str) -> float:
    return dict(guess("family", found).candidates).get(value, 0.0)


@requirement("e:repo:deterministic")
@LAW
@given(seen, st.randoms())
def test_the_order_of_the_signals_changes_nothing(found: list[Signal], random: Any) -> None:
    shuffled = list(found)
    random.shuffle(shuffled)

    assert guess("family", shuffled) == guess("family", found)


@LAW
@given(seen, weights)
def test_one_more_signal_makes_its_value_no_less_sure_and_no_other_more(
    found: list[Signal], weight: float
) -> None:
    more = [*found, Signal("family", "a", "more", weight)]

    assert sure(more, "a") >= sure(found, "a")
    for other in "bc":
        assert sure(more, other) <= sure(found, other)


@requirement("e:repo:threshold")
@LAW
@given(seen)
def test_a_guess_counts_only_above_the_threshold_with_no_rival_near_it(
    found: list[Signal],
) -> None:
    made = guess("family", found)

    assert bool(made.value) == (made.confidence > THRESHOLD and made.rival < 0.5)
    assert list(made.candidates) == sorted(made.candidates, key=lambda each: (-each[1], each[0]))


@requirement("e:repo:threshold")
def test_exactly_eighty_percent_does_not_exceed_eighty_percent() -> None:
    assert guess("family", [Signal("family", "a", "x", 0.8)]).value == ""
    assert guess("family", [Signal("family", "a", "x", 0.8001)]).value == "a"


# Against repositories that git can reach: bare ones on this machine under the names of GitHub.


def derive(url: str, env: Mapping[str, str], **more: Any) -> deriving.Derived:
    settings = Settings(**more)
    return anyio.run(deriving.from_repository_url, url, settings, env)


@requirement("e:repo:pinned", "e:repo:defaults", "e:repo:start")
def test_a_repository_becomes_a_minimal_configuration_pinned_to_its_head(tmp_path: Path) -> None:
    files = {"README.md": README, "pyproject.toml": '[project]\nname="x"\n'}
    repo = repository(tmp_path / "src", files)
    env = github(tmp_path, {"aspose-3d/Aspose.3D-for-Python-via-.NET": repo.root})
    url = f"{GITHUB}/aspose-3d/Aspose.3D-for-Python-via-.NET"

    found = derive(url + ".git", env)

    assert found.shown == {
        "family": "3d",
        "target_platform": "python",
        "locales": ["en"],
        "layout_mode": "auto",
        "allow_inference": False,
        "github_repo_url": url,
        "github_ref": repo.head,
    }
    assert found.given["required_sections"] == ["products", "docs", "reference", "kb", "blog"]


@requirement("e:repo:ambiguous", "e:repo:deterministic")
def test_doubt_is_answered_with_the_fields_the_candidates_and_every_signal(tmp_path: Path) -> None:
    text = "# Aspose.3D and Aspose.Cells\n\npip install x\n"
    repo = repository(tmp_path / "src", {"README.md": text})
    env = github(tmp_path, {"o/stuff": repo.root})

    with pytest.raises(ToolError) as first:
        derive(f"{GITHUB}/o/stuff", env)
    with pytest.raises(ToolError) as second:
        derive(f"{GITHUB}/o/stuff", env)

    assert first.value.code is ErrorCode.INVALID_INPUT
    assert first.value.message == "Could not unambiguously infer required fields"
    assert first.value.details["missing_fields"] == ["family", "target_platform"]
    assert first.value.details["suggested_values"] == {
        "family": ["3d", "cells"],
        "target_platform": ["python"],
    }
    assert {each["source"] for each in first.value.details["signals"]} == {
        "README",
        "README text",
        "README title",
    }
    assert first.value.details == second.value.details


@requirement("e:repo:threshold")
@pytest.mark.parametrize(
    ("said", "missing"),
    [('family = "3d"', ["target_platform"]), ('target_platform = "go"', ["family"])],
)
def test_one_field_that_is_sure_is_not_enough(
    tmp_path: Path, said: str, missing: list[str]
) -> None:
    repo = repository(tmp_path / "src", {"launch.toml": said})
    env = github(tmp_path, {"o/stuff": repo.root})

    with pytest.raises(ToolError) as caught:
        derive(f"{GITHUB}/o/stuff", env)

    assert caught.value.code is ErrorCode.INVALID_INPUT
    assert caught.value.details["missing_fields"] == missing


@requirement("e:repo:not-found")
def test_a_repository_that_is_not_there_is_said_to_be_so(tmp_path: Path) -> None:
    env = github(tmp_path, {})

    with pytest.raises(ToolError) as caught:
        derive(f"{GITHUB}/o/aspose-3d-foss-go", env)

    assert caught.value.code is ErrorCode.REPO_NOT_FOUND
    assert str(tmp_path) not in caught.value.message


def test_nothing_of_a_look_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = repository(tmp_path / "src", {"README.md": "x", "big/data.bin": "y" * 1000})
    kept = tmp_path / "looks"
    monkeypatch.setattr(discovery, "mkdtemp", lambda prefix: str(_made(kept / prefix)))

    sight = anyio.run(discovery.look, str(repo.root), {"PATH": os.environ["PATH"]})

    assert (sight.head, sight.names) == (repo.head, ("README.md", "big/data.bin"))
    assert sight.texts == {"README.md": "x"}
    assert list(kept.iterdir()) == []


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder

"""Tests of the configuration of a run: required fields, their meaning, and access to secrets."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleats.contract.errors import ErrorCode, ToolError
from cleats.settings import Settings, make_settings
from cleats.toolsets.launch.config import secrets
from cleats.toolsets.launch.config.normalise import hash_config, normalise_config
from cleats.toolsets.launch.config.secrets import redact_config
from cleats.toolsets.launch.runs import artifacts
from tests.support.paths import REPOSITORY_ROOT
from tests.support.requirements import requirement
from tests.support.shell import LAW_SETTINGS

MINIMAL_CONFIG: dict[str, Any] = {
    "profile": "aspose",
    "github_repo_url": "https://github.com/owner/aspose-3d-foss-python",
    "github_ref": "0123456789abcdef0123456789abcdef01234567",
    "family": "3d",
    "target_platform": "python",
    "required_sections": ["products", "docs"],
    "site_repo_url": "https://github.com/owner/site",
}
DEFAULT_SETTINGS = Settings()


def normalise_run_config(settings: Settings = DEFAULT_SETTINGS, **changes: Any) -> dict[str, Any]:
    run_config = {**copy.deepcopy(MINIMAL_CONFIG), **changes}
    return normalise_config({name: value for name, value in run_config.items() if value is not None}, settings)


def list_faults(settings: Settings = DEFAULT_SETTINGS, **changes: Any) -> dict[str, str]:
    with pytest.raises(ToolError) as caught:
        normalise_run_config(settings, **changes)
    assert caught.value.code is ErrorCode.SCHEMA_VALIDATION_FAILED
    assert caught.value.details["schema_id"] == "run_config"
    return {error["path"]: error["message"] for error in caught.value.details["errors"]}


@pytest.mark.parametrize(
    "address",
    [
        "https://me:hunter2@models.example.org/v1",
        "https://hunter2@models.example.org/v1",
        "https://models.example.org/v1?key=hunter2",
        "https://models.example.org/v1#hunter2",
        "https://[hunter2/v1",
    ],
)
def test_an_address_that_may_hold_a_secret_is_refused_and_not_repeated(address: str) -> None:
    found_faults = list_faults(llm={"api_base_url": address, "model": "m"}, telemetry={"endpoint_url": address})

    assert found_faults == {
        "/llm/api_base_url": "has a user, a query or a fragment; name the variable of a secret in api_key_env",
        "/telemetry/endpoint_url": (
            "has a user, a query or a fragment; name the variable of a secret in auth_token_env"
        ),
    }


@pytest.mark.parametrize("name", ["A\0B", "red\x1b[31m", "\u202egnp", "two\nlines", "x" * 201])
def test_a_name_is_one_line_that_can_be_printed(name: str) -> None:
    found_faults = list_faults(
        llm={"api_base_url": "http://localhost", "model": name},
        telemetry={"endpoint_url": "http://localhost", "project": name},
    )

    assert found_faults.keys() == {"/llm/model", "/telemetry/project"}
    assert "/product_name" in list_faults(product_name=name)
    assert normalise_run_config(product_name="Größe \u4e2d 3D")["product_name"] == "Größe \u4e2d 3D"


def test_a_fault_of_the_whole_configuration_is_not_placed_at_the_empty_key() -> None:
    with pytest.raises(ToolError) as whole:
        normalise_run_config(github_ref=None)
    with pytest.raises(ToolError) as field:
        normalise_run_config(locales="en")

    assert whole.value.message == 'run_config does not fit its schema: missing required property "github_ref"'
    assert field.value.message == "run_config does not fit its schema: /locales: expected array"


def test_a_fault_says_what_was_given_what_there_is_and_what_the_field_is_for() -> None:
    assert list_faults(target_platform="cobol")["/target_platform"].startswith(
        "unknown platform 'cobol'; aspose has: python, "
    )
    assert list_faults(locale="xx")["/locale"].startswith("unknown language 'xx'; aspose has: en, ")
    with pytest.raises(ToolError) as caught:
        normalise_run_config(github_ref="main")
    assert str(caught.value.hint).startswith("github_ref: The commit to write from, as 40 hexa")


def test_the_least_configuration_gets_everything_else_by_default() -> None:
    config = normalise_run_config()

    assert config["product_slug"] == "3d"
    assert "product_name" not in config, "the repository is not the one of the registry"
    assert config["locales"] == ["en"]
    assert config["layout_mode"] == "auto"
    assert config["allow_inference"] is False
    assert config["drive"] == {"mode": "auto", "auto_fix": False, "auto_pr": False}
    assert config["validation_profile"] == "local"
    assert config["max_fix_attempts"] == 3
    assert config["budgets"]["max_lines_per_file"] == 500
    assert config["allowed_paths"] == [
        "content/docs.aspose.org/3d/en/python",
        "content/products.aspose.org/3d/en/python",
    ]
    assert config["publish"] == {"driver": "git", "draft": False}


def test_a_configuration_without_a_profile_is_one_for_plain() -> None:
    unnamed = normalise_run_config(profile=None, required_sections=["docs"])
    named = normalise_run_config(profile="plain", required_sections=["docs"])

    assert unnamed["profile"] == "plain"
    assert hash_config(unnamed) == hash_config(named)


def test_a_normal_configuration_fits_the_schema_and_is_its_own_normal_form() -> None:
    config = normalise_run_config()

    assert artifacts.find_faults("run_config", config) == []
    assert normalise_config(config, DEFAULT_SETTINGS) == config


EQUIVALENT_CHANGES: list[dict[str, Any]] = [
    {"locale": "en"},
    {"locales": ["EN"]},
    {"family": "3D"},
    {"product_slug": "3d"},
    {"family": None, "product_slug": "3d"},
    {"target_platform": "Py"},
    {"github_ref": MINIMAL_CONFIG["github_ref"].upper()},
    {"github_repo_url": MINIMAL_CONFIG["github_repo_url"] + ".git/"},
    {"required_sections": ["docs", "products"]},
    {"drive": {}},
    {"drive": {"mode": "auto"}},
    {"budgets": {"max_file_writes": 500}},
]


@pytest.mark.parametrize("changes", EQUIVALENT_CHANGES)
def test_equal_meanings_have_one_hash(changes: dict[str, Any]) -> None:
    assert hash_config(normalise_run_config(**changes)) == hash_config(normalise_run_config())


@pytest.mark.parametrize(
    "changes",
    [
        {"locales": ["de"]},
        {"required_sections": ["docs"]},
        {"github_ref": "f" * 40},
        {"drive": {"mode": "stepwise"}},
        {"max_fix_attempts": 4},
    ],
)
def test_another_meaning_has_another_hash(changes: dict[str, Any]) -> None:
    assert hash_config(normalise_run_config(**changes)) != hash_config(normalise_run_config())


@LAW_SETTINGS
@given(st.permutations(list(normalise_run_config().items())))
def test_the_order_of_the_keys_is_not_in_the_hash(pairs: list[tuple[str, Any]]) -> None:
    assert hash_config(dict(pairs)) == hash_config(normalise_run_config())


@requirement("e:code:schema")
@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"github_ref": "main"}, "/github_ref"),
        ({"github_ref": None}, ""),
        ({"family": None}, ""),
        ({"family": "sheets"}, "/family"),
        ({"family": None, "product_slug": "sheets"}, "/product_slug"),
        ({"target_platform": "cobol"}, "/target_platform"),
        ({"required_sections": []}, "/required_sections"),
        ({"required_sections": ["shop"]}, "/required_sections/0"),
        ({"required_sections": ["docs", "docs"]}, "/required_sections"),
        ({"locales": ["en", "xx"]}, "/locales/1"),
        ({"locale": "de", "locales": ["en"]}, "/locale"),
        ({"layout_mode": "v3"}, "/layout_mode"),
        ({"allowed_paths": ["../x"]}, "/allowed_paths/0"),
        ({"allowed_paths": ["/etc"]}, "/allowed_paths/0"),
        ({"github_repo_url": "ext::sh -c x"}, "/github_repo_url"),
        ({"github_repo_url": "https://me:word@github.com/o/n"}, "/github_repo_url"),
        ({"site_ref": "--upload-pack=x"}, "/site_ref"),
        ({"drive": {"mode": "fast"}}, "/drive/mode"),
        ({"budgets": {"max_runtime_s": 0}}, "/budgets/max_runtime_s"),
        ({"budgets": {"max_runtime_s": 10**400}}, "/budgets/max_runtime_s"),
        ({"publish": {"branch": "{who}/{run_id}"}}, "/publish/branch"),
        ({"publish": {"branch": "{product_name}"}}, "/publish/branch"),
        ({"publish": {"branch": "a b"}}, "/publish/branch"),
        ({"workflows_repo_url": "ssh://]"}, "/workflows_repo_url"),
        ({"github_repo_url": "https://github.com:x/o/n"}, "/github_repo_url"),
        ({"telemetry": {"endpoint_url": "http://[/"}}, "/telemetry/endpoint_url"),
        (
            {"commit_service": {"endpoint_url": "http://localhost", "commit_body_template": "{x}"}},
            "/commit_service/commit_body_template",
        ),
        ({"colour": "red"}, "/colour"),
        ({"max_fix_attempts": -1}, "/max_fix_attempts"),
        ({"extra_evidence_urls": ["https://example.org/"]}, "/extra_evidence_urls"),
        ({"hugo": {"config_dir": "configs"}}, "/hugo/config_dir"),
        ({"hugo": {"config_snapshot_dir": "kept"}}, "/hugo/config_snapshot_dir"),
    ],
)
def test_every_fault_is_named_by_its_json_pointer(changes: dict[str, Any], path: str) -> None:
    assert path in list_faults(**changes)


def test_the_naming_scheme_of_a_profile_is_for_the_repositories_of_its_registry() -> None:
    listed_url = "https://github.com/aspose-3d-foss/Aspose.3D-FOSS-for-Python"

    assert normalise_run_config(github_repo_url=listed_url)["product_name"] == "Aspose.3D FOSS for Python"
    assert "product_name" not in normalise_run_config(github_repo_url=f"{listed_url}-fork")


def test_all_faults_are_told_at_once() -> None:
    assert set(list_faults(github_ref="x", colour="red")) == {"/colour", "/github_ref"}


def test_another_profile_has_its_own_families_sections_and_layout() -> None:
    config = normalise_run_config(profile="plain", family="greetings", required_sections=["docs"])

    assert config["allowed_paths"] == ["content/docs/greetings"]
    assert "/required_sections/0" in list_faults(profile="plain", family="greetings")
    assert "/layout_mode" in list_faults(profile="plain", family="x", required_sections=["docs"], layout_mode="v2")


def test_an_unknown_profile_is_invalid_input_with_the_known_ones() -> None:
    with pytest.raises(ToolError) as caught:
        normalise_run_config(profile="nobody")

    assert caught.value.code is ErrorCode.INVALID_INPUT
    assert caught.value.details["known"] == ["aspose", "plain", "plain-mkdocs"]


def test_the_site_comes_from_the_run_then_the_profile_then_the_settings() -> None:
    with pytest.raises(ToolError) as caught:
        normalise_run_config(site_repo_url=None)
    assert caught.value.code is ErrorCode.INVALID_INPUT
    assert caught.value.details["missing_fields"] == ["site_repo_url"]

    config = normalise_run_config(make_settings(launch_site="https://github.com/o/s"), site_repo_url=None)
    assert config["site_repo_url"] == "https://github.com/o/s"


def test_a_section_that_lies_elsewhere_moves_the_paths_that_may_be_written() -> None:
    layout = {"content_root": "web", "subdomain_roots": {"docs": "manual"}}

    config = normalise_run_config(site_layout=layout, required_sections=["docs"])

    assert config["allowed_paths"] == ["web/manual/3d/en/python"]
    assert config["site_layout"]["subdomain_roots"]["blog"] == "blog.aspose.org"


def test_no_path_of_this_machine_and_no_user_is_shown() -> None:
    config = normalise_run_config(github_repo_url="/home/me/secret/thing", site_repo_url="ssh://me@host.org/s")

    shown_fields = redact_config(config)

    assert shown_fields["github_repo_url"] == "local:thing"
    assert shown_fields["site_repo_url"] == "ssh://host.org/s"
    assert shown_fields["family"] == "3d"


LLM_CONFIG = {"api_base_url": "https://models.example.org/v1", "model": "m", "api_key_env": "KEY"}


def test_a_secret_that_the_operator_did_not_list_is_refused() -> None:
    assert "KEY is not listed in" in list_faults(llm=LLM_CONFIG)["/llm/api_key_env"]


def test_an_address_that_the_operator_did_not_list_gets_no_secret() -> None:
    settings = make_settings(launch_secrets=("KEY",))

    assert "/llm/api_base_url" in list_faults(settings, llm=LLM_CONFIG)
    assert normalise_run_config(settings, llm={**LLM_CONFIG, "api_base_url": "http://127.0.0.1:8080/v1"})
    assert normalise_run_config(
        make_settings(launch_secrets=("KEY",), launch_endpoints=("https://models.example.org",)),
        llm=LLM_CONFIG,
    )


def test_without_a_secret_any_address_will_do() -> None:
    config = normalise_run_config(llm={"api_base_url": "https://models.example.org/v1", "model": "m"})

    assert config["llm"]["decoding"] == {"temperature": 0}


@pytest.mark.parametrize(
    "address",
    [
        "https://api.example.org.evil.org/v1",
        "https://api.example.org@evil.org/v1",
        "http://api.example.org/v1",
        "https://api.example.org:444/v1",
        "https://api.example.org/v1evil",
        "https://api.example.org/v1/../v2",
        "https://api.example.org/",
        "ftp://127.0.0.1/",
        "https://127.0.0.1.evil.org/",
        "",
    ],
)
def test_an_address_that_only_looks_like_a_listed_one_is_another(address: str) -> None:
    assert not secrets.is_trusted_endpoint(address, ["https://api.example.org/v1"])


def test_a_step_is_given_only_the_secrets_that_its_own_part_of_the_run_names() -> None:
    config = {
        "llm": {**LLM_CONFIG, "api_base_url": "http://localhost/v1"},
        "publish": {"token_env": "TOKEN"},
        "telemetry": {"auth_token_env": "OTHER", "endpoint_url": "http://localhost"},
    }
    available = {"KEY": "1", "TOKEN": "2", "OTHER": "3", "MORE": "4"}

    assert secrets.select_step_secrets("draft", config, available) == {"KEY": "1"}
    assert secrets.select_step_secrets("commit", config, available) == {"TOKEN": "2"}
    assert secrets.select_step_secrets("request", config, available) == {"TOKEN": "2"}
    assert secrets.select_step_secrets("clone", config, available) == {}
    assert secrets.select_step_secrets("commit", config, {}) == {}


def test_every_field_of_a_configuration_is_on_the_page_about_launches() -> None:
    page = (REPOSITORY_ROOT / "docs" / "launch.md").read_text()

    missing = [name for name in artifacts.load_schema("run_config")["properties"] if f"`{name}" not in page]

    assert missing == []

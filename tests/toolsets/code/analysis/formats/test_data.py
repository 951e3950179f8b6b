import pytest

from cleats.toolsets.code.analysis.extract import extract_facts
from cleats.toolsets.code.analysis.facts import Chunk, FileFacts
from cleats.toolsets.code.analysis.formats.registry import READERS_BY_LANGUAGE
from cleats.toolsets.code.analysis.languages.language_names import detect_language_by_path, get_language_mode
from tests.support.paths import TESTS_FOLDER

DOCUMENTS_FOLDER = TESTS_FOLDER / "fixtures" / "documents"


def extract_fixture(name: str) -> FileFacts:
    lang = detect_language_by_path(name)
    return extract_facts(name, (DOCUMENTS_FOLDER / name).read_bytes(), lang, get_language_mode(lang))


def extract_chunks(text: str, lang: str) -> list[Chunk]:
    return extract_facts("dir/file.x", text.encode(), lang, get_language_mode(lang)).chunks


def list_names(chunks: list[Chunk]) -> list[str]:
    return [chunk.name for chunk in chunks]


def test_json_gives_bodies_their_own_chunk_and_keeps_single_values_together() -> None:
    facts = extract_fixture("package.json")

    assert list_names(facts.chunks) == ["package", "scripts", "keywords", "dependencies"]
    assert facts.chunks[0].fields == {"name": "demo", "version": "1.0.0"}
    assert facts.chunks[1].fields == {"scripts.build": "tsc -p .", "scripts.test": "vitest"}
    assert facts.chunks[2].fields == {"keywords": "a, b"}


def test_a_long_object_is_cut_again_by_its_keys() -> None:
    body = ",\n".join(f'"k{at}": {{\n"v": {at}\n}}' for at in range(40))

    chunks = extract_chunks(f'{{\n"paths": {{\n{body}\n}}\n}}\n', "json")

    assert list_names(chunks)[:3] == ["paths", "paths.k0", "paths.k1"]
    assert chunks[2].fields == {"paths.k1.v": "1"}


def test_a_huge_array_makes_chunks_of_bounded_length() -> None:
    text = "[\n" + ",\n".join('{\n"a": 1\n}' for _ in range(1000)) + "\n]\n"

    chunks = extract_chunks(text, "json")

    assert len(chunks) == pytest.approx(3000 / 60, abs=3)
    assert all(chunk.end_line - chunk.start_line < 60 for chunk in chunks)


def test_comments_single_quotes_and_bare_keys_are_read_in_json_with_comments() -> None:
    text = '{\n// note: {\n  a: \'x\', /* } */\n  "b": {\n "c": "}\\"",\n },\n}\n'

    chunks = extract_chunks(text, "jsonc")

    assert list_names(chunks) == ["a", "b"]
    assert chunks[0].fields == {"a": "x"}


def test_a_manifest_is_named_after_its_kind_and_name() -> None:
    facts = extract_fixture("deployment.yaml")

    assert list_names(facts.chunks) == ["Deployment/web", "Service/web"]
    fields = facts.chunks[0].fields
    assert fields["kind"] == "Deployment"
    assert fields["spec.template.spec.containers.image"] == "nginx:1.25"
    assert fields["spec.template.spec.containers.args"] == "--port, 80"
    assert facts.chunks[1].fields["spec.ports.port"] == "80"


def test_yaml_is_cut_at_its_keys_and_comments_stay_with_them() -> None:
    facts = extract_fixture("workflow.yml")

    assert [(chunk.name, chunk.start_line) for chunk in facts.chunks] == [
        ("workflow", 1),
        ("jobs", 4),
    ]
    assert facts.chunks[1].fields["jobs.build.steps.name"] == "Test"


def test_the_lines_of_a_text_in_yaml_are_not_keys() -> None:
    chunks = extract_chunks("a: |\n  b: 1\nlist:\n- run: >-\n    c: 2\n  d: 3\n", "yaml")

    fields = {key: value for chunk in chunks for key, value in chunk.fields.items()}
    assert fields == {"list.d": "3"}


def test_the_items_of_a_list_are_known_by_their_name() -> None:
    text = "- name: Install\n  apt:\n    name: x\n- name: Start\n  service:\n    name: y\n"

    assert list_names(extract_chunks(text, "yaml")) == ["Install", "Start"]


def test_a_long_key_of_yaml_is_cut_by_the_keys_below() -> None:
    text = "jobs:\n" + "".join(f"  j{at}:\n    steps:\n" + "    - a\n" * 10 for at in range(9))

    assert list_names(extract_chunks(text, "yaml")) == ["jobs", *(f"jobs.j{at}" for at in range(9))]


def test_toml_and_ini_are_cut_at_their_tables() -> None:
    toml, ini = extract_fixture("pyproject.toml"), extract_fixture("setup.cfg")

    assert [(chunk.name, chunk.start_line) for chunk in toml.chunks] == [
        ("project", 1),
        ("tool.pytest", 11),
    ]
    assert toml.chunks[0].fields == {"project.name": "demo", "project.dependencies": "a>=1, nested"}
    assert toml.chunks[1].fields == {"tool.pytest.addopts": "-q"}
    assert list_names(ini.chunks) == ["setup", "flake8"]
    assert ini.chunks[1].fields == {"flake8.max-line-length": "100", "flake8.ignore": "E1"}


def test_sql_is_cut_into_statements_that_know_their_tables() -> None:
    chunks = extract_fixture("schema.sql").chunks

    assert list_names(chunks) == [
        "app.users",
        "touch",
        "clean",
        "SELECT Odd Name",
        "INSERT t",
        "tr",
        "CALL clean",
    ]
    users, touch, clean, select, insert, _, call = chunks
    assert (users.start_line, users.end_line) == (1, 6)
    assert (users.writes, users.uses) == (["app.users"], ["app.users", "teams"])
    assert (touch.writes, touch.reads) == (["app.users"], ["audit"])
    assert (clean.writes, clean.reads) == (["logs", "done"], ["logs", "teams"])
    assert select.reads == ["Odd Name"]
    assert insert.writes == ["t"]
    assert call.calls == ["clean"]


@pytest.mark.parametrize("text", ["ARG", "ENV\n", "FROM a\nLABEL \nENV X"])
def test_an_instruction_that_is_still_being_written_costs_nothing(text: str) -> None:
    facts = extract_facts("Dockerfile", text.encode(), "dockerfile", "code")

    assert facts.problem == ""


def test_a_dockerfile_is_cut_into_stages() -> None:
    facts = extract_fixture("Dockerfile")

    assert [(chunk.kind, chunk.name, chunk.start_line) for chunk in facts.chunks] == [
        ("module", "Dockerfile", 1),
        ("stage", "build", 4),
        ("stage", "scratch", 15),
        ("stage", "build", 20),
    ]
    assert facts.imports == ["golang:1.22"]
    assert facts.chunks[1].calls == ["apt-get", "make"]
    assert facts.chunks[2].uses == ["build"]
    assert facts.chunks[2].fields["env.B"] == "two words"


def test_a_makefile_is_cut_into_targets() -> None:
    facts = extract_fixture("Makefile")

    assert list_names(facts.chunks) == ["Makefile", "all", "%.o"]
    assert facts.imports == ["common.mk"]
    assert facts.chunks[0].fields == {"CC": "gcc", "URL": "http://example.org"}
    assert facts.chunks[1].uses == ["lib", "main.o", "out"]
    assert facts.chunks[1].doc == "Everything"
    assert facts.chunks[1].calls == ["$(CC)", "rm"]


def test_style_sheets_are_grouped_under_their_comments() -> None:
    facts = extract_fixture("style.css")

    assert list_names(facts.chunks) == ["style", ":root", "Buttons"]
    assert facts.imports == ["base.css"]
    assert facts.chunks[1].fields == {"--main": "#fff"}
    assert facts.chunks[2].uses == ["btn", "btn-primary", "--main"]


def test_xml_is_cut_at_the_elements_below_the_root() -> None:
    facts = extract_fixture("pom.xml")

    assert list_names(facts.chunks) == ["pom", "version", "dependencies", "bean.main"]
    assert facts.chunks[1].fields == {"project.version": "1.0"}
    assert facts.chunks[2].fields == {"project.dependencies.dependency.artifactId": "guava"}


# Anything quadratic would take longer here than a test may.
HOSTILE_TEXTS = {
    "deep json": '{"a":' * 30_000,
    "deep list": "[" * 100_000,
    "deep markup": "<a>" * 50_000,
    "deep yaml": "".join(" " * depth + "a:\n" for depth in range(700)),
    "one long line": "a" * 1_000_000,
    "blanks": "a" + " " * 300_000 + "b",
    "marks": "# - " * 50_000,
    "open quotes": "'\"`" * 50_000,
    "open comments": "/* <!-- " * 30_000,
    "unclosed here documents": "".join(f"RUN <<E{at}\n" for at in range(5_000)),
    "headings": "# a\n" * 30_000,
    "bodies": "create function begin $$ ; " * 10_000,
}


@pytest.mark.parametrize("lang", [*READERS_BY_LANGUAGE, "text"])
def test_hostile_text_is_read_without_an_error_or_a_flood_of_chunks(lang: str) -> None:
    for text in HOSTILE_TEXTS.values():
        facts = extract_facts("file", text.encode(), lang, get_language_mode(lang))

        assert facts.problem == ""
        assert 0 < len(facts.chunks) <= 21_000

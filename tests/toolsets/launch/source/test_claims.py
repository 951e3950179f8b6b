"""Tests of sentences from readmes: only complete, plain and supported ones become claims."""

from pathlib import Path

import pytest

from cleats.toolsets.launch.source.evidence.ledger import Citation, ClaimLedger, compute_claim_hash
from cleats.toolsets.launch.source.text import english
from cleats.toolsets.launch.source.text.documents import read_blocks
from tests.support.launch_sources import PYPROJECT_TEXT, extract_facts, list_claim_texts, write_tree

PACKAGE_FILES = {"pyproject.toml": PYPROJECT_TEXT, "src/kettle/__init__.py": "__all__ = []\n"}


def list_readme_features(root: Path, readme: str, name: str = "README.md") -> list[str]:
    repository_facts = extract_facts(root, {**PACKAGE_FILES, name: readme})
    package_features = set(list_claim_texts(extract_facts(root / "bare", PACKAGE_FILES), "feature"))
    return [text for text in list_claim_texts(repository_facts, "feature") if text not in package_features]


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        ("Writes labels as well as logs", "Kettle writes labels as well as logs."),
        ("Supports three voltages.", "Kettle supports three voltages."),
        ("Parse recipes from text", "Kettle can parse recipes from text."),
        ("Support for induction plates", "Kettle supports induction plates."),
        ("Ability to pour slowly", "Kettle can pour slowly."),
        ("No moving parts", "Kettle has no moving parts."),
        ("Zero moving lids", "Kettle has no moving lids."),
        ("Automatic shut-off", "The features of Kettle include automatic shut-off."),
        ("Boil-dry Protection", "The features of Kettle include boil-dry protection."),
        ("HTTP and MQTT control", "The features of Kettle include HTTP and MQTT control."),
        (
            "Immutable API: methods return a new pot",
            "Immutable API: methods return a new pot.",
        ),
        (
            "**Scheduling** - Run a recipe at a given hour",
            "Scheduling: Run a recipe at a given hour.",
        ),
        ("✨ Works on every [stove](https://example.com)", "Kettle works on every stove."),
        ("It prints a label for each cup", "Kettle prints a label for each cup."),
        ("The lid is part of the package", "The lid is part of the package."),
    ],
)
def test_an_item_of_a_feature_list_becomes_a_whole_sentence(tmp_path: Path, item: str, sentence: str) -> None:
    assert list_readme_features(tmp_path, f"# Kettle\n\n## Features\n\n- {item}\n") == [sentence]


@pytest.mark.parametrize(
    ("sentence", "expected_features"),
    [
        ("Kettle is a fast, simple and lightweight pot for tea.", ["Kettle is a pot for tea."]),
        ("Kettle is a fast pot.", []),
        ("Kettle is a pot that is fast.", []),
        ("Kettle is a pot for hot water.", ["Kettle is a pot for hot water."]),
    ],
)
def test_a_sentence_that_begins_with_praise_says_the_rest(
    tmp_path: Path, sentence: str, expected_features: list[str]
) -> None:
    assert list_readme_features(tmp_path, f"# Kettle\n\n{sentence}\n") == expected_features


@pytest.mark.parametrize(
    "item",
    [
        "Blazing fast",
        "Easy to use",
        "A beautiful and powerful API",
        "100% test coverage",
        "Secure by default",
        "Fully typed",
        "[Documentation](https://example.com/docs)",
        "[![badge](https://example.com/b.svg)](https://example.com)",
        "Grow large",
        "`valve` - The tap underneath",
        "Support for gas is planned",
        "We love tea",
        "See the guide below",
        "Standard interface, but with steam if you need it",
        "Configurable",
        "and",
        "<img src='x'> a picture",
        "Maybe it whistles",
        "Water, milk and",
    ],
)
def test_praise_links_fragments_and_guesses_become_nothing(tmp_path: Path, item: str) -> None:
    assert list_readme_features(tmp_path, f"# Kettle\n\n## Features\n\n- {item}\n") == []


def test_only_sentences_about_the_product_are_taken_from_its_introduction(tmp_path: Path) -> None:
    readme = (
        "# Kettle\n\n"
        "Kettle is a library for pouring. It writes a log of every cup. A pump was added later. "
        "Kettle is the best there is. Kettle will soon brew coffee. We hope that you like it.\n\n"
        "## Usage\n\nKettle is a thing that is used.\n"
    )

    assert list_readme_features(tmp_path, readme) == [
        "Kettle is a library for pouring.",
        "Kettle writes a log of every cup.",
    ]


def test_tables_headings_quotes_and_the_lists_of_other_parts_are_no_features(
    tmp_path: Path,
) -> None:
    readme = (
        "# Kettle\n\n> Kettle is a quoted thing.\n\n"
        "- [Usage](#usage)\n- [Features](#features)\n\n"
        "| Kettle | boils |\n|---|---|\n| yes | Supports tea |\n\n"
        "## Dependencies\n\nKettle needs these:\n\n- Supports nothing\n\n"
        "## Contributing\n\n- Supports everybody\n"
    )

    assert list_readme_features(tmp_path, readme) == []


@pytest.mark.parametrize(
    "above",
    [
        "## Not supported",
        "## Planned features",
        "## Missing features",
        "## Roadmap\n\n### Features",
        "## Features\n\nKettle doesn't support:",
        "The following are some uses for Kettle, taken from real reports:",
        "Kettle is used by:",
        "To build Kettle you need:",
        "Pots provide lids. A lid tells what is inside by:",
    ],
)
def test_what_a_product_lacks_needs_or_is_used_for_is_no_feature(tmp_path: Path, above: str) -> None:
    readme = f"# Kettle\n\n{above}\n\n- Steam whistle\n- Automatic shut-off\n"

    assert list_readme_features(tmp_path, readme) == []


def test_the_title_of_a_readme_takes_no_features_away(tmp_path: Path) -> None:
    readme = "# Kettle, a pot for projects\n\n- Steam whistle\n\n## Features\n\n- Lid lock\n"

    assert list_readme_features(tmp_path, readme) == [
        "The features of Kettle include steam whistle.",
        "The features of Kettle include lid lock.",
    ]


def test_what_a_product_is_not_is_no_feature(tmp_path: Path) -> None:
    readme = "# Kettle\n\nKettle is a pot for tea. Kettle is not a replacement for a stove.\n"

    assert list_readme_features(tmp_path, readme) == ["Kettle is a pot for tea."]


def test_a_language_of_one_letter_keeps_its_capital(tmp_path: Path) -> None:
    readme = "# Kettle\n\n## Features\n\n- C code boiler\n- A lid\n"

    assert list_readme_features(tmp_path, readme) == [
        "The features of Kettle include C code boiler.",
        "The features of Kettle include a lid.",
    ]


def test_a_list_right_below_the_title_tells_features_too(tmp_path: Path) -> None:
    readme = "# Kettle\n\n[![b](x.svg)](y)\n\n- Follows the tea standard\n- Writes labels\n"

    assert list_readme_features(tmp_path, readme) == [
        "Kettle follows the tea standard.",
        "Kettle writes labels.",
    ]


def test_the_same_thing_said_twice_is_told_once(tmp_path: Path) -> None:
    readme = (
        "# Kettle\n\nKettle reads recipes from a file and can print labels.\n\n"
        "## Features\n\n- Reads recipes from a file\n- Print labels\n"
    )

    assert list_readme_features(tmp_path, readme) == ["Kettle reads recipes from a file and can print labels."]


def test_a_restructured_readme_is_read_like_a_marked_down_one(tmp_path: Path) -> None:
    readme = (
        "Kettle\n======\n\n.. image:: https://example.com/b.svg\n   :alt: badge\n\n"
        "Kettle is a tool that pours ``tea`` into `cups <https://example.com>`_.\n\n"
        "Features\n--------\n\n* Supports :class:`~kettle.Pot` and :class:`.Cup` objects\n"
        "* **Fast**\n\n"
        "Usage\n-----\n\n.. code-block:: python\n\n   import kettle\n\nSessions::\n\n"
        "    >>> kettle.boil()\n    100\n"
    )
    parsed_blocks = read_blocks(write_tree(tmp_path, {"README.rst": readme}), "README.rst")

    assert [block.text for block in parsed_blocks if block.kind == "heading"] == [
        "Kettle",
        "Features",
        "Usage",
    ]
    assert [(block.text, block.line) for block in parsed_blocks if block.kind == "code"] == [
        ("import kettle\n", 20),
        (">>> kettle.boil()\n100\n", 24),
    ]
    assert list_readme_features(tmp_path / "whole", readme, "README.rst") == [
        "Kettle is a tool that pours `tea` into cups.",
        "Kettle supports `kettle.Pot` and `Cup` objects.",
    ]


def test_limits_are_told_as_sentences(tmp_path: Path) -> None:
    readme = (
        "# Kettle\n\n## Limitations\n\n- No support for gas\n- Does not whistle\n"
        "- Pots cannot be stacked: the lid is round.\n- Tea only\n- Great for tea\n"
    )
    repository_facts = extract_facts(tmp_path, {**PACKAGE_FILES, "README.md": readme})

    assert list_claim_texts(repository_facts, "limitation") == [
        "Kettle has no support for gas.",
        "Kettle does not whistle.",
        "Pots cannot be stacked: the lid is round.",
    ]
    assert repository_facts.product_facts["limitations"] == list_claim_texts(repository_facts, "limitation")


def test_a_document_that_contradicts_the_manifest_loses_and_is_kept_as_lost(
    tmp_path: Path,
) -> None:
    readme = "# Kettle\n\nKettle requires Python 3.7 or later. Kettle requires Python 3.10+.\n"
    repository_facts = extract_facts(tmp_path, {**PACKAGE_FILES, "README.md": readme})
    evidence = {claim["claim_id"]: claim for claim in repository_facts.evidence_map["claims"]}

    (contradiction,) = repository_facts.evidence_map["contradictions"]
    winner, loser = (evidence[contradiction[key]] for key in ("winning_claim_id", "claim_b_id"))

    assert winner["claim_text"] == "Kettle requires Python 3.10 or later."
    assert [citation["path"] for citation in winner["citations"]] == ["pyproject.toml", "README.md"]
    assert loser["claim_text"] == "Kettle requires Python 3.7 or later."
    assert contradiction["claim_b_id"] not in repository_facts.product_facts["claim_groups"]["key_features"]


def test_a_document_that_denies_the_dependencies_of_the_manifest_loses(tmp_path: Path) -> None:
    readme = "# Kettle\n\n## Features\n\n- Zero external dependencies\n"
    repository_facts = extract_facts(tmp_path, {**PACKAGE_FILES, "README.md": readme})
    evidence = {claim["claim_id"]: claim for claim in repository_facts.evidence_map["claims"]}

    (contradiction,) = repository_facts.evidence_map["contradictions"]

    assert evidence[contradiction["winning_claim_id"]]["claim_text"] == ("Kettle depends on `valve` at run time.")
    assert evidence[contradiction["claim_b_id"]]["claim_text"] == "Kettle has no external dependencies."


def test_in_a_list_of_things_to_do_an_unknown_word_is_taken_for_a_verb_and_left_out(
    tmp_path: Path,
) -> None:
    readme = (
        "# Kettle\n\n## Features\n\n- Read recipes (French ones are experimental)\n"
        "- Write labels\n- Decalcify the pot\n- Lid sensors\n"
    )

    assert list_readme_features(tmp_path, readme) == [
        "Kettle can read recipes (French ones are experimental).",
        "Kettle can write labels.",
    ]


def test_known_issues_are_limits_only_where_they_tell_one(tmp_path: Path) -> None:
    readme = (
        "# Kettle\n\n## Known issues\n\n- Lids are not tight. They leak.\n"
        "- Some tricks can be found in the shed.\n\n## FAQ and known issues\n\n- It does not.\n"
    )
    repository_facts = extract_facts(tmp_path, {**PACKAGE_FILES, "README.md": readme})

    assert list_claim_texts(repository_facts, "limitation") == ["Lids are not tight. They leak."]


def test_an_install_command_for_another_package_loses_against_the_manifest(
    tmp_path: Path,
) -> None:
    readme = "# Kettle\n\n## Installation\n\n```\npip install pot\n```\n"
    repository_facts = extract_facts(tmp_path, {**PACKAGE_FILES, "README.md": readme})

    (contradiction,) = repository_facts.evidence_map["contradictions"]

    assert contradiction["winning_claim_id"] == repository_facts.product_facts["distribution"][0]["claim_id"]


def test_every_claim_names_lines_that_are_there(tmp_path: Path) -> None:
    readme = "# Kettle\n\nKettle is a library for pouring.\n\n```\npip install py-kettle\n```\n"
    repository_facts = extract_facts(tmp_path, {**PACKAGE_FILES, "README.md": readme, "LICENSE": "MIT License\n"})

    for claim in repository_facts.evidence_map["claims"]:
        assert claim["citations"]
        for citation in claim["citations"]:
            lines = (tmp_path / citation["path"]).read_text().splitlines()
            assert 1 <= citation["start_line"] <= citation["end_line"] <= max(1, len(lines))


def test_what_a_manifest_or_the_code_says_is_a_fact_and_a_readme_alone_is_not(
    tmp_path: Path,
) -> None:
    repository_facts = extract_facts(
        tmp_path, {**PACKAGE_FILES, "README.md": "# Kettle\n\nKettle is a thing for tea.\n"}
    )
    status = {
        claim["claim_text"]: (claim["truth_status"], claim["source_priority"])
        for claim in repository_facts.evidence_map["claims"]
    }

    assert status["Kettle is a thing for tea."] == ("inference", 6)
    assert status["Kettle requires Python 3.10 or later."] == ("fact", 1)


def test_the_hash_of_a_claim_outlives_spaces_case_and_the_name_of_the_product() -> None:
    first = compute_claim_hash("Kettle  boils water.", "feature", "Kettle")

    assert first == compute_claim_hash("pot boils Water.", "feature", "Pot")
    assert first != compute_claim_hash("Kettle boils water.", "limitation", "Kettle")


def test_an_id_is_short_and_grows_when_another_claim_has_it() -> None:
    ledger = ClaimLedger("Kettle")
    place = [Citation("README.md", 3, 3, "readme_technical")]
    whole_hash = compute_claim_hash("Kettle boils.", "feature", "Kettle")
    ledger._hashes[whole_hash[:8]] = "the hash of another claim"

    assert ledger.add("Kettle boils.", "feature", place) == whole_hash[:9]
    assert len(ledger.add("Kettle whistles.", "feature", place)) == 8


def test_more_evidence_for_the_same_words_is_one_claim_with_the_best_place_first() -> None:
    ledger = ClaimLedger("Kettle")
    ledger.add("Kettle boils.", "feature", [Citation("README.md", 3, 3, "readme_technical")])
    ledger.add("Kettle boils.", "feature", [Citation("a.py", 1, 1, "source_code")])

    (claim,) = ledger.claims

    assert [citation.path for citation in claim.citations] == ["a.py", "README.md"]
    assert claim.truth_status == "fact"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Reads e.g. tea. Writes `a. B`. Done.", ["Reads e.g. tea.", "Writes `a. B`.", "Done."]),
        ("Version 1.2 is out. 3 cups.", ["Version 1.2 is out.", "3 cups."]),
    ],
)
def test_abbreviations_numbers_and_code_do_not_end_a_sentence(text: str, parts: list[str]) -> None:
    assert english.split_sentences(text) == parts

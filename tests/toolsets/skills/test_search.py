"""The ranking of skills for questions in plain words."""

from pathlib import Path

import pytest

from cleats.toolsets.skills.search import search_skills
from cleats.toolsets.skills.skill import Skill, SkillLocation, SkillSource, read_skill

DESCRIPTIONS = {
    "pdf": "Read, merge and split PDF files and fill out PDF forms. Use it whenever a .pdf file is involved.",
    "docx": "Create and edit Word documents. Do NOT use it for spreadsheets or PDF files.",
    "xlsx": "Open, edit and create spreadsheets: formulas, charts, messy columns.",
    "algorithmic-art": "Make art in code with seeded randomness. Use it in any request for generative art.",
}


def write_skills(folder: Path) -> list[Skill]:
    source = SkillSource(path=str(folder), scope="project", label="test")
    skills = []
    for name, description in DESCRIPTIONS.items():
        (folder / name).mkdir()
        (folder / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: '{description}'\n---\nText.\n")
        skill = read_skill(SkillLocation(str(folder / name), "SKILL.md", source, (name,), (0, 0)))
        assert isinstance(skill, Skill), skill
        skills.append(skill)
    return skills


@pytest.mark.parametrize(
    ("question", "name"),
    [("fill in a form", "pdf"), ("edit a spreadsheet", "xlsx"), ("write a document in Word", "docx")],
)
def test_a_question_in_plain_words_brings_the_right_skill_first(tmp_path: Path, question: str, name: str) -> None:
    assert search_skills(write_skills(tmp_path), question, 4)[0].skill.name == name


@pytest.mark.parametrize("question", ["fill in a form", "make a form"])
def test_words_that_hold_a_sentence_together_find_nothing(tmp_path: Path, question: str) -> None:
    matches = search_skills(write_skills(tmp_path), question, 4)

    assert "algorithmic-art" not in [match.skill.name for match in matches]

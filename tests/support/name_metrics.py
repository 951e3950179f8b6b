"""Measurements of names and docstrings, taken from the syntax trees of a folder of Python files."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

IRREGULAR_PARTICIPLES = frozenset(
    [
        "told",
        "said",
        "given",
        "made",
        "brought",
        "kept",
        "held",
        "found",
        "meant",
        "seen",
        "shown",
        "asked",
        "known",
        "written",
        "taken",
        "begun",
        "sent",
        "drawn",
        "spoken",
        "left",
        "lost",
        "understood",
        "led",
        "built",
        "thrown",
        "grown",
        "hidden",
        "chosen",
        "gone",
        "done",
        "dealt",
        "bound",
        "heard",
    ]
)
NOUNS_LIKE_PARTICIPLES = frozenset({"seed", "feed", "need", "embed", "speed", "exceed", "proceed"})
QUESTION_OPENING_PATTERN = re.compile(r"(What|Whether|Which|Where|Who|Why|How|When)\b")
CONSTANT_PATTERN = re.compile(r"_?[A-Z][A-Z0-9_]*")
SKIPPED_FOLDERS = frozenset({"fixtures", "golden", "peers"})
"""Folders of data, and of programs that imitate other projects."""


@dataclass
class NameMetrics:
    """The names and docstrings of a folder, each with its file."""

    functions: list[str] = field(default_factory=list)
    docstrings: list[str] = field(default_factory=list)
    constants: list[str] = field(default_factory=list)
    modules_by_class: dict[str, set[Path]] = field(default_factory=lambda: defaultdict(set))

    @property
    def participles(self) -> list[str]:
        """The functions whose whole name is a participle, such as `told` or `settled`."""
        return [name for name in self.functions if is_participle(name)]

    @property
    def participle_share(self) -> float:
        return len(self.participles) / len(self.functions)

    @property
    def multiword_function_share(self) -> float:
        return sum("_" in name for name in self.functions) / len(self.functions)

    @property
    def oneword_constant_share(self) -> float:
        return sum("_" not in name for name in self.constants) / len(self.constants)

    @property
    def question_docstring_share(self) -> float:
        return sum(bool(QUESTION_OPENING_PATTERN.match(text)) for text in self.docstrings) / len(self.docstrings)

    @property
    def repeated_classes(self) -> dict[str, list[str]]:
        """The class names that more than two modules define."""
        return {name: sorted(map(str, modules)) for name, modules in self.modules_by_class.items() if len(modules) > 2}


def measure_names(*folders: Path) -> NameMetrics:
    """Measure every Python file below the folders."""
    metrics = NameMetrics()
    for path in list_python_files(*folders):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("__"):
                metrics.functions.append(node.name.strip("_"))
                if docstring := ast.get_docstring(node):
                    metrics.docstrings.append(docstring)
            elif isinstance(node, ast.ClassDef):
                metrics.modules_by_class[node.name].add(path)
        metrics.constants += [name.strip("_") for name in list_constants(tree)]
    return metrics


def list_python_files(*folders: Path) -> list[Path]:
    return [
        path for folder in folders for path in sorted(folder.rglob("*.py")) if SKIPPED_FOLDERS.isdisjoint(path.parts)
    ]


def list_constants(tree: ast.Module) -> Iterator[str]:
    """Yield the names of module constants."""
    for node in tree.body:
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Name) and CONSTANT_PATTERN.fullmatch(target.id):
                yield target.id


def is_participle(name: str) -> bool:
    is_regular = re.fullmatch(r"[a-z]+ed", name) is not None and name not in NOUNS_LIKE_PARTICIPLES
    return is_regular or name in IRREGULAR_PARTICIPLES

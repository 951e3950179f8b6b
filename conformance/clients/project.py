"""The repository that the clients work on: the sources of Cleats, whose build takes a while, and a few files more."""

import shutil
import subprocess
from pathlib import Path

SOURCE_FOLDER = Path(__file__).parents[2] / "src"

PROJECT_FILES = {
    "billing/refunds.py": '''"""Refunds: how money is returned to a customer."""

REFUND_WINDOW_DAYS = 14


def pay_back_refund(order_id: str, cents: int) -> str:
    """Return the money of an order to the customer."""
    return f"{order_id}: {cents}"
''',
    ".claude/skills/refund-checklist/SKILL.md": """---
name: refund-checklist
description: What to check before a refund is paid.
---

Ask for the receipt before anything else.
""",
}

GIT_COMMANDS = (
    ("init", "--quiet"),
    ("add", "--all"),
    ("-c", "user.name=Conformance", "-c", "user.email=conformance@localhost", "commit", "--quiet", "-m", "Begin"),
)


def create_project(folder: Path) -> None:
    """Create the repository in a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SOURCE_FOLDER, folder / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name, text in PROJECT_FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    for arguments in GIT_COMMANDS:
        subprocess.run(["git", *arguments], cwd=folder, check=True)

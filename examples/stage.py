"""How the demo speaks."""

import json
import sys
import textwrap
from typing import Any

BOLD, DIM, GREEN, PLAIN = (
    ("\033[1m", "\033[2m", "\033[32m", "\033[0m") if sys.stdout.isatty() else ("", "", "", "")
)


def say(text: str = "") -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def title(number: int, text: str) -> None:
    say(f"\n{BOLD}{number}. {text}{PLAIN}")


def ok(text: str) -> None:
    say(f"   {GREEN}✓{PLAIN} {text}")


def shown(value: Any) -> str:
    return textwrap.indent(json.dumps(value, indent=2, ensure_ascii=False), "   " + DIM) + PLAIN

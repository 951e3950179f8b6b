"""The output of the demo on a terminal."""

import json
import sys
import textwrap
import time
from typing import Any

BOLD_STYLE, DIM_STYLE, GREEN_STYLE, RESET_STYLE = (
    ("\033[1m", "\033[2m", "\033[32m", "\033[0m") if sys.stdout.isatty() else ("", "", "", "")
)


STARTED_AT = time.monotonic()


def elapsed_seconds() -> float:
    return time.monotonic() - STARTED_AT


def print_line(text: str = "") -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def print_title(number: int, text: str) -> None:
    print_line(f"\n{BOLD_STYLE}{number}. {text}{RESET_STYLE}  {DIM_STYLE}(at {elapsed_seconds():.0f} s){RESET_STYLE}")


def print_success(text: str) -> None:
    print_line(f"   {GREEN_STYLE}✓{RESET_STYLE} {text}")


def format_json(value: Any) -> str:
    return textwrap.indent(json.dumps(value, indent=2, ensure_ascii=False), "   " + DIM_STYLE) + RESET_STYLE

"""The picture of a terminal, recorded from the running program: `python -m book.picture`.

The commands run in a real terminal of their own, over a copy of `examples/shop`; what they print,
colours included, becomes an SVG that needs no font and no script from anywhere.
"""

import argparse
import html
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

from book.comparing import find_difference
from book.running import build_environ
from tests.support.paths import REPOSITORY_ROOT

PICTURE_FILE = REPOSITORY_ROOT / "docs" / "terminal.svg"
RECORDED_COMMANDS = (
    "cleats index",
    "cleats search 'where are expired sessions closed?' --top 2",
    "cleats search '*' --risk-flow 'request.args->' --context 1",
)
TERMINAL_COLUMNS = 84
CHARACTER_PIXELS, LINE_PIXELS = 8.4, 19
"""The size of a character in pixels; the width is that of a common monospaced font."""

CLASSES_BY_COLOUR_CODE = {
    "1": "b",
    "2": "d",
    "31": "r",
    "32": "g",
    "33": "y",
    "34": "u",
    "35": "m",
    "36": "c",
    "90": "d",
}
SVG_STYLE = (
    "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono',monospace;"
    "fill:#d6deeb;white-space:pre}.b{font-weight:700}.d{fill:#7f8c98}.r{fill:#ef5350}"
    ".g{fill:#7fdb9b}.y{fill:#f2c97d}.u{fill:#82aaff}.m{fill:#c792ea}.c{fill:#7fdbca}.p{fill:#7fdb9b}"
)
_COLOUR_CODE_PATTERN = re.compile(r"\x1b\[([0-9;]*)m")
_CONTROL_CODE_PATTERN = re.compile(r"\x1b\[[0-9;?]*[A-Za-ln-z]")


def main() -> int:
    """Return 0 if the picture is written or current, 1 if it is out of date."""
    parser = argparse.ArgumentParser(prog="python -m book.picture", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; is it current?")
    options = parser.parse_args()
    lines = list(record_session())
    if not options.check:
        PICTURE_FILE.write_text(render_svg(lines), encoding="utf-8")
        print(f"Wrote {PICTURE_FILE.relative_to(REPOSITORY_ROOT)}.", file=sys.stderr)
        return 0
    if missing := find_stale_line(lines):
        print(f"{PICTURE_FILE.relative_to(REPOSITORY_ROOT)} shows what is not so; run: make picture\n{missing}")
    return int(bool(missing))


def record_session() -> Iterator[str]:
    """Yield each line of the session with its colours."""
    with tempfile.TemporaryDirectory(prefix="cleats-book-") as name:
        home = Path(name)
        shutil.copytree(REPOSITORY_ROOT / "examples" / "shop", home / "shop")
        for number, command in enumerate(RECORDED_COMMANDS):
            if number:
                yield ""
            yield f"\x1b[32m$\x1b[0m {command}"
            output = _run_in_terminal(command, home).replace(str(home), "~").rstrip("\n")
            yield from output.split("\n")


def find_stale_line(lines: list[str]) -> str:
    """Return a line of the committed picture that the program no longer prints, or ""."""
    texts = re.findall(r"<text [^>]*>(.*?)</text>", PICTURE_FILE.read_text(encoding="utf-8"))
    picture_text = "\n".join(html.unescape(re.sub(r"<[^>]*>", "", text)) for text in texts)
    return find_difference(picture_text, "\n".join(lines), "~")


def render_svg(lines: list[str]) -> str:
    """Render the lines as an SVG picture."""
    width = round(TERMINAL_COLUMNS * CHARACTER_PIXELS + 32)
    height = len(lines) * LINE_PIXELS + 52
    dots = "".join(
        f'<circle cx="{20 + 18 * position}" cy="18" r="5.5" fill="{colour}"/>'
        for position, colour in enumerate(("#ef5350", "#f2c97d", "#7fdb9b"))
    )
    texts = "\n".join(
        f'<text x="16" y="{52 + LINE_PIXELS * position}">{"".join(_render_spans(line))}</text>'
        for position, line in enumerate(lines)
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        'aria-label="A terminal: cleats indexes a repository and answers two searches">'
        f"<style>{SVG_STYLE}</style>"
        f'<rect width="{width}" height="{height}" rx="8" fill="#0b1622"/>{dots}\n{texts}\n</svg>\n'
    )


def _render_spans(line: str) -> Iterator[str]:
    active: tuple[str, ...] = ()
    for position, part in enumerate(_COLOUR_CODE_PATTERN.split(_CONTROL_CODE_PATTERN.sub("", line))):
        if position % 2:
            codes = [code.lstrip("0") for code in part.split(";")]
            reset = any(not code for code in codes)
            classes = tuple(CLASSES_BY_COLOUR_CODE[code] for code in codes if code in CLASSES_BY_COLOUR_CODE)
            active = classes if reset else (*active, *classes)
        elif part:
            text = html.escape(part, quote=False)
            names = " ".join(dict.fromkeys(active))
            yield f'<tspan class="{names}">{text}</tspan>' if names else text


def _run_in_terminal(command: str, home: Path) -> str:
    """Run a command in a terminal of the fixed width and return its output."""
    reader, terminal = pty.openpty()
    ioctl(terminal, TIOCSWINSZ, struct.pack("HHHH", 50, TERMINAL_COLUMNS, 0, 0))
    settings = {**build_environ(home), "COLUMNS": str(TERMINAL_COLUMNS), "TERM": "xterm"}
    process = subprocess.Popen(
        ["bash", "-c", f"{command} 2> /dev/null"], stdout=terminal, cwd=home / "shop", env=settings
    )
    os.close(terminal)
    output = b"".join(_read_output(reader))
    os.close(reader)
    if process.wait():
        raise RuntimeError(f"{command}: exit code {process.returncode}")
    return output.decode().replace("\r\n", "\n")


def _read_output(descriptor: int) -> Iterator[bytes]:
    while True:
        try:
            part = os.read(descriptor, 65536)
        except OSError:  # Linux reports a closed terminal as an error
            return
        if not part:
            return
        yield part


if __name__ == "__main__":
    sys.exit(main())

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

from book.comparing import differs
from book.pages import ROOT
from book.running import environ

PICTURE = ROOT / "docs" / "terminal.svg"
COMMANDS = (
    "cleats index",
    "cleats search 'where are expired sessions closed?' --mode code --top 1",
    "cleats search '*' --risk-flow 'request.args->' --context 1",
)
COLUMNS = 84
CHARACTER, LINE = 8.4, 19
"""Pixels; the width is that of a common monospaced font at this size."""

COLOURS = {
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
STYLE = (
    "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono',monospace;"
    "fill:#d6deeb;white-space:pre}.b{font-weight:700}.d{fill:#7f8c98}.r{fill:#ef5350}"
    ".g{fill:#7fdb9b}.y{fill:#f2c97d}.u{fill:#82aaff}.m{fill:#c792ea}.c{fill:#7fdbca}.p{fill:#7fdb9b}"
)
_SGR = re.compile(r"\x1b\[([0-9;]*)m")
_OTHER = re.compile(r"\x1b\[[0-9;?]*[A-Za-ln-z]")


def main() -> int:
    """Exit 0 when the picture is written or current, 1 when it shows something else."""
    parser = argparse.ArgumentParser(prog="python -m book.picture", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; is it current?")
    options = parser.parse_args()
    lines = list(recorded())
    if not options.check:
        PICTURE.write_text(drawn(lines), encoding="utf-8")
        print(f"Wrote {PICTURE.relative_to(ROOT)}.", file=sys.stderr)
        return 0
    if missing := stale(lines):
        print(f"{PICTURE.relative_to(ROOT)} shows what is not so; run: make picture\n{missing}")
    return int(bool(missing))


def recorded() -> Iterator[str]:
    """Each line of the session, with its colours."""
    with tempfile.TemporaryDirectory(prefix="cleats-book-") as name:
        home = Path(name)
        shutil.copytree(ROOT / "examples" / "shop", home / "shop")
        for number, command in enumerate(COMMANDS):
            if number:
                yield ""
            yield f"\x1b[32m$\x1b[0m {command}"
            said = _terminal(command, home).replace(str(home), "~").rstrip("\n")
            yield from said.split("\n")


def stale(lines: list[str]) -> str:
    """A line of the committed picture that the program does not say; empty when it says all."""
    texts = re.findall(r"<text [^>]*>(.*?)</text>", PICTURE.read_text(encoding="utf-8"))
    shown = "\n".join(html.unescape(re.sub(r"<[^>]*>", "", text)) for text in texts)
    return differs(shown, "\n".join(lines), "~")


def drawn(lines: list[str]) -> str:
    """The lines as a picture."""
    width = round(COLUMNS * CHARACTER + 32)
    height = len(lines) * LINE + 52
    dots = "".join(
        f'<circle cx="{20 + 18 * place}" cy="18" r="5.5" fill="{colour}"/>'
        for place, colour in enumerate(("#ef5350", "#f2c97d", "#7fdb9b"))
    )
    texts = "\n".join(
        f'<text x="16" y="{52 + LINE * place}">{"".join(_spans(line))}</text>'
        for place, line in enumerate(lines)
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        'aria-label="A terminal: cleats indexes a repository and answers two searches">'
        f"<style>{STYLE}</style>"
        f'<rect width="{width}" height="{height}" rx="8" fill="#0b1622"/>{dots}\n{texts}\n</svg>\n'
    )


def _spans(line: str) -> Iterator[str]:
    active: tuple[str, ...] = ()
    for place, part in enumerate(_SGR.split(_OTHER.sub("", line))):
        if place % 2:
            codes = [code.lstrip("0") for code in part.split(";")]
            reset = any(not code for code in codes)
            named = tuple(COLOURS[code] for code in codes if code in COLOURS)
            active = named if reset else (*active, *named)
        elif part:
            text = html.escape(part, quote=False)
            names = " ".join(dict.fromkeys(active))
            yield f'<tspan class="{names}">{text}</tspan>' if names else text


def _terminal(command: str, home: Path) -> str:
    """What a command prints in a terminal of our width."""
    ours, theirs = pty.openpty()
    ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    settings = {**environ(home), "COLUMNS": str(COLUMNS), "TERM": "xterm"}
    process = subprocess.Popen(
        ["bash", "-c", f"{command} 2> /dev/null"], stdout=theirs, cwd=home / "shop", env=settings
    )
    os.close(theirs)
    said = b"".join(_read(ours))
    os.close(ours)
    if process.wait():
        raise RuntimeError(f"{command}: exit code {process.returncode}")
    return said.decode().replace("\r\n", "\n")


def _read(descriptor: int) -> Iterator[bytes]:
    while True:
        try:
            part = os.read(descriptor, 65536)
        except OSError:  # Linux says that the other side is gone with an error
            return
        if not part:
            return
        yield part


if __name__ == "__main__":
    sys.exit(main())

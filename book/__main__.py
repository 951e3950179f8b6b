"""The command: `python -m book`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from book import pages, running
from book.pages import Page
from book.site import Site


def main() -> int:
    """Exit 0 when the site is built and everything on it is so, else 1."""
    options = _options()
    every = pages.every()
    site = Site(every)
    problems = site.write(options.output)
    print(f"Wrote {len(every)} pages to {options.output}.", file=sys.stderr)
    if not options.site_only:
        problems += _checked(_chosen(every, options.pages))
    for problem in problems:
        print(problem)
    return int(bool(problems))


def _chosen(every: Sequence[Page], names: Sequence[str]) -> list[Page]:
    return [page for page in every if not names or page.path in names]


def _checked(chosen: Sequence[Page]) -> list[str]:
    found = []
    for page in chosen:
        print(f"running the blocks of {page.path}", file=sys.stderr, flush=True)
        found += [str(problem) for problem in running.check(page)]
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m book",
        description="Build the site from README and docs, follow its links, run its code blocks.",
    )
    parser.add_argument("pages", nargs="*", help="run the blocks of these pages only")
    parser.add_argument("-o", "--output", type=Path, default=pages.ROOT / "build" / "site")
    parser.add_argument("--site-only", action="store_true", help="run no blocks")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

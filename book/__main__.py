"""The command: `python -m book`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from book import pages, running
from book.pages import BookPage
from book.site import BookSite


def main() -> int:
    """Return 0 if the site is built and everything on it works, else 1."""
    options = _parse_options()
    all_pages = pages.read_all_pages()
    site = BookSite(all_pages)
    problems = site.write(options.output)
    print(f"Wrote {len(all_pages)} pages to {options.output}.", file=sys.stderr)
    if not options.site_only:
        problems += _check_pages(_select_pages(all_pages, options.pages))
    for problem in problems:
        print(problem)
    return int(bool(problems))


def _select_pages(all_pages: Sequence[BookPage], names: Sequence[str]) -> list[BookPage]:
    return [page for page in all_pages if not names or page.path in names]


def _check_pages(selected_pages: Sequence[BookPage]) -> list[str]:
    problems = []
    for page in selected_pages:
        print(f"running the blocks of {page.path}", file=sys.stderr, flush=True)
        problems += [str(problem) for problem in running.check_page(page)]
    return problems


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m book",
        description="Build the site from README and docs, follow its links, run its code blocks.",
    )
    parser.add_argument("pages", nargs="*", help="run the blocks of these pages only")
    parser.add_argument("-o", "--output", type=Path, default=pages.REPOSITORY_ROOT / "build" / "site")
    parser.add_argument("--site-only", action="store_true", help="run no blocks")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

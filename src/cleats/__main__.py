"""`python -m cleats` is the `cleats` command, and so is the script that is installed."""

import sys


def main() -> None:
    """Run the command; Ctrl-C while it is still being imported ends it without a word."""
    try:
        from cleats.cli.main import main as run  # noqa: PLC0415 - so that it is guarded
    except KeyboardInterrupt:
        sys.exit(130)  # noqa: TID251 - the command line begins here
    run()


if __name__ == "__main__":
    main()

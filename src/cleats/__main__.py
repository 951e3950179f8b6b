"""The entry point of `python -m cleats` and of the installed `cleats` script."""

import sys


def main() -> None:
    """Run the command.

    Ctrl-C during the imports ends it silently, or a server with its message; a library that cannot be imported ends it
    with a message that says what to do.
    """
    try:
        from cleats.runtime.early_signals import SERVER_COMMANDS, end_on_signals  # noqa: PLC0415 - so that it is guarded

        if not SERVER_COMMANDS.isdisjoint(sys.argv[1:2]):
            end_on_signals()
        from cleats.cli.main import main as run  # noqa: PLC0415 - so that it is guarded
    except KeyboardInterrupt:
        sys.exit(130)  # noqa: TID251 - the command line begins here
    except ImportError as error:
        remedy = "`pip install --force-reinstall cleats` installs what Cleats stands on anew."
        print(f"Error: {type(error).__name__}: {error}\n{remedy}", file=sys.stderr)  # noqa: T201
        sys.exit(2)  # noqa: TID251 - the command line begins here
    run()


if __name__ == "__main__":
    main()

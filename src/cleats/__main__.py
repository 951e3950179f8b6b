"""The entry point of `python -m cleats` and of the installed `cleats` script."""

import sys

_SERVER_COMMANDS = frozenset({"serve", "http"})


def main() -> None:
    """Run the command.

    Ctrl-C during the imports ends it silently, or a server with its message; a library that cannot be imported ends it
    with a message that says what to do.
    """
    is_server = not _SERVER_COMMANDS.isdisjoint(sys.argv[1:2])
    try:
        from cleats.runtime.early_signals import end_on_signals  # noqa: PLC0415 - so that it is guarded

        if is_server:
            end_on_signals()
        from cleats.cli.main import main as run  # noqa: PLC0415 - so that it is guarded
    except KeyboardInterrupt:
        if is_server:  # it came before the handler was installed
            print("serve.end reason=SIGINT, before the server was ready", file=sys.stderr)  # noqa: T201
        sys.exit(0 if is_server else 130)  # noqa: TID251 - the command line begins here
    except ImportError as error:
        from cleats.runtime.installation import format_reinstall_command  # noqa: PLC0415 - only failures need it

        remedy = f"Reinstall Cleats and its libraries: {format_reinstall_command()}"
        print(f"Error: {type(error).__name__}: {error}\n{remedy}", file=sys.stderr)  # noqa: T201
        sys.exit(2)  # noqa: TID251 - the command line begins here
    run()


if __name__ == "__main__":
    main()

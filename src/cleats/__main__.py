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
    try:
        run()
    except SystemExit as end:
        if not is_server and isinstance(end.code, int | None):
            _exit_at_once(end.code or 0)
        raise


def _exit_at_once(exit_code: int) -> None:
    """Exit without freeing every object, which takes longer than many commands; return where Python must end threads.

    What registered itself for the end is called, and the output is written.
    """
    import atexit  # noqa: PLC0415 - nothing is imported before Ctrl-C is answered
    import os  # noqa: PLC0415
    import threading  # noqa: PLC0415

    if threading.active_count() > 1:
        return
    atexit._run_exitfuncs()  # noqa: SLF001 - the only way to run them before `os._exit`
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return  # Python has a message and an exit code for that
    os._exit(exit_code)


if __name__ == "__main__":
    main()

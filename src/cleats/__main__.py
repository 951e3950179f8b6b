"""`python -m cleats` is the `cleats` command."""

from cleats.cli.main import main

if __name__ == "__main__":
    main()

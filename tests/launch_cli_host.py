"""The `cleats` command whose runs are done by the small worker of the tests.

`python -m tests.launch_cli_host launch start run.yaml` is `cleats launch start run.yaml` with it.
"""

from cleats.cli.main import main
from cleats.toolsets.launch import service
from tests.servers.launch import Small

if __name__ == "__main__":
    service.Launches = Small  # type: ignore[misc]
    main()

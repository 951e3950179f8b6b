"""The `cleats` command whose runs are done by the small worker of the tests.

`python -m tests.support.launch_cli_host launch start run.yaml` is `cleats launch start run.yaml` with this
worker.
"""

from cleats.cli.main import main
from cleats.toolsets.launch import service
from tests.support.servers.launch import SmallLaunches

if __name__ == "__main__":
    service.LaunchService = SmallLaunches  # type: ignore[misc]
    main()

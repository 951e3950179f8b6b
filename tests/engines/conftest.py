"""The real servers of the checks."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.engines.opensearch_nodes import OpenSearchCluster, start_cluster
from tests.support.opensearch_server import HOME_VARIABLE

NODE_NAMES = ("left", "middle", "right")


@pytest.fixture(scope="session")
def opensearch_home() -> Path:
    """Return the folder of the server that `make engines` installed."""
    if HOME_VARIABLE not in os.environ:
        pytest.skip("run make engines, which installs OpenSearch")
    return Path(os.environ[HOME_VARIABLE])


@pytest.fixture(scope="session")
def three_nodes(opensearch_home: Path) -> Iterator[OpenSearchCluster]:
    """Run a cluster of three nodes for all checks."""
    folder = Path(mkdtemp(prefix="cleats-cluster-"))
    folder.chmod(0o755)
    try:
        started = start_cluster(opensearch_home, folder, NODE_NAMES)
        try:
            yield started
        finally:
            started.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)

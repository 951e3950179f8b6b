"""Real OpenSearch nodes on this machine: the distribution from Maven packages, and processes that run it."""

import os
import shutil
import signal
import subprocess
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import msgspec

from tests.engines.ports import find_free_ports

POM_FILE = Path(__file__).with_name("pom.xml")
VERSION_VARIABLE = "CLEATS_OPENSEARCH_VERSION"
"""The environment variable with the version of OpenSearch to install, if not the one in the file above."""

INSTALL_TIMEOUT_SECONDS = 900
START_TIMEOUT_SECONDS = 600
JVM_OPTIONS = """-Xms256m
-Xmx512m
-XX:+UseSerialGC
-XX:-AlwaysPreTouch
-XX:TieredStopAtLevel=1
-Djava.io.tmpdir=${OPENSEARCH_TMPDIR}
18-23:-Djava.security.manager=allow
-Djava.util.concurrent.ForkJoinPool.common.threadFactory=org.opensearch.secure_sm.SecuredForkJoinWorkerThreadFactory
"""
"""The options of the distribution without those that write to its folder, with a small heap and fast compilation."""

NODE_USER_ID = 65534
"""The user that nodes run as if the tests run as root."""

PAINLESS_JARS = ("antlr4-runtime-*.jar", "asm-*.jar", "lang-painless-*.jar", "opensearch-scripting-painless-spi-*.jar")
PAINLESS_POLICY = """grant {
  permission java.lang.RuntimePermission "createClassLoader";
  permission java.lang.RuntimePermission "getClassLoader";
};
"""


class InstallError(Exception):
    """The packages of a server cannot be had here."""


def install_opensearch(home: Path) -> None:
    """Unpack the server, its painless module and the k-NN plugin into a new folder.

    Raises:
        InstallError: Maven failed.
    """
    packages = Path(mkdtemp(prefix="packages-", dir=home.parent))
    argv = ["mvn", "-q", "-B", "-f", str(POM_FILE), "dependency:copy-dependencies", f"-DoutputDirectory={packages}"]
    if version := os.environ.get(VERSION_VARIABLE):
        argv.append(f"-Dopensearch.version={version}")
    try:
        completed = subprocess.run(
            argv, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_SECONDS, check=False, cwd=packages
        )
    except subprocess.TimeoutExpired:
        raise InstallError(f"mvn did not finish in {INSTALL_TIMEOUT_SECONDS} s") from None
    if completed.returncode:
        errors = [line for line in completed.stdout.splitlines() if "ERROR" in line]
        raise InstallError(f"mvn failed: {errors[0][:300] if errors else completed.stderr[-300:]}")
    [server] = packages.glob("opensearch-[0-9]*.zip")
    [knn] = packages.glob("opensearch-knn-*.zip")
    _unpack_archive(server, home.parent)
    home.parent.joinpath(server.stem).rename(home)
    for script in (home / "bin").iterdir():
        script.chmod(0o755)
    _unpack_archive(knn, home / "plugins" / "opensearch-knn")
    if not (home / "modules" / "lang-painless").exists():  # the package of version 3 has it
        _add_painless(packages, home)
    shutil.rmtree(packages)


def _unpack_archive(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(folder)


def _add_painless(packages: Path, home: Path) -> None:
    folder = home / "modules" / "lang-painless"
    folder.mkdir()
    for pattern in PAINLESS_JARS:
        for jar in packages.glob(pattern):
            shutil.copy(jar, folder)
    # The packages have no descriptor: it differs from that of the other module in name and class only.
    descriptor = (home / "modules" / "transport-netty4" / "plugin-descriptor.properties").read_text()
    descriptor = descriptor.replace("org.opensearch.transport.Netty4Plugin", "org.opensearch.painless.PainlessPlugin")
    (folder / "plugin-descriptor.properties").write_text(descriptor.replace("transport-netty4", "lang-painless"))
    (folder / "plugin-security.policy").write_text(PAINLESS_POLICY)


@contextmanager
def make_node_folder() -> Iterator[Path]:
    """Yield a temporary folder that the user of the nodes can read."""
    folder = Path(mkdtemp(prefix="cleats-nodes-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class OpenSearchNode:
    """One node, with its own settings, data and logs."""

    home: Path
    folder: Path
    name: str
    http_port: int
    settings: Mapping[str, Any]
    process: subprocess.Popen[bytes] | None = None
    java_argv: Sequence[str] = ()
    """The command that the script of the distribution has become, which starts a node again in half the time."""

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.http_port}"

    @property
    def argv(self) -> list[str]:
        """The command of the node, which runs as another user if this one is root: OpenSearch refuses root."""
        user = NODE_USER_ID
        demote = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--"] if os.getuid() == 0 else []
        return [*demote, *(self.java_argv or (str(self.home / "bin" / "opensearch"),))]

    @property
    def environ(self) -> dict[str, str]:
        return {
            **os.environ,
            "OPENSEARCH_PATH_CONF": str(self.folder / "config"),
            "OPENSEARCH_TMPDIR": str(self.folder / "tmp"),
            "OPENSEARCH_JAVA_OPTS": f"-XX:ErrorFile={self.folder}/error.log",
            "OPENSEARCH_JAVA_HOME": find_java_home(),
        }

    def write_config(self) -> None:
        """Write the settings into the folder of the node."""
        config = self.folder / "config"
        shutil.copytree(self.home / "config", config)
        settings = {
            "node.name": self.name,
            "network.host": "127.0.0.1",
            "http.port": self.http_port,
            "path.data": str(self.folder / "data"),
            "path.logs": str(self.folder / "logs"),
            **self.settings,
        }
        lines = [f"{key}: {msgspec.json.encode(value).decode()}\n" for key, value in settings.items()]
        (config / "opensearch.yml").write_text("".join(lines))
        agent = self.home / "agent" / "opensearch-agent.jar"  # OpenSearch 3 has it in place of a security manager
        (config / "jvm.options").write_text(JVM_OPTIONS + f"-javaagent:{agent}\n" * agent.exists())
        (self.folder / "tmp").mkdir()
        _hand_over(self.folder)

    def start(self) -> None:
        """Start the node on its data; `wait_for_nodes` waits for it."""
        if not (self.folder / "config").exists():
            self.write_config()
        with (self.folder / "output.log").open("ab") as output:
            self.process = subprocess.Popen(
                self.argv,
                env=self.environ,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def kill(self, number: int = signal.SIGKILL) -> None:
        """End the node with a signal and wait until it has ended."""
        if self.process is not None:
            command = Path(f"/proc/{self.process.pid}/cmdline")
            if self.is_running() and command.exists():
                words = command.read_text().split("\0")[:-1]
                self.java_argv = words if "-cp" in words or "-classpath" in words else ()
            self.process.send_signal(number)
            self.process.wait(START_TIMEOUT_SECONDS)
            self.process = None

    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def read_last_output(self) -> str:
        return (self.folder / "output.log").read_text(errors="replace")[-3000:]

    def send(self, method: str, path: str, body: Any = None, *, timeout: float = 60) -> Any:
        """Send a request to this node.

        Raises:
            OSError: the node is away, or rejects the request.
        """
        data = None if body is None else msgspec.json.encode(body)
        request = Request(self.base + path, data, {"content-type": "application/json"}, method=method)
        with urlopen(request, timeout=timeout) as response:
            return msgspec.json.decode(response.read())


def find_java_home() -> str:
    """Return the folder of the installed JDK.

    Raises:
        InstallError: there is none.
    """
    java = shutil.which("java")
    if java is None:
        raise InstallError("java is not installed")
    return os.environ.get("JAVA_HOME") or str(Path(java).resolve().parent.parent)


def _hand_over(folder: Path) -> None:
    if os.getuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NODE_USER_ID, NODE_USER_ID)


@dataclass
class OpenSearchCluster:
    """Some nodes of one cluster on loopback."""

    nodes: list[OpenSearchNode] = field(default_factory=list)

    @property
    def running_nodes(self) -> list[OpenSearchNode]:
        return [node for node in self.nodes if node.is_running()]

    def wait_for_nodes(self, count: int, status: str = "") -> None:
        """Wait until some nodes have found each other, and optionally until all data has this status."""
        condition = f"/_cluster/health?wait_for_nodes={count}&timeout=5s" + (
            f"&wait_for_status={status}" * bool(status)
        )
        give_up_at = time.monotonic() + START_TIMEOUT_SECONDS
        last: object = None
        while time.monotonic() < give_up_at:
            for node in self.nodes:
                if node.process is not None and node.process.poll() is not None:
                    raise AssertionError(f"{node.name} ended: {node.read_last_output()}")
            try:
                last = self.running_nodes[-1].send("GET", condition, timeout=20)
            except HTTPError as error:  # 408: not yet
                last = error.code
            except (URLError, OSError) as error:
                last = error
            else:
                return
            time.sleep(0.2)
        raise AssertionError(f"the cluster is not ready: {last}")

    def send(self, method: str, path: str, body: Any = None) -> Any:
        return self.running_nodes[0].send(method, path, body)

    def stop(self) -> None:
        for node in self.nodes:
            node.kill()


def start_cluster(home: Path, folder: Path, names: Sequence[str]) -> OpenSearchCluster:
    """Start nodes that form one cluster; a single name is a cluster of one node."""
    ports = find_free_ports(2 * len(names))
    transport_ports = dict(zip(names, ports[: len(names)], strict=True))
    common: dict[str, Any] = {"cluster.name": "-".join(names)}
    if len(names) == 1:
        common["discovery.type"] = "single-node"
    else:
        common["discovery.seed_hosts"] = [f"127.0.0.1:{port}" for port in transport_ports.values()]
        common["cluster.initial_cluster_manager_nodes"] = list(names)
    cluster = OpenSearchCluster()
    for name, http_port in zip(names, ports[len(names) :], strict=True):
        node_folder = folder / name
        node_folder.mkdir()
        node_settings = {**common, "transport.port": transport_ports[name]}
        cluster.nodes.append(OpenSearchNode(home, node_folder, name, http_port, node_settings))
    try:
        for node in cluster.nodes:
            node.start()
        cluster.wait_for_nodes(len(names))
    except BaseException:
        cluster.stop()
        raise
    return cluster

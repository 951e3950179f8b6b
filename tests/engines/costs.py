"""What a cluster costs beside the embedded index: disk, publishing, and searches with one and three nodes."""

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import anyio

from bench.calls import machine
from bench.code import ours
from bench.code.corpora import ALL_CORPORA
from cleats.toolsets.code.index.generations import GenerationStore
from cleats.toolsets.code.query.request import parse_request
from cleats.toolsets.code.repository import Repository
from cleats.toolsets.code.search.engine import SearchEngine
from cleats.toolsets.code.sharing.opensearch.cluster import Cluster, ClusterAddress
from cleats.toolsets.code.sharing.opensearch.publishing import ClusterPublisher
from cleats.toolsets.code.sharing.opensearch.remote_index import RemoteIndex
from tests.engines.opensearch_nodes import OpenSearchCluster, make_node_folder, start_cluster

NAME = "costs"
NODE_NAMES = ("first", "second", "third")
QUERY_COUNT = 100
WARM_UP_QUERIES = 20
"""Searches that are not counted: the nodes compile their code during the first ones."""


@dataclass(frozen=True, slots=True)
class SearchTimes:
    """The times of some searches in milliseconds, on the clock and of this process's CPU."""

    wall: list[float]
    cpu: list[float]
    node_cpu: float = 0.0
    """CPU milliseconds of all nodes for one search."""

    def describe(self) -> str:
        median, slowest = statistics.median(self.wall), sorted(self.wall)[int(0.99 * (len(self.wall) - 1))]
        text = f"p50 {median:.0f} ms, p99 {slowest:.0f} ms; {statistics.mean(self.cpu):.1f} ms of CPU here"
        return text + (f", {self.node_cpu:.1f} ms in the nodes" if self.node_cpu else "")


def report_costs(home: Path, corpus_name: str) -> None:
    """Print the costs of a corpus."""
    corpus = next(candidate for candidate in ALL_CORPORA if candidate.name == corpus_name).prepare()
    before = machine.read_cpu_times()
    with make_node_folder() as folder:
        built = ours.build_index(corpus, folder / "cache")
        lease = GenerationStore(folder / "cache", Repository.from_path(str(corpus), corpus)).lease_current()
        assert lease is not None
        with lease, ours.open_engine(corpus, folder / "cache") as engine:
            questions = _list_questions(engine)
            size = sum(path.stat().st_size for path in lease.folder.rglob("*") if path.is_file())
            print(f"{corpus_name}: built with {built.cpu:.1f} s of CPU")
            local = _measure_searches(questions, lambda question: ours.search_code(engine, question))
            for node_count in (1, 3):
                (folder / f"nodes-{node_count}").mkdir()
                (folder / f"nodes-{node_count}").chmod(0o755)
                cluster = start_cluster(home, folder / f"nodes-{node_count}", NODE_NAMES[:node_count])
                try:
                    _report_cluster(cluster, lease.folder, questions, size)
                finally:
                    cluster.stop()
    print(f"embedded: {local.describe()}")
    print(f"others took {machine.read_cpu_times().compute_others_share(before):.0%} of the CPUs")


def _list_questions(engine: SearchEngine) -> list[str]:
    paths = sorted(path for columns in engine.shards for path in columns.paths.values())
    stems = [" ".join(path.rsplit(".", 1)[0].replace("_", " ").split("/")[-3:]) for path in paths]
    chosen = list(islice(stems, 0, None, max(1, len(stems) // QUERY_COUNT)))[:QUERY_COUNT]
    return [f"how does {stem} work" if number % 2 else stem.split()[-1] for number, stem in enumerate(chosen)]


def _measure_searches(
    questions: list[str], search: Callable[[str], object], node_cpu: Callable[[], float] = lambda: 0.0
) -> SearchTimes:
    for question in questions[:WARM_UP_QUERIES]:
        search(question)
    wall, cpu, nodes_before = [], [], node_cpu()
    for question in questions:
        started_at, cpu_before = time.perf_counter(), time.process_time()
        search(question)
        wall.append((time.perf_counter() - started_at) * 1e3)
        cpu.append((time.process_time() - cpu_before) * 1e3)
    return SearchTimes(wall, cpu, (node_cpu() - nodes_before) * 1e3 / len(questions))


def _report_cluster(cluster: OpenSearchCluster, generation: Path, questions: list[str], local_bytes: int) -> None:
    node_count = len(cluster.nodes)
    address = ClusterAddress(cluster.nodes[0].base)
    context = address.create_ssl_context()
    counts: list[int] = []

    async def publish() -> None:
        async with Cluster(address, context) as connected:
            publisher = ClusterPublisher(connected, NAME, "builder", node_count, min(1, node_count - 1))
            await publisher.publish(generation, lambda _done, total: counts.append(total))

    before, cpu_before, started_at = _read_node_cpu(cluster), time.process_time(), time.perf_counter()
    anyio.run(publish)
    seconds, cpu = time.perf_counter() - started_at, time.process_time() - cpu_before
    node_cpu = _read_node_cpu(cluster) - before
    cluster.send("POST", f"/cleats-{NAME}/_flush")
    stored = cluster.send("GET", f"/cleats-{NAME}/_stats/store")["_all"]["primaries"]["store"]["size_in_bytes"]
    [described] = cluster.send("GET", f"/cleats-{NAME}/_mapping").values()
    chunks = described["mappings"]["_meta"]["cleats"]["chunks"]
    print(
        f"{node_count} node(s), {node_count} shard(s), {min(1, node_count - 1)} replica(s): {chunks:,} chunks and"
        f" {counts[-1] - chunks:,} other documents in {seconds:.1f} s ({chunks / seconds:,.0f} chunks/s),"
        f" {cpu:.1f} s of CPU here and {node_cpu:.1f} s in the nodes; {stored / 1e6:.1f} MB for one copy,"
        f" {stored / chunks:,.0f} bytes a chunk, embedded {local_bytes / 1e6:.1f} MB and {local_bytes / chunks:,.0f}"
    )
    index = RemoteIndex(address, context, NAME, False, Path("/nowhere"), 60.0)

    def search(question: str) -> object:
        arguments = {"query": question, "mode": "code", "top": 10}
        return anyio.run(index.search, lambda: parse_request(arguments, demote_tests=True))

    times = _measure_searches(questions, search, lambda: _read_node_cpu(cluster))
    memory = max(_read_peak_memory(node.process.pid) for node in cluster.nodes if node.process is not None)
    print(f"{node_count} node(s): {times.describe()}; {memory:.0f} MB of memory at most in a node", flush=True)


def _read_node_cpu(cluster: OpenSearchCluster) -> float:
    """Return the CPU seconds of all nodes."""
    ticks = 0
    for node in cluster.nodes:
        assert node.process is not None
        fields = Path(f"/proc/{node.process.pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _read_peak_memory(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))

"""A generation into a cluster: whole or not at all, whatever fails and when."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cleats.toolsets.code.opensearch import publishing
from cleats.toolsets.code.opensearch.cluster import ClusterError
from cleats.toolsets.code.opensearch.documents import Document, documents
from cleats.toolsets.code.opensearch.publishing import batched
from tests.opensearch import OpenSearch, Request, opensearch
from tests.opensearch_world import names, publish, remote, serving
from tests.peer import ROOT
from tests.search_world import build, shop
from tests.waiting import LIMIT

FIRST, SECOND, THIRD, FOURTH = (f"00000{n}-0badcafe" for n in range(1, 5))


@pytest.fixture
def cluster() -> Iterator[OpenSearch]:
    with opensearch() as running:
        yield running


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Generations: the second lacks a file that the first has."""
    root = tmp_path_factory.mktemp("generations")
    files = {FIRST: shop(), SECOND: shop()[1:], THIRD: shop()[2:], FOURTH: shop()}
    return {name: build(root / name, made) for name, made in files.items()}


def index_of(generation: str, name: str = "shop") -> str:
    return f"cleats-{name}-{generation}-v3.3.1"


def test_what_is_published_is_searched_and_the_next_generation_takes_its_place(
    cluster: OpenSearch, folders: dict[str, Path]
) -> None:
    told: list[tuple[int, int]] = []
    publish(cluster, folders[FIRST], tell=lambda done, total: told.append((done, total)))
    searched = remote(cluster)
    before = names(searched, "cart", mode="code")

    publish(cluster, folders[SECOND])

    assert told[-1] == (16, 16)
    assert "Cart" in before
    assert "Cart" not in names(searched, "cart", mode="code", ann=False)
    assert serving(cluster) == [index_of(SECOND)]
    assert not any(
        alias.endswith("writing") for i in cluster.indexes.values() for alias in i.aliases
    )


def test_publishing_again_changes_nothing(cluster: OpenSearch, folders: dict[str, Path]) -> None:
    publish(cluster, folders[FIRST])
    cluster.seen.clear()

    publish(cluster, folders[FIRST])

    assert {each.method for each in cluster.seen} == {"GET"}


def test_one_older_generation_stays_for_searches_that_are_in_it(
    cluster: OpenSearch, folders: dict[str, Path]
) -> None:
    for generation in (FIRST, SECOND, THIRD, FOURTH):
        publish(cluster, folders[generation])

    assert sorted(cluster.indexes) == [index_of(THIRD), index_of(FOURTH)]
    assert serving(cluster) == [index_of(FOURTH)]


def test_the_indexes_of_other_names_are_left_alone(
    cluster: OpenSearch, folders: dict[str, Path]
) -> None:
    for generation in (FIRST, SECOND, THIRD):
        publish(cluster, folders[generation], name="shop-2")
    kept = sorted(cluster.indexes)

    for generation in (FIRST, SECOND, THIRD):
        publish(cluster, folders[generation], name="shop")

    assert set(kept) < set(cluster.indexes)
    assert serving(cluster, "shop-2") == [index_of(THIRD, "shop-2")]
    assert serving(cluster) == [index_of(THIRD)]


def test_wherever_the_cluster_goes_away_the_alias_stays_and_the_next_attempt_works(
    cluster: OpenSearch, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "BATCH_DOCUMENTS", 6)
    publish(cluster, folders[FIRST])
    cluster.seen.clear()
    publish(cluster, folders[SECOND])
    requests, moved = (
        len(cluster.seen),
        next(at for at, each in enumerate(cluster.seen) if each.path == "/_aliases"),
    )
    publish(cluster, folders[FIRST])

    for good in range(requests):
        cluster.seen.clear()
        cluster.faults = [lambda _: (0, None) if len(cluster.seen) > good else None]  # noqa: B023
        if good <= moved:
            with pytest.raises(ClusterError):
                publish(cluster, folders[SECOND], tries=1)
            assert serving(cluster) == [index_of(FIRST)]
        cluster.faults = []
        publish(cluster, folders[SECOND])
        assert serving(cluster) == [index_of(SECOND)]
        assert all(each.mappings["_meta"]["cleats"]["done"] for each in cluster.indexes.values())
        publish(cluster, folders[FIRST])
        del cluster.indexes[index_of(SECOND)]


def test_a_builder_that_is_killed_leaves_the_last_good_index(
    cluster: OpenSearch, folders: dict[str, Path]
) -> None:
    publish(cluster, folders[FIRST])
    reached, ended = threading.Event(), threading.Event()

    def hold(request: Request) -> None:
        if request.path.endswith("_bulk"):
            reached.set()
            ended.wait(LIMIT)

    cluster.faults = [hold]
    script = (
        "import sys; from pathlib import Path; from tests.opensearch import OpenSearch;"
        "from tests.opensearch_world import publish;"
        "publish(OpenSearch(base=sys.argv[1]), Path(sys.argv[2]))"
    )
    argv = [sys.executable, "-c", script, cluster.base, str(folders[SECOND])]
    with subprocess.Popen(argv, cwd=ROOT) as builder:
        assert reached.wait(LIMIT)
        builder.send_signal(signal.SIGKILL)
    ended.set()
    cluster.faults = []

    assert serving(cluster) == [index_of(FIRST)]
    assert names(remote(cluster), "Cart.add")[0] == "Cart.add"
    publish(cluster, folders[SECOND])
    assert serving(cluster) == [index_of(SECOND)]


def test_a_busy_cluster_is_asked_again(cluster: OpenSearch, folders: dict[str, Path]) -> None:
    failures = iter([429, 503, 429, 502])
    cluster.faults = [
        lambda request: (
            (status, {"error": "busy"})
            if request.method != "GET" and (status := next(failures, 0))
            else None
        )
    ]

    publish(cluster, folders[FIRST])

    assert serving(cluster) == [index_of(FIRST)]


def test_documents_that_are_turned_away_for_now_are_sent_again_and_only_they(
    cluster: OpenSearch, folders: dict[str, Path]
) -> None:
    cluster.full = 5

    publish(cluster, folders[FIRST])

    sent = [len(each.lines) // 2 for each in cluster.seen if each.path.endswith("_bulk")]
    assert sent == [16, 5]
    assert serving(cluster) == [index_of(FIRST)]


def test_a_cluster_that_stays_full_is_given_up_and_left_clean(
    cluster: OpenSearch, folders: dict[str, Path]
) -> None:
    publish(cluster, folders[FIRST])
    cluster.full = 10**6

    with pytest.raises(ClusterError, match="429"):
        publish(cluster, folders[SECOND])

    assert list(cluster.indexes) == serving(cluster) == [index_of(FIRST)]


def test_one_document_that_is_refused_stops_the_whole_generation(
    cluster: OpenSearch, folders: dict[str, Path]
) -> None:
    def refuse(request: Request) -> tuple[int, Any] | None:
        if not request.path.endswith("_bulk"):
            return None
        error = {"type": "mapper_parsing_exception", "reason": "no such thing"}
        items = [{"index": {"_id": "0", "status": 201}}]
        return 200, {
            "errors": True,
            "items": [*items, {"index": {"_id": "7", "status": 400, "error": error}}],
        }

    cluster.faults = [refuse]

    with pytest.raises(ClusterError, match="document 7 was refused with 400: no such thing"):
        publish(cluster, folders[FIRST])

    assert not cluster.indexes


def test_an_index_that_lacks_documents_is_not_served(
    cluster: OpenSearch, folders: dict[str, Path]
) -> None:
    lost = {"errors": False, "items": []}
    cluster.faults = [lambda request: (200, lost) if request.path.endswith("_bulk") else None]

    with pytest.raises(ClusterError, match="has 0 documents instead of 16"):
        publish(cluster, folders[FIRST])

    assert not cluster.indexes


def test_an_index_that_is_removed_while_it_is_written_is_not_made_anew(
    cluster: OpenSearch, folders: dict[str, Path]
) -> None:
    def remove(request: Request) -> None:
        if request.path.endswith("_bulk"):
            cluster.indexes.clear()

    cluster.faults = [remove]

    with pytest.raises(ClusterError, match="no such index"):
        publish(cluster, folders[FIRST])

    assert not cluster.indexes


def test_who_loses_a_race_for_the_alias_says_so_and_does_not_share_it(
    cluster: OpenSearch, folders: dict[str, Path]
) -> None:
    publish(cluster, folders[FIRST])

    def overtake(request: Request) -> None:
        if request.path == "/_aliases" and cluster.faults:
            cluster.faults = []
            other = cluster.indexes[index_of(FIRST)]
            other.aliases = set()
            cluster.indexes["cleats-shop-other"] = other

    cluster.faults = [overtake]

    with pytest.raises(ClusterError, match="another builder"):
        publish(cluster, folders[SECOND])

    assert index_of(SECOND) not in serving(cluster)


def test_a_move_whose_answer_was_lost_counts(cluster: OpenSearch, folders: dict[str, Path]) -> None:
    publish(cluster, folders[FIRST])

    def lose(request: Request) -> tuple[int, Any] | None:
        if request.path != "/_aliases":
            return None
        cluster.faults = []
        cluster.answer(request)
        return 503, {}

    cluster.faults = [lose]

    publish(cluster, folders[SECOND])

    assert serving(cluster) == [index_of(SECOND)]


def test_what_another_builder_is_writing_is_left_to_it_for_a_day(
    cluster: OpenSearch, folders: dict[str, Path]
) -> None:
    now, day = 1_800_000_000.0, 86_400
    cluster.faults = [
        lambda r: (0, None) if r.path.endswith("_refresh") or r.method == "DELETE" else None
    ]
    with pytest.raises(ClusterError):
        publish(cluster, folders[FIRST], builder="other", tries=1, clock=now)
    cluster.faults = []

    publish(cluster, folders[SECOND], clock=now + day / 2)
    beside = sorted(cluster.indexes)
    publish(cluster, folders[THIRD], clock=now + 2 * day)

    assert beside == [index_of(FIRST), index_of(SECOND)]
    assert sorted(cluster.indexes) == [index_of(SECOND), index_of(THIRD)]


def test_batches_are_bounded_by_bytes_and_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "BATCH_BYTES", 300)
    monkeypatch.setattr(publishing, "BATCH_DOCUMENTS", 3)
    made = [Document(str(n), {"text": "x" * (500 if n == 4 else 10)}) for n in range(8)]

    batches = list(batched(iter(made)))

    assert [[name for name, _ in batch] for batch in batches] == [
        ["0", "1", "2"],
        ["3"],
        ["4"],
        ["5", "6", "7"],
    ]


def test_documents_are_in_the_order_of_paths_and_know_their_files(folders: dict[str, Path]) -> None:
    made = list(documents(folders[FIRST], 160))

    chunks = [each.body for each in made if "at" in each.body]
    places = [(each["hit"]["path"], each["hit"]["ordinal"]) for each in chunks]
    assert places == sorted(places)
    assert [each["at"] for each in chunks] == list(range(len(chunks)))
    assert [each.id for each in made if "at" not in each.body] == [f"file-{n}" for n in range(4)]
    assert msgspec.json.decode(msgspec.json.encode(chunks[0])) == chunks[0]

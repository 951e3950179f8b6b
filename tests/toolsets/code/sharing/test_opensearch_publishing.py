"""Publishing a generation to a cluster: all or nothing, whatever fails and whenever."""

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cleats.toolsets.code.sharing.opensearch import publishing
from cleats.toolsets.code.sharing.opensearch.cluster import ClusterError
from cleats.toolsets.code.sharing.opensearch.documents import IndexDocument, read_documents
from cleats.toolsets.code.sharing.opensearch.publishing import batch_documents
from tests.support.opensearch_clients import list_serving_indexes, open_remote_index, publish_generation, search_names
from tests.support.opensearch_server import run_opensearch
from tests.support.opensearch_traffic import ClusterRequest, ObservedOpenSearch
from tests.support.paths import REPOSITORY_ROOT
from tests.support.search import build_generation, build_shop_files
from tests.support.waiting import WAIT_TIMEOUT_SECONDS

FIRST_GENERATION, SECOND_GENERATION, THIRD_GENERATION, FOURTH_GENERATION = (f"00000{n}-0badcafe" for n in range(1, 5))


@pytest.fixture
def cluster() -> Iterator[ObservedOpenSearch]:
    with run_opensearch() as running:
        yield running


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return generations by name; the second lacks a file that the first has."""
    root = tmp_path_factory.mktemp("generations")
    files = {
        FIRST_GENERATION: build_shop_files(),
        SECOND_GENERATION: build_shop_files()[1:],
        THIRD_GENERATION: build_shop_files()[2:],
        FOURTH_GENERATION: build_shop_files(),
    }
    return {name: build_generation(root / name, files_of_generation) for name, files_of_generation in files.items()}


def format_index_name(generation: str, name: str = "shop") -> str:
    return f"cleats-{name}-{generation}-v4.4.2"


def test_what_is_published_is_searched_and_the_next_generation_takes_its_place(
    cluster: ObservedOpenSearch, folders: dict[str, Path]
) -> None:
    progress: list[tuple[int, int]] = []
    publish_generation(
        cluster, folders[FIRST_GENERATION], on_progress=lambda done, total: progress.append((done, total))
    )
    searched = open_remote_index(cluster)
    before = search_names(searched, "cart", mode="code")

    publish_generation(cluster, folders[SECOND_GENERATION])

    assert progress[-1] == (119, 119)
    assert "Cart" in before
    assert "Cart" not in search_names(searched, "cart", mode="code", ann=False)
    assert list_serving_indexes(cluster) == [format_index_name(SECOND_GENERATION)]
    assert not any(alias.endswith("writing") for index in cluster.index_names for alias in cluster.list_aliases(index))


def test_publishing_again_changes_nothing(cluster: ObservedOpenSearch, folders: dict[str, Path]) -> None:
    publish_generation(cluster, folders[FIRST_GENERATION])
    cluster.requests.clear()

    publish_generation(cluster, folders[FIRST_GENERATION])

    assert {request.method for request in cluster.requests} == {"GET"}


def test_one_older_generation_stays_for_searches_that_are_in_it(
    cluster: ObservedOpenSearch, folders: dict[str, Path]
) -> None:
    for generation in (FIRST_GENERATION, SECOND_GENERATION, THIRD_GENERATION, FOURTH_GENERATION):
        publish_generation(cluster, folders[generation])

    assert cluster.index_names == [format_index_name(THIRD_GENERATION), format_index_name(FOURTH_GENERATION)]
    assert list_serving_indexes(cluster) == [format_index_name(FOURTH_GENERATION)]


def test_the_indexes_of_other_names_are_left_alone(cluster: ObservedOpenSearch, folders: dict[str, Path]) -> None:
    for generation in (FIRST_GENERATION, SECOND_GENERATION, THIRD_GENERATION):
        publish_generation(cluster, folders[generation], name="shop-2")
    index_names = cluster.index_names

    for generation in (FIRST_GENERATION, SECOND_GENERATION, THIRD_GENERATION):
        publish_generation(cluster, folders[generation], name="shop")

    assert set(index_names) < set(cluster.index_names)
    assert list_serving_indexes(cluster, "shop-2") == [format_index_name(THIRD_GENERATION, "shop-2")]
    assert list_serving_indexes(cluster) == [format_index_name(THIRD_GENERATION)]


def test_wherever_the_cluster_goes_away_the_alias_stays_and_the_next_attempt_works(
    cluster: ObservedOpenSearch, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "BATCH_DOCUMENTS", 6)
    publish_generation(cluster, folders[FIRST_GENERATION])
    cluster.requests.clear()
    publish_generation(cluster, folders[SECOND_GENERATION])
    requests, moved = (
        len(cluster.requests),
        next(at for at, item in enumerate(cluster.requests) if item.path == "/_aliases"),
    )
    publish_generation(cluster, folders[FIRST_GENERATION])

    for good in range(requests):
        cluster.requests.clear()
        cluster.faults = [lambda _: (0, None) if len(cluster.requests) > good else None]  # noqa: B023
        if good <= moved:
            with pytest.raises(ClusterError):
                publish_generation(cluster, folders[SECOND_GENERATION], tries=1)
            assert list_serving_indexes(cluster) == [format_index_name(FIRST_GENERATION)]
        cluster.faults = []
        publish_generation(cluster, folders[SECOND_GENERATION])
        assert list_serving_indexes(cluster) == [format_index_name(SECOND_GENERATION)]
        assert all(cluster.read_meta(index)["done"] for index in cluster.index_names)
        publish_generation(cluster, folders[FIRST_GENERATION])
        cluster.remove_index(format_index_name(SECOND_GENERATION))


def test_a_builder_that_is_killed_leaves_the_last_good_index(
    cluster: ObservedOpenSearch, folders: dict[str, Path]
) -> None:
    publish_generation(cluster, folders[FIRST_GENERATION])
    reached, ended = threading.Event(), threading.Event()

    def hold_request(request: ClusterRequest) -> None:
        if request.path.endswith("_bulk"):
            reached.set()
            ended.wait(WAIT_TIMEOUT_SECONDS)

    cluster.faults = [hold_request]
    script = (
        "import sys; from pathlib import Path; from tests.support.opensearch_traffic import ObservedOpenSearch;"
        "from tests.support.opensearch_clients import publish_generation;"
        "publish_generation(ObservedOpenSearch(base=sys.argv[1]), Path(sys.argv[2]))"
    )
    argv = [sys.executable, "-c", script, cluster.base, str(folders[SECOND_GENERATION])]
    with subprocess.Popen(argv, cwd=REPOSITORY_ROOT) as builder:
        assert reached.wait(WAIT_TIMEOUT_SECONDS)
        builder.send_signal(signal.SIGKILL)
    ended.set()
    cluster.faults = []

    assert list_serving_indexes(cluster) == [format_index_name(FIRST_GENERATION)]
    assert search_names(open_remote_index(cluster), "Cart.add")[0] == "Cart.add"
    publish_generation(cluster, folders[SECOND_GENERATION])
    assert list_serving_indexes(cluster) == [format_index_name(SECOND_GENERATION)]


def test_a_busy_cluster_is_asked_again(cluster: ObservedOpenSearch, folders: dict[str, Path]) -> None:
    failures = iter([429, 503, 429, 502])
    cluster.faults = [
        lambda request: (
            (status, {"error": "busy"}) if request.method != "GET" and (status := next(failures, 0)) else None
        )
    ]

    publish_generation(cluster, folders[FIRST_GENERATION])

    assert list_serving_indexes(cluster) == [format_index_name(FIRST_GENERATION)]


def test_documents_that_are_turned_away_for_now_are_sent_again_and_only_they(
    cluster: ObservedOpenSearch, folders: dict[str, Path]
) -> None:
    cluster.rejected_documents = 5

    publish_generation(cluster, folders[FIRST_GENERATION])

    sent = [len(request.lines) // 2 for request in cluster.requests if request.path.endswith("_bulk")]
    assert sent == [119, 5]
    assert list_serving_indexes(cluster) == [format_index_name(FIRST_GENERATION)]


def test_a_cluster_that_stays_full_is_given_up_and_left_clean(
    cluster: ObservedOpenSearch, folders: dict[str, Path]
) -> None:
    publish_generation(cluster, folders[FIRST_GENERATION])
    cluster.rejected_documents = 10**6

    with pytest.raises(ClusterError, match="429"):
        publish_generation(cluster, folders[SECOND_GENERATION])

    assert cluster.index_names == list_serving_indexes(cluster) == [format_index_name(FIRST_GENERATION)]


def test_one_document_that_is_refused_stops_the_whole_generation(
    cluster: ObservedOpenSearch, folders: dict[str, Path]
) -> None:
    def refuse_document(request: ClusterRequest) -> tuple[int, Any] | None:
        if not request.path.endswith("_bulk"):
            return None
        error = {"type": "mapper_parsing_exception", "reason": "no such thing"}
        items = [{"index": {"_id": "0", "status": 201}}]
        return 200, {
            "errors": True,
            "items": [*items, {"index": {"_id": "7", "status": 400, "error": error}}],
        }

    cluster.faults = [refuse_document]

    with pytest.raises(ClusterError, match="document 7 was refused with 400: no such thing"):
        publish_generation(cluster, folders[FIRST_GENERATION])

    assert not cluster.index_names


def test_an_index_that_lacks_documents_is_not_served(cluster: ObservedOpenSearch, folders: dict[str, Path]) -> None:
    lost = {"errors": False, "items": []}
    cluster.faults = [lambda request: (200, lost) if request.path.endswith("_bulk") else None]

    with pytest.raises(ClusterError, match="has 0 documents instead of 119"):
        publish_generation(cluster, folders[FIRST_GENERATION])

    assert not cluster.index_names


def test_an_index_that_is_removed_while_it_is_written_is_not_made_anew(
    cluster: ObservedOpenSearch, folders: dict[str, Path]
) -> None:
    def remove_index(request: ClusterRequest) -> None:
        if request.path.endswith("_bulk"):
            for index in cluster.index_names:
                cluster.remove_index(index)

    cluster.faults = [remove_index]

    with pytest.raises(ClusterError, match="no such index"):
        publish_generation(cluster, folders[FIRST_GENERATION])

    assert not cluster.index_names


def test_who_loses_a_race_for_the_alias_says_so_and_does_not_share_it(
    cluster: ObservedOpenSearch, folders: dict[str, Path]
) -> None:
    publish_generation(cluster, folders[FIRST_GENERATION])

    def overtake_move(request: ClusterRequest) -> None:
        if request.path == "/_aliases" and cluster.faults:
            cluster.faults = []
            serving = {"index": format_index_name(FIRST_GENERATION), "alias": "cleats-shop"}
            cluster.ask("POST", "/_aliases", {"actions": [{"remove": serving}]})

    cluster.faults = [overtake_move]

    with pytest.raises(ClusterError, match="another builder"):
        publish_generation(cluster, folders[SECOND_GENERATION])

    assert format_index_name(SECOND_GENERATION) not in list_serving_indexes(cluster)


def test_a_move_whose_answer_was_lost_counts(cluster: ObservedOpenSearch, folders: dict[str, Path]) -> None:
    publish_generation(cluster, folders[FIRST_GENERATION])

    def lose_answer(request: ClusterRequest) -> tuple[int, Any] | None:
        if request.path != "/_aliases":
            return None
        cluster.faults = []
        cluster.answer_request(request)
        return 503, {}

    cluster.faults = [lose_answer]

    publish_generation(cluster, folders[SECOND_GENERATION])

    assert list_serving_indexes(cluster) == [format_index_name(SECOND_GENERATION)]


def test_what_another_builder_is_writing_is_left_to_it_for_a_day(
    cluster: ObservedOpenSearch, folders: dict[str, Path]
) -> None:
    now, day = 1_800_000_000.0, 86_400
    cluster.faults = [lambda r: (0, None) if r.path.endswith("_refresh") or r.method == "DELETE" else None]
    with pytest.raises(ClusterError):
        publish_generation(cluster, folders[FIRST_GENERATION], builder="other", tries=1, clock=now)
    cluster.faults = []

    publish_generation(cluster, folders[SECOND_GENERATION], clock=now + day / 2)
    index_names = cluster.index_names
    publish_generation(cluster, folders[THIRD_GENERATION], clock=now + 2 * day)

    assert index_names == [format_index_name(FIRST_GENERATION), format_index_name(SECOND_GENERATION)]
    assert cluster.index_names == [format_index_name(SECOND_GENERATION), format_index_name(THIRD_GENERATION)]


def test_batches_are_bounded_by_bytes_and_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "BATCH_BYTES", 300)
    monkeypatch.setattr(publishing, "BATCH_DOCUMENTS", 3)
    small_documents = [IndexDocument(str(n), {"text": "x" * (500 if n == 4 else 10)}) for n in range(8)]

    batches = list(batch_documents(iter(small_documents)))

    assert [[name for name, _ in batch] for batch in batches] == [
        ["0", "1", "2"],
        ["3"],
        ["4"],
        ["5", "6", "7"],
    ]


def test_documents_are_in_the_order_of_paths_and_know_their_files(folders: dict[str, Path]) -> None:
    all_documents = list(read_documents(folders[FIRST_GENERATION], 160))

    chunks = [document.body for document in all_documents if "at" in document.body]
    positions = [(document["hit"]["path"], document["hit"]["ordinal"]) for document in chunks]
    assert positions == sorted(positions)
    assert [document["at"] for document in chunks] == list(range(len(chunks)))
    others = [document.id for document in all_documents if "at" not in document.body]
    assert others[:5] == [*(f"file-{n}" for n in range(4)), "file-table"]
    assert all(document_id.startswith("word-") for document_id in others[5:])
    assert msgspec.json.decode(msgspec.json.encode(chunks[0])) == chunks[0]

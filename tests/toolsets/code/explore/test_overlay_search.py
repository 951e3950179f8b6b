"""Tests of `search` over an index whose files have changed since it was built."""

from pathlib import Path
from typing import Any

import pytest

from cleats.contract.outcome import Done
from tests.support.explore import ExploreClient, create_explore_client


@pytest.fixture
def client(tmp_path: Path) -> ExploreClient:
    client = create_explore_client(tmp_path)
    client.build_index()
    return client


def search_hits(client: ExploreClient, query: str, **arguments: Any) -> list[tuple[str, str]]:
    """Return the files and names of the hits in code."""
    [outcome] = client.call_tools(("search", {"query": query, "mode": "code", **arguments}))
    assert isinstance(outcome, Done), outcome
    return [(hit["file"], hit["name"]) for hit in outcome.result["code"]]


def test_an_edited_a_new_and_a_removed_file_are_seen_by_the_next_search(client: ExploreClient) -> None:
    client.write_file("shop/checkout.py", "\n\ndef settle_invoice(invoice):\n    return invoice.settle()\n")
    client.write_file("shop/refund.py", "def refund_voucher(voucher):\n    return voucher.refund()\n")
    (client.root / "web/cart.ts").unlink()

    assert search_hits(client, "settle invoice")[0] == ("shop/checkout.py", "settle_invoice")
    assert search_hits(client, "refund voucher")[0] == ("shop/refund.py", "refund_voucher")
    assert "charge_card" not in [name for _, name in search_hits(client, "charge_card")]
    assert "web/cart.ts" not in dict(search_hits(client, "render cart"))


def test_a_search_answers_as_it_does_after_an_update(client: ExploreClient) -> None:
    client.write_file("shop/checkout.py", "def pay(cart):\n    return cart.total_price()\n")
    queries = ("total price of a cart", "add item", "pay")

    before = [search_hits(client, query)[0] for query in queries]
    client.build_index()

    assert before == [search_hits(client, query)[0] for query in queries]


def test_filters_hold_in_changed_files(client: ExploreClient) -> None:
    client.write_file("shop/refund.py", "def refund_voucher(voucher):\n    return voucher.refund()\n")
    client.write_file("web/refund.ts", "export function refundVoucher(voucher) { return voucher.refund() }\n")

    assert {file for file, _ in search_hits(client, "refund voucher", lang="typescript")} == {"web/refund.ts"}
    assert {file for file, _ in search_hits(client, "refund voucher", path="shop/**")} == {"shop/refund.py"}
    assert search_hits(client, "*", calls="refund", path="shop/**") == [("shop/refund.py", "refund_voucher")]


def test_hits_of_files_that_have_not_changed_keep_their_order_and_their_facts(client: ExploreClient) -> None:
    before = [hit for hit in search_hits(client, "cart items") if hit[0] != "shop/checkout.py"]
    client.write_file("shop/checkout.py", "def other():\n    return 1\n")

    after = [hit for hit in search_hits(client, "cart items") if hit[0] != "shop/checkout.py"]

    assert len(before) > 3
    assert after[: len(before)] == before


def test_at_most_as_many_hits_as_asked_for_are_returned(client: ExploreClient) -> None:
    client.write_file("shop/more.py", "".join(f"def cart_{number}(): return cart\n" for number in range(9)))

    assert len(search_hits(client, "cart", top=3)) == 3

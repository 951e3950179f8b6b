"""Tests of the toolset `explore`: what an agent reads, from the files as they are now."""

import re
from pathlib import Path

import pytest

from cleats.contract.errors import ErrorCode
from cleats.contract.outcome import Done
from cleats.toolsets.code.explore import ripgrep
from cleats.toolsets.code.explore.answer_text import estimate_tokens
from tests.support.explore import ExploreClient, create_explore_client


@pytest.fixture
def client(tmp_path: Path) -> ExploreClient:
    return create_explore_client(tmp_path)


@pytest.mark.parametrize("has_index", [False, True])
def test_find_code_brings_the_declaration_with_the_lines_that_match(client: ExploreClient, has_index: bool) -> None:
    if has_index:
        client.build_index()

    answer = client.read_answer("find_code", query="add an item to the cart", limit=1)

    assert answer.startswith(
        "shop/cart.py (clear lead)\n 12-16 method Cart.add_item\n  12: def add_item(self, item):\n"
    )
    assert '13: """Add an item to the cart."""' in answer
    assert ("No index yet" in answer) is not has_index


@pytest.mark.parametrize("has_index", [False, True])
def test_an_edit_is_visible_in_the_next_answer(client: ExploreClient, has_index: bool) -> None:
    if has_index:
        client.build_index()
    client.write_file("shop/refund.py", "def refund_gift_voucher(voucher):\n    return voucher.refund()\n")
    client.write_file("shop/checkout.py", "\n\n\ndef settle_foreign_invoice(invoice):\n    return invoice.settle()\n")

    new = client.read_answer("find_code", query="refund a gift voucher", limit=1)
    changed = client.read_answer("find_code", query="settle a foreign invoice", limit=1)

    assert "shop/refund.py (clear lead)\n 1-2 function refund_gift_voucher" in new
    assert "shop/checkout.py (clear lead)\n 4-5 function settle_foreign_invoice" in changed


def test_a_declaration_that_was_removed_is_not_found_in_an_older_index(client: ExploreClient) -> None:
    client.build_index()
    client.write_file("shop/checkout.py", "def other():\n    return 1\n")

    assert "charge_card" not in client.read_answer("find_code", query="charge card amount")


def test_the_code_toolset_removes_an_index_that_find_code_has_just_read(client: ExploreClient) -> None:
    client.build_index()

    found, removed = client.call_tools(("find_code", {"query": "charge card amount"}), ("cache_gc", {"maxBytes": 0}))

    assert isinstance(found, Done)
    assert "No index yet" not in found.result
    assert isinstance(removed, Done)
    assert [entry["root"] for entry in removed.result["removals"]] == [str(client.root)], removed.result


def test_a_question_that_looks_like_an_expression_is_answered_with_a_hint(client: ExploreClient) -> None:
    assert "grep_code with regex=true" in client.read_answer("find_code", query=r"total_\w+\(")


def test_find_code_keeps_to_a_path_a_language_and_a_kind(client: ExploreClient) -> None:
    assert "web/cart.ts" in client.read_answer("find_code", query="cart items", language="typescript")
    assert "shop/" not in client.read_answer("find_code", query="cart items", language="typescript")
    assert "shop/" not in client.read_answer("find_code", query="cart items", path="web")
    assert " class Cart\n" in client.read_answer("find_code", query="cart", kind="class")
    assert "method" not in client.read_answer("find_code", query="cart", kind="class")


@pytest.mark.parametrize("has_ripgrep", [True, False])
def test_grep_code_shows_every_line_with_its_enclosing_declaration(
    client: ExploreClient, has_ripgrep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_ripgrep:
        monkeypatch.setattr(ripgrep, "find_ripgrep", lambda: None)

    answer = client.read_answer("grep_code", pattern="total_price")

    assert answer.splitlines() == [
        "6 matching lines in 3 files",
        "shop/cart.py",
        " 18: [Cart.total_price] def total_price(self):",
        " 23: [GiftCart.total_price] def total_price(self):",
        "shop/checkout.py",
        " 5: [pay] # total_price is in cents",
        " 6: amount = cart.total_price()",
        "tests/test_cart.py",
        " 4: [test_total_price] def test_total_price():",
        " 5: assert Cart().total_price() == 0",
    ]


@pytest.mark.parametrize("has_ripgrep", [True, False])
def test_files_that_hold_secrets_are_never_searched(
    client: ExploreClient, has_ripgrep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_ripgrep:
        monkeypatch.setattr(ripgrep, "find_ripgrep", lambda: None)

    assert "1234" not in client.read_answer("grep_code", pattern="SECRET_TOKEN")
    assert client.read_error("read_lines", path=".env").code is ErrorCode.INVALID_REQUEST


def test_grep_code_counts_by_file_and_continues_at_an_offset(client: ExploreClient) -> None:
    counts = client.read_answer("grep_code", pattern="cart", files_only=True)
    first = client.read_answer("grep_code", pattern="total_price", tokens=200)
    offset = re.search(r"next: offset=(\d+)", client.read_answer("grep_code", pattern="e", tokens=200))

    assert "shop/cart.py: " in counts
    assert first
    assert offset is not None
    assert "next" not in client.read_answer("grep_code", pattern="the cart is full")


def test_an_invalid_expression_is_refused_and_a_plain_one_suggests_regex(client: ExploreClient) -> None:
    error = client.read_error("grep_code", pattern="(", regex=True)

    assert (error.code, "(" in error.message) == (ErrorCode.INVALID_REQUEST, True)
    assert "set regex=true" in client.read_answer("grep_code", pattern="total|price")


@pytest.mark.parametrize("name", ["Cart.add_item", "add_item", "shop.cart.Cart.add_item", "Cart::add_item()"])
def test_read_symbol_shows_a_declaration_by_any_part_of_its_qualified_name(client: ExploreClient, name: str) -> None:
    answer = client.read_answer("read_symbol", name=name)

    assert answer.startswith("shop/cart.py:12-16 method Cart.add_item\n12:     def add_item(self, item):")
    assert answer.endswith("16:         self.items.append(item)")


def test_read_symbol_shows_all_short_declarations_with_a_name_and_a_class_chooses(client: ExploreClient) -> None:
    both = client.read_answer("read_symbol", name="total_price")
    chosen = client.read_answer("read_symbol", name="GiftCart.total_price")

    assert both.startswith("shop/cart.py:18-19 method Cart.total_price\n18:     def total_price(self):")
    assert "shop/cart.py:23-24 method GiftCart.total_price\n23:     def total_price(self):" in both
    assert chosen.startswith("shop/cart.py:23-24 method GiftCart.total_price")
    assert client.read_error("read_symbol", name="nothing_like_this").code is ErrorCode.NOT_FOUND


def test_read_symbol_lists_candidates_whose_text_is_too_long_and_a_path_chooses(client: ExploreClient) -> None:
    for name in ("left", "right"):
        client.write_file(f"shop/{name}.py", "def weigh(cart):\n" + "    cart.touch()\n" * 40)

    candidates = client.read_answer("read_symbol", name="weigh")
    chosen = client.read_answer("read_symbol", name="weigh", path="shop/right.py")

    assert candidates.splitlines() == [
        "2 declarations match; name one with its class, or give path:",
        "shop/left.py:1 function weigh  def weigh(cart)",
        "shop/right.py:1 function weigh  def weigh(cart)",
    ]
    assert chosen.startswith("shop/right.py:1-41 function weigh\n1: def weigh(cart):")


def test_read_symbol_reads_several_names_and_says_which_it_did_not_find(client: ExploreClient) -> None:
    answer = client.read_answer("read_symbol", name="Cart.add_item, nothing_like_this, GiftCart.total_price")
    error = client.read_error("read_symbol", name="nothing_like_this, nor_this")

    assert answer.startswith("shop/cart.py:12-16 method Cart.add_item\n12: ")
    assert "\nshop/cart.py:23-24 method GiftCart.total_price\n23: " in answer
    assert answer.endswith("\nNot found: nothing_like_this")
    assert error.message.startswith("No declaration is named 'nothing_like_this' or 'nor_this'.")


def test_a_class_that_is_too_large_is_shown_as_its_members(client: ExploreClient) -> None:
    methods = "".join(f"    def method_{n}(self):\n{'        x = 1' + chr(10) * 1}" * 3 for n in range(60))
    client.write_file("shop/large.py", f"class Large:\n{methods}")

    answer = client.read_answer("read_symbol", name="Large", tokens=600)

    assert "members:" in answer
    assert "def method_1(self)" in answer
    assert estimate_tokens(answer) <= 700


def test_find_references_tells_calls_imports_subclasses_and_comments_apart(client: ExploreClient) -> None:
    answer = client.read_answer("find_references", name="Cart")
    calls = client.read_answer("find_references", name="Cart.total_price", kind="call")

    assert "import: from shop.cart import Cart" in answer
    assert "22: [GiftCart] subclass: class GiftCart(Cart):" in answer
    assert "class Cart:" not in answer
    assert "6: [pay] amount = cart.total_price()" in calls
    assert "cents" not in calls


def test_find_references_says_how_sure_it_is(client: ExploreClient) -> None:
    assert "defined once, at shop/checkout.py:10" in client.read_answer("find_references", name="charge_card")
    assert "defined 2 times" in client.read_answer("find_references", name="Cart.total_price")


def test_find_references_lists_overrides_and_callees(client: ExploreClient) -> None:
    overrides = client.read_answer("find_references", name="Cart.total_price", kind="override")
    callees = client.read_answer("find_references", name="pay", direction="callees")

    assert "23: [GiftCart.total_price] override: def total_price(self):" in overrides
    assert "6: cart.total_price -> shop/cart.py:18" in callees
    assert "7: charge_card -> shop/checkout.py:10" in callees


def test_outline_lists_a_file_a_folder_and_the_repository(client: ExploreClient) -> None:
    file = client.read_answer("outline", path="shop/cart.py")
    folder = client.read_answer("outline", path="shop")
    repository = client.read_answer("outline")

    assert file.splitlines()[1:4] == ["3 constant MAX_ITEMS", "6 class Cart", " 9 __init__()"]
    assert "shop/cart.py (24)" in folder
    assert "web/" not in folder
    assert repository.startswith("project: ")
    assert repository.index("shop/cart.py (24)") < repository.index("web/cart.ts")


def test_read_lines_numbers_lines_and_continues(client: ExploreClient) -> None:
    answer = client.read_answer("read_lines", path="shop/cart.py", start=6, end=8)

    assert answer == 'shop/cart.py lines 6-8 of 24; next: start=9\n6: class Cart:\n7:     """Collects items."""\n8: '


@pytest.mark.parametrize("path", ["../outside.py", "/etc/passwd", "link.py"])
def test_a_path_that_leaves_the_repository_is_refused(client: ExploreClient, path: str) -> None:
    (client.folder / "outside.py").write_text("x = 1\n")
    (client.root / "link.py").symlink_to(client.folder / "outside.py")

    assert client.read_error("read_lines", path=path).code is ErrorCode.FORBIDDEN


def test_a_path_that_does_not_exist_is_answered_with_the_nearest(client: ExploreClient) -> None:
    error = client.read_error("read_lines", path="src/checkout.py")

    assert (error.code, error.hint) == (ErrorCode.NOT_FOUND, "Did you mean shop/checkout.py?")


@pytest.mark.parametrize("tool", ["find_code", "grep_code"])
def test_an_answer_never_exceeds_its_budget(client: ExploreClient, tool: str) -> None:
    client.write_file(
        "shop/many.py", "".join(f"def handle_event_{n}(event):\n    return event\n\n\n" for n in range(300))
    )
    argument = {"find_code": "query", "grep_code": "pattern"}[tool]

    answer = client.read_answer(
        tool, **{argument: "event"}, tokens=300, **({"limit": 50} if tool == "find_code" else {})
    )

    assert estimate_tokens(answer) <= 300


@pytest.mark.parametrize("has_index", [False, True])
def test_find_code_shows_three_hits_with_lines_one_for_each_file_and_names_the_other_files(
    client: ExploreClient, has_index: bool
) -> None:
    for number in range(9):
        client.write_file(
            f"shop/voucher_{number}.py",
            f"def redeem_voucher(code):\n    return codes.pop(code)\n\n\ndef renew_voucher():\n    return {number}\n",
        )
    if has_index:
        client.build_index()

    answer = client.read_answer("find_code", query="redeem the code of a voucher")
    detailed = re.findall(r"(?m)^shop/voucher_\d\.py$", answer)
    in_one_line = re.findall(r"(?m)^shop/voucher_\d\.py:\d+ ", answer)
    others = re.search(r"(?m)^Also: shop/\{(.+)\}$", answer)

    assert (len(detailed), len(in_one_line), len(answer) < 900) == (3, 2, True)
    assert others is not None
    assert len({*detailed, *(line.partition(":")[0] for line in in_one_line), *others[1].split(",")}) == 9


def test_find_code_knows_words_by_their_stems_and_ignores_words_that_only_say_that_something_is_wrong(
    client: ExploreClient,
) -> None:
    client.write_file("shop/places.py", "def pick_country(entry):\n    return entry.country\n")
    client.write_file("shop/repairs.py", "def fix_issue(issue):\n    return issue.fix()  # wrong, incorrect\n")

    answer = client.read_answer("find_code", query="fix issue: incorrect countries of entries picked", limit=1)

    assert answer.startswith("shop/places.py (clear lead)\n")


def test_find_code_ranks_tests_and_build_output_below_the_code_itself(client: ExploreClient) -> None:
    text = "def settle_ledger(ledger):\n    return ledger.settle()\n"
    for path in ("tests/test_ledger.py", "dist/ledger.js", "docs/ledger.md", "shop/books.py"):
        client.write_file(path, text if path.endswith(".py") else "settle ledger settle ledger\n")

    assert client.read_answer("find_code", query="settle the ledger").startswith("shop/books.py\n")


def test_find_code_says_that_a_file_leads_only_where_the_others_are_far_behind(client: ExploreClient) -> None:
    text = "def settle_ledger(ledger):\n    return ledger.settle()\n"
    client.write_file("shop/books.py", text)
    client.write_file("shop/accounts.py", text)

    answer = client.read_answer("find_code", query="settle the ledger")

    assert "clear lead" not in answer
    assert answer.startswith("shop/accounts.py\n")


def test_find_code_learns_from_earlier_commits_where_a_thing_is(client: ExploreClient) -> None:
    client.write_file("shop/a.py", "def reckon(voucher, amount):\n    return amount\n")
    client.write_file("shop/b.py", "def reduce_by(voucher, amount):\n    return amount\n")
    client.write_file("shop/c.py", "def pick_by(voucher, amount):\n    return amount\n")
    client.commit_files("Start a shop", "shop/a.py", "shop/c.py")
    client.commit_files("Round the amount of a voucher to whole cents", "shop/b.py")

    answer = client.read_answer("find_code", query="the amount of a voucher is not rounded to cents")

    assert answer.startswith("shop/b.py")
    assert "past commit: Round the amount of a voucher to whole cents" in answer


def test_find_code_prefers_the_file_that_has_or_declares_a_name_of_the_question(client: ExploreClient) -> None:
    client.write_file("shop/use.py", "from shop.x import StockRoom\n\n\ndef use():\n    return StockRoom()\n")
    client.write_file("shop/keep.py", "class StockRoom:\n    pass\n")
    client.write_file("shop/price_list.py", "rows = []\n# price\n")
    client.write_file("shop/rows.py", "# price list\n")

    assert client.read_answer("find_code", query="empty StockRoom crashes").startswith("shop/keep.py")
    assert client.read_answer("find_code", query="the price list is empty").startswith("shop/price_list.py")


def test_find_code_shows_three_further_declarations_of_the_first_file_and_names_others(client: ExploreClient) -> None:
    names = ("open_parcel", "weigh_parcel", "send_parcel", "track_parcel", "lose_parcel")
    client.write_file(
        "shop/parcels.py", "".join(f"def {name}(parcel):\n    return parcel.do('{name}')\n\n\n" for name in names)
    )

    answer = client.read_answer("find_code", query="weigh a parcel")

    assert answer.startswith("shop/parcels.py (clear lead)\n 5-6 function weigh_parcel\n")
    siblings = re.findall(r"^  \d+ def (\w+)\(parcel\):$", answer, re.MULTILINE)
    assert len(siblings) == 3
    assert set(siblings) < set(names) - {"weigh_parcel"}
    (named,) = set(names) - {"weigh_parcel"} - set(siblings)
    assert f"\n  also: {1 + 4 * names.index(named)} {named}\n" in answer


def test_a_long_declaration_is_shown_by_the_passage_that_has_the_words(client: ExploreClient) -> None:
    body = [f"    step_{number}()" for number in range(200)]
    body[3] = "    settle(1)"
    body[150:153] = ["    ledger = open()", "    settle(ledger)", "    close(ledger)"]
    client.write_file("shop/books.py", "def run_all():\n" + "\n".join(body) + "\n")

    answer = client.read_answer("find_code", query="settle and close the ledger")

    assert "153: settle(ledger)" in answer
    assert "5: settle(1)" not in answer


def test_long_answers_end_after_sixty_lines_unless_a_larger_budget_is_set(client: ExploreClient) -> None:
    client.write_file("shop/long.py", "def run():\n" + "    hit()\n" * 100)

    symbol, hits, lines, more = (
        client.read_answer(tool, **arguments)
        for tool, arguments in (
            ("read_symbol", {"name": "run"}),
            ("grep_code", {"pattern": "hit"}),
            ("read_lines", {"path": "shop/long.py"}),
            ("read_symbol", {"name": "run", "tokens": 4000}),
        )
    )

    assert "… 41 more lines; read_lines shop/long.py start=61" in symbol
    assert "next: offset=60" in hits
    assert lines.startswith("shop/long.py lines 1-60 of 101; next: start=61")
    assert more.endswith("101:     hit()")

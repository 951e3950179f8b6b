"""A small repository in three languages, and a client of the toolset `explore`."""

import asyncio
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cleats.app import load_toolsets, open_dispatcher
from cleats.contract.errors import ToolError
from cleats.contract.outcome import Done, Failed, Outcome, Rejected
from cleats.contract.payload import AnswerMeta
from cleats.runtime.call import ToolCall
from cleats.runtime.server_status import ServerStatus
from cleats.settings import Settings

FILES = {
    "shop/cart.py": '''"""The cart."""

MAX_ITEMS = 99


class Cart:
    """Collects items."""

    def __init__(self) -> None:
        self.items = []

    def add_item(self, item):
        """Add an item to the cart."""
        if len(self.items) >= MAX_ITEMS:
            raise ValueError("the cart is full")
        self.items.append(item)

    def total_price(self):
        return sum(item.price for item in self.items)


class GiftCart(Cart):
    def total_price(self):
        return 0
''',
    "shop/checkout.py": """from shop.cart import Cart


def pay(cart: Cart, card):
    # total_price is in cents
    amount = cart.total_price()
    return charge_card(card, amount)


def charge_card(card, amount):
    return card.charge(amount)
""",
    "web/cart.ts": """export function renderCart(items: Item[]): string {
  return items.map((item) => item.name).join(", ")
}
""",
    "tests/test_cart.py": """from shop.cart import Cart


def test_total_price():
    assert Cart().total_price() == 0
""",
    ".env": "SECRET_TOKEN=1234\n",
    ".gitignore": "ignored/\n",
    "ignored/copy.py": "def ignored_function():\n    total_price()\n",
}


@dataclass
class ExploreClient:
    """Calls the tools of the toolset, each in a server that ends after the calls."""

    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "project"

    @property
    def settings(self) -> Settings:
        return Settings(
            project_dir=self.root, cache_dir=self.folder / "cache", data_dir=self.folder / "data", log_level="error"
        )

    def write_file(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def commit_files(self, subject: str, *paths: str) -> None:
        """Commit some files."""
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
        for command in (["add", "--", *paths], [*identity, "commit", "-q", "-m", subject, "--", *paths]):
            subprocess.run(["git", "-C", str(self.root), *command], check=True, env=environment)

    def call_tools(self, *requests: tuple[str, dict[str, Any]]) -> list[Outcome]:
        """Call tools one after the other in one server."""

        async def main() -> list[Outcome]:
            status = ServerStatus()
            toolsets = load_toolsets(self.settings, ["explore", "code"], status)
            async with open_dispatcher(self.settings, toolsets, status) as dispatcher:
                return [
                    await dispatcher.dispatch(ToolCall(tool=tool, arguments=arguments, meta=AnswerMeta()))
                    for tool, arguments in requests
                ]

        return asyncio.run(main())

    def read_answer(self, tool: str, **arguments: Any) -> str:
        """Return the text of an answer."""
        [outcome] = self.call_tools((tool, arguments))
        assert isinstance(outcome, Done), outcome
        answer: str = outcome.result
        return answer

    def read_error(self, tool: str, **arguments: Any) -> ToolError:
        """Return the error of a call that fails."""
        [outcome] = self.call_tools((tool, arguments))
        assert isinstance(outcome, Failed | Rejected), outcome
        return outcome.error

    def build_index(self) -> None:
        [outcome] = self.call_tools(("build_index", {}))
        assert isinstance(outcome, Done), outcome


def create_explore_client(folder: Path) -> ExploreClient:
    """Create the repository, without an index."""
    client = ExploreClient(folder)
    for path, text in FILES.items():
        client.write_file(path, text)
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(["git", "init", "-q", str(client.root)], check=True, env=environment)
    return client

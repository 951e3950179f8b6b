"""What the shop sells."""

import csv
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Product:
    """Something with a price, in cents."""

    sku: str
    title: str
    price: int


def read_products(path: Path) -> dict[str, Product]:
    """Read the products of a CSV file, by their number."""
    with path.open(newline="") as file:
        rows = csv.DictReader(file)
        return {row["sku"]: Product(row["sku"], row["title"], int(row["price"])) for row in rows}


def find_products(products: dict[str, Product], words: str) -> list[Product]:
    """Products whose title has every word, the cheapest first."""
    wanted = words.lower().split()
    found = [each for each in products.values() if all(w in each.title.lower() for w in wanted)]
    return sorted(found, key=lambda product: product.price)

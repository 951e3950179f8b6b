"""What a visitor wants to buy."""

from shop.catalogue import Product

FREE_SHIPPING = 5000
SHIPPING = 490


class EmptyCart(Exception):
    """Nothing is in the cart."""


class Cart:
    """Products and how many of each."""

    def __init__(self) -> None:
        self._lines: dict[Product, int] = {}

    def add(self, product: Product, count: int = 1) -> None:
        """Put a product into the cart."""
        self._lines[product] = self._lines.get(product, 0) + count

    def remove(self, product: Product) -> None:
        """Take a product out, however many there are."""
        self._lines.pop(product, None)

    def total(self) -> int:
        """What it all costs with shipping, in cents.

        Raises:
            EmptyCart: there is nothing to pay for.
        """
        if not self._lines:
            raise EmptyCart
        goods = sum(product.price * count for product, count in self._lines.items())
        return goods if goods >= FREE_SHIPPING else goods + SHIPPING

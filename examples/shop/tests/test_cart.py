import pytest

from shop.cart import Cart, EmptyCart
from shop.catalogue import Product

TEA = Product("t1", "Green tea", 450)


def test_shipping_is_free_from_fifty_euros_on():
    cart = Cart()
    cart.add(TEA, 12)
    assert cart.total() == 5400


def test_an_empty_cart_has_no_total():
    with pytest.raises(EmptyCart):
        Cart().total()

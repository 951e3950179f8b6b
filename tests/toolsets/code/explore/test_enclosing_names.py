"""Tests of the names around a line, found without a parser."""

import pytest

from cleats.toolsets.code.explore.enclosing_names import find_enclosing_name

PYTHON = """class Cart:
    @property
    async def total(
        self,
    ) -> int:
        if self.items:
            # Sum them.
            return hit(
                self.items)
    limit = 3

value = 1
"""
GO = """func (c *Cart) Total(items []Item) int {
\tfor _, item := range items {
\t\tt.Run("x", func(t *testing.T) {
\t\t\thit(item)
\t\t})
\t}
}
"""
C = """static enum result
cart_total(struct cart *cart,
    int limit)
{
#ifdef LIMIT
    struct item *item = cart->first;
again:
    if (item != NULL)
        hit(item);
}
"""
JAVA = """public final class Cart<T> {
    @Override
    public int total(List<T> items) throws CartError {
        items.forEach(item -> {
            hit(item);
        });
    }
}
"""
TYPESCRIPT = """export const total = async (items: Item[]): Promise<number> => {
  describe("all", () => {
    hit(items)
  })
}
"""
RUST = """impl<T: Item> Total for Cart<T> {
    pub(crate) fn total(&self) -> u32 {
        hit(self)
    }
}
"""


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (PYTHON, "Cart.total"),
        (GO, "Cart.Total"),
        (C, "cart_total"),
        (JAVA, "Cart.total"),
        (TYPESCRIPT, "total"),
        (RUST, "Cart.total"),
    ],
    ids=["python", "go", "c", "java", "typescript", "rust"],
)
def test_the_declaration_around_a_line_is_found_by_indentation(source: str, name: str) -> None:
    lines = source.split("\n")
    number = next(number for number, line in enumerate(lines, 1) if "hit(" in line)

    assert find_enclosing_name(lines, number) == name


def test_a_line_that_declares_something_belongs_to_it_and_others_belong_to_what_is_around_them() -> None:
    lines = PYTHON.split("\n")

    assert find_enclosing_name(lines, 1) == "Cart"
    assert find_enclosing_name(lines, 10) == "Cart"
    assert find_enclosing_name(lines, 12) == ""


def test_a_long_line_without_a_declaration_is_read_quickly() -> None:
    lines = ["class Cart {", "  " + "a b: " * 100_000]

    assert find_enclosing_name(lines, 2) == "Cart"

/** Show what the cart costs, in euros. */
export function renderTotal(cart, element) {
  const cents = cart.lines.reduce((sum, line) => sum + line.price * line.count, 0);
  element.textContent = formatPrice(cents);
}

function formatPrice(cents) {
  return `€ ${(cents / 100).toFixed(2)}`;
}

export async function addToCart(sku) {
  const response = await fetch(`/cart/${sku}`, { method: "POST" });
  if (!response.ok) throw new Error(`cart: ${response.status}`);
  return response.json();
}

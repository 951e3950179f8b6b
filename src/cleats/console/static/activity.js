// Activity stays current while somebody looks at it.

import { fetchFragment } from "./console.js";

const REFRESH_MS = 4000;
const body = document.getElementById("activity");

setInterval(async () => {
  if (document.hidden || body.contains(document.activeElement)) return;
  const html = await fetchFragment(body.dataset.refresh);
  if (!body.contains(document.activeElement)) body.innerHTML = html;
}, REFRESH_MS);

// The page of a run follows the run: state, timeline, gates and buttons change as it goes.

import { fetchFragment, followCalls } from "./console.js";

const run = document.getElementById("run");
const source = new EventSource(`/console/runs/${encodeURIComponent(run.dataset.run)}/events`);
let version = null;
let streams = [];
let isWaiting = false;

async function refresh() {
  for (const stream of streams) stream.close();
  run.innerHTML = await fetchFragment(location.pathname);
  streams = followCalls(run);
}

const isInUse = () => run.contains(document.activeElement) || document.querySelector("dialog[open]");

source.addEventListener("change", async (event) => {
  const change = JSON.parse(event.data);
  const isFirst = version === null;
  version = change.version;
  if (isFirst) return;
  isWaiting = isInUse();
  if (!isWaiting) await refresh();
});
// A change that came while a button had the focus is shown when the focus leaves it.
document.addEventListener("focusout", () => setTimeout(() => {
  if (!isWaiting || isInUse()) return;
  isWaiting = false;
  refresh();
}));
addEventListener("pagehide", () => source.close());

// The page of a run follows the run: state, timeline, gates and buttons change as it goes.

import { fetchFragment, followCalls } from "./console.js";

const run = document.getElementById("run");
const source = new EventSource(`/console/runs/${encodeURIComponent(run.dataset.run)}/events`);
let version = null;

source.addEventListener("change", async (event) => {
  const change = JSON.parse(event.data);
  const isFirst = version === null;
  version = change.version;
  if (isFirst || run.contains(document.activeElement) || document.querySelector("dialog[open]")) return;
  run.innerHTML = await fetchFragment(location.pathname);
  followCalls(run);
});
addEventListener("pagehide", () => source.close());

// Behaviour of every page: theme, shortcuts, copying, confirmation, and progress of background calls.

const THEMES = ["auto", "light", "dark"];

export const formToken = document.body.dataset.formToken;

export function showToast(text) {
  const toast = document.getElementById("toast");
  toast.textContent = text;
  toast.classList.add("visible");
  clearTimeout(showToast.timer);
  showToast.timer = setTimeout(() => toast.classList.remove("visible"), 2400);
}

export async function fetchFragment(url, signal) {
  const headers = { accept: "text/html", "x-fragment": "1" };
  const response = await fetch(url, { headers, signal, credentials: "same-origin" });
  if (response.status === 401) {
    location.reload();
  }
  return response.text();
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  showToast("Copied");
}

function changeTheme() {
  const root = document.documentElement;
  const theme = THEMES[(THEMES.indexOf(root.dataset.theme) + 1) % THEMES.length];
  root.dataset.theme = theme;
  document.cookie = `cleats_theme=${theme}; path=/; max-age=31536000; samesite=strict`;
  document.querySelector("[data-action=theme]").setAttribute("aria-label", `Change the theme, now ${theme}`);
  showToast(`Theme: ${theme}`);
}

function showHelp() {
  const help = document.getElementById("help");
  if (!help.open) help.showModal();
}

function moveSelection(step) {
  const items = [...document.querySelectorAll("[data-item]")];
  if (!items.length) return;
  const current = items.findIndex((item) => item.classList.contains("selected"));
  const next = current < 0 ? (step > 0 ? 0 : items.length - 1) : Math.min(items.length - 1, Math.max(0, current + step));
  items[current]?.classList.remove("selected");
  items[next].classList.add("selected");
  const target = items[next].querySelector("[data-open]") ?? items[next];
  target.focus({ preventScroll: true });
  items[next].scrollIntoView({ block: "nearest" });
}

document.addEventListener("click", (event) => {
  const copy = event.target.closest("[data-copy]");
  if (copy) copyText(copy.dataset.copy);
  if (event.target.closest("[data-copy-link]")) copyText(location.href);
  if (event.target.closest("[data-action=theme]")) changeTheme();
  if (event.target.closest("[data-action=help]")) showHelp();
  for (const open of document.querySelectorAll("details.add-filter[open]")) {
    if (!open.contains(event.target)) open.open = false;
  }
});

document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input:not([type=radio]):not([type=checkbox]), textarea, select");
  if (event.key === "Escape") {
    document.querySelectorAll("details.add-filter[open]").forEach((open) => (open.open = false));
    if (typing) event.target.blur();
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const actions = {
    "/": () => document.getElementById("q") ? document.getElementById("q").select() : location.assign("/"),
    "?": showHelp,
    t: changeTheme,
    j: () => moveSelection(1),
    k: () => moveSelection(-1),
  };
  if (actions[event.key]) {
    event.preventDefault();
    actions[event.key]();
  }
});

// A form that cannot be undone asks first.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.dataset.confirm || form.dataset.confirmed) return;
  event.preventDefault();
  const dialog = document.getElementById("confirm");
  document.getElementById("confirm-text").textContent = form.dataset.confirm;
  document.getElementById("confirm-ok").textContent = form.dataset.confirmLabel || "Confirm";
  dialog.returnValue = "cancel";
  dialog.addEventListener(
    "close",
    () => {
      if (dialog.returnValue !== "ok") return;
      form.dataset.confirmed = "1";
      form.requestSubmit(event.submitter ?? undefined);
    },
    { once: true },
  );
  dialog.showModal();
});

// Progress of background calls, and a reload when one ends. Returns the streams, which the caller may close.
export function followCalls(root = document) {
  const sources = [];
  for (const element of root.querySelectorAll("[data-live-call]")) {
    const source = new EventSource(`/console/calls/${element.dataset.liveCall}/events`);
    const bar = element.querySelector("progress");
    const text = element.querySelector("[data-progress-text]");
    const update = (event) => {
      const report = JSON.parse(event.data);
      if (report.percent !== null) bar.value = report.percent;
      if (report.message) text.textContent = report.message;
      return report;
    };
    source.addEventListener("progress", update);
    source.addEventListener("end", (event) => {
      const report = update(event);
      source.close();
      element.dispatchEvent(new CustomEvent("call-end", { bubbles: true, detail: report }));
      if (!element.dataset.stay) location.reload();
    });
    addEventListener("pagehide", () => source.close());
    sources.push(source);
  }
  return sources;
}

document.querySelector(".areas [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
followCalls();

// Results while typing, filters as chips, and addresses that can be shared.

import { fetchFragment, followCalls } from "./console.js";

const DEBOUNCE_MS = 120;

const form = document.getElementById("search-form");
const box = document.getElementById("q");
const results = document.getElementById("results");
const filterName = document.getElementById("filter-name");
const filterValue = document.getElementById("filter-value");
let timer;
let pending;
let streams = [];

function buildUrl() {
  const data = new FormData(form);
  const params = new URLSearchParams();
  for (const [name, value] of data) {
    if (value && name !== "filter" && name !== "value" && !(name === "mode" && value === "both")) params.append(name, value);
  }
  const text = params.toString();
  return text ? `/?${text}` : "/";
}

async function search({ push = false } = {}) {
  clearTimeout(timer);
  pending?.abort();
  const url = buildUrl();
  const hasQuery = box.value.trim() || form.querySelector(".chip.set");
  if (!hasQuery) {
    if (location.pathname + location.search !== url) history.replaceState(null, "", url);
    if (!results.querySelector(".home")) location.assign(url);
    return;
  }
  pending = new AbortController();
  results.setAttribute("aria-busy", "true");
  try {
    const html = await fetchFragment(url, pending.signal);
    for (const stream of streams) stream.close();
    results.innerHTML = html;
    streams = followCalls(results);
    if (push) history.pushState(null, "", url);
    else history.replaceState(null, "", url);
    document.title = `${box.value.trim() || "Search"} · Cleats`;
  } catch (error) {
    if (error.name !== "AbortError") throw error;
    return;
  }
  results.setAttribute("aria-busy", "false");
}

function addFilter() {
  const option = filterName.selectedOptions[0];
  const value = option.dataset.kind === "switch" ? "true" : filterValue.value.trim();
  if (!filterName.value || !value) return;
  const chip = document.createElement("span");
  chip.className = "chip set";
  const input = document.createElement("input");
  input.type = "hidden";
  input.name = filterName.value;
  input.value = value;
  const label = document.createElement("code");
  label.textContent = value === "true" ? option.dataset.flag : `${option.dataset.flag} ${value}`;
  const remove = document.createElement("a");
  remove.className = "chip-remove";
  remove.href = "#";
  remove.textContent = "×";
  remove.setAttribute("aria-label", `Remove the filter ${label.textContent}`);
  chip.append(input, label, remove);
  document.getElementById("add-filter").before(chip);
  filterName.value = "";
  filterValue.value = "";
  document.getElementById("add-filter").open = false;
  box.focus();
  search({ push: true });
}

function describeFilter() {
  const option = filterName.selectedOptions[0];
  document.getElementById("filter-help").textContent = option.dataset.description || "The filters have the names of the options of cleats search.";
  filterValue.disabled = option.dataset.kind === "switch";
  filterValue.type = option.dataset.kind === "number" ? "number" : "text";
  (filterValue.disabled ? document.getElementById("filter-add") : filterValue).focus();
  const choices = document.getElementById("filter-choices");
  choices.replaceChildren(
    ...(option.dataset.choices ?? "").split(",").filter(Boolean).map((text) => {
      const choice = document.createElement("option");
      choice.value = text;
      return choice;
    }),
  );
}

box.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(search, DEBOUNCE_MS);
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (document.getElementById("add-filter").open && filterName.value) addFilter();
  else search({ push: true });
  for (const open of form.querySelectorAll("details[open]")) open.open = false;
});
form.addEventListener("change", (event) => {
  if (event.target === filterName) describeFilter();
  else if (event.target.matches("[name=mode], [name=repo]")) {
    const count = form.querySelector(".repositories .count");
    if (count) count.textContent = Math.max(1, form.querySelectorAll("[name=repo]:checked").length);
    search({ push: true });
  }
});
form.addEventListener("click", (event) => {
  const remove = event.target.closest(".chip-remove");
  if (!remove) return;
  event.preventDefault();
  remove.closest(".chip").remove();
  search({ push: true });
});
filterValue.addEventListener("keydown", (event) => {
  // Enter would press the first button of the form, which is outside of the popover and closes it.
  if (event.key !== "Enter" || event.isComposing) return;
  event.preventDefault();
  addFilter();
});
addEventListener("popstate", () => location.reload());

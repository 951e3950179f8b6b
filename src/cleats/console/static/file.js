// References of the name that is clicked in the code, and links to lines.

import { fetchFragment } from "./console.js";

const layout = document.querySelector(".file-layout");
const panel = document.getElementById("references");
const nameField = document.getElementById("reference-name");

async function showReferences(name) {
  nameField.value = nameField.dataset.shown = name;
  panel.setAttribute("aria-busy", "true");
  panel.textContent = `Looking for uses of ${name}…`;
  const params = new URLSearchParams({ name });
  if (layout.dataset.repo) params.set("repo", layout.dataset.repo);
  const html = await fetchFragment(`/console/references?${params}`);
  if (nameField.dataset.shown !== name) return; // another name was clicked in the meantime
  panel.innerHTML = html;
  panel.removeAttribute("aria-busy");
}

layout.addEventListener("click", (event) => {
  const line = event.target.closest(".line-number");
  if (line) {
    const url = new URL(location.href);
    url.searchParams.set("line", line.dataset.line);
    url.searchParams.delete("end");
    url.hash = `L${line.dataset.line}`;
    history.replaceState(null, "", url);
    layout.querySelectorAll("tr.marked").forEach((row) => row.classList.remove("marked"));
    line.parentElement.classList.add("marked");
    return;
  }
  const link = event.target.closest(".refs-link");
  if (link && panel) {
    event.preventDefault();
    showReferences(link.dataset.name);
    return;
  }
  const token = event.target.closest(".snippet.linked code span[class^=n]");
  if (token && panel && /^[\w$]+$/.test(token.textContent.trim()) && !String(getSelection())) {
    showReferences(token.textContent.trim());
  }
});

document.getElementById("reference-form")?.addEventListener("submit", (event) => {
  event.preventDefault();
  if (nameField.value.trim()) showReferences(nameField.value.trim());
});

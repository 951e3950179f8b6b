// Search in the static index, and buttons that copy blocks of code. Works from a folder, without a server.
const field = document.querySelector(".search input");
const list = document.querySelector(".search ol");
const MAX_RESULTS = 12;

function splitWords(text) {
  return text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || [];
}

function scoreSection(section, words) {
  let score = 0;
  for (const word of words) {
    const inTitle = section.title.toLowerCase().includes(word);
    const inPage = section.page.toLowerCase().includes(word);
    const inText = section.text.includes(word);
    if (!inTitle && !inPage && !inText) return 0;
    score += (inTitle ? 10 : 0) + (inPage ? 4 : 0) + (inText ? 1 : 0);
  }
  return score;
}

function showResults() {
  const words = splitWords(field.value);
  const results = words.length
    ? window.SEARCH_SECTIONS.map((section) => [scoreSection(section, words), section])
        .filter(([score]) => score > 0)
        .sort(([one], [other]) => other - one)
        .slice(0, MAX_RESULTS)
    : [];
  list.replaceChildren(...results.map(([, section]) => renderResult(section)));
  if (words.length && !results.length) list.append(renderMessage("No page has all of these words."));
}

function renderResult(section) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = section.href;
  link.textContent = section.title;
  const page = document.createElement("span");
  page.textContent = section.page;
  item.append(link, page);
  return item;
}

function renderMessage(text) {
  const item = document.createElement("li");
  item.textContent = text;
  return item;
}

function loadIndex() {
  if (window.SEARCH_SECTIONS) return;
  const script = document.createElement("script");
  script.src = "search-index.js";
  script.addEventListener("load", showResults);
  document.head.append(script);
}

field.addEventListener("focus", loadIndex, { once: true });
field.addEventListener("input", () => window.SEARCH_SECTIONS && showResults());
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== field) {
    event.preventDefault();
    field.focus();
  }
});

/** Return the commands of a terminal session without prompts and output, or the whole text of another block. */
function readBlock(block) {
  const prompts = block.querySelectorAll(".gp");
  if (!prompts.length) return block.textContent;
  const lines = block.textContent.split("\n").filter((line) => line.startsWith("$ ") || line.startsWith("> "));
  return lines.map((line) => line.slice(2)).join("\n") + "\n";
}

for (const block of document.querySelectorAll("main pre")) {
  const frame = document.createElement("div");
  frame.className = "block";
  block.replaceWith(frame);
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(readBlock(block));
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  frame.append(block, button);
}

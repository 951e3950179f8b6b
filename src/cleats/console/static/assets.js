// Files that are dropped on a field fill it.

for (const field of document.querySelectorAll("[data-drop]")) {
  field.addEventListener("dragover", (event) => event.preventDefault());
  field.addEventListener("drop", async (event) => {
    const file = event.dataTransfer.files[0];
    if (!file) return;
    event.preventDefault();
    field.value = await file.text();
  });
}

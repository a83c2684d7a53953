// Theme and text size, as chosen in this browser. It runs before anything is drawn, so that nothing flashes; it is no module.
"use strict";

for (const name of ["theme", "size"]) {
  const chosen = localStorage.getItem(name);
  if (chosen) document.documentElement.dataset[name] = chosen;
}

document.addEventListener("DOMContentLoaded", () => {
  for (const option of document.querySelectorAll(".options input")) {
    option.checked = option.value === (document.documentElement.dataset[option.name] ?? "");
  }
});

document.addEventListener("change", ({target}) => {
  if (!target.matches?.(".options input")) return;
  if (target.value) document.documentElement.dataset[target.name] = target.value;
  else delete document.documentElement.dataset[target.name];
  localStorage.setItem(target.name, target.value);
});

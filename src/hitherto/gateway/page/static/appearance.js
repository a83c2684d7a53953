// Theme and text size, as chosen in this browser. It runs before anything is drawn, so that nothing flashes; it is no module.
"use strict";

// Days are those of where you are.
document.cookie = `hitherto-zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}; Path=/; SameSite=Strict; Max-Age=31536000`;

for (const name of ["theme", "size"]) {
  const chosen = localStorage.getItem(name);
  if (chosen) document.documentElement.dataset[name] = chosen;
}

document.addEventListener("DOMContentLoaded", () => {
  for (const option of document.querySelectorAll("fieldset.options input")) {
    option.checked = option.value === (document.documentElement.dataset[option.name] ?? "");
  }
});

document.addEventListener("change", ({target}) => {
  if (!target.matches?.("fieldset.options input")) return;
  if (target.value) document.documentElement.dataset[target.name] = target.value;
  else delete document.documentElement.dataset[target.name];
  localStorage.setItem(target.name, target.value);
});

// Copies a message as Markdown, which the server renders, a block of code, or a command.

import {text} from "./wire.js";
import {showError, say} from "./shared.js";

async function copy(words) {
  const blob = words.then((each) => new Blob([each], {type: "text/plain"}));
  await navigator.clipboard.write([new ClipboardItem({"text/plain": blob})]);
  say("Copied.");
}

export const copyText = (words) => copy(Promise.resolve(words));

export function beginCopying() {
  document.addEventListener("click", (event) => {
    const at = event.target.closest?.(".copy, .copy-code");
    if (at) copy(at.matches(".copy") ? text(at.dataset.from) : Promise.resolve(at.nextElementSibling.textContent)).catch(showError);
  });
}

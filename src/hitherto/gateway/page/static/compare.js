// Compares two sessions: loads more of either without moving the other.

import {load} from "./wire.js";
import {follow} from "./changes.js";
import {away, begin, showError, showTimes} from "./shared.js";
import {beginCopying} from "./clipboard.js";

async function more(link) {
  const name = `side-${link.dataset.side}`;
  const page = await load(link.href);
  const got = page.getElementById(name);
  showTimes(got);
  document.querySelector(`#${name} .feed`).append(...[...got.querySelector(".feed").children].map((each) => document.adoptNode(each)));
  const next = got.querySelector(".further");
  if (next) link.replaceWith(document.adoptNode(next));
  else link.parentElement.remove();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.(".further");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  more(link).catch(showError);
});

beginCopying();
begin({refresh: () => {}, keys: {u: () => location.assign("/")}});
follow({heard: () => {}, away}); // notices when the server is away, or the sign-in ended

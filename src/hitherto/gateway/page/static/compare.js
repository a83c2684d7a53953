// Two sessions beside each other: more of either, without losing one's place in the other.

import {load} from "./wire.js";
import {follow} from "./following.js";
import {away, begin, complain, tellTimes} from "./shared.js";
import {beginCopying} from "./copying.js";

async function more(link) {
  const name = `side-${link.dataset.side}`;
  const page = await load(link.href);
  const got = page.getElementById(name);
  tellTimes(got);
  document.querySelector(`#${name} .feed`).append(...[...got.querySelector(".feed").children].map((each) => document.adoptNode(each)));
  const next = got.querySelector(".further");
  if (next) link.replaceWith(document.adoptNode(next));
  else link.parentElement.remove();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.(".further");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  more(link).catch(complain);
});

beginCopying();
begin({refresh: () => {}, keys: {u: () => location.assign("/")}});
follow({heard: () => {}, away}); // whether the server is there, and knows us

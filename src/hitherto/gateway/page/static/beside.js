// The list beside a session: the one that you came from. `[` and `]` go to its neighbours.

import {beginList, knownRows, more, refresh, restorePlace, rows, show} from "./list.js";
import {say, showError} from "./shared.js";

const WIDE = matchMedia("(min-width: 1200px)");
const PAUSE = 2_000; // between two looks at what changed in the list
const beside = document.getElementById("beside");
const from = sessionStorage.getItem("list") ?? "/";
let ready = null;
let waiting = null;

async function fill() {
  await show(from);
  await restorePlace();
  const open = () => rows().querySelector("[aria-current]");
  while (!open() && rows().children.length < knownRows() && document.getElementById("following")) await more();
  open()?.closest(".row").scrollIntoView({block: "nearest"});
}

const filled = () => (ready ??= fill());

function appear() {
  beside.hidden = !WIDE.matches;
  if (WIDE.matches) filled().catch(showError);
}

// Loads the list anew, not more often than one can look: a running turn changes it many times a second.
export function besideChanged({changed, gone}) {
  if (!ready) return;
  if (waiting) {
    waiting.changed.push(...changed);
    waiting.gone.push(...gone);
    return;
  }
  waiting = {changed: [...changed], gone: [...gone]};
  setTimeout(() => {
    const all = waiting;
    waiting = null;
    refresh(all.changed, all.gone).catch(() => {}); // the next change tries again
  }, PAUSE);
}

export async function goToNeighbour(step) {
  await filled();
  const shown = () => [...rows().querySelectorAll(".row:not([hidden])")];
  const at = shown().findIndex((row) => row.querySelector("[aria-current]"));
  if (at < 0) return say("This session is not in the list that you came from.");
  if (step > 0 && at === shown().length - 1) await more();
  const next = shown()[at + step];
  if (next) location.assign(next.querySelector(".name a").href);
  else say(step > 0 ? "This is the last session of the list." : "This is the first session of the list.");
}

export function backToList() {
  sessionStorage.setItem("returning", "1");
  location.assign(from);
}

export function beginBeside(open) {
  const query = new URL(from, location).searchParams;
  beside.querySelector(".narrowed").textContent = [...query.values()].join(" · ");
  for (const link of document.querySelectorAll(".list-link")) {
    link.href = from;
    link.addEventListener("click", () => sessionStorage.setItem("returning", "1"));
  }
  beginList({open, failed: showError, replaced: () => {}});
  WIDE.addEventListener("change", appear);
  appear();
}

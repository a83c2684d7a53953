// The messages in the page: a window on the conversation that moves as one scrolls, and the way to any message.

import {load} from "./wire.js";
import {complain, tellTimes} from "./shared.js";

export const MOST = 200; // messages in the page; those farthest away go
const HELD = 600; // with those that somebody has selected text in
const CLOSE = 120; // pixels from the end that count as being there
export const session = document.getElementById("main").dataset.session;
export const address = `/s/${session}`;
export const feed = document.getElementById("feed");
export const entries = () => [...feed.children];
export const link = (id) => document.getElementById(id);
// An id as it stands in addresses and attributes.
export const named = (id) => encodeURIComponent(id).replace(/[!'()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`);

// Scrolling

export const atEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - CLOSE;
export const toEnd = () => scrollTo({top: document.documentElement.scrollHeight});

// Whatever is done to the feed, what is in view stays where it is.
export function still(work) {
  const kept = entries().find((each) => each.getBoundingClientRect().bottom > 0);
  const before = kept?.getBoundingClientRect().top;
  work();
  if (kept?.isConnected) scrollBy({top: kept.getBoundingClientRect().top - before, behavior: "instant"});
}

export function unfold(element) {
  for (let each = element; each; each = each.parentElement) if (each instanceof HTMLDetailsElement) each.open = true;
}

// Where one was led last: a result within a message is a place of its own.
let place = null;

export function turnTo(id) {
  const found = document.getElementById(`m-${id}`);
  const entry = found?.closest(".feed > .entry");
  if (!entry) return false;
  unfold(found);
  entry.scrollIntoView({block: "start"});
  if (found !== entry && found.getBoundingClientRect().bottom > innerHeight) found.scrollIntoView({block: "center"});
  for (const each of feed.querySelectorAll(".target")) each.classList.remove("target");
  entry.classList.add("target");
  entry.focus({preventScroll: true});
  place = {entry, id};
  return true;
}

const TOP = 120; // pixels below the bar where reading begins

function isInView(entry) {
  const {top, bottom} = entry.getBoundingClientRect();
  return bottom > TOP && top < innerHeight;
}

// The message that has the focus or that one was led to; null if there is none, or one has left it.
export function chosen() {
  const at = document.activeElement?.closest?.(".feed > .entry") ?? place?.entry;
  return at?.isConnected && isInView(at) ? at : null;
}

// That message, or else the first that is in view.
export const here = () => chosen() ?? entries().find(isInView) ?? entries().at(-1);

// Where to look on from; null is the end that lies in this direction.
export function from(back) {
  const at = chosen();
  if (at) return at === place?.entry ? place.id : at.dataset.id;
  const shown = entries().filter(isInView);
  const next = back ? shown.at(-1)?.nextElementSibling : shown[0]?.previousElementSibling;
  return next?.dataset.id ?? null;
}

// What changes the messages that are shown waits for its turn: none of it finds others there than it asked about.
let turn = Promise.resolve();
export function inTurn(work) {
  const done = turn.then(work);
  turn = done.catch(() => {});
  return done;
}

// To a message wherever it is: what is around it takes the place of what is shown.
export const goTo = (id) => (turnTo(id) ? Promise.resolve() : inTurn(async () => {
  if (turnTo(id)) return;
  await showAt(`${address}?at=${id}`);
  turnTo(id);
}));

// To the first message of all, and to the last.
export const toFirst = () => inTurn(async () => {
  if (link("older")) await showAt(`${address}?first=1`);
  scrollTo({top: 0});
});

export const toLast = () => inTurn(async () => {
  if (link("newer")) await showAt(address);
  toEnd();
});

// More messages

export async function showAt(place) {
  const {page, got, made} = await stretch(place);
  feed.replaceChildren(...made);
  feed.dataset.first = got.dataset.first ?? "";
  feed.dataset.last = got.dataset.last ?? "";
  feed.dataset.end = got.dataset.end;
  feed.dataset.total = got.dataset.total;
  take("older", page);
  take("newer", page);
  document.getElementById("saying").replaceWith(document.adoptNode(page.getElementById("saying")));
  watch();
  return page;
}

// The link to what comes before or after, as a page that was loaded has it.
function take(id, page) {
  link(id)?.parentElement.remove();
  const made = page.getElementById(id)?.parentElement;
  if (made) put(id, document.adoptNode(made));
}

const put = (id, made) => (id === "older" ? feed.before(made) : feed.after(made));

export function point(id, from, words) {
  link(id)?.parentElement.remove();
  const made = document.createElement("a");
  const way = id === "older" ? "before" : "after";
  Object.assign(made, {id, rel: id === "older" ? "prev" : "next", href: `${address}?${way}=${from}`, textContent: words});
  const around = document.createElement("p");
  around.className = "following";
  around.append(made);
  put(id, around);
  return around;
}

const busy = new Set();
async function once(name, work) {
  if (busy.has(name)) return;
  busy.add(name);
  try {
    await inTurn(work);
  } finally {
    busy.delete(name);
    watch();
  }
}

export async function stretch(href) {
  const page = await load(href);
  const got = page.getElementById("feed");
  tellTimes(got);
  return {page, got, made: [...got.children].map((each) => document.adoptNode(each))};
}

export const older = () => once("older", async () => {
  const from = link("older");
  if (!from) return;
  const {page, got, made} = await stretch(from.href);
  if (from !== link("older")) return; // it was folded meanwhile
  still(() => {
    feed.prepend(...made);
    if (got.dataset.first) feed.dataset.first = got.dataset.first;
    take("older", page);
  });
  trim({end: true});
});

export const newer = () => once("newer", async () => {
  const from = link("newer");
  if (!from) return;
  const {page, got, made} = await stretch(from.href);
  feed.append(...made);
  if (got.dataset.last) feed.dataset.last = got.dataset.last;
  feed.dataset.end = got.dataset.end;
  take("newer", page);
  trim({end: false});
});

// Away with those farthest from where something came, but not with what somebody has selected.
export function trim({end}) {
  const all = entries();
  const spare = end ? all.slice(MOST).reverse() : all.slice(0, Math.max(0, all.length - MOST));
  const chosen = getSelection();
  const held = (each) => !chosen.isCollapsed && chosen.containsNode(each, true);
  const stop = all.length > HELD ? -1 : spare.findIndex(held);
  const gone = stop < 0 ? spare : spare.slice(0, stop);
  if (!gone.length) return;
  still(() => {
    for (const each of gone) each.remove();
    const left = entries();
    if (end) point("newer", (feed.dataset.last = left.at(-1).dataset.until), "Newer messages");
    else point("older", (feed.dataset.first = left[0].dataset.id), "Older messages");
  });
}

const near = new IntersectionObserver((seen) => {
  for (const each of seen) {
    if (each.isIntersecting) (each.target.id === "older" ? older : newer)().catch(complain);
  }
}, {rootMargin: "400px"});

const isFolded = (at) => at.parentElement.classList.contains("folded");

export function watch() {
  near.disconnect();
  for (const each of [link("older"), link("newer")]) if (each && !isFolded(each)) near.observe(each);
}

// What has left the context is folded away; one may look at it, and fold it again.

export function refold(first) {
  const gone = entries().slice(0, entries().indexOf(first));
  still(() => {
    for (const each of gone) each.remove();
    const past = Number(feed.dataset.past);
    feed.dataset.first = first.dataset.id;
    point("older", first.dataset.id, `${past} earlier message${past === 1 ? "" : "s"} not in the context. Show`).classList.add("folded");
  });
  first.querySelector(".at").focus({preventScroll: true});
}

document.addEventListener("click", (event) => {
  const at = event.target.closest?.("#older, #newer, .refold");
  if (!at || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (at.id) (at.id === "older" ? older : newer)().catch(complain);
  else refold(at.closest(".entry"));
});

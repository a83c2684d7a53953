// The messages in the page: a window of the conversation that moves as you scroll, and jumps to any message.

import {load} from "./wire.js";
import {showError, showTimes} from "./shared.js";
import {entriesIn, gapOf, leave, regroup} from "./turns.js";

export const MOST = 200; // messages in the page; those farthest away are removed
const HELD = 600; // the limit while text is selected
const CLOSE = 120; // pixels from the end that count as the end
export const session = document.getElementById("main").dataset.session;
export const address = `/s/${session}`;
export const feed = document.getElementById("feed");
// The messages in the page, those of unfolded turns included.
export const entries = () => entriesIn([...feed.children]);
export const link = (id) => document.getElementById(id);
// An id as written in addresses and attributes.
export const named = (id) => encodeURIComponent(id).replace(/[!'()*]/g, (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`);

// Scrolling

export const atEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - CLOSE;
export const toEnd = () => scrollTo({top: document.documentElement.scrollHeight});

// Changes the feed without moving what is in view.
export function keepScroll(work) {
  const kept = [...entries(), ...feed.children].find((each) => each.getBoundingClientRect().bottom > 0);
  const before = kept?.getBoundingClientRect().top;
  work();
  if (kept?.isConnected) scrollBy({top: kept.getBoundingClientRect().top - before, behavior: "instant"});
}

export function unfold(element) {
  for (let each = element; each; each = each.parentElement) if (each instanceof HTMLDetailsElement) each.open = true;
}

// The message of the session that an element is in; a message of a session inside a card is not one.
export function entryOf(element) {
  const child = element.closest(".child");
  return child ? entryOf(child.parentElement) : element.closest("#feed .entry");
}

// The last jump: it may have gone to a result within a message.
let place = null;

export function scrollToMessage(id) {
  const found = document.getElementById(`m-${id}`);
  const entry = found && entryOf(found);
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

// The message with the focus, or of the last jump; null if there is none in view.
export function chosen() {
  const at = (document.activeElement && entryOf(document.activeElement)) ?? place?.entry;
  return at?.isConnected && isInView(at) ? at : null;
}

// That message, or else the first one in view.
export const here = () => chosen() ?? entries().find(isInView) ?? entries().at(-1);

// Where to search from; null means the end in this direction.
export function from(back) {
  const at = chosen();
  if (at) return at === place?.entry ? place.id : at.dataset.id;
  const all = entries(), shown = all.filter(isInView);
  const next = back ? all[all.indexOf(shown.at(-1)) + 1] : all[all.indexOf(shown[0]) - 1];
  return next?.dataset.id ?? null;
}

// Changes of the shown messages run one after another, so that none finds other messages than it loaded for.
let turn = Promise.resolve();
export function inTurn(work) {
  const done = turn.then(work);
  turn = done.catch(() => {});
  return done;
}

// Goes to a message wherever it is; if it is not loaded, the window around it replaces the shown one.
export const goTo = (id) => (scrollToMessage(id) ? Promise.resolve() : inTurn(async () => {
  if (scrollToMessage(id)) return;
  await showAt(`${address}?at=${id}`);
  scrollToMessage(id);
}));

// Goes to the first message of the session, and to the last.
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
  const {page, got, made} = await loadWindow(place);
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

// Takes the link to older or newer messages from a loaded page.
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

export async function loadWindow(href) {
  const page = await load(href);
  const got = page.getElementById("feed");
  showTimes(got);
  return {page, got, made: [...got.children].map((each) => document.adoptNode(each))};
}

export const older = () => once("older", async () => {
  const from = link("older");
  if (!from) return;
  const {page, got, made} = await loadWindow(from.href);
  if (from !== link("older")) return; // the messages were folded meanwhile
  keepScroll(() => {
    feed.prepend(...made);
    regroup();
    if (got.dataset.first) feed.dataset.first = got.dataset.first;
    take("older", page);
  });
  trim({end: true});
});

export const newer = () => once("newer", async () => {
  const from = link("newer");
  if (!from) return;
  const {page, got, made} = await loadWindow(from.href);
  feed.append(...made);
  regroup();
  if (got.dataset.last) feed.dataset.last = got.dataset.last;
  feed.dataset.end = got.dataset.end;
  take("newer", page);
  trim({end: false});
});

// What is removed at once: a message, or a turn whose steps are not loaded.
const pieces = () => [...feed.children].flatMap((each) => (each.querySelector(".entry") ? entriesIn([each]) : [each]));

// Removes the messages farthest from the new ones, except selected text. What is left begins and ends with a message.
export function trim({end}) {
  const all = pieces();
  const spare = end ? all.slice(MOST).reverse() : all.slice(0, Math.max(0, all.length - MOST));
  const chosen = getSelection();
  const held = (each) => !chosen.isCollapsed && chosen.containsNode(each, true);
  const stop = all.length > HELD ? -1 : spare.findIndex(held);
  const gone = stop < 0 ? spare : spare.slice(0, stop);
  if (!gone.length) return;
  keepScroll(() => {
    for (const each of gone) each.remove();
    for (const each of feed.querySelectorAll(":scope > .work:not(:has(.entry, .gap))")) each.remove();
    const edge = () => (end ? feed.lastElementChild : feed.firstElementChild);
    while (edge()?.matches(".work:not(:has(.entry))")) edge().remove();
    const left = entries();
    if (end) point("newer", (feed.dataset.last = left.at(-1).dataset.until), "Newer messages");
    else point("older", (feed.dataset.first = left[0].dataset.id), "Older messages");
  });
}

const near = new IntersectionObserver((seen) => {
  for (const each of seen) {
    if (each.isIntersecting) (each.target.id === "older" ? older : newer)().catch(showError);
  }
}, {rootMargin: "400px"});

const isFolded = (at) => at.parentElement.classList.contains("folded");

export function watch() {
  near.disconnect();
  for (const each of [link("older"), link("newer")]) if (each && !isFolded(each)) near.observe(each);
}

// Messages that are not in the context are folded; they can be shown and folded again.

export function refold(first) {
  const top = [...feed.children].findIndex((each) => each.contains(first));
  const gone = [...[...feed.children].slice(0, top), ...entries().slice(0, entries().indexOf(first))];
  keepScroll(() => {
    for (const each of gone) each.remove();
    const past = Number(feed.dataset.past);
    feed.dataset.first = first.dataset.id;
    point("older", first.dataset.id, `${past} earlier message${past === 1 ? "" : "s"} not in the context. Show`).classList.add("folded");
  });
  first.querySelector(".at").focus({preventScroll: true});
}

// Steps of a turn: they are loaded when it is unfolded.

const fill = (gap) => inTurn(async () => {
  if (!gap.isConnected) return;
  const {got, made} = await loadWindow(gap.querySelector("a").href);
  leave(gap, got, entriesIn(made));
});

feed.addEventListener("toggle", (event) => {
  const work = event.target.parentElement;
  if (event.target.open && work.matches(".work") && !work.querySelector(".entry")) fill(gapOf(work)).catch(showError);
}, {capture: true});

document.addEventListener("click", (event) => {
  const at = event.target.closest?.("#older, #newer, .refold, .gap > a");
  if (!at || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (at.id) (at.id === "older" ? older : newer)().catch(showError);
  else if (at.matches(".refold")) refold(at.closest(".entry"));
  else fill(at.parentElement).catch(showError);
});

// Rows of sessions, on a page of their own or beside a session: more of them as you scroll, and those up that get messages.

import {load} from "./wire.js";
import {idOf, showTimes} from "./shared.js";

const AT_ONCE = 50;
const DAY = 24 * 60 * 60_000;
const weekday = new Intl.DateTimeFormat(undefined, {weekday: "long"});
const dayOf = new Intl.DateTimeFormat(undefined, {weekday: "short", day: "numeric", month: "long"});
const dayOfYear = new Intl.DateTimeFormat(undefined, {day: "numeric", month: "long", year: "numeric"});

export const list = () => document.getElementById("list");
export const rows = () => document.getElementById("rows");
const byId = (root) => new Map([...root.querySelectorAll(".rows > .row")].map((row) => [idOf(row), row]));
const inView = (row) => row.getBoundingClientRect().bottom > 0;
const pane = () => list().closest(".pane");
const scroller = () => pane() ?? document.scrollingElement;

// What whoever shows the list does after every change of it, with a loaded page that replaces it, and which session is open.
let hooks = {settle: () => {}, replaced: () => {}, open: null};

// Automatic changes of the list run one after another, so that none overwrites a later one.
let last = Promise.resolve();
function inTurn(work) {
  const done = last.then(work);
  last = done.catch(() => {});
  return done;
}

let latest = 0;

// Shows another list, unless a newer request has started meanwhile.
export async function show(address) {
  const mine = ++latest;
  const page = await get(address);
  if (mine === latest) put(page);
  return mine === latest;
}

// A list beside a session has no filters.
function get(address) {
  const wanted = new URL(address, location);
  if (pane()) wanted.searchParams.set("bare", "1");
  return load(wanted.href);
}

function put(page) {
  hooks.replaced(page);
  list().replaceWith(document.adoptNode(page.getElementById("list")));
  dress(list());
  settle();
  watch();
}

// Times as they are here, and the mark of the session that is open.
function dress(root) {
  showTimes(root);
  for (const row of root.matches(".row") ? [root] : root.querySelectorAll(".row")) {
    if (hooks.open !== null && idOf(row) === hooks.open) row.querySelector(".name a").setAttribute("aria-current", "page");
  }
}

function settle() {
  showDays();
  hooks.settle();
}

// Headings of days: of a family, that of its newest member, by which it is placed.

const timeOf = (row) => new Date(row.querySelector(".age time").dateTime);

function nameOfDay(at, now) {
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate());
  const passed = Math.ceil((midnight - at) / DAY);
  if (passed <= 0) return "Today";
  if (passed === 1) return "Yesterday";
  if (passed < 7) return weekday.format(at);
  return (at.getFullYear() === now.getFullYear() ? dayOf : dayOfYear).format(at);
}

function showDays() {
  const now = new Date(), all = [...rows().children].filter((row) => !row.hidden);
  const ordered = list().dataset.by === "time";
  let before = "";
  for (const [at, row] of all.entries()) {
    let day = before;
    if (ordered && !row.dataset.depth) {
      let newest = timeOf(row);
      for (let next = at + 1; all[next]?.dataset.depth; next += 1) newest = new Date(Math.max(newest, timeOf(all[next])));
      day = nameOfDay(newest, now);
    }
    if (day === before) delete row.dataset.day;
    else row.dataset.day = day;
    before = day;
  }
}

// More rows

const near = new Map(); // an observer for each scroller

function watch() {
  for (const each of near.values()) each.disconnect();
  const link = document.getElementById("following");
  if (!link) return;
  const root = pane();
  if (!near.has(root)) {
    near.set(root, new IntersectionObserver((seen) => {
      if (seen.some((each) => each.isIntersecting)) more().catch(hooks.failed);
    }, {root, rootMargin: "600px"}));
  }
  near.get(root).observe(link);
}

let coming = null;
export const more = () => (coming ??= inTurn(next).finally(() => (coming = null)));

async function next() {
  const link = document.getElementById("following");
  if (!link) return;
  const mine = latest;
  const page = await load(link.href);
  if (mine !== latest) return;
  const known = byId(list());
  let above; // a fork goes below its family, even if that was loaded earlier
  for (const [id, row] of byId(page)) {
    const shown = known.get(id);
    if (!shown && row.dataset.depth && above) above.after(document.adoptNode(row));
    else if (!shown) rows().append(document.adoptNode(row));
    above = shown ?? row;
  }
  dress(rows());
  settle();
  const following = page.getElementById("following");
  if (following) link.replaceWith(document.adoptNode(following));
  else link.parentElement.remove();
  watch();
}

// The list is as long as before, at the same position.

const placeOf = () => `${pane() ? "beside" : "place"} ${list().dataset.here}`;

function keepPlace() {
  if (!rows()) return;
  const row = scroller().scrollTop ? [...rows().children].find(inView) : null;
  const place = row && {rows: rows().children.length, id: idOf(row), top: row.getBoundingClientRect().top};
  sessionStorage.setItem(placeOf(), JSON.stringify(place));
}

// How many rows the page of this list had.
export const knownRows = () => JSON.parse(sessionStorage.getItem(`place ${list().dataset.here}`))?.rows ?? 0;

export async function restorePlace() {
  const place = JSON.parse(sessionStorage.getItem(placeOf()));
  if (!place) return;
  const mine = latest;
  while (mine === latest && rows().children.length < place.rows && document.getElementById("following")) await more();
  const row = byId(list()).get(place.id);
  if (mine === latest && row) scroller().scrollBy({top: row.getBoundingClientRect().top - place.top, behavior: "instant"});
}

// What changes

// Loads the rows of those of these sessions that match the list.
async function read(ids) {
  const found = new Map();
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    const address = new URL(list().dataset.here, location);
    for (const id of ids.slice(at, at + AT_ONCE)) address.searchParams.append("id", id);
    for (const [id, row] of byId(await load(address.href))) found.set(id, row);
  }
  return found;
}

// Changed rows change in place or disappear, rows with new messages move up, all others stay.
export const refresh = (changed = [], gone = []) => inTurn(async () => {
  const mine = latest;
  const page = await get(list().dataset.here);
  if (mine !== latest) return;
  const first = byId(page), shown = byId(list());
  const beyond = changed.filter((id) => shown.has(id) && !first.has(id));
  const others = await read(beyond);
  if (mine !== latest) return;
  if (!shown.size || !first.size) return put(page);
  hooks.replaced(page);
  dress(rows());
  keepScroll(new Set([...changed, ...gone]), () => {
    const known = byId(list());
    for (const id of gone) drop(known.get(id));
    for (const id of beyond) others.has(id) ? swap(known.get(id), keepContext(known.get(id), others.get(id))) : drop(known.get(id));
    arrange(first, known);
    settle();
  });
});

function arrange(first, known) {
  let place = rows().firstElementChild;
  for (const [id, row] of first) {
    const old = known.get(id);
    const shown = old?.isConnected ? swap(old, row) : document.adoptNode(row);
    if (old === place) place = shown;
    if (shown === place) place = place.nextElementSibling;
    else if (!isWritten(shown)) lift(shown, place);
  }
  dress(rows());
}

// An element that moves in the document loses the focus: restore it.
function lift(row, place) {
  const focused = row.contains(document.activeElement) ? document.activeElement : null;
  rows().insertBefore(row, place);
  focused?.focus({preventScroll: true});
}

// Changes rows without moving what is in view, except at the top of the list, where new rows appear.
function keepScroll(moving, work) {
  const kept = scroller().scrollTop ? [...rows().children].find((row) => inView(row) && !moving.has(idOf(row))) : null;
  const nameOf = (row) => row.querySelector(".line"); // a heading above it may come or go
  const before = kept && nameOf(kept).getBoundingClientRect().top;
  work();
  if (kept?.isConnected) scroller().scrollBy({top: nameOf(kept).getBoundingClientRect().top - before, behavior: "instant"});
}

const isWritten = (row) => row.querySelector("input:not(.choose)"); // it is being edited

// Replaces a row if it differs, and keeps the focus.
function swap(old, row) {
  dress(row);
  row.hidden = old.hidden;
  if (old.dataset.day) row.dataset.day = old.dataset.day;
  if (isWritten(old) || row.isEqualNode(old)) return old;
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  old.replaceWith(document.adoptNode(row));
  if (focused) (row.querySelector(sameAs(focused)) ?? row.querySelector(".name a")).focus({preventScroll: true});
  return row;
}

function sameAs(element) {
  if (element.matches(".untag")) return `.untag[data-tag="${element.dataset.tag}"]`;
  return [".choose", ".rename", ".retag"].find((each) => element.matches(each)) ?? ".name a";
}

// A row that was loaded alone lacks its family level and its search hit: take them from the old row.
function keepContext(old, row) {
  const found = old.querySelector(".found");
  if (old.dataset.depth) row.dataset.depth = old.dataset.depth;
  if (found) {
    row.querySelector(".line").after(found.cloneNode(true));
    row.querySelector(".name a").href = old.querySelector(".name a").href;
  }
  return row;
}

function drop(row) {
  if (!row || isWritten(row)) return;
  if (row.contains(document.activeElement)) {
    const all = [...rows().children].filter((each) => !each.hidden);
    const at = all.indexOf(row);
    (all[at + 1] ?? all[at - 1])?.querySelector(".name a").focus({preventScroll: true});
  }
  row.remove();
}

export function beginList(given) {
  hooks = {...hooks, ...given};
  addEventListener("pagehide", keepPlace);
  if (rows()) {
    dress(list());
    settle();
    watch();
  }
}

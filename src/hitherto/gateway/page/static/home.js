// The list: searches as you type, loads more rows as you scroll, moves rows up when they get messages.

import {call, load} from "./wire.js";
import {follow} from "./changes.js";
import {beginSelection, choose, settle} from "./selection.js";
import {away, begin, showError, idOf, rename, retag, say, showTimes} from "./shared.js";

const TYPED = 200, SHORTEST = 2, AT_ONCE = 50;
const q = document.getElementById("q");
let latest = 0;

const main = () => document.getElementById("main");
const rows = () => document.getElementById("rows");
const byId = (root) => new Map([...root.querySelectorAll(".row")].map((row) => [idOf(row), row]));
const inView = (row) => row.getBoundingClientRect().bottom > 0;

// Automatic changes of the list run one after another, so that none overwrites a later one.
let last = Promise.resolve();
function inTurn(work) {
  const done = last.then(work);
  last = done.catch(() => {});
  return done;
}

// Search

function addressOf(form) {
  const query = new URLSearchParams();
  const least = (name) => (name === "q" ? SHORTEST : 1); // shorter texts are not searched for
  for (const [name, value] of new FormData(form)) if (value.trim().length >= least(name)) query.append(name, value);
  return query.size ? `/?${query}` : "/";
}

async function show(address) {
  const mine = ++latest;
  const page = await load(address);
  if (mine !== latest) return; // a newer request has started
  history.replaceState(null, "", address);
  put(page);
}

function put(page) {
  const focused = main().contains(document.activeElement);
  document.title = page.title;
  recount(page);
  main().replaceWith(document.adoptNode(page.getElementById("main")));
  showTimes(main());
  settle();
  watch();
  if (focused) main().focus({preventScroll: true});
}

// Takes the filters with their counts from a loaded page, unless the focus is in them.
function recount(page) {
  const facets = document.querySelector(".facets");
  if (facets.contains(document.activeElement)) return;
  const open = [...facets.querySelectorAll("details")].map((each) => each.open);
  const fresh = document.adoptNode(page.querySelector(".facets"));
  if (facets.children.length === fresh.children.length) {
    for (const [at, each] of fresh.querySelectorAll("details").entries()) each.open = open[at] ?? false;
  }
  facets.replaceWith(fresh);
}

let typing;
function typed() {
  clearTimeout(typing);
  typing = setTimeout(() => show(addressOf(q.form)).catch(showError), TYPED);
}
q.addEventListener("input", typed);
if (q.value !== q.defaultValue) typed(); // typed before this script ran
q.form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(typing);
  show(addressOf(q.form)).then(() => rows().querySelector(".name a")?.focus()).catch(showError);
});
q.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") rows().querySelector(".name a")?.focus();
});
addEventListener("popstate", () => location.reload());

// More rows

const near = new IntersectionObserver((seen) => {
  if (seen.some((each) => each.isIntersecting)) more().catch(showError);
}, {rootMargin: "600px"});

function watch() {
  near.disconnect();
  const link = document.getElementById("following");
  if (link) near.observe(link);
}

let coming = null;
const more = () => (coming ??= inTurn(next).finally(() => (coming = null)));

async function next() {
  const link = document.getElementById("following");
  if (!link) return;
  const mine = latest;
  const page = await load(link.href);
  if (mine !== latest) return;
  const known = byId(rows());
  let above; // a fork goes below its family, even if that was loaded earlier
  for (const [id, row] of byId(page)) {
    const shown = known.get(id);
    if (!shown && row.dataset.depth && above) above.after(document.adoptNode(row));
    else if (!shown) rows().append(document.adoptNode(row));
    above = shown ?? row;
  }
  showTimes(rows());
  settle();
  const following = page.getElementById("following");
  if (following) link.replaceWith(document.adoptNode(following));
  else link.parentElement.remove();
  watch();
}

// Coming back from a session, the list is as long as before, at the same position.

const placeOf = () => `place ${location.pathname}${location.search}`;

addEventListener("pagehide", () => {
  const row = scrollY ? [...rows().children].find(inView) : null;
  const place = row && {rows: rows().children.length, id: idOf(row), top: row.getBoundingClientRect().top};
  sessionStorage.setItem(placeOf(), JSON.stringify(place));
});

async function restoreScroll() {
  const place = JSON.parse(sessionStorage.getItem(placeOf()));
  if (!place || performance.getEntriesByType("navigation")[0].type !== "back_forward") return;
  const mine = latest;
  while (mine === latest && rows().children.length < place.rows && document.getElementById("following")) await more();
  const row = byId(rows()).get(place.id);
  if (mine === latest && row) scrollBy({top: row.getBoundingClientRect().top - place.top, behavior: "instant"});
}

// What changes

// Loads the rows of those of these sessions that match the list.
async function read(ids) {
  const found = new Map();
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    const address = new URL(main().dataset.here, location);
    for (const id of ids.slice(at, at + AT_ONCE)) address.searchParams.append("id", id);
    for (const [id, row] of byId(await load(address.href))) found.set(id, row);
  }
  return found;
}

// Changed rows change in place or disappear, rows with new messages move up, all others stay.
const refresh = (changed = [], gone = []) => inTurn(async () => {
  const mine = latest;
  const page = await load(main().dataset.here);
  if (mine !== latest) return;
  const first = byId(page), shown = byId(rows());
  const beyond = changed.filter((id) => shown.has(id) && !first.has(id));
  const others = await read(beyond);
  if (mine !== latest) return;
  if (!shown.size || !first.size) return put(page);
  recount(page);
  showTimes(rows());
  keepScroll(new Set([...changed, ...gone]), () => {
    const known = byId(rows());
    for (const id of gone) drop(known.get(id));
    for (const id of beyond) others.has(id) ? swap(known.get(id), keepContext(known.get(id), others.get(id))) : drop(known.get(id));
    arrange(first, known);
  });
  settle();
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
  showTimes(rows());
}

// An element that moves in the document loses the focus: restore it.
function lift(row, place) {
  const focused = row.contains(document.activeElement) ? document.activeElement : null;
  rows().insertBefore(row, place);
  focused?.focus({preventScroll: true});
}

// Changes rows without moving what is in view, except at the top of the list, where new rows appear.
function keepScroll(moving, work) {
  const kept = scrollY ? [...rows().children].find((row) => inView(row) && !moving.has(idOf(row))) : null;
  const before = kept?.getBoundingClientRect().top;
  work();
  if (kept?.isConnected) scrollBy({top: kept.getBoundingClientRect().top - before, behavior: "instant"});
}

const isWritten = (row) => row.querySelector("input:not(.choose)"); // it is being edited

// Replaces a row if it differs, and keeps the focus.
function swap(old, row) {
  showTimes(row);
  row.hidden = old.hidden;
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

// Keys

const current = () => document.activeElement.closest?.(".row");
const writable = () => current()?.querySelector(".rename") && current();

async function patch(row, name, notices) {
  if (!row) return;
  const on = !row.querySelector(`.flag.${name}`);
  await call("sessions.patch", {session_id: idOf(row), [name]: on});
  say(notices[on ? 0 : 1]);
  await refresh([idOf(row)]);
}

function move(step) {
  const all = [...rows().querySelectorAll(".row:not([hidden])")];
  const at = all.indexOf(current());
  const next = all[at < 0 ? 0 : Math.min(Math.max(at + step, 0), all.length - 1)];
  next?.querySelector(".name a")?.focus();
}

beginSelection(refresh);
begin({
  refresh,
  keys: {
    "/": () => q.select(),
    j: () => move(1),
    k: () => move(-1),
    x: () => choose(current()),
    e: () => current() && rename(current(), refresh),
    t: () => current() && retag(current(), refresh),
    p: () => patch(writable(), "pinned", ["Pinned.", "Unpinned."]).catch(showError),
    a: () => patch(writable(), "archived", ["Archived.", "Unarchived."]).catch(showError),
    f: () => document.querySelector(".facets a")?.focus(),
    o: () => location.assign("/overview"),
  },
});
addEventListener("pageshow", (event) => event.persisted && refresh().catch(showError)); // back from a session
watch();
restoreScroll().catch(showError);
follow({after: main().dataset.newest, heard: (news) => refresh(news.changed, news.gone), away});

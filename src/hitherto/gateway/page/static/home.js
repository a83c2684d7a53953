// The list: search as one types, more rows as one scrolls, rows that move when something is said in them.

import {call, load} from "./wire.js";
import {follow} from "./following.js";
import {beginChoosing, choose, settle} from "./choosing.js";
import {away, begin, complain, idOf, rename, retag, say, tellTimes} from "./shared.js";

const TYPED = 200, SHORTEST = 2, AT_ONCE = 50;
const q = document.getElementById("q");
let asked = 0;

const main = () => document.getElementById("main");
const rows = () => document.getElementById("rows");
const byId = (root) => new Map([...root.querySelectorAll(".row")].map((row) => [idOf(row), row]));
const inView = (row) => row.getBoundingClientRect().bottom > 0;

// What changes the list by itself is done one after the other, so that nothing writes over what came later.
let last = Promise.resolve();
function inTurn(work) {
  const done = last.then(work);
  last = done.catch(() => {});
  return done;
}

// Search

function addressOf(form) {
  const told = new URLSearchParams();
  const least = (name) => (name === "q" ? SHORTEST : 1); // fewer are no question yet
  for (const [name, value] of new FormData(form)) if (value.trim().length >= least(name)) told.append(name, value);
  return told.size ? `/?${told}` : "/";
}

async function show(address) {
  const mine = ++asked;
  const page = await load(address);
  if (mine !== asked) return; // something else was asked meanwhile
  history.replaceState(null, "", address);
  put(page);
}

function put(page) {
  const within = main().contains(document.activeElement);
  document.title = page.title;
  recount(page);
  main().replaceWith(document.adoptNode(page.getElementById("main")));
  tellTimes(main());
  settle();
  watch();
  if (within) main().focus({preventScroll: true});
}

// The facets with their counts, as another page has them; not from under somebody who is in them.
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
  typing = setTimeout(() => show(addressOf(q.form)).catch(complain), TYPED);
}
q.addEventListener("input", typed);
if (q.value !== q.defaultValue) typed(); // somebody was quicker than this script
q.form.addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(typing);
  show(addressOf(q.form)).then(() => rows().querySelector(".name a")?.focus()).catch(complain);
});
q.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") rows().querySelector(".name a")?.focus();
});
addEventListener("popstate", () => location.reload());

// More rows

const near = new IntersectionObserver((seen) => {
  if (seen.some((each) => each.isIntersecting)) more().catch(complain);
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
  const mine = asked;
  const page = await load(link.href);
  if (mine !== asked) return;
  const known = byId(rows());
  let above; // a fork goes below its family, also where that has come earlier
  for (const [id, row] of byId(page)) {
    const shown = known.get(id);
    if (!shown && row.dataset.depth && above) above.after(document.adoptNode(row));
    else if (!shown) rows().append(document.adoptNode(row));
    above = shown ?? row;
  }
  tellTimes(rows());
  settle();
  const following = page.getElementById("following");
  if (following) link.replaceWith(document.adoptNode(following));
  else link.parentElement.remove();
  watch();
}

// Who comes back from a session finds the list as long as it was, and at the same place.

const placeOf = () => `place ${location.pathname}${location.search}`;

addEventListener("pagehide", () => {
  const row = scrollY ? [...rows().children].find(inView) : null;
  const place = row && {rows: rows().children.length, id: idOf(row), top: row.getBoundingClientRect().top};
  sessionStorage.setItem(placeOf(), JSON.stringify(place));
});

async function comeBack() {
  const place = JSON.parse(sessionStorage.getItem(placeOf()));
  if (!place || performance.getEntriesByType("navigation")[0].type !== "back_forward") return;
  const mine = asked;
  while (mine === asked && rows().children.length < place.rows && document.getElementById("following")) await more();
  const row = byId(rows()).get(place.id);
  if (mine === asked && row) scrollBy({top: row.getBoundingClientRect().top - place.top, behavior: "instant"});
}

// What changes

// The rows of these sessions, of those that belong to the list.
async function read(ids) {
  const found = new Map();
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    const address = new URL(main().dataset.here, location);
    for (const id of ids.slice(at, at + AT_ONCE)) address.searchParams.append("id", id);
    for (const [id, row] of byId(await load(address.href))) found.set(id, row);
  }
  return found;
}

// Rows that have changed change where they stand, or go; those that something was said in move up; all others stay.
const refresh = (changed = [], gone = []) => inTurn(async () => {
  const mine = asked;
  const page = await load(main().dataset.here);
  if (mine !== asked) return;
  const first = byId(page), shown = byId(rows());
  const beyond = changed.filter((id) => shown.has(id) && !first.has(id));
  const others = await read(beyond);
  if (mine !== asked) return;
  if (!shown.size || !first.size) return put(page);
  recount(page);
  tellTimes(rows());
  still(new Set([...changed, ...gone]), () => {
    const known = byId(rows());
    for (const id of gone) drop(known.get(id));
    for (const id of beyond) others.has(id) ? swap(known.get(id), likened(known.get(id), others.get(id))) : drop(known.get(id));
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
  tellTimes(rows());
}

// What moves in a document loses the focus.
function lift(row, place) {
  const focused = row.contains(document.activeElement) ? document.activeElement : null;
  rows().insertBefore(row, place);
  focused?.focus({preventScroll: true});
}

// What is in view stays where it is, apart from what moves; at the top of the list one sees what comes.
function still(moving, work) {
  const kept = scrollY ? [...rows().children].find((row) => inView(row) && !moving.has(idOf(row))) : null;
  const before = kept?.getBoundingClientRect().top;
  work();
  if (kept?.isConnected) scrollBy({top: kept.getBoundingClientRect().top - before, behavior: "instant"});
}

const isWritten = (row) => row.querySelector("input:not(.choose)"); // somebody is writing in it

// One row in the place of another, if they differ. Who is in it stays in it.
function swap(old, row) {
  tellTimes(row);
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

// A row read by itself does not know its family, nor what was found in it.
function likened(old, row) {
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

async function patch(row, name, told) {
  if (!row) return;
  const on = !row.querySelector(`.flag.${name}`);
  await call("sessions.patch", {session_id: idOf(row), [name]: on});
  say(told[on ? 0 : 1]);
  await refresh([idOf(row)]);
}

function move(step) {
  const all = [...rows().querySelectorAll(".row:not([hidden])")];
  const at = all.indexOf(current());
  const next = all[at < 0 ? 0 : Math.min(Math.max(at + step, 0), all.length - 1)];
  next?.querySelector(".name a")?.focus();
}

beginChoosing(refresh);
begin({
  refresh,
  keys: {
    "/": () => q.select(),
    j: () => move(1),
    k: () => move(-1),
    x: () => choose(current()),
    e: () => current() && rename(current(), refresh),
    t: () => current() && retag(current(), refresh),
    p: () => patch(writable(), "pinned", ["Pinned.", "Unpinned."]).catch(complain),
    a: () => patch(writable(), "archived", ["Archived.", "Unarchived."]).catch(complain),
    f: () => document.querySelector(".facets a")?.focus(),
    o: () => location.assign("/overview"),
  },
});
addEventListener("pageshow", (event) => event.persisted && refresh().catch(complain)); // back from reading one
watch();
comeBack().catch(complain);
follow({after: main().dataset.newest, heard: (news) => refresh(news.changed, news.gone), away});

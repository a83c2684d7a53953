// The list: search as one types, more rows as one scrolls, rows that move when something is said in them.

import {call, follow, load} from "./wire.js";
import {beginChoosing, choose, settle} from "./choosing.js";
import {away, begin, complain, idOf, rename, retag, say, tellTimes} from "./shared.js";

const TYPED = 200;
const q = document.getElementById("q");
let asked = 0;

const main = () => document.getElementById("main");
const rows = () => document.getElementById("rows");
const byId = (root) => new Map([...root.querySelectorAll(".row")].map((row) => [row.dataset.id, row]));

// Search

function addressOf(form) {
  const told = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value.trim()) told.append(name, value);
  return told.size ? `/?${told}` : "/";
}

async function show(address, {keep = false} = {}) {
  const mine = ++asked;
  const page = await load(address);
  if (mine !== asked) return; // something else was asked meanwhile
  if (!keep) history.replaceState(null, "", address);
  document.title = page.title;
  recount(page);
  main().replaceWith(document.adoptNode(page.getElementById("main")));
  tellTimes(main());
  settle();
  watch();
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
  if (q.value.trim().length === 1) return;
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

async function more() {
  const link = document.getElementById("following");
  if (!link || link.dataset.loading) return;
  link.dataset.loading = "1";
  const mine = asked;
  let page;
  try {
    page = await load(link.href);
  } finally {
    delete link.dataset.loading;
  }
  if (mine !== asked) return;
  const known = byId(rows());
  let above; // a fork goes below its family, also where that has come earlier
  for (const row of [...page.querySelectorAll(".row")]) {
    const shown = known.get(row.dataset.id);
    if (!shown && row.dataset.depth && above) above.after(document.adoptNode(row));
    else if (!shown) rows().append(document.adoptNode(row));
    above = shown ?? row;
  }
  tellTimes(rows());
  settle();
  const next = page.getElementById("following");
  if (next) link.replaceWith(document.adoptNode(next));
  else link.parentElement.remove();
  watch();
}

// What changes

// All anew where rows may have gone; else those rows that are there change, move, or come.
async function refresh(all = false, gone = []) {
  if (all) return show(main().dataset.here, {keep: true});
  const mine = asked;
  const page = await load(main().dataset.here);
  if (mine !== asked) return;
  const fresh = page.getElementById("main");
  if (!rows().children.length || !fresh.querySelector(".row")) return show(main().dataset.here, {keep: true});
  recount(page);
  for (const id of gone) byId(rows()).get(encodeURIComponent(id))?.remove();
  const known = byId(rows());
  let place = rows().firstElementChild;
  for (const row of [...fresh.querySelectorAll(".row")]) {
    const old = known.get(row.dataset.id);
    if (old?.querySelector("input:not(.choose)")) {
      if (old === place) place = place.nextElementSibling;
      continue; // somebody is writing in it
    }
    const focused = old?.contains(document.activeElement) ? document.activeElement.className || document.activeElement.localName : "";
    const shown = document.adoptNode(row);
    if (old === place) place = place.nextElementSibling;
    old?.remove();
    rows().insertBefore(shown, place);
    if (focused) shown.querySelector(focused === "a" ? ".name a" : `.${focused.split(" ").join(".")}`)?.focus();
  }
  tellTimes(rows());
  settle();
}

// Keys

const current = () => document.activeElement.closest?.(".row");
const writable = () => current()?.querySelector(".rename") && current();

async function patch(row, name, told) {
  if (!row) return;
  const on = !row.querySelector(`.flag.${name}`);
  const beside = (row.nextElementSibling ?? row.previousElementSibling)?.dataset.id;
  await call("sessions.patch", {session_id: idOf(row), [name]: on});
  say(told[on ? 0 : 1]);
  await refresh(true);
  const place = byId(rows()).get(row.dataset.id) ?? byId(rows()).get(beside);
  place?.querySelector(".name a").focus();
}

function move(step) {
  const all = [...rows().querySelectorAll(".row")];
  const at = all.indexOf(current());
  const next = all[at < 0 ? 0 : Math.min(Math.max(at + step, 0), all.length - 1)];
  next?.querySelector(".name a")?.focus();
}

beginChoosing(refresh);
begin({
  refresh: () => refresh(),
  keys: {
    "/": () => q.select(),
    j: () => move(1),
    k: () => move(-1),
    x: () => choose(current()),
    e: () => current() && rename(current(), () => refresh()),
    t: () => current() && retag(current(), () => refresh()),
    p: () => patch(writable(), "pinned", ["Pinned.", "No longer pinned."]).catch(complain),
    a: () => patch(writable(), "archived", ["Put away.", "Taken back."]).catch(complain),
    f: () => document.querySelector(".facets a")?.focus(),
    o: () => location.assign("/overview"),
  },
});
addEventListener("pageshow", (event) => event.persisted && refresh().catch(complain)); // back from reading one
watch();
follow({after: main().dataset.newest, heard: (news) => refresh(false, news.gone), away});

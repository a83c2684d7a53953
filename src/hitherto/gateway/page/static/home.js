// The list: searches as you type, and does what keys say.

import {call} from "./wire.js";
import {follow} from "./changes.js";
import {beginList, list, refresh, restorePlace, rows, show} from "./list.js";
import {actOnAll, beginSelection, choose, chooseUpTo, isChoosing, settle} from "./selection.js";
import {away, begin, showError, idOf, rename, retag, say} from "./shared.js";

const TYPED = 200, SHORTEST = 2;
const q = document.getElementById("q");

// Search

function addressOf(form) {
  const query = new URLSearchParams();
  const least = (name) => (name === "q" ? SHORTEST : 1); // shorter texts are not searched for
  for (const [name, value] of new FormData(form)) if (value.trim().length >= least(name)) query.append(name, value);
  return query.size ? `/?${query}` : "/";
}

async function search() {
  clearTimeout(typing);
  const address = addressOf(q.form), focused = list().contains(document.activeElement);
  if (!await show(address)) return;
  history.replaceState(null, "", address);
  remember();
  if (focused) document.getElementById("main").focus({preventScroll: true});
}

// A session that is opened from here shows this list beside it.
const remember = () => sessionStorage.setItem("list", location.pathname + location.search);

// Takes the title, and the filters with their counts unless the focus is in them, from a loaded page.
function recount(page) {
  document.title = page.title;
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
  typing = setTimeout(() => search().catch(showError), TYPED);
}
q.addEventListener("input", typed);
if (q.value !== q.defaultValue) typed(); // typed before this script ran
q.form.addEventListener("submit", (event) => {
  event.preventDefault();
  search().then(() => rows().querySelector(".name a")?.focus()).catch(showError);
});
q.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") rows().querySelector(".name a")?.focus();
});
addEventListener("popstate", () => location.reload());

// Filters: at the side, or in a sheet on a small screen.

const filters = document.getElementById("filters");

function showFilters(on) {
  document.body.classList.toggle("filtering", on);
  filters.setAttribute("aria-expanded", on);
  if (!on) filters.focus();
  else document.querySelector(".facets a")?.focus();
}

filters.addEventListener("click", () => showFilters(filters.ariaExpanded !== "true"));
document.addEventListener("click", (event) => event.target.closest?.("#filtered") && showFilters(false));
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && filters.ariaExpanded === "true") showFilters(false);
});

function goToFilters() {
  if (getComputedStyle(filters).display === "none") document.querySelector(".facets a")?.focus();
  else showFilters(true);
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

// Keys act on what is selected, or else on the row that has the focus.
const forChosen = (name, otherwise) => () => (isChoosing() ? actOnAll(name) : otherwise());

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
    X: () => chooseUpTo(current()),
    "*": () => actOnAll("everything"),
    e: () => current() && rename(current(), refresh),
    t: forChosen("tag", () => current() && retag(current(), refresh)),
    p: forChosen("pin", () => patch(writable(), "pinned", ["Pinned.", "Unpinned."]).catch(showError)),
    a: forChosen("archive", () => patch(writable(), "archived", ["Archived.", "Unarchived."]).catch(showError)),
    d: forChosen("delete", () => {
      if (!writable()) return;
      choose(current(), true);
      actOnAll("delete");
    }),
    Escape: () => isChoosing() && actOnAll("none"),
    f: goToFilters,
    o: () => location.assign("/usage"),
  },
});
addEventListener("pageshow", (event) => event.persisted && refresh().catch(showError)); // back from a session
beginList({settle, replaced: recount, failed: showError});
remember();
const returned = performance.getEntriesByType("navigation")[0]?.type === "back_forward" || sessionStorage.getItem("returning");
sessionStorage.removeItem("returning");
if (returned) restorePlace().catch(showError);
follow({after: list().dataset.newest, heard: (news) => refresh(news.changed, news.gone), away});

// Selected sessions of the list: tag, pin, archive, export or delete them together.

import {call} from "./wire.js";
import {askForTag, showError, idOf, say, tagsOf} from "./shared.js";
import {deleteSoon} from "./deletion.js";
import {exportAll} from "./export.js";
import {more} from "./list.js";

const bar = document.getElementById("chosen");
const counter = document.getElementById("how-many");
const chosen = new Set();
const deleting = new Set();
const rows = () => [...document.querySelectorAll("#rows .row")];
const chosenRows = () => rows().filter((row) => chosen.has(idOf(row)));

// After every change of the list: the selection stays, and sessions about to be deleted stay hidden.
export function settle() {
  const there = new Set();
  for (const row of rows()) {
    const box = row.querySelector(".choose");
    if (!box) continue;
    const id = idOf(row);
    there.add(id);
    box.checked = chosen.has(id);
    row.hidden = deleting.has(id);
  }
  for (const id of chosen) if (!there.has(id)) chosen.delete(id);
  counter.textContent = `${chosen.size} selected`;
  bar.hidden = !chosen.size;
  document.body.classList.toggle("choosing", chosen.size > 0);
}

let start = null; // where the next range begins

export function choose(row, on) {
  if (!row?.querySelector(".choose")) return;
  const id = idOf(row);
  start = id;
  if (on ?? !chosen.has(id)) chosen.add(id);
  else chosen.delete(id);
  settle();
}

// Selects everything from the row that was chosen last to this one.
export function chooseUpTo(row) {
  const all = rows().filter((each) => !each.hidden && each.querySelector(".choose"));
  const [from, to] = [all.findIndex((each) => idOf(each) === start), all.indexOf(row)];
  if (from < 0 || to < 0) return choose(row, true);
  for (const each of all.slice(Math.min(from, to), Math.max(from, to) + 1)) chosen.add(idOf(each));
  start = idOf(row);
  settle();
}

export const isChoosing = () => chosen.size > 0;

// Does to all selected what a button of the bar says.
export const actOnAll = (name) => bar.querySelector(`[data-all=${name}]`).click();

// Makes the same change in all selected sessions and returns their ids.
async function each(params) {
  const ids = [];
  for (const row of chosenRows()) {
    await call("sessions.patch", {session_id: idOf(row), ...params(row)});
    ids.push(idOf(row));
  }
  return ids;
}

function clear() {
  chosen.clear();
  settle();
}

const ALL = 1_000;

const ACTIONS = {
  none: clear,
  everything: async () => {
    while (rows().length < ALL && document.getElementById("following")) await more();
    for (const row of rows()) if (!row.hidden) chosen.add(idOf(row));
    settle();
  },
  pin: async (refresh) => {
    const pinned = !chosenRows().every((row) => row.querySelector(".flag.pinned"));
    const ids = await each(() => ({pinned}));
    say(pinned ? "Pinned." : "Unpinned.");
    clear();
    await refresh(ids);
  },
  archive: async (refresh) => {
    const archived = !("archived" in document.getElementById("main").dataset);
    const ids = await each(() => ({archived}));
    say(archived ? "Archived." : "Unarchived.");
    clear();
    await refresh(ids);
  },
  tag: (refresh, button) => {
    const place = document.createElement("span");
    counter.after(place);
    let ids = [];
    const save = async (tag) => (ids = await each((row) => ({tags: [...new Set([...tagsOf(row), tag])]})));
    askForTag(place, "Tag for all selected", button, save, () => {
      clear();
      return refresh(ids);
    });
  },
  export: async () => {
    await exportAll(chosenRows().map(idOf));
    clear();
  },
  delete: (refresh) => {
    const ids = [...chosen];
    const hide = (on, which) => {
      for (const id of which) on ? deleting.add(id) : deleting.delete(id);
      settle();
      const back = on ? null : rows().find((row) => which.includes(idOf(row)));
      back?.querySelector(".name a").focus();
    };
    const done = (gone) => {
      refresh([], gone).catch(showError);
    };
    clear();
    deleteSoon(ids, {hide, done});
  },
};

export function beginSelection(refresh) {
  const select = document.getElementById("select");
  let ranged = false; // Shift is held while a box is pressed
  document.addEventListener("click", (event) => (ranged = event.shiftKey), {capture: true});
  document.addEventListener("change", (event) => {
    if (!event.target.matches(".choose")) return;
    const row = event.target.closest(".row");
    if (ranged) chooseUpTo(row);
    else choose(row, event.target.checked);
  });
  select?.addEventListener("click", () => {
    const on = document.body.classList.toggle("selecting");
    select.setAttribute("aria-pressed", on);
    if (!on) clear();
  });
  bar.addEventListener("click", async (event) => {
    const work = ACTIONS[event.target.dataset.all];
    if (work) await Promise.resolve(work(refresh, event.target)).catch(showError);
  });
}

// Several sessions at once: chosen in the list, then tagged, put away, exported or deleted together.

import {call} from "./wire.js";
import {ask, complain, idOf, say, tagsOf} from "./shared.js";
import {deleteSoon} from "./deleting.js";
import {exportAll} from "./exporting.js";

const bar = document.getElementById("chosen");
const told = document.getElementById("how-many");
const chosen = new Set();
const doomed = new Set();
const rows = () => [...document.querySelectorAll("#rows .row")];

// After every change of the list: what was chosen stays so, what will be deleted stays out of sight.
export function settle() {
  const there = new Set();
  for (const row of rows()) {
    const box = row.querySelector(".choose");
    if (!box) continue;
    there.add(row.dataset.id);
    box.checked = chosen.has(row.dataset.id);
    row.hidden = doomed.has(row.dataset.id);
  }
  for (const id of chosen) if (!there.has(id)) chosen.delete(id);
  told.textContent = `${chosen.size} selected`;
  bar.hidden = !chosen.size;
  document.body.classList.toggle("choosing", chosen.size > 0);
}

export function choose(row, on) {
  if (!row?.querySelector(".choose")) return;
  if (on ?? !chosen.has(row.dataset.id)) chosen.add(row.dataset.id);
  else chosen.delete(row.dataset.id);
  settle();
}

async function each(params) {
  for (const row of rows().filter((row) => chosen.has(row.dataset.id))) {
    await call("sessions.patch", {session_id: idOf(row), ...params(row)});
  }
}

function clear() {
  chosen.clear();
  settle();
}

const WORKS = {
  none: clear,
  archive: async (refresh) => {
    const archived = !("archived" in document.getElementById("main").dataset);
    await each(() => ({archived}));
    say(archived ? "Put away." : "Taken back.");
    clear();
    await refresh(true);
  },
  tag: (refresh) => {
    const place = document.createElement("span");
    told.after(place);
    const input = ask(place, "", "Tag for all selected", told, async (tag) => {
      await each((row) => ({tags: [...new Set([...tagsOf(row), tag])]}));
      clear();
      await refresh();
    });
    input.className = "tag-input";
    input.placeholder = "tag";
  },
  export: async () => {
    const ids = rows().filter((row) => chosen.has(row.dataset.id)).map(idOf);
    await exportAll(ids);
    clear();
  },
  delete: (refresh) => {
    const ids = [...chosen];
    const hide = (on) => {
      for (const id of ids) on ? doomed.add(id) : doomed.delete(id);
      settle();
    };
    deleteSoon(ids.map(decodeURIComponent), {
      hide,
      done: () => refresh(true).catch(complain),
    });
    clear();
  },
};

export function beginChoosing(refresh) {
  document.addEventListener("change", (event) => {
    if (event.target.matches(".choose")) choose(event.target.closest(".row"), event.target.checked);
  });
  bar.addEventListener("click", async (event) => {
    const work = WORKS[event.target.dataset.all];
    if (work) await Promise.resolve(work(refresh)).catch(complain);
  });
}

// Find in the session, and jump to the next message of a kind. The server searches: most messages are not in the page.

import {text} from "./wire.js";
import {showError, say} from "./shared.js";
import {entries, feed, from, goTo, here, named, session, unfold} from "./feed.js";

const PAUSE = 200; // milliseconds after the last key before the search
const box = document.getElementById("find");
const counter = document.getElementById("found");
const arrows = document.getElementById("hits");
let hits = {entries: [], more: false, terms: []};
let at = -1;
let looked = "";

// Highlighting

const LETTER = "[\\p{L}\\p{N}]";

function pattern({strict}) {
  const between = strict ? "[^\\p{L}\\p{N}]+" : "[^\\p{L}\\p{N}]*";
  const words = hits.terms.map(([tokens, prefix]) => {
    const run = tokens.join(between);
    return strict ? `(?<!${LETTER})${run}${prefix ? "" : `(?!${LETTER})`}` : run;
  });
  return new RegExp(words.join("|"), "giu");
}

// The text without accents, and the original position of each character.
function plain(words) {
  let folded = "";
  const from = [];
  let start = 0;
  for (const each of words) {
    const base = each.normalize("NFKD").replace(/\p{M}/gu, "");
    for (let number = 0; number < base.length; number++) from.push(start);
    folded += base;
    start += each.length;
  }
  from.push(start);
  return {folded, from};
}

function* ranges(root, wanted) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.parentElement.closest("header, .boundary")) continue;
    const {folded, from} = plain(node.data);
    for (const match of folded.matchAll(wanted)) {
      if (!match[0]) continue;
      const range = new Range();
      range.setStart(node, from[match.index]);
      range.setEnd(node, from[match.index + match[0].length]);
      yield range;
    }
  }
}

// In one message: whole words as the search matches them, or else the letters anywhere.
function rangesIn(root) {
  const exact = [...ranges(root, pattern({strict: true}))];
  return exact.length ? exact : [...ranges(root, pattern({strict: false}))];
}

const rootOf = (id) => document.getElementById(`m-${id}`);

export function highlight() {
  if (!CSS.highlights) return;
  CSS.highlights.clear();
  if (!hits.terms.length) return;
  const wanted = new Set(hits.entries);
  const shown = [...feed.querySelectorAll("[id^='m-']")].filter((each) => wanted.has(decodeURIComponent(each.id.slice(2))));
  CSS.highlights.set("found", new Highlight(...shown.flatMap(rangesIn)));
  const now = at < 0 ? null : rootOf(named(hits.entries[at]));
  if (now) CSS.highlights.set("current", new Highlight(...rangesIn(now)));
}

// Searching

function showCount() {
  const number = hits.entries.length;
  arrows.hidden = !number;
  if (!box.value.trim() || box.value.trim().length < 2) counter.textContent = "";
  else if (!number) counter.textContent = "none";
  else counter.textContent = `${at < 0 ? "" : `${at + 1} of `}${number.toLocaleString()}${hits.more ? "+" : ""}`;
}

function note() {
  const now = new URL(location.href);
  if (looked) now.searchParams.set("find", looked);
  else now.searchParams.delete("find");
  history.replaceState(null, "", now);
}

let newest = 0;
async function look() {
  const words = box.value;
  const turn = ++newest;
  const found = words.trim().length < 2
    ? {entries: [], more: false, terms: []}
    : JSON.parse(await text(`/find?${new URLSearchParams({session: decodeURIComponent(session), q: words})}`));
  if (turn !== newest) return; // a newer search has started
  looked = words.trim();
  hits = found;
  at = -1;
  note();
  showCount();
  highlight();
}

// The hit nearest to the current position, for the first step.
async function nearest(step) {
  const number = hits.entries.length;
  const order = new Map(hits.entries.map((id, place) => [id, place]));
  const all = entries();
  const now = all.indexOf(here());
  const ids = (entry) => [entry, ...entry.querySelectorAll("[id^='m-']")].map((each) => decodeURIComponent(each.id.slice(2)));
  const places = (list) => list.flatMap(ids).filter((id) => order.has(id)).map((id) => order.get(id));
  const [above, below] = [places(all.slice(0, now + 1)), places(all.slice(now))];
  if (step > 0 && below.length) return Math.min(...below);
  if (above.length) return Math.max(...above);
  if (below.length) return step > 0 ? Math.min(...below) : (Math.min(...below) - 1 + number) % number;
  return number - 1;
}

export async function stepHit(step) {
  const number = hits.entries.length;
  if (!number) return;
  at = at < 0 ? await nearest(step) : (at + step + number) % number;
  showCount();
  const id = named(hits.entries[at]);
  const typing = document.activeElement === box;
  await goTo(id);
  for (const range of rangesIn(rootOf(id)).slice(0, 50)) unfold(range.startContainer.parentElement);
  highlight();
  if (typing) box.focus({preventScroll: true});
}

export function beginFinding() {
  let waiting;
  box.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => look().catch(showError), PAUSE);
  });
  document.getElementById("finding").addEventListener("submit", (event) => event.preventDefault());
  box.addEventListener("keydown", async (event) => {
    if (event.key === "Escape") {
      event.preventDefault();
      box.value = "";
      look().catch(showError);
      box.blur();
    } else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      clearTimeout(waiting);
      try {
        if (box.value.trim() !== looked) await look();
        await stepHit(event.shiftKey ? -1 : 1);
      } catch (error) {
        showError(error);
      }
    }
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-hit]");
    if (button) stepHit(Number(button.dataset.hit)).catch(showError);
  });
  new MutationObserver(() => looked && highlight()).observe(feed, {childList: true, subtree: true});
  if (box.value) look().catch(showError);
}

export function find() {
  box.focus();
  box.select();
}

// Jumping

const NAMES = {user: "prompt", assistant: "answer", tool: "tool call", failure: "failure", summary: "summary", edit: "edit"};

export async function jump(kind, back) {
  const query = new URLSearchParams({session: decodeURIComponent(session), kind});
  const at = from(back);
  if (at) query.set("from", decodeURIComponent(at));
  if (back) query.set("back", "1");
  const {entry} = JSON.parse(await text(`/jump?${query}`));
  if (entry === null) say(`No ${back ? "earlier" : "later"} ${NAMES[kind]}.`);
  else await goTo(named(entry));
}

export function beginJumping() {
  const kind = document.getElementById("kind");
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-jump]");
    if (button) jump(kind.value, button.dataset.jump === "back").catch(showError);
  });
}


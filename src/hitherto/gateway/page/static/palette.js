// One box for everything (⌘K, Ctrl+K): sessions, files, commands and filters. What it finds is what the search finds.

import {call, load} from "./wire.js";

const PAUSE = 150, SHORTEST = 2, SESSIONS = 8, FILES = 5;
const FIELDS = ["project:", "agent:", "tag:", "branch:", "file:", "tool:", "model:", "role:", "is:failed", "is:running", "has:edit", "after:", "yesterday", "last week"];
const dialog = document.getElementById("palette");
const box = document.getElementById("anything");
const listed = document.getElementById("anything-found");
let best = true, latest = 0, typing, files = null, commands = [];
let shownFor = null; // what was in the box when the list was made

const goTo = (address) => () => location.assign(address);
const press = (selector) => () => document.querySelector(selector)?.click();

function knownCommands() {
  const themes = [["", "system"], ["light", "light"], ["dark", "dark"]];
  return [
    ["Inbox", goTo("/inbox")], ["Sessions", goTo("/")], ["Changes", goTo("/changes")], ["Usage", goTo("/usage")],
    ["Running sessions", goTo("/?status=running")], ["Pinned sessions", goTo("/?pinned=1")], ["Archived sessions", goTo("/?archived=1")],
    ...[...document.querySelectorAll("#acts a, #acts button")].map((each) => [`${each.textContent.replace("…", "")} this session`, () => each.click()]),
    ...themes.map(([value, name]) => [`Theme: ${name}`, press(`.options [name=theme][value="${value}"]`)]),
    ["Keys", press("#help")], ["Sign out", press("#signout")],
  ];
}

// Options

function option(kind, words, work, beside = "") {
  const item = document.createElement("li");
  item.id = `found-${listed.childElementCount}`;
  item.setAttribute("role", "option");
  for (const [name, text] of [["kind", kind], ["words", words], ["beside", beside]]) {
    const part = document.createElement("span");
    part.className = name;
    part.append(...(text instanceof Node ? text.childNodes : [text]));
    item.append(part);
  }
  item.work = work;
  listed.append(item);
}

const options = () => [...listed.children];
const chosen = () => listed.querySelector("[aria-selected=true]");

function choose(item) {
  for (const each of options()) each.setAttribute("aria-selected", each === item);
  item?.scrollIntoView({block: "nearest"});
  if (item) box.setAttribute("aria-activedescendant", item.id);
  else box.removeAttribute("aria-activedescendant");
}

function move(step) {
  const all = options(), at = all.indexOf(chosen());
  choose(all[(at + step + all.length) % all.length]);
}

// Finding

const matches = (words, text) => words.every((word) => text.toLowerCase().includes(word));

const lastWord = (text) => text.split(/\s/).at(-1);

// The begun word becomes the filter; the box may hold more by now than when the list was made.
function completed(text, field) {
  const last = lastWord(text), begun = field.startsWith(last.toLowerCase());
  return (begun ? text.slice(0, text.length - last.length) : `${text} `) + field + (field.endsWith(":") ? "" : " ");
}

function showFilters(text) {
  const last = lastWord(text).toLowerCase();
  for (const field of FIELDS.filter((each) => !text || (last && each.startsWith(last) && each !== last))) {
    option("Filter", field, () => {
      box.value = completed(box.value, field);
      box.focus();
      find();
      return true;
    });
  }
}

async function touched() {
  const {changes} = await call("changes.list", {limit: 500});
  return [...new Set(changes.map((each) => each.path))];
}

const addressOf = (text) => (text.length < SHORTEST ? "/" : `/?${new URLSearchParams({q: text, ...(best ? {order: "best"} : {})})}`);

function showSessions(page) {
  for (const row of [...page.querySelectorAll("#rows > .row")].slice(0, SESSIONS)) {
    const link = row.querySelector(".name a"), found = row.querySelector(".found");
    const words = document.createElement("span");
    words.append(link.textContent);
    if (found) {
      const snippet = document.adoptNode(found);
      snippet.querySelector(".more")?.remove();
      words.append(snippet);
    }
    option(row.querySelector(".sign").getAttribute("aria-label"), words, goTo(link.getAttribute("href")), row.querySelector(".project .folder")?.textContent ?? "");
  }
}

async function find() {
  clearTimeout(typing);
  const mine = ++latest, text = box.value.trim(), words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const [page, paths] = await Promise.all([
    load(`${addressOf(text)}${addressOf(text).includes("?") ? "&" : "?"}bare=1`),
    (files ??= touched()).catch(() => []),
  ]);
  if (mine !== latest) return;
  shownFor = text;
  listed.replaceChildren();
  const named = words.length ? commands.filter(([name]) => matches(words, name)) : [];
  for (const [name, work] of named.slice(0, 5)) option("Command", name, work);
  showSessions(page);
  for (const path of words.length ? paths.filter((each) => matches(words, each)).slice(0, FILES) : []) {
    option("File", path, goTo(`/changes?${new URLSearchParams({file: path})}`));
  }
  showFilters(text);
  if (text.length >= SHORTEST) option("Search", `All results for ${text}`, goTo(addressOf(text)));
  choose(options()[0]);
}

const failed = () => listed.replaceChildren(); // the page itself says what is wrong

function act(item) {
  if (item && item.work() !== true) dialog.close();
}

// Not what was found for fewer letters.
async function enter() {
  if (box.value.trim() !== shownFor) await find();
  act(chosen());
}

export function openPalette() {
  if (dialog.open) return;
  commands = knownCommands();
  dialog.showModal();
  box.select();
  find().catch(failed);
}

export function beginPalette() {
  document.addEventListener("keydown", (event) => {
    if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      openPalette();
    }
  });
  document.getElementById("find-anything").addEventListener("click", openPalette);
  box.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => find().catch(failed), PAUSE);
  });
  box.addEventListener("keydown", (event) => {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (step) move(step);
    else if (event.key === "Enter") enter().catch(failed);
    else return;
    event.preventDefault();
  });
  dialog.addEventListener("change", ({target}) => {
    if (target.name !== "anything-order") return;
    best = target.value === "best";
    find().catch(failed);
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close(); // a click outside of it
    act(event.target.closest("[role=option]"));
  });
}

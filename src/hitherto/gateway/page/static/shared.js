// Shared by all pages: notices, times, keys, signing out, and editing titles and tags in place.

import {beginAttention} from "./attention.js";
import {beginPalette} from "./palette.js";
import {SignedOut, announce, call, listen, post} from "./wire.js";

// Notices: a passing one is shown for some seconds; a standing one has a name and stays until it is dismissed.

const notice = document.getElementById("notice");
const PASSING = 6_000;

export function say(words, {stays = false, name = stays ? "standing" : "passing", link, action} = {}) {
  const item = document.createElement("p");
  item.dataset.name = name;
  const content = document.createElement("span");
  content.className = "words";
  content.textContent = words;
  item.append(content);
  if (action) {
    const element = document.createElement("button");
    element.className = "quiet";
    element.textContent = action.text;
    element.addEventListener("click", () => {
      end(item);
      action.work();
    });
    item.append(" ", element);
  }
  if (link) {
    const element = document.createElement("a");
    element.href = link.href;
    element.textContent = link.text;
    item.append(" ", element);
  }
  const old = noticeNamed(name);
  if (old) old.replaceWith(item);
  else notice.append(item);
  notice.hidden = false;
  if (!stays) setTimeout(() => end(item), PASSING);
  return item;
}

const noticeNamed = (name) => [...notice.children].find((each) => each.dataset.name === name);

function end(item) {
  if (item.contains(document.activeElement)) document.getElementById("main")?.focus({preventScroll: true});
  item.remove();
  notice.hidden = !notice.childElementCount;
}

export function dismiss(name) {
  const item = noticeNamed(name);
  if (item) end(item);
}

let out = false;
export function away(state) {
  if (out) return;
  out = state === "signed out";
  const again = {text: "Sign in again", work: () => location.reload()};
  if (out) say("You were signed out.", {stays: true, name: "away", action: again});
  else if (state === "away") say("Cannot reach the server. Retrying.", {stays: true, name: "away"});
  else {
    dismiss("away");
    say("Reconnected.");
  }
}

export function showError(error) {
  if (error instanceof SignedOut) away("signed out");
  else say(error.message || "Something went wrong.");
}

// Times

const MINUTE = 60_000, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const day = new Intl.DateTimeFormat(undefined, {day: "numeric", month: "short"});
const dayOfYear = new Intl.DateTimeFormat(undefined, {day: "numeric", month: "short", year: "numeric"});
const hour = new Intl.DateTimeFormat(undefined, {timeStyle: "short"});
const clock = new Intl.DateTimeFormat(undefined, {dateStyle: "medium", timeStyle: "short"});

function age(at, now) {
  const passed = now - at;
  if (passed < MINUTE) return "now";
  if (passed < HOUR) return `${Math.floor(passed / MINUTE)} min`;
  if (passed < DAY) return `${Math.floor(passed / HOUR)} h`;
  if (passed < 7 * DAY) return `${Math.floor(passed / DAY)} d`;
  return (at.getFullYear() === now.getFullYear() ? day : dayOfYear).format(at);
}

export function showTimes(root = document) {
  const now = new Date();
  for (const element of root.querySelectorAll("time[datetime]")) {
    const at = new Date(element.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    element.title = clock.format(at);
    const today = at.toDateString() === now.toDateString();
    element.textContent = "age" in element.dataset ? age(at, now) : (today ? hour : clock).format(at);
  }
}

// Names and tags

export const idOf = (row) => decodeURIComponent(row.dataset.id);
export const tagsOf = (row) => [...row.querySelectorAll("[data-tag]")].map((each) => decodeURIComponent(each.dataset.tag));

const TITLE = 500, TAG = 100; // the most characters of each

// Asks where it stands. What is refused stays there, to be mended.
function ask(place, {value = "", label, most, back, save, refresh}) {
  const input = document.createElement("input");
  Object.assign(input, {value, maxLength: most, dir: "auto", ariaLabel: label});
  const before = [...place.childNodes];
  place.replaceChildren(input);
  input.focus();
  input.select();
  let over = false;
  const close = (byKey) => {
    over = true;
    if (before.length) place.replaceChildren(...before);
    else place.remove();
    if (byKey) back.focus();
  };
  const keep = async (byKey) => {
    const words = input.value.trim();
    if (words === value.trim()) return close(byKey);
    over = true;
    try {
      await save(words);
    } catch (error) {
      over = false;
      return showError(error);
    }
    close(byKey);
    await refresh().catch(showError);
  };
  input.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (over || (event.key !== "Enter" && event.key !== "Escape")) return;
    event.preventDefault(); // or it would also press the element that gets the focus next
    if (event.key === "Enter") keep(true);
    else close(true);
  });
  input.addEventListener("blur", () => over || keep(false));
  return input;
}

export function askForTag(place, label, back, save, refresh) {
  const input = ask(place, {label, most: TAG, back, save, refresh});
  input.className = "tag-input";
  input.placeholder = "tag";
}

export function rename(row, refresh) {
  const name = row.querySelector(".name"), id = idOf(row);
  if (name.querySelector("input") || !row.querySelector(".rename")) return;
  const shown = name.querySelector("[data-title]");
  const back = shown instanceof HTMLAnchorElement ? shown : row.querySelector(".menu > summary");
  const save = (label) => call("sessions.patch", {session_id: id, label: label || null});
  ask(name, {value: shown.dataset.title, label: "Title", most: TITLE, back, save, refresh: () => refresh([id])});
}

export function retag(row, refresh) {
  const id = idOf(row), known = tagsOf(row);
  if (row.querySelector(".tag-input") || !row.querySelector(".retag")) return;
  const place = document.createElement("span");
  row.querySelector(".tags").after(place);
  const save = (tag) => call("sessions.patch", {session_id: id, tags: [...known, tag]});
  askForTag(place, "New tag", row.querySelector(".name a, .menu > summary"), save, () => refresh([id]));
}

async function untag(row, tag, refresh) {
  await call("sessions.patch", {session_id: idOf(row), tags: tagsOf(row).filter((each) => each !== tag)});
  await refresh([idOf(row)]);
}

// Clicks and keys

export function editing(event) {
  const at = event.target;
  return at.closest?.("input:not([type=checkbox]), textarea, select") || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]");
}

// Closes all menus but one.
function closeMenus(but) {
  for (const menu of document.querySelectorAll(".menu[open]")) if (menu !== but) menu.open = false;
}

export function begin({refresh, keys}) {
  if (location.hash.startsWith("#code=")) history.replaceState(null, "", location.pathname + location.search);
  showTimes();
  setInterval(showTimes, MINUTE);
  document.getElementById("signout").addEventListener("click", async () => {
    await post("/signout").catch(() => {});
    announce("out");
    location.replace("/");
  });
  // Another owner may have signed in, so everything is reloaded.
  listen(({data}) => (data === "out" ? away("signed out") : out && location.reload()));
  const help = document.getElementById("keys");
  document.getElementById("help").addEventListener("click", () => help.showModal());
  document.addEventListener("click", (event) => {
    const row = event.target.closest?.(".row");
    if (!row) return;
    if (event.target.closest(".rename")) rename(row, refresh);
    else if (event.target.closest(".retag")) retag(row, refresh);
    else if (event.target.closest(".untag")) {
      untag(row, decodeURIComponent(event.target.closest(".untag").dataset.tag), refresh).catch(showError);
    }
  });
  document.getElementById("more").hidden = false;
  beginAttention();
  beginPalette();
  document.addEventListener("click", (event) => closeMenus(event.target.closest?.(".options, .menu > summary")?.closest(".menu")));
  document.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && event.target.closest?.(".menu[open]");
    if (!menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  document.addEventListener("keydown", (event) => {
    if (editing(event)) return;
    const everywhere = {"?": () => help.showModal(), i: () => location.assign("/inbox")};
    const work = keys[event.key] ?? everywhere[event.key];
    if (work) {
      event.preventDefault();
      work(event);
    }
  });
}

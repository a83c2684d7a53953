// What both pages have: notices, times, keys, signing out, and the name and tags of a session, changed where they stand.

import {SignedOut, announce, call, overhear, post} from "./wire.js";

const notice = document.getElementById("notice");
let clearing;

export function say(words, {stays = false, link, action} = {}) {
  clearTimeout(clearing);
  notice.textContent = words;
  if (action) {
    const element = document.createElement("button");
    element.className = "quiet";
    element.textContent = action.text;
    element.addEventListener("click", action.work);
    notice.append(" ", element);
  }
  if (link) {
    const element = document.createElement("a");
    element.href = link.href;
    element.textContent = link.text;
    notice.append(" ", element);
  }
  notice.hidden = !words;
  if (!stays) clearing = setTimeout(() => (notice.hidden = true), 6_000);
}

let out = false;
export function away(state) {
  out ||= state === "signed out";
  if (out) say("You are signed out.", {stays: true, link: {href: location.href, text: "Sign in again"}});
  else if (state === "away") say("The server is away. Trying again.", {stays: true});
  else say("The server is back.");
}

export function complain(error) {
  if (error instanceof SignedOut) away("signed out");
  else say(error.message || "That did not work.");
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

export function tellTimes(root = document) {
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

export function ask(place, value, label, back, done) {
  const input = document.createElement("input");
  input.value = value;
  input.setAttribute("aria-label", label);
  const before = [...place.childNodes];
  place.replaceChildren(input);
  input.focus();
  input.select();
  let over = false;
  const end = async (kept) => {
    if (over) return;
    over = true;
    place.replaceChildren(...before);
    back.focus();
    if (kept && input.value.trim() !== value.trim()) await done(input.value.trim()).catch(complain);
  };
  input.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault(); // or it would also press what has the focus next
    end(event.key === "Enter");
  });
  input.addEventListener("blur", () => end(true));
  return input;
}

export function rename(row, refresh) {
  const name = row.querySelector(".name");
  if (name.querySelector("input") || !row.querySelector(".rename")) return;
  const shown = name.querySelector("[data-title]");
  const back = shown instanceof HTMLAnchorElement ? shown : row.querySelector(".rename");
  ask(name, shown.dataset.title, "Title", back, async (label) => {
    await call("sessions.patch", {session_id: idOf(row), label: label || null});
    await refresh();
  });
}

export function retag(row, refresh) {
  const tags = row.querySelector(".tags");
  if (row.querySelector(".tag-input") || !row.querySelector(".retag")) return;
  const place = document.createElement("span");
  tags.after(place);
  const known = tagsOf(row);
  const input = ask(place, "", "New tag", row.querySelector(".name a, .retag"), async (tag) => {
    await call("sessions.patch", {session_id: idOf(row), tags: [...known, tag]});
    await refresh();
  });
  input.className = "tag-input";
  input.placeholder = "tag";
}

async function untag(row, tag, refresh) {
  await call("sessions.patch", {session_id: idOf(row), tags: tagsOf(row).filter((each) => each !== tag)});
  await refresh();
}

// Clicks and keys

export function editing(event) {
  const at = event.target;
  return at.closest?.("input:not([type=checkbox]), textarea") || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]");
}

export function begin({refresh, keys}) {
  if (location.hash.startsWith("#code=")) history.replaceState(null, "", location.pathname + location.search);
  tellTimes();
  setInterval(tellTimes, MINUTE);
  document.getElementById("signout").addEventListener("click", async () => {
    await post("/signout").catch(() => {});
    announce("out");
    location.replace("/");
  });
  // Whoever signs in again may be somebody else, so all is read anew.
  overhear(({data}) => (data === "out" ? away("signed out") : out && location.reload()));
  const help = document.getElementById("keys");
  document.getElementById("help").addEventListener("click", () => help.showModal());
  document.addEventListener("click", (event) => {
    const row = event.target.closest?.(".row");
    if (!row) return;
    if (event.target.closest(".rename")) rename(row, refresh);
    else if (event.target.closest(".retag")) retag(row, refresh);
    else if (event.target.closest(".untag")) {
      untag(row, decodeURIComponent(event.target.closest(".untag").dataset.tag), refresh).catch(complain);
    }
  });
  for (const name of ["help", "signout"]) document.getElementById(name).hidden = false;
  document.addEventListener("keydown", (event) => {
    if (editing(event)) return;
    const work = event.key === "?" ? () => help.showModal() : keys[event.key];
    if (work) {
      event.preventDefault();
      work(event);
    }
  });
}

// Acting in a session: saying something, stopping the answer, answering what a tool asks, forking, going back, and so on.

import {Refused, call, text} from "./wire.js";
import {complain, idOf, say} from "./shared.js";
import {deleteSoon} from "./deleting.js";
import {beginSheets, leave, tellWhatWasDone} from "./sheets.js";

const form = document.getElementById("composer");
const prompt = document.getElementById("prompt");
const stop = document.getElementById("stop");
const menu = document.getElementById("acts");
const about = () => document.querySelector(".about");
const session = () => idOf(about());
const asked = () => document.querySelector("#asking > .asking");
const draftOf = (id) => `draft ${id}`;
let asking = 0;

// After every change of the session: what it waits for, and whether there is something to stop.
export function settle(page) {
  if (page) renewQuestion(page);
  if (stop) stop.hidden = !asking && !about().querySelector(".status:is(.running, .waiting)");
}

// Left as it is while the same question stands, since somebody may be about to answer it.
function renewQuestion(page) {
  const now = page.querySelector("#asking > .asking");
  if (now?.dataset.call === asked()?.dataset.call) return;
  const place = document.getElementById("asking");
  place.replaceChildren(...(now ? [document.adoptNode(now)] : []));
}

// Saying something

// What could not be sent and is sent again is the same prompt: should the server have it already, it is not answered twice.
let tried = {content: "", key: ""};

async function send() {
  const content = prompt.value.trim();
  if (!content) return;
  if (tried.content !== content) tried = {content, key: crypto.randomUUID()};
  write("");
  asking += 1;
  settle();
  try {
    await call("session.send", {session_id: session(), content, ask: true, idempotency_key: tried.key});
    tried = {content: "", key: ""};
  } catch (error) {
    if (!(error instanceof Refused && error.status === 0)) tried = {content: "", key: ""};
    if (!prompt.value) write(content);
    complain(error);
  } finally {
    asking -= 1;
    settle();
  }
}

// What is in the box is still there when the page is loaded again.
function write(words) {
  prompt.value = words;
  keep();
}

function keep() {
  if (prompt.value) sessionStorage.setItem(draftOf(session()), prompt.value);
  else sessionStorage.removeItem(draftOf(session()));
}

async function answer(button) {
  const given = {session_id: session(), tool_call_id: decodeURIComponent(asked().dataset.call), choice: button.dataset.answer};
  for (const each of asked().querySelectorAll("button")) each.disabled = true;
  try {
    const told = await call("session.answer", given);
    if (!told.answered) say("That was answered elsewhere, or is not asked any more.");
    document.getElementById("asking").replaceChildren();
    writeHere();
  } catch (error) {
    for (const each of asked()?.querySelectorAll("button") ?? []) each.disabled = false;
    throw error;
  }
}

// Going another way: with an answer, it is kept; with a prompt, all before it is, and it goes into the box.

const idAt = (entry, before) => decodeURIComponent(before ? entry.dataset.id : entry.dataset.until);
const wordsOf = (entry) => text(entry.querySelector(".copy").dataset.from);
const isPrompt = (entry) => entry?.classList.contains("prompt") ?? false;

async function fork(entry) {
  const before = isPrompt(entry);
  const words = before ? await wordsOf(entry) : "";
  const place = entry ? {message_id: idAt(entry, before), before} : {};
  const made = await call("session.fork", {session_id: session(), ...place});
  if (words) sessionStorage.setItem(draftOf(made.session_id), words);
  location.assign(`/s/${encodeURIComponent(made.session_id)}`);
}

async function rewind(entry) {
  const before = isPrompt(entry), id = session(), unsent = prompt?.value ?? "";
  if (before) sessionStorage.setItem(draftOf(id), await wordsOf(entry));
  try {
    const went = call("store.rewind", {session_id: id, to: idAt(entry, before), before});
    await leave(id, "You went back. What was here is kept as a checkpoint.", went);
  } catch (error) {
    if (before) sessionStorage.setItem(draftOf(id), unsent);
    throw error;
  }
  location.assign(`/s/${encodeURIComponent(id)}`);
}

const patch = (name, now) => call("sessions.patch", {session_id: session(), [name]: now !== "1"});
const ACTS = {
  fork: () => fork(null),
  pin: (button) => patch("pinned", button.dataset.now),
  archive: (button) => patch("archived", button.dataset.now),
  delete: () => {
    const hide = (on) => document.getElementById("main").classList.toggle("leaving", on);
    deleteSoon([session()], {hide, done: () => location.assign("/")});
  },
};

function workOf(button) {
  if (button.dataset.act) return ACTS[button.dataset.act](button);
  if (button.dataset.answer) return answer(button);
  const entry = button.closest(".entry");
  return button.classList.contains("rewind") ? rewind(entry) : fork(entry);
}

function beginWriting() {
  prompt.value = prompt.value || (sessionStorage.getItem(draftOf(session())) ?? "");
  if (prompt.value) prompt.focus();
  prompt.addEventListener("input", keep);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  prompt.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send();
    } else if (event.key === "Escape") prompt.blur();
  });
  stop.addEventListener("click", async () => {
    try {
      const told = await call("session.cancel", {session_id: session()});
      say(told.cancelled ? "Stopped." : "Nothing was running.");
    } catch (error) {
      complain(error);
    }
  });
}

export function beginActing() {
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("#acts > summary")) menu.open = false;
    const button = event.target.closest?.("[data-act], [data-answer], .fork, .rewind");
    if (button) Promise.resolve(workOf(button)).catch(complain);
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  beginSheets();
  if (form) beginWriting();
  settle();
  tellWhatWasDone(session());
}

export const writeHere = () => prompt?.focus();
export const lookAtQuestion = () => asked()?.querySelector("button")?.focus();

export function openMenu() {
  menu.open = true;
  menu.querySelector("a, button").focus();
}

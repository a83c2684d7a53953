// Actions in a session: send a prompt, stop the answer, answer a permission request, fork, rewind, and so on.

import {SignedOut, call, text} from "./wire.js";
import {showError, idOf, say} from "./shared.js";
import {deleteSoon} from "./deletion.js";
import {forgetSent, keepDraft, keyOf, sentPrompt, unsentText} from "./drafts.js";
import {atEnd, feed, link, named, toEnd} from "./feed.js";
import {beginSheets, go, leave, press, showUndo} from "./sheets.js";

const form = document.getElementById("composer");
const prompt = document.getElementById("prompt");
const stop = document.getElementById("stop");
const menu = document.getElementById("acts");
const about = () => document.querySelector(".about");
const session = () => idOf(about());
const openRequest = () => document.querySelector("#asking > .asking");
const UNSURE = new Set(["busy"]); // the running turn may be of this very prompt
let asking = false;
let kept = ""; // the id of the prompt that the server has and the page does not show yet

// After every change of the session: update the permission request, the failure and the stop button.
export function settle(page) {
  if (page) {
    renewQuestion(page);
    document.getElementById("ended").replaceWith(document.adoptNode(page.getElementById("ended")));
  }
  if (kept && (link("newer") || document.getElementById(`m-${named(kept)}`))) showSending((kept = ""));
  if (stop) stop.hidden = !asking && !kept && !about().querySelector(".status:is(.running, .waiting)");
}

// The same request stays untouched, since you may be about to answer it.
function renewQuestion(page) {
  const now = page.querySelector("#asking > .asking");
  if (now?.dataset.call === openRequest()?.dataset.call) return;
  const place = document.getElementById("asking");
  place.replaceChildren(...(now ? [document.adoptNode(now)] : []));
}

// Sending a prompt

async function send() {
  const content = prompt.value.trim();
  if (!content || asking) return;
  const key = keyOf(session(), content, Number(feed.dataset.total));
  asking = true;
  write("");
  showSending(content);
  settle();
  try {
    kept = (await call("session.send", {session_id: session(), content, ask: true, wait: false, idempotency_key: key})).prompt_id;
    forgetSent(session());
  } catch (error) {
    if (!(error instanceof SignedOut || UNSURE.has(error.code) || error.status === 0)) forgetSent(session());
    write([content, prompt.value].filter(Boolean).join("\n\n"));
    showSending("");
    showError(error);
  }
  asking = false;
  settle();
  forgetArrivedPrompt().catch(showError);
}

// Shows the sent prompt, pale, until it is among the messages.
function showSending(content) {
  const entry = document.createElement("article"), words = document.createElement("div");
  entry.className = "entry user sending";
  words.className = "said";
  words.textContent = content;
  entry.append(words);
  const follows = atEnd();
  document.getElementById("sending").replaceChildren(...(content ? [entry] : []));
  if (follows && content) toEnd();
}

// A prompt whose arrival was unknown has arrived if it is among the messages.
export async function forgetArrivedPrompt() {
  const sent = prompt && !asking && sentPrompt(session());
  if (!sent) return;
  for (const entry of feed.querySelectorAll(":scope > .prompt")) {
    if (entry.ariaPosInSet <= sent.total || (await wordsOf(entry)).trim() !== sent.content) continue;
    forgetSent(session());
    if (prompt.value.startsWith(sent.content)) write(prompt.value.slice(sent.content.length).trimStart());
    return;
  }
}

// The draft survives a reload.
function write(words) {
  prompt.value = words;
  keep();
}

const keep = () => keepDraft(session(), prompt.value);

async function answer(button) {
  const given = {session_id: session(), tool_call_id: decodeURIComponent(openRequest().dataset.call), choice: button.dataset.answer};
  for (const each of openRequest().querySelectorAll("button")) each.disabled = true;
  try {
    const result = await call("session.answer", given);
    if (!result.answered) say("This request was already answered, or is no longer open.");
    document.getElementById("asking").replaceChildren();
    focusPrompt();
  } catch (error) {
    for (const each of openRequest()?.querySelectorAll("button") ?? []) each.disabled = false;
    throw error;
  }
}

// Fork and rewind: at an answer, the answer is kept; at a prompt, everything before it is, and the prompt goes into the box.

const idAt = (entry, before) => decodeURIComponent(before ? entry.dataset.id : entry.dataset.until);
const wordsOf = (entry) => text(entry.querySelector(".copy").dataset.from);
const isPrompt = (entry) => entry?.classList.contains("prompt") ?? false;

async function fork(entry) {
  const before = isPrompt(entry);
  const words = before ? await wordsOf(entry) : "";
  const place = entry ? {message_id: idAt(entry, before), before} : {};
  const made = await call("session.fork", {session_id: session(), ...place});
  if (words) keepDraft(made.session_id, words);
  return go(made.session_id);
}

// The draft stays in the box, below the prompt; undo restores the draft alone.
async function rewind(entry) {
  const before = isPrompt(entry), id = session(), box = prompt?.value ?? "";
  const put = before ? [await wordsOf(entry), box].filter(Boolean).join("\n\n") : box;
  keepDraft(id, put);
  try {
    const went = call("store.rewind", {session_id: id, to: idAt(entry, before), before});
    await leave(id, "Rewound. A checkpoint keeps what was here.", went, {put, box});
  } catch (error) {
    keepDraft(id, box);
    throw error;
  }
  return go(id);
}

const patch = (name, now) => call("sessions.patch", {session_id: session(), [name]: now !== "1"});
const ACTS = {
  fork: () => fork(null),
  again: () => rewind([...feed.querySelectorAll(":scope > .prompt")].at(-1)),
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
  prompt.value = prompt.value || unsentText(session());
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
      const result = await call("session.cancel", {session_id: session()});
      say(result.cancelled ? "Stopped." : "Nothing is running.");
    } catch (error) {
      showError(error);
    }
  });
}

export function beginActions() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-act], [data-answer], .fork, .rewind");
    if (button) press(button, () => workOf(button));
  });
  beginSheets();
  if (form) beginWriting();
  settle();
  forgetArrivedPrompt().catch(showError);
  showUndo(session());
}

export const focusPrompt = () => prompt?.focus();
export const focusQuestion = () => openRequest()?.querySelector("button")?.focus();

export function openMenu() {
  menu.open = true;
  menu.querySelector("a, button").focus();
}

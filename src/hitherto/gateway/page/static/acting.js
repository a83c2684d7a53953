// Acting in a session: saying something, stopping the answer, answering what a tool asks, forking, going back, and so on.

import {SignedOut, call, text} from "./wire.js";
import {complain, idOf, say} from "./shared.js";
import {deleteSoon} from "./deleting.js";
import {forget, keepDraft, keyOf, sentBefore, unsent} from "./drafts.js";
import {atEnd, feed, link, named, toEnd} from "./feed.js";
import {beginSheets, go, leave, press, tellWhatWasDone} from "./sheets.js";

const form = document.getElementById("composer");
const prompt = document.getElementById("prompt");
const stop = document.getElementById("stop");
const menu = document.getElementById("acts");
const about = () => document.querySelector(".about");
const session = () => idOf(about());
const asked = () => document.querySelector("#asking > .asking");
const UNSURE = new Set(["busy"]); // it may be this very prompt that is being answered
let asking = false;
let kept = ""; // the prompt that the server has and that is not shown yet

// After every change of the session: what it waits for, what became of it, and whether there is something to stop.
export function settle(page) {
  if (page) {
    renewQuestion(page);
    document.getElementById("ended").replaceWith(document.adoptNode(page.getElementById("ended")));
  }
  if (kept && (link("newer") || document.getElementById(`m-${named(kept)}`))) showSending((kept = ""));
  if (stop) stop.hidden = !asking && !kept && !about().querySelector(".status:is(.running, .waiting)");
}

// Left as it is while the same question stands, since somebody may be about to answer it.
function renewQuestion(page) {
  const now = page.querySelector("#asking > .asking");
  if (now?.dataset.call === asked()?.dataset.call) return;
  const place = document.getElementById("asking");
  place.replaceChildren(...(now ? [document.adoptNode(now)] : []));
}

// Saying something

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
    forget(session());
  } catch (error) {
    if (!(error instanceof SignedOut || UNSURE.has(error.code) || error.status === 0)) forget(session());
    write([content, prompt.value].filter(Boolean).join("\n\n"));
    showSending("");
    complain(error);
  }
  asking = false;
  settle();
  recognise().catch(complain);
}

// What was sent, pale, until it stands among the messages.
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

// A prompt of which nobody knows whether it came, and which stands among the messages, has come.
export async function recognise() {
  const sent = prompt && !asking && sentBefore(session());
  if (!sent) return;
  for (const entry of feed.querySelectorAll(":scope > .prompt")) {
    if (entry.ariaPosInSet <= sent.total || (await wordsOf(entry)).trim() !== sent.content) continue;
    forget(session());
    if (prompt.value.startsWith(sent.content)) write(prompt.value.slice(sent.content.length).trimStart());
    return;
  }
}

// What is in the box is still there when the page is loaded again.
function write(words) {
  prompt.value = words;
  keep();
}

const keep = () => keepDraft(session(), prompt.value);

async function answer(button) {
  const given = {session_id: session(), tool_call_id: decodeURIComponent(asked().dataset.call), choice: button.dataset.answer};
  for (const each of asked().querySelectorAll("button")) each.disabled = true;
  try {
    const told = await call("session.answer", given);
    if (!told.answered) say("This request was already answered, or is no longer open.");
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
  if (words) keepDraft(made.session_id, words);
  return go(made.session_id);
}

// What stood in the box stays in it, below the prompt; who takes it back has it alone again.
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
  prompt.value = prompt.value || unsent(session());
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
      say(told.cancelled ? "Stopped." : "Nothing is running.");
    } catch (error) {
      complain(error);
    }
  });
}

export function beginActing() {
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("#acts > summary")) menu.open = false;
    const button = event.target.closest?.("[data-act], [data-answer], .fork, .rewind");
    if (button) press(button, () => workOf(button));
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  beginSheets();
  if (form) beginWriting();
  settle();
  recognise().catch(complain);
  tellWhatWasDone(session());
}

export const writeHere = () => prompt?.focus();
export const lookAtQuestion = () => asked()?.querySelector("button")?.focus();

export function openMenu() {
  menu.open = true;
  menu.querySelector("a, button").focus();
}

// Acting in a session: saying something, stopping the answer, forking, pinning, putting away, deleting.

import {call, text} from "./wire.js";
import {complain, idOf, say} from "./shared.js";
import {deleteSoon} from "./deleting.js";

const form = document.getElementById("composer");
const prompt = document.getElementById("prompt");
const stop = document.getElementById("stop");
const about = () => document.querySelector(".about");
const session = () => idOf(about());
const draftOf = (id) => `draft ${id}`;
let asking = 0;

export function settle() {
  if (stop) stop.hidden = !asking && !about().querySelector(".status.running");
}

async function send() {
  const content = prompt.value.trim();
  if (!content) return;
  prompt.value = "";
  asking += 1;
  settle();
  try {
    await call("session.send", {session_id: session(), content, idempotency_key: crypto.randomUUID()});
  } catch (error) {
    if (!prompt.value) prompt.value = content;
    complain(error);
  } finally {
    asking -= 1;
    settle();
  }
}

// Up to and with a message; before it, if it is a prompt, which is then put into the box to be written anew.
async function fork(entry) {
  const before = entry?.classList.contains("prompt") ? entry.previousElementSibling : null;
  const last = before ?? entry;
  const made = await call("session.fork", {
    session_id: session(),
    ...(last ? {message_id: decodeURIComponent(last.dataset.until)} : {}),
  });
  if (before) sessionStorage.setItem(draftOf(made.session_id), await text(entry.querySelector(".copy").dataset.from));
  location.assign(`/s/${encodeURIComponent(made.session_id)}`);
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

export function beginActing() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-act], .fork");
    if (!button) return;
    const work = button.dataset.act ? ACTS[button.dataset.act](button) : fork(button.closest(".entry"));
    Promise.resolve(work).catch(complain);
  });
  if (!form) return;
  const draft = sessionStorage.getItem(draftOf(session()));
  if (draft) {
    sessionStorage.removeItem(draftOf(session()));
    prompt.value = draft;
    prompt.focus();
  }
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
  settle();
}

export const write = () => prompt?.focus();

// Sheets: what is shown before something is done with a session. Each is a page of its own, and opens above the session.

import {LONG, Refused, call, load} from "./wire.js";
import {complain, say, tellTimes} from "./shared.js";
import {draft, keepDraft} from "./drafts.js";
import {copyText} from "./copying.js";
import {download} from "./exporting.js";

const sheet = document.getElementById("sheet");
const sessionOf = (at) => decodeURIComponent(at.closest("[data-session]").dataset.session);
const checkpointOf = (at) => decodeURIComponent(at.closest("[data-checkpoint]").dataset.checkpoint);
const address = (id) => `/s/${encodeURIComponent(id)}`;
const toldOf = (id) => `told ${id}`;
const many = (number, one, more) => (number === 1 ? `1 ${one}` : `${number} ${more}`);

// To a session; nothing else is done here any more.
export function go(id) {
  location.assign(address(id));
  return new Promise(() => {});
}

// What a button does, once however often it is pressed meanwhile.
const pressed = new WeakSet();
export async function press(button, work) {
  if (pressed.has(button)) return;
  pressed.add(button);
  try {
    await work();
  } catch (error) {
    complain(error);
  } finally {
    pressed.delete(button);
  }
}

// What is to be said when the session is shown again: it may be loaded anew at any moment, as soon as it has changed. `was` says what
// was put into the box, and what stood there.
export function leave(id, words, work, was = null) {
  tell(id, words, was);
  return work.catch((error) => {
    sessionStorage.removeItem(toldOf(id));
    throw error;
  });
}

const tell = (id, words, was = null) => sessionStorage.setItem(toldOf(id), JSON.stringify({words, was}));

// The newest checkpoint is what was there before; whoever takes it back can take that back too.
async function takeBack(id, was) {
  const {checkpoints} = await call("sessions.compaction.list", {session_id: id, limit: 1});
  if (!checkpoints.length) throw new Error("There is no checkpoint to go back to.");
  if (was && draft(id) === was.put) keepDraft(id, was.box);
  await restore(id, checkpoints.at(-1).checkpoint_id, false);
}

export function tellWhatWasDone(id) {
  const told = JSON.parse(sessionStorage.getItem(toldOf(id)) ?? "null");
  sessionStorage.removeItem(toldOf(id));
  if (!told) return;
  say(told.words, {stays: true, action: {text: "Undo", work: () => takeBack(id, told.was).catch(complain)}});
}

async function restore(id, checkpoint, since) {
  const words = since ? "Restored. Messages added since were kept." : "Restored.";
  await leave(id, words, call("sessions.compaction.restore", {session_id: id, checkpoint_id: checkpoint, since}));
  return go(id);
}

async function compact(button) {
  const id = sessionOf(button);
  button.disabled = true;
  button.textContent = "Summarising…";
  try {
    const done = await leave(id, "Compacted.", call("session.compact", {session_id: id}, LONG));
    if (!done.compacted) {
      sessionStorage.removeItem(toldOf(id));
      throw new Refused(200, `Nothing to compact: ${done.reason}.`);
    }
    const gone = many(done.messages_before - done.messages_after + 1, "message", "messages");
    tell(id, `Compacted: a summary replaces ${gone} in the context.`);
    await go(id);
  } finally {
    button.disabled = false;
    button.textContent = "Compact";
  }
}

const WORKS = {
  compact,
  restore: (button) => restore(sessionOf(button), checkpointOf(button), document.getElementById("since")?.checked ?? false),
  branch: async (button) => {
    const made = await call("sessions.compaction.branch", {session_id: sessionOf(button), checkpoint_id: checkpointOf(button)});
    return go(made.session_id);
  },
  download: async (button) => {
    const {format, file, type} = button.dataset;
    const raw = document.getElementById("raw")?.checked ?? false;
    const {data} = await call("session.export", {session_id: sessionOf(button), format, raw}, LONG);
    download(file, [typeof data === "string" ? data : JSON.stringify(data)], type);
    sheet?.close();
    say(`Downloaded ${file}.`);
  },
  copy: (button) => copyText(button.previousElementSibling.textContent),
};

// A page of ours, above this one.
async function open(href) {
  const page = await load(href);
  const got = document.adoptNode(page.getElementById("main"));
  tellTimes(got);
  sheet.dataset.session = got.dataset.session;
  sheet.replaceChildren(...got.childNodes);
  if (!sheet.open) sheet.showModal();
  sheet.scrollTop = 0;
}

export function beginSheets() {
  document.addEventListener("click", (event) => {
    const at = event.target.closest?.("[data-do], [data-sheet], [data-close]");
    if (event.target === sheet) sheet.close(); // beside it
    if (!at || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if ("do" in at.dataset) press(at, () => WORKS[at.dataset.do](at));
    else if ("close" in at.dataset) sheet ? sheet.close() : location.assign(address(sessionOf(at)));
    else if (sheet) {
      event.preventDefault();
      open(at.href).catch(complain);
    }
  });
}

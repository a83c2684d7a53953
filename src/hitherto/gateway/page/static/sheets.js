// Sheets: previews of actions on a session. Each is its own page, and opens above the session.

import {LONG_TIMEOUT, Refused, call, load} from "./wire.js";
import {showError, say, showTimes} from "./shared.js";
import {draft, keepDraft} from "./drafts.js";
import {copyText} from "./clipboard.js";
import {download} from "./export.js";

const sheet = document.getElementById("sheet");
const sessionOf = (at) => decodeURIComponent(at.closest("[data-session]").dataset.session);
const checkpointOf = (at) => decodeURIComponent(at.closest("[data-checkpoint]").dataset.checkpoint);
const address = (id) => `/s/${encodeURIComponent(id)}`;
const noticeKey = (id) => `notice ${id}`;
const many = (number, one, more) => (number === 1 ? `1 ${one}` : `${number} ${more}`);

// Leaves for a session; the promise never resolves.
export function go(id) {
  location.assign(address(id));
  return new Promise(() => {});
}

// Runs the action of a button once, however often it is pressed meanwhile.
const pressed = new WeakSet();
export async function press(button, work) {
  if (pressed.has(button)) return;
  pressed.add(button);
  try {
    await work();
  } catch (error) {
    showError(error);
  } finally {
    pressed.delete(button);
  }
}

// Stores a notice for the next time the session is shown, since a change may reload the page at any moment. `was` has the new and the old
// draft.
export function leave(id, words, work, was = null) {
  keepNotice(id, words, was);
  return work.catch((error) => {
    sessionStorage.removeItem(noticeKey(id));
    throw error;
  });
}

const keepNotice = (id, words, was = null) => sessionStorage.setItem(noticeKey(id), JSON.stringify({words, was}));

// Restores the newest checkpoint, which is the state before; this can be undone too.
async function undo(id, was) {
  const {checkpoints} = await call("sessions.compaction.list", {session_id: id, limit: 1});
  if (!checkpoints.length) throw new Error("There is no checkpoint to go back to.");
  if (was && draft(id) === was.put) keepDraft(id, was.box);
  await restore(id, checkpoints.at(-1).checkpoint_id, false);
}

export function showUndo(id) {
  const notice = JSON.parse(sessionStorage.getItem(noticeKey(id)) ?? "null");
  sessionStorage.removeItem(noticeKey(id));
  if (!notice) return;
  say(notice.words, {stays: true, action: {text: "Undo", work: () => undo(id, notice.was).catch(showError)}});
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
    const done = await leave(id, "Compacted.", call("session.compact", {session_id: id}, LONG_TIMEOUT));
    if (!done.compacted) {
      sessionStorage.removeItem(noticeKey(id));
      throw new Refused(200, `Nothing to compact: ${done.reason}.`);
    }
    const gone = many(done.messages_before - done.messages_after + 1, "message", "messages");
    keepNotice(id, `Compacted: a summary replaces ${gone} in the context.`);
    await go(id);
  } finally {
    button.disabled = false;
    button.textContent = "Compact";
  }
}

const ACTIONS = {
  compact,
  restore: (button) => restore(sessionOf(button), checkpointOf(button), document.getElementById("since")?.checked ?? false),
  branch: async (button) => {
    const made = await call("sessions.compaction.branch", {session_id: sessionOf(button), checkpoint_id: checkpointOf(button)});
    return go(made.session_id);
  },
  download: async (button) => {
    const {format, file, type} = button.dataset;
    const raw = document.getElementById("raw")?.checked ?? false;
    const {data} = await call("session.export", {session_id: sessionOf(button), format, raw}, LONG_TIMEOUT);
    download(file, [typeof data === "string" ? data : JSON.stringify(data)], type);
    sheet?.close();
    say(`Downloaded ${file}.`);
  },
  copy: (button) => copyText(button.previousElementSibling.textContent),
};

// Opens a page as a sheet above this one.
async function open(href) {
  const page = await load(href);
  const got = document.adoptNode(page.getElementById("main"));
  showTimes(got);
  sheet.dataset.session = got.dataset.session;
  sheet.replaceChildren(...got.childNodes);
  if (!sheet.open) sheet.showModal();
  sheet.scrollTop = 0;
}

export function beginSheets() {
  document.addEventListener("click", (event) => {
    const at = event.target.closest?.("[data-do], [data-sheet], [data-close]");
    if (event.target === sheet) sheet.close(); // a click outside of it
    if (!at || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if ("do" in at.dataset) press(at, () => ACTIONS[at.dataset.do](at));
    else if ("close" in at.dataset) sheet ? sheet.close() : location.assign(address(sessionOf(at)));
    else if (sheet) {
      event.preventDefault();
      open(at.href).catch(showError);
    }
  });
}

// How much waits for an answer: in the title of the tab, at the inbox, and in a notification if you asked for it.

import {hearToo} from "./changes.js";
import {text} from "./wire.js";
import {say} from "./shared.js";

const PAUSE = 1_000; // milliseconds between two looks
const COUNTED = /^\(\d+\) /;
let known = null; // the ids of the sessions that waited at the last look
let looking = false, again = false;

export const notifies = () => localStorage.getItem("notify") === "1" && globalThis.Notification?.permission === "granted";

function show(waiting) {
  const number = waiting.length, badge = document.getElementById("waiting");
  document.title = (number ? `(${number}) ` : "") + document.title.replace(COUNTED, "");
  badge.hidden = !number;
  badge.firstChild.data = number;
}

// One page of the browser tells: the newest that noticed, by a tag.
function notify(waiting) {
  for (const {id, title} of waiting.filter((each) => !known.has(each.id))) {
    const made = new Notification("Waiting for your answer", {body: title, tag: `hitherto ${id}`});
    made.addEventListener("click", () => {
      focus();
      location.assign(`/s/${encodeURIComponent(id)}`);
    });
  }
}

async function look() {
  const waiting = JSON.parse(await text("/waiting"));
  show(waiting);
  if (known && notifies() && document.hidden) notify(waiting);
  known = new Set(waiting.map((each) => each.id));
}

// Looks again, not more often than it matters: a running turn changes many times a second.
async function lookSoon() {
  again = true;
  if (looking) return;
  looking = true;
  while (again) {
    again = false;
    await look().catch(() => {}); // the next change tries again
    await new Promise((done) => setTimeout(done, PAUSE));
  }
  looking = false;
}

export function beginAttention() {
  // A title that another script sets gets its number back.
  new MutationObserver(() => known?.size && !COUNTED.test(document.title) && lookSoon()).observe(document.querySelector("title"), {childList: true});
  hearToo(lookSoon);
  lookSoon();
}

export function beginNotifying(button) {
  if (!globalThis.Notification) return;
  const update = () => (button.textContent = notifies() ? "Stop notifications" : "Notify me");
  button.hidden = false;
  update();
  button.addEventListener("click", async () => {
    const wanted = !notifies() && (await Notification.requestPermission()) === "granted";
    if (!wanted && Notification.permission === "denied") say("Your browser does not allow notifications of this page.");
    localStorage.setItem("notify", wanted ? "1" : "");
    update();
  });
}

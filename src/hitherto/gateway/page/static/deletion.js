// Deletes sessions after ten seconds in which you can undo it. If you leave the page before then, nothing is deleted.

import {call} from "./wire.js";
import {showError, say, dismiss} from "./shared.js";

const SECONDS = 10;
let waiting = []; // deletions within the same ten seconds are carried out, or undone, together
let left = 0, ticking;

export function deleteSoon(ids, {hide, done}) {
  waiting.push({ids, hide, done});
  hide(true, ids);
  left = SECONDS;
  clearInterval(ticking);
  ticking = setInterval(tick, 1_000);
  const many = waiting.reduce((sum, each) => sum + each.ids.length, 0);
  const words = `Deleting ${many === 1 ? "this session" : `${many} sessions`}`;
  const item = say(words, {stays: true, name: "deleting", action: {text: "Undo", work: undo}});
  const count = document.createElement("span");
  count.id = "left";
  count.ariaHidden = "true"; // screen readers announce it once, not every second
  item.querySelector(".words").append(count, ".");
  item.querySelector("button").focus();
  showCountdown();
}

const showCountdown = () => (document.getElementById("left").textContent = ` in ${left} s`);

function takeWaiting() {
  clearInterval(ticking);
  const all = waiting;
  waiting = [];
  return all;
}

function undo() {
  for (const {ids, hide} of takeWaiting().reverse()) hide(false, ids); // the focus goes to the first of them
  say("Nothing was deleted.");
}

async function tick() {
  left -= 1;
  if (left > 0) return showCountdown();
  dismiss("deleting");
  const all = takeWaiting(), failures = [];
  for (const {ids, hide, done} of all) {
    const kept = [];
    for (const id of ids) {
      await call("session.delete", {session_id: id}).catch((error) => {
        kept.push(id);
        failures.push(error);
      });
    }
    if (kept.length) hide(false, kept);
    if (kept.length < ids.length) done(ids.filter((id) => !kept.includes(id)));
  }
  if (failures.length) showError(failures[0]);
  else say("Deleted.");
}

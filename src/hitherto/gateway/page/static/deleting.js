// Deleting: the page waits ten seconds, in which one can take it back, before it asks the server. Who leaves has deleted nothing.

import {call} from "./wire.js";
import {complain, say, unsay} from "./shared.js";

const SECONDS = 10;
let waiting = []; // what was asked for within the same seconds goes, or is taken back, together
let left = 0, ticking;

export function deleteSoon(ids, {hide, done}) {
  waiting.push({ids, hide, done});
  hide(true, ids);
  left = SECONDS;
  clearInterval(ticking);
  ticking = setInterval(tick, 1_000);
  const many = waiting.reduce((sum, each) => sum + each.ids.length, 0);
  const words = `Deleting ${many === 1 ? "this session" : `${many} sessions`}`;
  const item = say(words, {stays: true, name: "deleting", action: {text: "Undo", work: takeBack}});
  const count = document.createElement("span");
  count.id = "left";
  count.ariaHidden = "true"; // told once, not every second
  item.querySelector(".words").append(count, ".");
  item.querySelector("button").focus();
  tell();
}

const tell = () => (document.getElementById("left").textContent = ` in ${left} s`);

function over() {
  clearInterval(ticking);
  const all = waiting;
  waiting = [];
  return all;
}

function takeBack() {
  for (const {ids, hide} of over().reverse()) hide(false, ids); // one is led back to the first of them
  say("Nothing was deleted.");
}

async function tick() {
  left -= 1;
  if (left > 0) return tell();
  unsay("deleting");
  const all = over(), failures = [];
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
  if (failures.length) complain(failures[0]);
  else say("Deleted.");
}

// The inbox: permissions are answered where they stand, and what changes is loaded again.

import {call, load} from "./wire.js";
import {follow} from "./changes.js";
import {beginNotifying} from "./attention.js";
import {away, begin, say, showError, showTimes} from "./shared.js";

const inbox = () => document.getElementById("inbox");
const links = () => [...inbox().querySelectorAll(".name a")];

async function refresh() {
  const page = await load("/inbox");
  const now = document.adoptNode(page.getElementById("inbox"));
  // The same request stays untouched, since you may be about to answer it.
  for (const was of inbox().querySelectorAll(".asks")) {
    const call = was.querySelector(".asking").dataset.call;
    const same = [...now.querySelectorAll(".asks")].find((each) => each.dataset.session === was.dataset.session);
    if (same?.querySelector(".asking").dataset.call === call) same.replaceWith(was.cloneNode(true));
  }
  showTimes(now);
  const focused = placeOf(document.activeElement);
  inbox().replaceWith(now);
  focused(now)?.focus({preventScroll: true});
}

// How to find the element that has the focus in a list that was loaded again.
function placeOf(element) {
  const asks = element.closest?.(".asks"), row = element.closest?.(".row");
  if (asks && element.dataset.answer) {
    return (root) => root.querySelector(`.asks[data-session="${CSS.escape(asks.dataset.session)}"] [data-answer=${element.dataset.answer}]`);
  }
  return (root) => row && root.querySelector(`.row[data-id="${CSS.escape(row.dataset.id)}"] .name a`);
}

async function answer(button) {
  const asks = button.closest(".asks");
  const given = {
    session_id: decodeURIComponent(asks.dataset.session),
    tool_call_id: decodeURIComponent(asks.querySelector(".asking").dataset.call),
    choice: button.dataset.answer,
  };
  for (const each of asks.querySelectorAll("button")) each.disabled = true;
  try {
    const result = await call("session.answer", given);
    say(result.answered ? `${button.textContent}: answered.` : "This request was already answered, or is no longer open.");
    asks.remove();
  } catch (error) {
    for (const each of asks.querySelectorAll("button")) each.disabled = false;
    throw error;
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-answer]");
  if (button) answer(button).catch(showError);
});

function move(step) {
  const all = links(), at = all.indexOf(document.activeElement.closest?.(".row")?.querySelector(".name a"));
  all[at < 0 ? 0 : Math.min(Math.max(at + step, 0), all.length - 1)]?.focus();
}

sessionStorage.setItem("list", "/");
begin({
  refresh,
  keys: {
    j: () => move(1),
    k: () => move(-1),
    y: () => inbox().querySelector("[data-answer]")?.focus(),
    u: () => location.assign("/"),
  },
});
beginNotifying(document.getElementById("notify"));
follow({after: document.getElementById("main").dataset.newest, heard: refresh, away});

// Signing in: the code in the address is exchanged for a cookie, and taken out of the address before anything else.

import {SignedOut, announce, overhear, post, text} from "./wire.js";

const main = document.getElementById("main");
const state = document.getElementById("state");

// The same address once more; what differs in its fragment alone would not be loaded again.
function enter() {
  const asked = new URLSearchParams(location.search);
  if (location.hash) asked.set("in", "1");
  location.replace(location.pathname + (asked.size ? `?${asked}` : "") + location.hash);
}

async function signIn(given, refused) {
  state.textContent = "Signing in…";
  try {
    const answer = await post("/signin", JSON.stringify(given));
    await answer.text();
    if (answer.ok) {
      announce("in");
      enter();
    } else state.textContent = "The server is busy. Try again in a moment.";
  } catch (error) {
    state.textContent = error instanceof SignedOut ? refused : error.message;
  }
}

function useCode() {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (!code) return false;
  history.replaceState(null, "", location.pathname + location.search);
  signIn({code}, "This sign-in link was already used or has expired. Get a new one as described below.");
  return true;
}

document.getElementById("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  signIn({token: new FormData(event.target).get("token").trim()}, "This token is not valid.");
});
addEventListener("hashchange", useCode);
overhear((event) => event.data === "in" && enter());

// Somebody who followed a link on another site may be signed in all the same: the browser does not say so then.
if (!useCode() && "elsewhere" in main.dataset) text("/").then(enter, () => {});

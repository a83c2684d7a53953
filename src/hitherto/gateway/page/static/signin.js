// Signs in: removes the code from the address first, then exchanges it for a cookie.

import {SignedOut, announce, listen, post, text} from "./wire.js";

const main = document.getElementById("main");
const state = document.getElementById("state");

// Reloads the address; browsers do not reload an address that differs only in its fragment.
function enter() {
  const query = new URLSearchParams(location.search);
  if (location.hash) query.set("in", "1");
  location.replace(location.pathname + (query.size ? `?${query}` : "") + location.hash);
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
listen((event) => event.data === "in" && enter());

// After a link on another site you may be signed in all the same: the browser withholds the cookie then.
if (!useCode() && "elsewhere" in main.dataset) text("/").then(enter, () => {});

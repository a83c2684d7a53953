// A session: opens at its end or at a message, loads what is before and after as one scrolls, follows what is said.

import {Refused, follow, load, text} from "./wire.js";
import {beginActing, settle, write} from "./acting.js";
import {away, begin, complain, rename, retag, say, tellTimes} from "./shared.js";

const MOST = 200; // messages in the page; those farthest away go
const CLOSE = 120; // pixels from the end that count as being there
const session = document.getElementById("main").dataset.session;
const address = `/s/${session}`;
const feed = document.getElementById("feed");
const fresh = document.getElementById("fresh");
const entries = () => [...feed.children];
const link = (id) => document.getElementById(id);

// Scrolling

const atEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - CLOSE;
const toEnd = () => scrollTo({top: document.documentElement.scrollHeight});

// Whatever is done to the feed, what is in view stays where it is.
function still(work) {
  const kept = entries().find((each) => each.getBoundingClientRect().bottom > 0);
  const before = kept?.getBoundingClientRect().top;
  work();
  if (kept?.isConnected) scrollBy({top: kept.getBoundingClientRect().top - before, behavior: "instant"});
}

function turnTo(id) {
  const found = document.getElementById(`m-${id}`);
  if (!found) return false;
  for (let each = found; each; each = each.parentElement) if (each instanceof HTMLDetailsElement) each.open = true;
  const entry = found.closest(".entry");
  found.scrollIntoView({block: "start"});
  entry.classList.add("target");
  entry.focus({preventScroll: true});
  return true;
}

// More messages

function point(id, rel, way, from, words) {
  const old = link(id)?.parentElement;
  if (!from) return old?.remove();
  const place = old ?? document.createElement("p");
  const made = document.createElement("a");
  Object.assign(made, {id, rel, href: `${address}?${way}=${from}`, textContent: words});
  place.className = "following";
  place.replaceChildren(made);
  if (!old) way === "before" ? feed.before(place) : feed.after(place);
}
const pointOlder = (from) => point("older", "prev", "before", from, "Older messages");
const pointNewer = (from) => point("newer", "next", "after", from, "Newer messages");

const busy = new Set();
async function once(name, work) {
  if (busy.has(name)) return;
  busy.add(name);
  try {
    await work();
  } finally {
    busy.delete(name);
    watch();
  }
}

async function stretch(href) {
  const page = await load(href);
  const got = page.getElementById("feed");
  tellTimes(got);
  return {page, got, made: [...got.children].map((each) => document.adoptNode(each))};
}

const older = () => once("older", async () => {
  const from = link("older");
  if (!from) return;
  const {page, got, made} = await stretch(from.href);
  still(() => {
    feed.prepend(...made);
    if (got.dataset.first) feed.dataset.first = got.dataset.first;
    pointOlder(page.getElementById("older") && feed.dataset.first);
  });
  const left = entries();
  if (left.length > MOST) {
    for (const each of left.slice(MOST)) each.remove();
    feed.dataset.last = entries().at(-1).dataset.id;
    pointNewer(feed.dataset.last);
  }
});

const newer = () => once("newer", async () => {
  const from = link("newer");
  if (!from) return;
  const {page, got, made} = await stretch(from.href);
  feed.append(...made);
  if (got.dataset.last) feed.dataset.last = got.dataset.last;
  pointNewer(page.getElementById("newer") && feed.dataset.last);
  trim();
});

function trim() {
  const left = entries();
  if (left.length <= MOST) return;
  still(() => {
    for (const each of left.slice(0, left.length - MOST)) each.remove();
    feed.dataset.first = entries()[0].dataset.id;
    pointOlder(feed.dataset.first);
  });
}

const near = new IntersectionObserver((seen) => {
  for (const each of seen) {
    if (each.isIntersecting) (each.target.id === "older" ? older : newer)().catch(complain);
  }
}, {rootMargin: "400px"});

function watch() {
  near.disconnect();
  for (const each of [link("older"), link("newer")]) if (each) near.observe(each);
}

// What is said meanwhile

let unseen = 0;
function tellFresh(number) {
  unseen = number;
  fresh.hidden = !unseen;
  fresh.textContent = `${unseen} new ↓`;
}
fresh.addEventListener("click", () => (link("newer") ? location.assign(address) : toEnd()));
addEventListener("scroll", () => unseen && atEnd() && !link("newer") && tellFresh(0), {passive: true});

async function heard(news) {
  if (news.gone.length) return say("This session was deleted.", {stays: true, link: {href: "/", text: "All sessions"}});
  if (link("newer")) return refreshAbout(await load(`${address}?after=${feed.dataset.last}`));
  const following = atEnd();
  let added = 0;
  for (let more = true; more; ) {
    const from = feed.dataset.last;
    const {page, got, made} = await stretch(from ? `${address}?after=${from}` : address);
    feed.append(...made);
    added += made.length;
    if (got.dataset.last) feed.dataset.last = got.dataset.last;
    document.getElementById("saying").replaceWith(document.adoptNode(page.getElementById("saying")));
    refreshAbout(page);
    more = Boolean(page.getElementById("newer")) && made.length > 0;
  }
  document.querySelector(".nothing")?.remove();
  if (following) {
    trim();
    toEnd();
  } else if (added) tellFresh(unseen + added);
}

function refreshAbout(page) {
  const about = document.querySelector(".about");
  document.title = page.title;
  if (about.querySelector("input")) return; // somebody is writing in it
  const focused = about.contains(document.activeElement) ? document.activeElement.classList[1] : "";
  const shown = document.adoptNode(page.querySelector(".about"));
  about.replaceWith(shown);
  settle();
  if (focused) shown.querySelector(`.${focused}`)?.focus();
}

async function followed(news) {
  try {
    await heard(news);
  } catch (error) {
    if (error instanceof Refused && error.status === 404) location.assign(address); // rewound: read it again
    else throw error;
  }
}

// Jumping, copying, keys

const inView = () => {
  const at = entries().findIndex((each) => each.getBoundingClientRect().bottom > 80);
  return at < 0 ? entries().length - 1 : at;
};

async function jump(kind, back) {
  for (let tries = 0; tries < 50; tries++) {
    const all = entries();
    const now = all.includes(document.activeElement) ? all.indexOf(document.activeElement) : inView();
    const rest = back ? all.slice(0, now).reverse() : all.slice(now + 1);
    const found = rest.find((each) => each.classList.contains(kind));
    if (found) return turnTo(found.dataset.id);
    if (!link(back ? "older" : "newer")) break;
    all[back ? 0 : all.length - 1].focus({preventScroll: true});
    await (back ? older() : newer());
  }
  say(back ? "There is none before." : "There is none after.");
}

async function copy(button) {
  const words = text(button.dataset.from);
  const blob = words.then((each) => new Blob([each], {type: "text/plain"}));
  await navigator.clipboard.write([new ClipboardItem({"text/plain": blob})]);
  say("Copied.");
}

document.addEventListener("click", (event) => {
  const at = event.target.closest?.("[data-jump], .copy");
  if (at?.dataset.jump) jump(at.dataset.jump, "back" in at.dataset).catch(complain);
  else if (at) copy(at).catch(complain);
});

function step(by) {
  const all = entries();
  const now = all.includes(document.activeElement) ? all.indexOf(document.activeElement) : inView() - (by > 0 ? 1 : 0);
  const next = all[now + by];
  if (next) turnTo(next.dataset.id);
}

const about = () => document.querySelector(".about");
const refresh = async () => refreshAbout(await load(feed.dataset.last ? `${address}?after=${feed.dataset.last}` : address));

beginActing();
begin({
  refresh,
  keys: {
    j: () => step(1),
    k: () => step(-1),
    p: () => jump("prompt", true).catch(complain),
    P: () => jump("prompt", false).catch(complain),
    f: () => jump("error", true).catch(complain),
    F: () => jump("error", false).catch(complain),
    c: write,
    g: () => scrollTo({top: 0}),
    G: () => (link("newer") ? location.assign(address) : toEnd()),
    e: () => rename(about(), refresh),
    t: () => retag(about(), refresh),
    u: () => location.assign("/"),
    "/": () => location.assign("/"),
  },
});

const wanted = location.hash.startsWith("#m-") ? location.hash.slice(3) : feed.dataset.target;
if (!wanted) {
  if (!new URLSearchParams(location.search).size) toEnd();
} else if (!turnTo(wanted) && !feed.dataset.target) location.replace(`${address}?at=${wanted}#m-${wanted}`);
watch();
follow({after: document.getElementById("main").dataset.newest, session: decodeURIComponent(session), heard: followed, away});

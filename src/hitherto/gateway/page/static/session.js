// A session: opens at its end or at a message, follows what is said, and what else one does as a reader.

import {Refused, load} from "./wire.js";
import {follow} from "./following.js";
import {beginActing, lookAtQuestion, openMenu, recognise, settle, writeHere} from "./acting.js";
import {beginCopying} from "./copying.js";
import {
  MOST, address, atEnd, chosen, entries, feed, here, inTurn, link, point, session, showAt, stretch, toEnd, toFirst, toLast, trim, turnTo, watch,
} from "./feed.js";
import {beginFinding, beginJumping, find, jump, stepHit} from "./finding.js";
import {away, begin, complain, rename, retag, say, tellTimes} from "./shared.js";

const fresh = document.getElementById("fresh");

// What is said meanwhile

let unseen = 0;
let read = Number(feed.dataset.total); // how much there was when one was at the end of it, or came
function tellFresh(number) {
  unseen = number;
  fresh.hidden = unseen <= 0;
  fresh.textContent = `${unseen} new ↓`;
}
function tellNone() {
  read = Number(feed.dataset.total);
  tellFresh(0);
}
fresh.addEventListener("click", () => toLast().catch(complain));
addEventListener("scroll", () => unseen && atEnd() && !link("newer") && tellNone(), {passive: true});

// A message whose tools had not come back is read again, with what they came back with. What was unfolded stays so, and has the focus
// if it had it.
function renew(was, now) {
  const folds = [...now.querySelectorAll("details")];
  [...was.querySelectorAll("details")].forEach((fold, at) => folds[at] && (folds[at].open = fold.open));
  if (was.matches(".same")) now.className = now.className.replace(/^entry \w+/, "$& same"); // where the page has it
  if (was.matches(".target")) now.classList.add("target");
  was.setAttribute("aria-setsize", now.getAttribute("aria-setsize"));
  if (was.isEqualNode(now)) return;
  const places = (entry) => [entry, ...entry.querySelectorAll("a, button, summary, [tabindex]")];
  const focused = places(was).indexOf(document.activeElement);
  was.replaceWith(now);
  if (focused >= 0) places(now)[focused]?.focus({preventScroll: true});
}

// How many are new.
function add(made) {
  const known = new Map(entries().map((each) => [each.dataset.id, each]));
  for (const each of made) {
    const was = known.get(each.dataset.id);
    if (!was) feed.append(each);
    else if (was.matches(".waits") || was.dataset.until !== each.dataset.until) renew(was, each);
  }
  return made.filter((each) => !known.has(each.dataset.id)).length;
}

const NEAR = 30; // of the forty that a page has: so something new is in it too
const ROUNDS = 4; // pages that are read one after the other; if more was said, the last of it takes their place

// Where to read on from: what is near the end and waits for its tools is read again.
function place() {
  const waits = [...feed.querySelectorAll(":scope > .waits")].find((each) => feed.dataset.end - each.ariaPosInSet < NEAR);
  return waits?.previousElementSibling?.dataset.until ?? feed.dataset.last;
}

// Whether this goes on from what is shown; not if something before it came or went.
function goesOn(got, made) {
  const shown = made.length && entries().find((each) => each.dataset.id === made[0].dataset.id);
  return shown ? shown.ariaPosInSet === made[0].ariaPosInSet : got.dataset.start === feed.dataset.end;
}

async function readMore(from) {
  const {page, got, made} = await stretch(from ? `${address}?after=${from}` : address);
  if (!goesOn(got, made)) return location.assign(address);
  const added = add(made);
  if (got.dataset.last && Number(got.dataset.end) > Number(feed.dataset.end)) {
    feed.dataset.last = got.dataset.last;
    feed.dataset.end = got.dataset.end;
  }
  feed.dataset.total = got.dataset.total;
  document.getElementById("saying").replaceWith(document.adoptNode(page.getElementById("saying")));
  refreshAbout(page);
  return page.getElementById("newer") ? added : -1;
}

async function readOn() {
  if (link("newer")) return tellFresh(await look() - read);
  const following = atEnd();
  for (let round = 0, from = place(); ; round += 1, from = feed.dataset.last) {
    if (following && round === ROUNDS && getSelection().isCollapsed) {
      refreshAbout(await showAt(address));
      break;
    }
    const added = await readMore(from);
    if (following) trim({end: false});
    if (added < 0 || added === undefined || (!added && round)) break;
    if (!following && entries().length >= MOST) {
      point("newer", feed.dataset.last, "Newer messages");
      trim({end: true});
      watch();
      break;
    }
  }
  document.querySelector(".nothing")?.remove();
  if (following) {
    toEnd();
    tellNone();
  } else tellFresh(feed.dataset.total - read);
  await recognise();
}

// What there is about the session, without its messages; how much was said in it.
async function look() {
  const page = await load(feed.dataset.last ? `${address}?after=${feed.dataset.last}` : address);
  refreshAbout(page);
  return Number(page.getElementById("feed").dataset.total);
}

const sayGone = () => say("This session was deleted.", {stays: true, link: {href: "/", text: "All sessions"}});

const heard = (news) => (news.gone.length ? sayGone() : inTurn(readOn));

const nameOf = (at) => (at.dataset.act ? `[data-act=${at.dataset.act}]` : at.classList[1] ? `.${at.classList[1]}` : "");

function refreshAbout(page) {
  const about = document.querySelector(".about");
  document.title = page.title;
  settle(page);
  if (about.querySelector("input")) return; // somebody is writing in it
  const focused = about.contains(document.activeElement) ? nameOf(document.activeElement) : "";
  const shown = document.adoptNode(page.querySelector(".about"));
  about.replaceWith(shown);
  settle();
  if (focused) shown.querySelector(focused)?.focus();
}

async function followed(news) {
  try {
    await heard(news);
  } catch (error) {
    if (isMissing(error)) await readAgain();
    else throw error;
  }
}

const isMissing = (error) => error instanceof Refused && error.status === 404;

// What one went on from is not there any more: it was rewound, or all of it is gone, which may be heard of later.
async function readAgain() {
  try {
    await load(address);
  } catch (error) {
    if (isMissing(error)) return sayGone();
    throw error;
  }
  location.assign(address);
}

// Sessions within, keys

// The end of a session that a tool has started, below its card. It is only read there.
async function showChild(at) {
  const inner = at.querySelector(".inner");
  if (inner.childElementCount) return;
  const page = await load(`/s/${at.dataset.session}?glance`);
  const got = page.getElementById("feed");
  tellTimes(got);
  for (const each of got.querySelectorAll(".fork, .rewind, .refold")) each.remove();
  for (const each of [got, ...got.querySelectorAll("[id]")]) each.removeAttribute("id");
  inner.append(...[...got.children].map((each) => document.adoptNode(each)));
}

feed.addEventListener("toggle", (event) => {
  if (event.target.matches(".child") && event.target.open) showChild(event.target).catch(complain);
}, {capture: true});

function step(by) {
  const all = entries();
  const next = all[all.indexOf(here()) + (chosen() || by < 0 ? by : 0)];
  if (next) turnTo(next.dataset.id);
}

const about = () => document.querySelector(".about");
const refresh = () => look();
const jumping = (kind, back) => () => jump(kind, back).catch(complain);
const hit = (by) => () => stepHit(by).catch(complain);

beginActing();
beginCopying();
beginFinding();
beginJumping();
begin({
  refresh,
  keys: {
    j: () => step(1),
    k: () => step(-1),
    p: jumping("user", true),
    P: jumping("user", false),
    f: jumping("failure", true),
    F: jumping("failure", false),
    "/": find,
    n: hit(1),
    N: hit(-1),
    c: writeHere,
    o: openMenu,
    y: lookAtQuestion,
    g: () => toFirst().catch(complain),
    G: () => toLast().catch(complain),
    e: () => rename(about(), refresh),
    t: () => retag(about(), refresh),
    u: () => location.assign("/"),
  },
});

const wanted = location.hash.startsWith("#m-") ? location.hash.slice(3) : feed.dataset.target;
if (!wanted) {
  const asked = new URLSearchParams(location.search);
  if (!["before", "after", "first"].some((each) => asked.has(each))) toEnd();
} else if (!turnTo(wanted) && !feed.dataset.target) location.replace(`${address}?at=${wanted}#m-${wanted}`);
watch();
const {newest, apart} = document.getElementById("main").dataset;
follow({after: newest, session: decodeURIComponent(session), apart: apart !== undefined, heard: followed, away});

// The session page: opens at the end or at a message, follows new messages, and handles the keys.

import {Refused, load} from "./wire.js";
import {follow} from "./changes.js";
import {backToList, beginBeside, besideChanged, goToNeighbour} from "./beside.js";
import {beginActions, focusQuestion, openMenu, forgetArrivedPrompt, settle, focusPrompt} from "./actions.js";
import {beginCopying} from "./clipboard.js";
import {
  MOST, address, atEnd, chosen, entries, feed, here, inTurn, link, point, session, showAt, loadWindow, toEnd, toFirst, toLast, trim, scrollToMessage, watch,
} from "./feed.js";
import {beginFinding, beginJumping, find, jump, stepHit} from "./find.js";
import {entriesIn, regroup} from "./turns.js";
import {away, begin, showError, rename, retag, say, showTimes} from "./shared.js";

const fresh = document.getElementById("fresh");

// New messages

let unseen = 0;
let read = Number(feed.dataset.total); // the number of messages when the reader was last at the end
function showNewCount(number) {
  unseen = number;
  fresh.hidden = unseen <= 0;
  fresh.textContent = `${unseen} new ↓`;
}
function clearNewCount() {
  read = Number(feed.dataset.total);
  showNewCount(0);
}
fresh.addEventListener("click", () => toLast().catch(showError));
addEventListener("scroll", () => unseen && atEnd() && !link("newer") && clearNewCount(), {passive: true});

// Replaces a message that waited for tool results by its new version. What was unfolded stays unfolded, and keeps the focus.
function renew(was, now) {
  const folds = [...now.querySelectorAll("details")];
  [...was.querySelectorAll("details")].forEach((fold, at) => folds[at] && (folds[at].open = fold.open));
  if (was.matches(".same")) now.className = now.className.replace(/^entry \w+/, "$& same"); // as on the page
  if (was.matches(".target")) now.classList.add("target");
  was.setAttribute("aria-setsize", now.getAttribute("aria-setsize"));
  if (was.isEqualNode(now)) return;
  const places = (entry) => [entry, ...entry.querySelectorAll("a, button, summary, [tabindex]")];
  const focused = places(was).indexOf(document.activeElement);
  was.replaceWith(now);
  if (focused >= 0) places(now)[focused]?.focus({preventScroll: true});
}

// Adds messages and returns how many are new.
function add(made) {
  const known = new Map(entries().map((each) => [each.dataset.id, each]));
  const all = entriesIn(made);
  const late = all.filter((each) => !known.has(each.dataset.id));
  for (const each of all) {
    const was = known.get(each.dataset.id);
    if (was && (was.matches(".waits") || was.dataset.until !== each.dataset.until)) renew(was, each);
    else if (was) each.remove();
  }
  feed.append(...made.filter((each) => late.some((one) => each.contains(one))));
  regroup();
  return late.length;
}

const NEAR = 30; // of the forty messages of a page, so that new ones fit in it too
const ROUNDS = 4; // pages to load one after another; if there is more, the end of the session replaces them

// Where to continue loading: messages near the end that wait for tool results are loaded again.
function place() {
  const all = entries();
  const at = all.findIndex((each) => each.matches(".waits") && feed.dataset.end - each.ariaPosInSet < NEAR);
  return (!all[at]?.previousElementSibling?.matches(".gap") && all[at - 1]?.dataset.until) || feed.dataset.last;
}

// Whether these messages follow the shown ones; not if earlier messages were added or removed.
function continuesShown(got, made) {
  const [first] = entriesIn(made);
  const shown = first && entries().find((each) => each.dataset.id === first.dataset.id);
  return shown ? shown.ariaPosInSet === first.ariaPosInSet : got.dataset.start === feed.dataset.end;
}

async function readMore(from) {
  const {page, got, made} = await loadWindow(from ? `${address}?after=${from}&steps=1` : `${address}?steps=1`);
  if (!continuesShown(got, made)) return location.assign(address);
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

async function readNewMessages() {
  if (link("newer")) return showNewCount(await look() - read);
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
    clearNewCount();
  } else showNewCount(feed.dataset.total - read);
  await forgetArrivedPrompt();
}

// Updates the header of the session and returns its number of messages.
async function look() {
  const page = await load(feed.dataset.last ? `${address}?after=${feed.dataset.last}` : address);
  refreshAbout(page);
  return Number(page.getElementById("feed").dataset.total);
}

const showDeleted = () => say("This session was deleted.", {stays: true, link: {href: "/", text: "All sessions"}});

const heard = (news) => (news.gone.length ? showDeleted() : inTurn(readNewMessages));

const nameOf = (at) => (at.dataset.act ? `[data-act=${at.dataset.act}]` : at.className ? `.${at.classList[at.classList.length - 1]}` : "");

function refreshAbout(page) {
  document.title = page.title;
  settle(page);
  for (const part of about().querySelectorAll("[data-part]")) {
    const now = page.querySelector(`[data-part=${part.dataset.part}]`);
    if (part.querySelector("input") || part.isEqualNode(now)) continue; // it is being edited, or the same
    const focused = part.contains(document.activeElement) ? nameOf(document.activeElement) : "";
    part.replaceWith(document.adoptNode(now));
    if (focused) now.querySelector(focused)?.focus();
  }
  settle();
}

// Changes of any session are shown beside this one.
function heardOfAll(news) {
  besideChanged(news);
  const [changed, gone] = [news.changed, news.gone].map((ids) => ids.filter((id) => id === open));
  return changed.length || gone.length ? followed({changed, gone}) : undefined;
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

// The message to continue from is gone: the session was rewound, or deleted.
async function readAgain() {
  try {
    await load(address);
  } catch (error) {
    if (isMissing(error)) return showDeleted();
    throw error;
  }
  location.assign(address);
}

// Child sessions and keys

// Shows the end of a session that a tool started below its card, read-only.
async function showChild(at) {
  const inner = at.querySelector(".inner");
  if (inner.childElementCount) return;
  const page = await load(`/s/${at.dataset.session}?glance&steps=1`);
  const got = page.getElementById("feed");
  showTimes(got);
  for (const each of got.querySelectorAll(".fork, .rewind, .refold")) each.remove();
  for (const each of [got, ...got.querySelectorAll("[id]")]) each.removeAttribute("id");
  inner.append(...[...got.children].map((each) => document.adoptNode(each)));
}

feed.addEventListener("toggle", (event) => {
  if (event.target.matches(".child") && event.target.open) showChild(event.target).catch(showError);
}, {capture: true});

function step(by) {
  const all = entries().filter((each) => each.checkVisibility());
  const next = all[all.indexOf(here()) + (chosen() || by < 0 ? by : 0)];
  if (next) scrollToMessage(next.dataset.id);
}

// On a small screen what one can do with a message is behind one button.
feed.addEventListener("click", (event) => {
  const dots = event.target.closest(".dots");
  if (dots) dots.ariaExpanded = dots.closest(".entry").classList.toggle("acting");
});

const about = () => document.querySelector(".about");
const refresh = () => look();
const jumping = (kind, back) => () => jump(kind, back).catch(showError);
const hit = (by) => () => stepHit(by).catch(showError);

beginActions();
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
    J: jumping("user", false),
    K: jumping("user", true),
    e: jumping("edit", true),
    E: jumping("edit", false),
    f: jumping("failure", true),
    F: jumping("failure", false),
    "/": find,
    n: hit(1),
    N: hit(-1),
    c: focusPrompt,
    o: openMenu,
    y: focusQuestion,
    g: () => toFirst().catch(showError),
    G: () => toLast().catch(showError),
    r: () => rename(about(), refresh),
    t: () => retag(about(), refresh),
    u: backToList,
    "[": () => goToNeighbour(-1).catch(showError),
    "]": () => goToNeighbour(1).catch(showError),
  },
});

const wanted = location.hash.startsWith("#m-") ? location.hash.slice(3) : feed.dataset.target;
if (!wanted) {
  const query = new URLSearchParams(location.search);
  if (!["before", "after", "first"].some((each) => query.has(each))) toEnd();
} else if (!scrollToMessage(wanted) && !feed.dataset.target) location.replace(`${address}?at=${wanted}#m-${wanted}`);
watch();
const {newest, apart} = document.getElementById("main").dataset;
const open = decodeURIComponent(session);
beginBeside(open);
if (apart !== undefined) follow({after: newest, session: open, apart: true, heard: followed, away});
else follow({after: newest, heard: heardOfAll, away});

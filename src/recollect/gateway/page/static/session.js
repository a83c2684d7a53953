// A session: opens at its end or at a message, follows what is said, and what else one does as a reader.

import {Refused, load} from "./wire.js";
import {follow} from "./following.js";
import {beginActing, lookAtQuestion, openMenu, settle, writeHere} from "./acting.js";
import {beginCopying} from "./copying.js";
import {address, atEnd, chosen, entries, feed, here, link, session, stretch, toEnd, toFirst, toLast, trim, turnTo, watch} from "./feed.js";
import {beginFinding, beginJumping, find, jump, stepHit} from "./finding.js";
import {away, begin, complain, rename, retag, say, tellTimes} from "./shared.js";

const fresh = document.getElementById("fresh");

// What is said meanwhile

let unseen = 0;
function tellFresh(number) {
  unseen = number;
  fresh.hidden = !unseen;
  fresh.textContent = `${unseen} new ↓`;
}
fresh.addEventListener("click", () => toLast().catch(complain));
addEventListener("scroll", () => unseen && atEnd() && !link("newer") && tellFresh(0), {passive: true});

// A message whose tools had not come back is read again, with what they came back with; what was unfolded stays so.
function renew(from, made) {
  const old = new Map(entries().slice(entries().indexOf(from)).map((each) => [each.dataset.id, each]));
  for (const each of made) {
    const was = old.get(each.dataset.id);
    if (!was) feed.append(each);
    else {
      const folds = [...each.querySelectorAll("details")];
      [...was.querySelectorAll("details")].forEach((fold, at) => folds[at] && (folds[at].open = fold.open));
      was.replaceWith(each);
    }
  }
  return made.filter((each) => !old.has(each.dataset.id)).length;
}

async function heard(news) {
  if (news.gone.length) return say("This session was deleted.", {stays: true, link: {href: "/", text: "All sessions"}});
  if (link("newer")) return refreshAbout(await load(`${address}?after=${feed.dataset.last}`));
  const following = atEnd();
  let added = 0;
  for (let more = true; more; ) {
    const waits = feed.querySelector(":scope > .waits");
    const from = waits?.previousElementSibling ? waits.previousElementSibling.dataset.until : feed.dataset.last;
    const {page, got, made} = await stretch(from ? `${address}?after=${from}` : address);
    if (from === feed.dataset.last && got.dataset.start !== feed.dataset.end) return location.assign(address); // something before it came or went
    const number = waits?.previousElementSibling ? renew(waits, made) : (feed.append(...made), made.length);
    added += number;
    if (got.dataset.last) feed.dataset.last = got.dataset.last;
    feed.dataset.end = got.dataset.end;
    document.getElementById("saying").replaceWith(document.adoptNode(page.getElementById("saying")));
    refreshAbout(page);
    more = Boolean(page.getElementById("newer")) && number > 0;
  }
  document.querySelector(".nothing")?.remove();
  if (following) {
    trim({end: false});
    toEnd();
  } else if (added) tellFresh(unseen + added);
}

function refreshAbout(page) {
  const about = document.querySelector(".about");
  document.title = page.title;
  settle(page);
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

// Sessions within, keys

// The end of a session that a tool has started, below its card. It is only read there.
async function showChild(at) {
  const inner = at.querySelector(".inner");
  if (inner.childElementCount) return;
  const page = await load(`/s/${at.dataset.session}`);
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
const refresh = async () => refreshAbout(await load(feed.dataset.last ? `${address}?after=${feed.dataset.last}` : address));
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
follow({after: document.getElementById("main").dataset.newest, session: decodeURIComponent(session), heard: followed, away});

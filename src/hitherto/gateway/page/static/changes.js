// Follows changes: one page in this browser polls the server and passes changes on to the others, so that however many are open, they
// hold one connection. A hidden page does not poll, and catches up when it is visible again.

import {notifies} from "./attention.js";
import {SignedOut, text} from "./wire.js";

const LATEST = 10_000;
const channel = new BroadcastChannel("hitherto news");

// Runs in one page at a time. In browsers without locks, every page polls.
const inOnePage = (signal, work) => (navigator.locks ? navigator.locks.request("hitherto news", {signal}, work) : work());

// A page whose reader wants to be notified goes on while it is hidden.
const sleeps = () => document.hidden && !notifies();

function untilVisible() {
  if (!sleeps()) return Promise.resolve();
  return new Promise((done) => {
    document.addEventListener("visibilitychange", function look() {
      if (sleeps()) return;
      document.removeEventListener("visibilitychange", look);
      done();
    });
  });
}

// A position has a number for each lane of changes; a lane that is not there is at 0.
const lanes = (position) => position.split(".").map(Number);

// Whether a page that has come to `one` knows everything up to `other`.
const covers = (one, other) => {
  const known = lanes(one);
  return lanes(other).every((number, lane) => number <= (known[lane] ?? 0));
};

// The position that covers both.
const later = (one, other) => {
  const [known, more] = [lanes(one), lanes(other)];
  return Array.from({length: Math.max(known.length, more.length)}, (_, lane) => Math.max(known[lane] ?? 0, more[lane] ?? 0)).join(".");
};

// Whether a batch begins where this position ends, or before: nothing between them is missing.
const follows = (news, position) => news.from !== null && position !== null && covers(position, news.from);

// Merges two batches of changes; `from` is null if something between them is missing.
const merge = (one, other) => ({
  from: follows(other, one.after) ? one.from : null,
  after: one.after === null || other.after === null ? null : later(one.after, other.after),
  changed: [...one.changed, ...other.changed],
  gone: [...one.gone, ...other.gone],
});

const UNKNOWN = {from: null, after: null, changed: [], gone: []};

// Calls `heard` with each batch of changes, one at a time, for as long as the page is open, and `away` when the server is gone, back, or
// the sign-in ended. A batch that could not be handled is repeated. A session that is `apart`, as ephemeral ones are, has its own poll.
// Without `after`, it starts now.
// Others who hear of each batch of changes, whatever becomes of it.
const alsoHeard = [];
export const hearToo = (work) => alsoHeard.push(work);

export async function follow({after = null, session, apart = false, heard, away}) {
  let seen = after, failures = 0, waiting = null, reading = null;

  async function ask(more = {}, signal = undefined) {
    const query = new URLSearchParams(more);
    if (seen !== null) query.set("after", seen);
    if (apart) query.set("session", session);
    return {from: seen, ...JSON.parse(await text(`/live?${query}`, signal))};
  }

  async function catchUp() {
    for (;;) {
      const news = await ask({now: "1"});
      if (seen !== null && covers(seen, news.after)) return;
      await take(news);
    }
  }

  async function take(news) {
    if (news.after === null || (seen !== null && !follows(news, seen))) return catchUp();
    if (seen !== null && covers(seen, news.after)) return;
    const {changed, gone} = news;
    for (const work of alsoHeard) work(news);
    if (changed.length || gone.length) await heard({changed, gone});
    seen = seen === null ? news.after : later(seen, news.after);
  }

  async function read() {
    try {
      for (let news; (news = waiting); ) {
        waiting = null;
        await take(news);
      }
    } finally {
      reading = null;
    }
  }

  // Changes that arrive meanwhile are merged and handled next.
  function hear(news) {
    waiting = waiting ? merge(waiting, news) : news;
    return (reading ??= read());
  }

  async function lead(signal) {
    for (;;) {
      const news = await ask({}, signal);
      if (!apart) channel.postMessage(news);
      await hear(news);
    }
  }

  // Until the page is hidden, or something fails.
  function stay(signal) {
    return new Promise((hidden, failed) => {
      document.addEventListener("visibilitychange", () => sleeps() && hidden(), {signal});
      if (!apart) channel.addEventListener("message", ({data}) => hear(data).catch(failed), {signal});
      hear(UNKNOWN)
        .then(() => {
          if (failures > 1) away("here");
          failures = 0;
          return apart ? lead(signal) : inOnePage(signal, () => lead(signal));
        })
        .catch(failed);
    });
  }

  for (;;) {
    await untilVisible();
    const over = new AbortController();
    const error = await stay(over.signal).catch((why) => why);
    over.abort();
    if (error instanceof SignedOut) return away("signed out");
    if (!error) continue;
    if (++failures === 2) away("away");
    await new Promise((done) => setTimeout(done, Math.min(500 * 2 ** failures, LATEST)));
  }
}

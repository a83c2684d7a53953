// Follows changes: one page in this browser polls the server and passes changes on to the others, so that however many are open, they
// hold one connection. A hidden page does not poll, and catches up when it is untilVisible again.

import {SignedOut, text} from "./wire.js";

const LATEST = 10_000;
const channel = new BroadcastChannel("hitherto news");

// Runs in one page at a time. In browsers without locks, every page polls.
const inOnePage = (signal, work) => (navigator.locks ? navigator.locks.request("hitherto news", {signal}, work) : work());

function untilVisible() {
  if (!document.hidden) return Promise.resolve();
  return new Promise((done) => {
    document.addEventListener("visibilitychange", function look() {
      if (document.hidden) return;
      document.removeEventListener("visibilitychange", look);
      done();
    });
  });
}

// Merges two batches of changes; `from` is infinite if something between them is missing.
const merge = (one, other) => ({
  from: other.from > one.after ? Infinity : one.from,
  after: Math.max(one.after, other.after),
  changed: [...one.changed, ...other.changed],
  gone: [...one.gone, ...other.gone],
});

const UNKNOWN = {from: Infinity, after: Infinity, changed: [], gone: []};

// Calls `heard` with each batch of changes, one at a time, for as long as the page is open, and `away` when the server is gone, back, or
// the sign-in ended. A batch that could not be handled is repeated. A session that is `apart`, as ephemeral ones are, has its own poll.
// Without `after`, it starts now.
export async function follow({after = -1, session, apart = false, heard, away}) {
  let seen = Number(after), failures = 0, waiting = null, reading = null;

  async function ask(more = {}, signal = undefined) {
    const query = new URLSearchParams(more);
    if (seen >= 0) query.set("after", seen);
    if (apart) query.set("session", session);
    return {from: seen, ...JSON.parse(await text(`/live?${query}`, signal))};
  }

  async function catchUp() {
    for (;;) {
      const news = await ask({now: "1"});
      if (news.after === seen) return;
      await take(news);
    }
  }

  async function take(news) {
    if (news.from > seen) return catchUp();
    if (news.after <= seen) return;
    const [changed, gone] = [news.changed, news.gone].map((ids) => (session ? ids.filter((id) => id === session) : ids));
    if (changed.length || gone.length) await heard({changed, gone});
    seen = news.after;
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
      document.addEventListener("visibilitychange", () => document.hidden && hidden(), {signal});
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

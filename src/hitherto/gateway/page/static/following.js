// Following: one page of ours in this browser asks what is new, and tells the others; so that however many are open, they hold one
// connection. Who is not looked at does not ask, and catches up when it is shown again.

import {SignedOut, text} from "./wire.js";

const LATEST = 10_000;
const channel = new BroadcastChannel("hitherto news");

// The work of the one that asks. Where browsers know no locks each page asks by itself.
const alone = (signal, work) => (navigator.locks ? navigator.locks.request("hitherto news", {signal}, work) : work());

function shown() {
  if (!document.hidden) return Promise.resolve();
  return new Promise((done) => {
    document.addEventListener("visibilitychange", function look() {
      if (document.hidden) return;
      document.removeEventListener("visibilitychange", look);
      done();
    });
  });
}

// Two pieces of news as one; with `from` beyond everything if something between them is not known.
const joined = (one, other) => ({
  from: other.from > one.after ? Infinity : one.from,
  after: Math.max(one.after, other.after),
  changed: [...one.changed, ...other.changed],
  gone: [...one.gone, ...other.gone],
});

const UNKNOWN = {from: Infinity, after: Infinity, changed: [], gone: []};

// Calls with each piece of news, one at a time, for as long as the page is there; tells when the server is away and when it is back,
// and when it does not know us any more. What could not be read is told again. A session that is kept apart from the others, as
// ephemeral ones are, is asked about by itself. Without `after`, what comes from now on.
export async function follow({after = -1, session, apart = false, heard, away}) {
  let seen = Number(after), failures = 0, waiting = null, reading = null;

  async function ask(more = {}, signal = undefined) {
    const asked = new URLSearchParams(more);
    if (seen >= 0) asked.set("after", seen);
    if (apart) asked.set("session", session);
    return {from: seen, ...JSON.parse(await text(`/live?${asked}`, signal))};
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

  // What comes while something is being read is read in one go after it.
  function hear(news) {
    waiting = waiting ? joined(waiting, news) : news;
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
          return apart ? lead(signal) : alone(signal, () => lead(signal));
        })
        .catch(failed);
    });
  }

  for (;;) {
    await shown();
    const over = new AbortController();
    const error = await stay(over.signal).catch((why) => why);
    over.abort();
    if (error instanceof SignedOut) return away("signed out");
    if (!error) continue;
    if (++failures === 2) away("away");
    await new Promise((done) => setTimeout(done, Math.min(500 * 2 ** failures, LATEST)));
  }
}

// Turns: what was done between a prompt and its answer is one line that unfolds. The server groups what it sends; here pages are joined.

const feed = document.getElementById("feed");
const NUMBERS = ["steps", "edits", "failed", "cost"];
const stepsOf = (work) => work.querySelector(":scope > details > .steps");
// The messages among what a feed holds, those of its turns included.
export const entriesIn = (nodes) => nodes.flatMap((each) => (each.matches(".work") ? [...stepsOf(each).querySelectorAll(":scope > .entry")] : [each]));
export const gapOf = (work) => stepsOf(work).querySelector(":scope > .gap");
const numberOf = (each, name) => Number(each.dataset[name] ?? 0);
const timeOf = (entry) => Date.parse(entry.querySelector("time").dateTime);

// The line of a turn

const SECOND = 1_000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;

// As the server writes it: 0.4 s, 41 s, 12 min, 3 h 20 min, 2 d 4 h.
function duration(ms) {
  if (ms < 10 * SECOND) return `${(ms / SECOND).toFixed(1)} s`;
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  const [large, small, names] = ms < DAY ? [HOUR, MINUTE, ["h", "min"]] : [DAY, HOUR, ["d", "h"]];
  const rest = Math.floor((ms % large) / small);
  return `${Math.floor(ms / large)} ${names[0]}${rest ? ` ${rest} ${names[1]}` : ""}`;
}

const money = (dollars) => (dollars < 0.01 ? "<$0.01" : `$${dollars.toFixed(2)}`);

function words(work) {
  const all = [...stepsOf(work).children];
  const sum = Object.fromEntries(NUMBERS.map((name) => [name, all.reduce((total, each) => total + numberOf(each, name), 0)]));
  const more = all.some((each) => "more" in each.dataset) ? "+" : "";
  const about = all.some((each) => "estimated" in each.dataset) ? "≈" : "";
  const many = (number, one) => `${number}${more} ${one}${number === 1 && !more ? "" : "s"}`;
  const gaps = all.filter((each) => each.matches(".gap")).reduce((total, each) => total + numberOf(each, "end") - numberOf(each, "start"), 0);
  if (!sum.steps) return [`${gaps || all.length} message${(gaps || all.length) === 1 ? "" : "s"}`];
  const took = work.dataset.to - work.dataset.from;
  return [
    many(sum.steps, "step"),
    sum.edits ? many(sum.edits, "edit") : "",
    sum.failed ? `${sum.failed}${more} failed` : "",
    took > 0 ? duration(took) : "",
    sum.cost ? `${about}${money(sum.cost / 1e6)}${more}` : "",
  ].filter(Boolean);
}

function describe(work) {
  work.querySelector("summary").replaceChildren(...words(work).map((each) => {
    const word = document.createElement("span");
    word.textContent = each;
    if (each.endsWith(" failed")) word.className = "bad";
    return word;
  }));
}

// Joining pages

function makeWork() {
  const work = document.createElement("article"), fold = document.createElement("details"), steps = document.createElement("div");
  work.className = "work";
  work.ariaLabel = "Steps";
  steps.className = "steps";
  fold.append(document.createElement("summary"), steps);
  fold.open = true;
  work.append(fold);
  return work;
}

const known = new WeakSet(feed.querySelectorAll(":scope > .work")); // turns that were there before: what is unfolded in them, and has the focus, stays

// Everything of a turn up to its last step belongs together; what follows is the answer.
function gather(turn, prompt) {
  const last = turn.findLastIndex((each) => each.matches(".work, .did"));
  if (last < 0) return;
  const done = turn.slice(0, last + 1), works = done.filter((each) => each.matches(".work"));
  let work = works.find((each) => known.has(each)) ?? works[0];
  if (!work) done[0].before(work = makeWork());
  const steps = stepsOf(work), mine = [...steps.children], at = done.indexOf(work);
  const inner = (each) => (each.matches(".work") ? [...stepsOf(each).children] : [each]);
  (mine[0] ?? null)?.before(...done.slice(0, Math.max(at, 0)).flatMap(inner));
  steps.append(...done.slice(at + 1).flatMap(inner));
  for (const each of works) if (each !== work) each.remove();
  const rest = turn.slice(last + 1), shown = [...steps.querySelectorAll(":scope > .entry"), ...rest];
  const times = [...(prompt ? [prompt] : []), ...shown].map(timeOf);
  work.dataset.from = prompt ? times[0] : Math.min(...times, ...works.map((each) => numberOf(each, "from")));
  work.dataset.to = Math.max(...times, ...works.map((each) => numberOf(each, "to")));
  known.add(work);
  describe(work);
}

export function regroup() {
  let turn = [], prompt = null;
  for (const each of [...feed.children]) {
    if (each.matches(".prompt, .compaction")) {
      gather(turn, prompt);
      [turn, prompt] = [[], each.matches(".prompt") ? each : null];
    } else turn.push(each);
  }
  gather(turn, prompt);
}

// Puts loaded steps where they were left out; what is still left out keeps its place.
export function leave(gap, got, loaded) {
  const [start, end] = [numberOf(gap, "start"), numberOf(gap, "end")];
  const found = loaded.filter((each) => each.ariaPosInSet > start && each.ariaPosInSet <= end && !document.getElementById(each.id));
  const work = gap.closest(".work");
  gap.before(...found);
  if (Number(got.dataset.end) >= end || !loaded.length) gap.remove();
  else {
    gap.dataset.start = got.dataset.end;
    for (const name of NUMBERS) {
      const left = numberOf(gap, name) - found.reduce((total, each) => total + numberOf(each, name), 0);
      if (name in gap.dataset) gap.dataset[name] = Math.max(0, left);
    }
    const link = gap.querySelector("a"), number = end - got.dataset.end;
    link.href = link.href.replace(/\?.*/, `?after=${got.dataset.last}&steps=1`);
    link.textContent = `${number} message${number === 1 ? "" : "s"}. Show`;
  }
  describe(work);
}

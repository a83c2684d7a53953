// Keyboard access to charts: one tab stop for each, arrow keys between marks.

import {follow} from "./changes.js";
import {away, begin} from "./shared.js";

const STEPS = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1};
const marksOf = (chart) => [...chart.querySelectorAll("a")];

for (const chart of document.querySelectorAll(".panel svg[role=group]")) {
  const marks = marksOf(chart);
  for (const mark of marks) mark.tabIndex = -1;
  if (marks.length) marks.at(-1).tabIndex = 0;
  chart.addEventListener("keydown", (event) => {
    const at = marks.indexOf(document.activeElement);
    const to = event.key === "Home" ? 0 : event.key === "End" ? marks.length - 1 : at + (STEPS[event.key] ?? NaN);
    if (at < 0 || !marks[to]) return;
    event.preventDefault();
    marks[at].tabIndex = -1;
    marks[to].tabIndex = 0;
    marks[to].focus();
  });
}

begin({
  refresh: () => location.reload(),
  keys: {
    "/": () => location.assign("/"),
    u: () => location.assign("/"),
  },
});
follow({heard: () => {}, away}); // notices when the server is away, or the sign-in ended

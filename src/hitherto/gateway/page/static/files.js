// The changes of a session: copying them as patches.

import {follow} from "./changes.js";
import {beginCopying, copyText} from "./clipboard.js";
import {away, begin, showError} from "./shared.js";

// A file that was made is a patch for `git apply`; of an edit only the lines are known, not where they stand.
function hunkOf(pre, isNew) {
  const lines = pre.textContent.replace(/\n$/, "");
  const place = isNew ? `@@ -0,0 +1,${lines.split("\n").length} @@` : "@@ @@";
  return `${place}\n${lines}\n`;
}

function patchOf(file) {
  const {path} = file.dataset, hunks = [...file.querySelectorAll("pre.diff")];
  const isNew = "new" in file.dataset && hunks.length === 1;
  return [isNew ? "--- /dev/null\n" : `--- a/${path}\n`, `+++ b/${path}\n`, ...hunks.map((each) => hunkOf(each, isNew))].join("");
}

document.addEventListener("click", (event) => {
  const button = event.target.closest?.(".copy-patch");
  if (!button) return;
  const files = "all" in button.dataset ? [...document.querySelectorAll(".file")] : [button.closest(".file")];
  copyText(files.map(patchOf).join("")).catch(showError);
});

const {session} = document.getElementById("main").dataset;
beginCopying();
begin({refresh: () => {}, keys: {u: () => location.assign(session ? `/s/${session}` : "/")}});
follow({heard: () => {}, away}); // notices when the server is away, or the sign-in ended

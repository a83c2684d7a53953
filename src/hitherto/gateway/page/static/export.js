// Exports sessions as one file of JSON lines, which `hitherto import` reads. Secrets are replaced and counted.

import {LONG_TIMEOUT, call} from "./wire.js";
import {say} from "./shared.js";

const MOST = 64 * 1024 * 1024;
const many = (count, one, more) => (count === 1 ? `1 ${one}` : `${count} ${more}`);

// The last line of an export lists what was replaced in it.
function replacedIn(lines) {
  const last = lines.trimEnd().split("\n").at(-1);
  return (JSON.parse(last).redacted ?? []).reduce((sum, each) => sum + each.count, 0);
}

export function download(name, parts, type = "application/jsonl") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, {type}));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

export async function exportAll(ids) {
  const parts = [];
  let size = 0, replaced = 0;
  for (const [at, id] of ids.entries()) {
    say(`Exporting ${at + 1} of ${ids.length}.`, {stays: true, name: "passing"});
    const {data} = await call("session.export", {session_id: id, format: "jsonl"}, LONG_TIMEOUT);
    size += data.length;
    if (size > MOST) throw new Error("The export is too large for a browser. Use `hitherto export` instead.");
    replaced += replacedIn(data);
    parts.push(data.endsWith("\n") ? data : `${data}\n`);
  }
  download(ids.length === 1 ? "session.jsonl" : "sessions.jsonl", parts);
  const secrets = replaced ? `${many(replaced, "secret was", "secrets were")} replaced.` : "No secrets found.";
  say(`${many(ids.length, "session", "sessions")} exported. ${secrets}`);
}

// What somebody writes in a session: kept in this tab, also when the page is loaded again, until the server has it.

const draftOf = (id) => `draft ${id}`;
const sentOf = (id) => `sent ${id}`;

export function keepDraft(id, words) {
  if (words) sessionStorage.setItem(draftOf(id), words);
  else sessionStorage.removeItem(draftOf(id));
}
export const draft = (id) => sessionStorage.getItem(draftOf(id)) ?? "";

// What is on its way, or was lost on it: its words, its key, and how many messages there were before.
export const sentBefore = (id) => JSON.parse(sessionStorage.getItem(sentOf(id)) ?? "null");
export const forget = (id) => sessionStorage.removeItem(sentOf(id));

// What is sent again is the same prompt: should the server have it already, it is not answered twice.
export function keyOf(id, content, total) {
  const before = sentBefore(id);
  if (before?.content === content) return before.key;
  const key = crypto.randomUUID();
  sessionStorage.setItem(sentOf(id), JSON.stringify({content, key, total}));
  return key;
}

// What belongs into the box: also what was sent, as long as nobody knows whether it came.
export function unsent(id) {
  const sent = sentBefore(id)?.content ?? "", words = draft(id);
  return words.startsWith(sent) ? words : [sent, words].filter(Boolean).join("\n\n");
}

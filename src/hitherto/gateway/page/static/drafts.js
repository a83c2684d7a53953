// Drafts of prompts, kept in this tab, also across reloads, until the server has them.

const draftOf = (id) => `draft ${id}`;
const sentOf = (id) => `sent ${id}`;

export function keepDraft(id, words) {
  if (words) sessionStorage.setItem(draftOf(id), words);
  else sessionStorage.removeItem(draftOf(id));
}
export const draft = (id) => sessionStorage.getItem(draftOf(id)) ?? "";

// The prompt that was sent and not confirmed: its text, its key, and how many messages there were before.
export const sentPrompt = (id) => JSON.parse(sessionStorage.getItem(sentOf(id)) ?? "null");
export const forgetSent = (id) => sessionStorage.removeItem(sentOf(id));

// The same text has the same key: if the server already has the prompt, it is not answered twice.
export function keyOf(id, content, total) {
  const before = sentPrompt(id);
  if (before?.content === content) return before.key;
  const key = crypto.randomUUID();
  sessionStorage.setItem(sentOf(id), JSON.stringify({content, key, total}));
  return key;
}

// The text for the box: the draft, with the sent prompt while its arrival is unknown.
export function unsentText(id) {
  const sent = sentPrompt(id)?.content ?? "", words = draft(id);
  return words.startsWith(sent) ? words : [sent, words].filter(Boolean).join("\n\n");
}

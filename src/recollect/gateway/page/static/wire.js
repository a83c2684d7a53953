// Talking to the server: pages as documents, methods as JSON-RPC, and news. All requests carry our own header.

const OWN = {"X-Recollect": "1"};

export class SignedOut extends Error {}
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// A page of ours as a document. Parsed by the browser itself, so no script ever makes markup of a text.
export function load(address) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("GET", address);
    request.responseType = "document";
    for (const [name, value] of Object.entries(OWN)) request.setRequestHeader(name, value);
    request.onload = () => {
      if (request.status === 200 && request.response) resolve(request.response);
      else if (request.status === 401) reject(new SignedOut());
      else reject(new Refused(request.status, request.statusText));
    };
    request.onerror = () => reject(new Refused(0, "The server does not answer."));
    request.send();
  });
}

export async function call(method, params) {
  const body = JSON.stringify({jsonrpc: "2.0", id: 1, method, params});
  const answer = await post("/rpc", body);
  const told = await answer.json();
  if (told.error) throw new Refused(answer.status, told.error.message);
  return told.result;
}

export async function post(address, body = "{}") {
  let answer;
  try {
    answer = await fetch(address, {method: "POST", headers: {...OWN, "Content-Type": "application/json"}, body});
  } catch {
    throw new Refused(0, "The server does not answer.");
  }
  if (answer.status === 401) throw new SignedOut();
  return answer;
}

export async function text(address) {
  const answer = await fetch(address, {headers: OWN});
  if (answer.status === 401) throw new SignedOut();
  if (!answer.ok) throw new Refused(answer.status, answer.statusText);
  return answer.text();
}

// Calls with each piece of news, for as long as the page is there; tells when the server is away and when it is back, and
// when it does not know us any more.
export async function follow({after, session, heard, away}) {
  for (let failures = 0; ; ) {
    try {
      const asked = new URLSearchParams({after});
      if (session) asked.set("session", session);
      if (failures) asked.set("now", "1"); // whether it is back is not to be waited for
      const news = JSON.parse(await text(`/live?${asked}`));
      if (failures > 1) away("here");
      failures = 0;
      after = news.after;
      if (news.changed.length || news.gone.length) await heard(news);
    } catch (error) {
      if (error instanceof SignedOut) return away("signed out");
      if (++failures === 2) away("away");
      await new Promise((done) => setTimeout(done, Math.min(500 * 2 ** failures, 10_000)));
    }
  }
}

// Other pages of ours in this browser are told who comes and goes.
const others = new BroadcastChannel("recollect");
export const announce = (event) => others.postMessage(event);
export const overhear = (work) => others.addEventListener("message", work);

// Talking to the server: pages as documents, and methods as JSON-RPC. All requests carry our own header.

const OWN = {"X-Hitherto": "1"};
const LONGEST = 40_000; // milliseconds until nobody waits for an answer any more; /live takes 25 s
export const LONG = 600_000; // the same for what the server works on for long
const BUSY = "A turn is running in this session. Stop it, or wait until it is done.";
const WORDS = {
  403: "Your token does not allow this.",
  404: "Not found. It may have been deleted.",
  413: "The request is too large.",
  429: "Too many requests. Try again in a moment.",
  503: "The server is unavailable. Try again in a moment.",
};

export class SignedOut extends Error {}
export class Refused extends Error {
  constructor(status, message = "", code = "") {
    super(message || WORDS[status] || "Something went wrong.");
    this.status = status;
    this.code = code;
  }
}

const silent = () => new Refused(0, "The server does not answer.");

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
      else reject(new Refused(request.status, request.response?.querySelector("h1 + p")?.textContent));
    };
    request.timeout = LONGEST;
    request.onerror = request.ontimeout = () => reject(silent());
    request.send();
  });
}

// The result of a method. Of one that takes long, `within` says how long.
export async function call(method, params, within = LONGEST) {
  const body = JSON.stringify({jsonrpc: "2.0", id: 1, method, params});
  const answer = await post("/rpc", body, within);
  const told = await answer.json();
  const code = told.error?.data?.code ?? "";
  if (told.error) throw new Refused(answer.status, code === "busy" ? BUSY : told.error.message, code);
  return told.result;
}

export const post = (address, body = "{}", within = LONGEST) =>
  answered(address, {method: "POST", headers: {...OWN, "Content-Type": "application/json"}, body}, within);

export async function text(address, signal) {
  const answer = await answered(address, {headers: OWN}, LONGEST, signal);
  if (!answer.ok) throw new Refused(answer.status);
  return answer.text();
}

async function answered(address, asked, within, signal) {
  const late = AbortSignal.timeout(within);
  let answer;
  try {
    answer = await fetch(address, {...asked, signal: signal ? AbortSignal.any([signal, late]) : late});
  } catch {
    throw silent();
  }
  if (answer.status === 401) throw new SignedOut();
  return answer;
}

// Other pages of ours in this browser are told who comes and goes.
const others = new BroadcastChannel("hitherto");
export const announce = (event) => others.postMessage(event);
export const overhear = (work) => others.addEventListener("message", work);

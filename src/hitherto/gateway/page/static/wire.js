// Requests to the server: pages as documents, methods as JSON-RPC. All requests carry our own header.

const HEADERS = {"X-Hitherto": "1"};
const TIMEOUT = 40_000; // milliseconds; /live takes 25 s
export const LONG_TIMEOUT = 600_000; // for exports and compactions
const BUSY = "A turn is running in this session. Stop it, or wait until it is done.";
const STATUS_TEXTS = {
  403: "Your token does not allow this.",
  404: "Not found. It may have been deleted.",
  413: "The request is too large.",
  429: "Too many requests. Try again in a moment.",
  503: "The server is unavailable. Try again in a moment.",
};

export class SignedOut extends Error {}
export class Refused extends Error {
  constructor(status, message = "", code = "") {
    super(message || STATUS_TEXTS[status] || "Something went wrong.");
    this.status = status;
    this.code = code;
  }
}

const noResponse = () => new Refused(0, "The server does not answer.");

// Loads a page as a document. The browser parses it, so no script ever turns text into markup.
export function load(address) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("GET", address);
    request.responseType = "document";
    for (const [name, value] of Object.entries(HEADERS)) request.setRequestHeader(name, value);
    request.onload = () => {
      if (request.status === 200 && request.response) resolve(request.response);
      else if (request.status === 401) reject(new SignedOut());
      else reject(new Refused(request.status, request.response?.querySelector("h1 + p")?.textContent));
    };
    request.timeout = TIMEOUT;
    request.onerror = request.ontimeout = () => reject(noResponse());
    request.send();
  });
}

// Calls a method and returns its result.
export async function call(method, params, timeout = TIMEOUT) {
  const body = JSON.stringify({jsonrpc: "2.0", id: 1, method, params});
  const answer = await post("/rpc", body, timeout);
  const reply = await answer.json();
  const code = reply.error?.data?.code ?? "";
  if (reply.error) throw new Refused(answer.status, code === "busy" ? BUSY : reply.error.message, code);
  return reply.result;
}

export const post = (address, body = "{}", timeout = TIMEOUT) =>
  request(address, {method: "POST", headers: {...HEADERS, "Content-Type": "application/json"}, body}, timeout);

export async function text(address, signal) {
  const answer = await request(address, {headers: HEADERS}, TIMEOUT, signal);
  if (!answer.ok) throw new Refused(answer.status);
  return answer.text();
}

async function request(address, options, timeout, signal) {
  const late = AbortSignal.timeout(timeout);
  let answer;
  try {
    answer = await fetch(address, {...options, signal: signal ? AbortSignal.any([signal, late]) : late});
  } catch {
    throw noResponse();
  }
  if (answer.status === 401) throw new SignedOut();
  return answer;
}

// Tells the other pages in this browser about signing in and out.
const others = new BroadcastChannel("hitherto");
export const announce = (event) => others.postMessage(event);
export const listen = (work) => others.addEventListener("message", work);

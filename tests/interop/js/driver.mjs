// Drives an agent with the protocol's TypeScript SDK on behalf of a test: each line of standard input is a call, each
// line of standard output is what came of one, or something that the agent said or asked meanwhile.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Readable, Writable } from "node:stream";

const [sdk, ...command] = process.argv.slice(2);
const acp = await import(sdk);
const { agent: ask, client: serve } = acp.methods;

const tell = (what) => process.stdout.write(JSON.stringify(what) + "\n");
const agent = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const buffers = new Map();
const aborts = new Map();

const app = acp
  .client({ name: "driver" })
  .onNotification(serve.session.update, ({ params }) => tell({ update: params }))
  .onRequest(serve.session.requestPermission, ({ params }) => {
    tell({ asked: params });
    return { outcome: { outcome: "selected", optionId: params.options[0].optionId } };
  })
  .onRequest(serve.fs.readTextFile, ({ params }) => {
    tell({ read: params });
    if (!buffers.has(params.path)) throw acp.RequestError.resourceNotFound(params.path);
    return { content: buffers.get(params.path) };
  })
  .onRequest(serve.fs.writeTextFile, ({ params }) => {
    tell({ wrote: params });
    buffers.set(params.path, params.content);
    return {};
  });

async function run(context, { id, call, params, buffer }) {
  if (buffer) return buffers.set(buffer.path, buffer.content) && tell({ id, result: {} });
  const abort = new AbortController();
  aborts.set(id, abort);
  try {
    tell({ id, result: await context.request(call, params, { cancellationSignal: abort.signal }) });
  } catch (error) {
    tell({ id, error: { code: error.code, message: error.message, data: error.data } });
  }
}

await app.connectWith(stream, async (context) => {
  for await (const line of createInterface({ input: process.stdin })) {
    const given = JSON.parse(line);
    if (given.abort) aborts.get(given.abort).abort();
    else if (given.notify) await context.notify(given.notify, given.params);
    else void run(context, given);
  }
});
agent.stdin.end();
agent.on("exit", (code) => process.exit(code ?? 1));

// What the programs that drive the SDKs share. Each makes the calls of a plan and
// prints one JSON object a call: what an application would see.
import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';

// plan says which packages to drive, under which name, and the calls: each with its
// name, the action that it repeats, the origin to send it to, and the manner in which
// the upstream behaves.
const plan = JSON.parse(process.argv[2]);
export const { packages, attack } = plan;
export const question = 'What is the capital of France?';
export const thinking = 'Think about France, then name its capital.';
export const weather = 'What is the weather in Paris? Ask the tool.';
export const story = 'Tell me a long story.';
export const asJSON = 'Name the capital of France, with capital as JSON.';
export const toolResult = '18 degrees and sunny';
export const schema = { type: 'object', properties: { capital: { type: 'string' } }, required: ['capital'], additionalProperties: false };
export const city = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'], additionalProperties: false };

const current = new AsyncLocalStorage();
const { fetch } = globalThis;
const digest = (text) => createHash('sha256').update(text).digest('hex');

// Every SDK sends its requests with the global fetch. This one counts them by call,
// notes the receipts, and adds the headers by which the upstream knows the call.
globalThis.fetch = async (input, init) => {
  const request = new Request(input, init);
  const call = current.getStore();
  const body = request.body ? await request.clone().text() : '';
  if (request.method === 'POST') call.requests++; // a client of MCP also listens with GET
  const sent = [...request.headers].filter(([name]) => !['accept-encoding', 'content-length', 'host'].includes(name));
  request.headers.set('x-e2e-call', call.id);
  request.headers.set('x-e2e-manner', call.manner);
  request.headers.set('x-e2e-headers', sent.map(([name]) => name).join());
  request.headers.set('x-e2e-sha256', digest(sent.map(([name, value]) => `${name}: ${value}\n`).join('')));
  request.headers.set('x-e2e-body-sha256', digest(body));
  const response = await fetch(request);
  const turn = response.headers.get('x-lex-turn');
  if (turn && request.method === 'POST') call.turns.push(turn);
  return response;
};

function describe(error) {
  if (!(error instanceof Error)) return { exception: 'plain object', message: JSON.stringify(error).slice(0, 300) };
  const name = error.name && error.name !== 'Error' ? error.name : error.constructor.name;
  const status = error.status ?? error.statusCode ?? error.status_code ?? error.lastError?.statusCode ?? error.$metadata?.httpStatusCode ?? error.code;
  return {
    exception: name.replace(/^_/, ''), status: typeof status === 'number' ? status : undefined, message: String(error.message).slice(0, 300),
    text: error.text ?? '', finish: error.finishReason ?? '', // where the AI SDK's errors have them
  };
}

// At most so many calls run at a time.
let free = 16;
const waiting = [];
const enter = async () => (free > 0 ? free-- : new Promise((resolve) => waiting.push(resolve)));
const leave = () => (waiting.length > 0 ? waiting.shift()() : free++);

// again begins a call anew: what came before was the conversation that it goes on.
export const again = (call) => Object.assign(call, { requests: 0, turns: [], before: call.turns });

// drive makes the calls of the plan whose action an API has. connect makes a client
// of the SDK for an origin.
export async function drive(api, connect, actions) {
  await Promise.all(plan.calls.filter(({ action }) => actions[action]).map(async ({ name, action, origin, manner }) => {
    await enter();
    const call = { id: `${plan.sdk}/${api}/${name}`, manner, requests: 0, turns: [], before: [] };
    const seen = await current.run(call, async () => {
      try {
        const client = await connect(origin);
        again(call);
        return await actions[action](client, call);
      } catch (error) {
        return describe(error);
      }
    });
    leave();
    console.log(JSON.stringify({ api, name, requests: call.requests, turns: call.turns, before: call.before, ...seen }));
  }));
}

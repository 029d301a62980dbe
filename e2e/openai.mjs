// Drives the official OpenAI SDK, of the version that is named, against a governed
// base URL and prints one JSON object a line: what an application would see.
const [baseURL, attack, sdk = 'openai'] = process.argv.slice(2);
const { default: OpenAI } = await import(sdk);
const question = 'What is the capital of France?';
let requests = 0;
const client = new OpenAI({
  baseURL,
  apiKey: 'sk-e2e-not-a-real-key',
  fetch: (...args) => { requests++; return fetch(...args); },
});
const report = (name, result) => console.log(JSON.stringify({ name, requests, ...result }));

async function attempt(name, run) {
  requests = 0;
  try {
    report(name, await run());
  } catch (e) {
    report(name, { exception: `${e.constructor.name}: ${e.message}` });
  }
}

// Before its fifth version the SDK had its helpers under beta.
const helpers = client.chat.completions.parse ? client.chat.completions : client.beta.chat.completions;

const ask = (content, extra = {}) => ({ model: 'lex-demo', messages: [{ role: 'user', content }], ...extra });

async function plain(content, extra) {
  const { data, response } = await client.chat.completions.create(ask(content, extra)).withResponse();
  const { message, finish_reason } = data.choices[0];
  return { content: message.content, refusal: message.refusal, finish_reason, receipt: response.headers.get('x-lex-receipt-id') };
}

async function streamed(content) {
  const stream = await client.chat.completions.create(ask(content, { stream: true }));
  let text = '', refusal = '', finish_reason = null, chunks = 0;
  for await (const chunk of stream) {
    chunks++;
    const choice = chunk.choices[0];
    text += choice?.delta?.content ?? '';
    refusal += choice?.delta?.refusal ?? '';
    finish_reason = choice?.finish_reason ?? finish_reason;
  }
  return { content: text, refusal, finish_reason, chunks };
}

async function helper(content) {
  const runner = helpers.stream(ask(content));
  const completion = await runner.finalChatCompletion();
  const { message, finish_reason } = completion.choices[0];
  return { content: message.content, refusal: message.refusal, finish_reason };
}

async function parsed(content) {
  const response_format = { type: 'json_schema', json_schema: { name: 'x', strict: true, schema: { type: 'object', properties: {}, required: [], additionalProperties: false } } };
  const completion = await helpers.parse(ask(content, { response_format }));
  const { message, finish_reason } = completion.choices[0];
  return { content: message.content, refusal: message.refusal, finish_reason };
}

// A conversation that goes on after a refusal, with the message as the SDK gave it.
async function goOn(content) {
  const first = await client.chat.completions.create(ask(content));
  requests = 0;
  const completion = await client.chat.completions.create({ model: 'lex-demo', messages: [
    { role: 'user', content }, first.choices[0].message, { role: 'user', content: question },
  ] });
  const { message, finish_reason } = completion.choices[0];
  return { content: message.content, refusal: message.refusal, finish_reason };
}

async function legacy(prompt) {
  const completion = await client.completions.create({ model: 'lex-demo', prompt });
  return { content: completion.choices[0].text, finish_reason: completion.choices[0].finish_reason };
}

await attempt('question', () => plain(question));
await attempt('question streamed', () => streamed(question));
await attempt('question with the stream helper', () => helper(question));
await attempt('question by legacy completions', () => legacy(question));
await attempt('attack', () => plain(attack));
await attempt('attack streamed', () => streamed(attack));
await attempt('attack with the stream helper', () => helper(attack));
await attempt('attack with structured output', () => parsed(attack));
await attempt('attack by legacy completions', () => legacy(attack));
await attempt('question after an attack', () => goOn(attack));

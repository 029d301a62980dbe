// Drives the AI SDK's chat model against a governed base URL, as openai.mjs does
// the official SDK.
import { createOpenAI } from '@ai-sdk/openai';
import { generateText, streamText } from 'ai';

const [baseURL, attack] = process.argv.slice(2);
let requests = 0;
const provider = createOpenAI({
  baseURL,
  apiKey: 'sk-e2e-not-a-real-key',
  fetch: (...args) => { requests++; return fetch(...args); },
});
const model = provider.chat('lex-demo');

async function attempt(name, run) {
  requests = 0;
  try {
    console.log(JSON.stringify({ name, ...(await run()), requests }));
  } catch (e) {
    console.log(JSON.stringify({ name, requests, exception: `${e.constructor.name}: ${e.message}` }));
  }
}

async function plain(prompt) {
  const { text, finishReason } = await generateText({ model, prompt });
  return { content: text, finish_reason: finishReason };
}

async function streamed(prompt) {
  const result = streamText({ model, prompt });
  let content = '', chunks = 0;
  for await (const piece of result.textStream) { content += piece; chunks++; }
  return { content, chunks, finish_reason: await result.finishReason };
}

for (const [name, prompt] of [['question', 'What is the capital of France?'], ['attack', attack]]) {
  await attempt(name, () => plain(prompt));
  await attempt(`${name} streamed`, () => streamed(prompt));
}

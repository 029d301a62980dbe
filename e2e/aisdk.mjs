// Drives the AI SDK over its providers for OpenAI (Responses, which is its default,
// and Chat Completions), Anthropic, Google and Amazon Bedrock.
import { packages, attack, question, thinking, weather, story, asJSON, toolResult, schema, city, again, drive } from './harness.mjs';
const [{ generateText, streamText, generateObject, streamObject, jsonSchema, tool, stepCountIs }, { createOpenAI }, { createAnthropic }, { createGoogleGenerativeAI }, { createAmazonBedrock }] =
  await Promise.all(packages.map((name) => import(name)));

const apiKey = 'e2e-not-a-real-key';
const providers = {
  responses: (origin) => createOpenAI({ baseURL: `${origin}/v1`, apiKey })('gpt-e2e'),
  chat: (origin) => createOpenAI({ baseURL: `${origin}/v1`, apiKey }).chat('gpt-e2e'),
  anthropic: (origin) => createAnthropic({ baseURL: `${origin}/v1`, apiKey })('claude-e2e'),
  bedrock: (origin) => createAmazonBedrock({ baseURL: origin, region: 'us-east-1', apiKey })('amazon.nova-e2e-v1:0'),
  gemini: (origin) => createGoogleGenerativeAI({ baseURL: `${origin}/v1beta`, apiKey })('gemini-e2e'),
};

globalThis.AI_SDK_LOG_WARNINGS = false;
const onError = () => {}; // the program reports errors itself
const parameters = { description: 'The weather of a city', inputSchema: jsonSchema(city) };
const uncalled = { get_weather: tool(parameters) };
const running = (found) => ({ get_weather: tool({ ...parameters, execute: async () => found }) });
const called = (output) => [
  { role: 'user', content: weather },
  { role: 'assistant', content: [{ type: 'tool-call', toolCallId: 'call_e2e', toolName: 'get_weather', input: { city: 'Paris' } }] },
  { role: 'tool', content: [{ type: 'tool-result', toolCallId: 'call_e2e', toolName: 'get_weather', output: { type: 'text', value: output } }] },
];
const show = (calls) => calls.map((c) => `${c.toolName}(${JSON.stringify(c.input)})`).join();

async function plain(model, options) {
  const { text, reasoningText, toolCalls, finishReason } = await generateText({ model, ...options });
  return { text, reasoning: reasoningText ?? '', calls: show(toolCalls), finish: finishReason };
}

async function streamed(model, options) {
  const result = streamText({ model, onError, ...options });
  const seen = { text: '', reasoning: '', calls: '', finish: null, pieces: 0 };
  for await (const part of result.fullStream) {
    switch (part.type) {
      case 'text-delta': seen.text += part.text; seen.pieces++; break;
      case 'reasoning-delta': seen.reasoning += part.text; break;
      case 'tool-call': seen.calls += show([part]); break;
      case 'error': throw part.error;
      case 'finish': seen.finish = part.finishReason;
    }
  }
  return seen;
}

// generateObject throws where the answer is no object, and the error has its text.
async function object(model, prompt) {
  const { object, finishReason } = await generateObject({ model, schema: jsonSchema(schema), prompt });
  return { text: JSON.stringify(object), finish: finishReason };
}

async function objectStreamed(model, prompt) {
  const result = streamObject({ model, schema: jsonSchema(schema), prompt, onError });
  let finish = null;
  for await (const part of result.fullStream) {
    if (part.type === 'error') throw part.error;
    if (part.type === 'finish') finish = part.finishReason;
  }
  return { text: JSON.stringify(await result.object), finish };
}

async function after(model, call, prompt, send = plain) {
  const first = [{ role: 'user', content: prompt }];
  const { response, responseMessages } = await generateText({ model, messages: first });
  again(call);
  return send(model, { messages: [...first, ...(response.messages ?? responseMessages), { role: 'user', content: question }] });
}

await Promise.all(Object.entries(providers).map(([api, connect]) => drive(api, connect, {
  'question': (m) => plain(m, { prompt: question }),
  'question, streamed': (m) => streamed(m, { prompt: question }),
  'question, structured': (m) => object(m, asJSON),
  'question, structured and streamed': (m) => objectStreamed(m, asJSON),
  'reasoning': (m) => plain(m, { prompt: thinking }),
  'reasoning, streamed': (m) => streamed(m, { prompt: thinking }),
  'tool call': (m) => plain(m, { prompt: weather, tools: uncalled }),
  'tool call, streamed': (m) => streamed(m, { prompt: weather, tools: uncalled }),
  'tool result': (m) => plain(m, { messages: called(toolResult), tools: uncalled }),
  'tool loop': (m) => plain(m, { prompt: weather, tools: running(toolResult), stopWhen: stepCountIs(4) }),
  'attack': (m) => plain(m, { prompt: attack }),
  'attack, streamed': (m) => streamed(m, { prompt: attack }),
  'attack, structured': (m) => object(m, attack),
  'attack, structured and streamed': (m) => objectStreamed(m, attack),
  'attack in a part': (m) => plain(m, { messages: [{ role: 'user', content: [{ type: 'text', text: question }, { type: 'text', text: attack }] }] }),
  'attack in a tool result': (m) => plain(m, { messages: called(attack), tools: uncalled }),
  'attack in a tool loop': (m) => plain(m, { prompt: weather, tools: running(attack), stopWhen: stepCountIs(4) }),
  'role in the system prompt': (m) => plain(m, { system: attack, prompt: question }),
  'after a refusal': (m, call) => after(m, call, attack),
  'after a refusal, streamed': (m, call) => after(m, call, attack, streamed),
  'after an answer': (m, call) => after(m, call, thinking),
  'answer that gives in': (m) => plain(m, { prompt: story }),
  'answer that gives in, streamed': (m) => streamed(m, { prompt: story }),
})));

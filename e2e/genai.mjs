// Drives the official Google Gen AI SDK: generateContent and chats.
import { packages, attack, question, thinking, weather, story, asJSON, toolResult, schema, city, again, drive } from './harness.mjs';
const { GoogleGenAI } = await import(packages[0]);

const connect = (baseUrl) => new GoogleGenAI({ apiKey: 'AIza-e2e-not-a-real-key', httpOptions: { baseUrl } });
const model = 'gemini-e2e';
const user = (...texts) => ({ role: 'user', parts: texts.map((text) => ({ text })) });
const tools = [{ functionDeclarations: [{ name: 'get_weather', description: 'The weather of a city', parametersJsonSchema: city }] }];
const structured = { responseMimeType: 'application/json', responseJsonSchema: schema };

function add(seen, { candidates: [candidate] = [], promptFeedback }) {
  for (const part of candidate?.content?.parts ?? []) {
    if (part.thought) seen.reasoning += part.text;
    else if (part.text) { seen.text += part.text; seen.pieces++; }
    if (part.functionCall) seen.calls += `${part.functionCall.name}(${JSON.stringify(part.functionCall.args)})`;
  }
  seen.refusal += promptFeedback?.blockReasonMessage ?? candidate?.finishMessage ?? '';
  seen.finish = candidate?.finishReason ?? promptFeedback?.blockReason ?? seen.finish;
  return seen;
}
const nothing = () => ({ text: '', refusal: '', reasoning: '', calls: '', finish: null, pieces: 0 });

async function plain(client, contents, config) {
  return add(nothing(), await client.models.generateContent({ model, contents, config }));
}

async function streamed(client, contents, config) {
  const seen = nothing();
  for await (const chunk of await client.models.generateContentStream({ model, contents, config })) add(seen, chunk);
  return seen;
}

async function chat(client, message) {
  const seen = nothing();
  for await (const chunk of await client.chats.create({ model }).sendMessageStream({ message })) add(seen, chunk);
  return seen;
}

const called = [user(weather), { role: 'model', parts: [{ functionCall: { name: 'get_weather', args: { city: 'Paris' } } }] }];
const result = (output) => ({ role: 'user', parts: [{ functionResponse: { name: 'get_weather', response: { output } } }] });

// The SDK runs the tool, which finds what it is given.
async function loop(client, found) {
  const callable = {
    tool: async () => tools[0],
    callTool: async () => [{ functionResponse: { name: 'get_weather', response: { output: found } } }],
  };
  return plain(client, weather, { tools: [callable] });
}

// A chat of the SDK keeps the history by itself.
async function after(client, call, first, streams) {
  const chat = client.chats.create({ model });
  await chat.sendMessage({ message: first });
  again(call);
  const seen = nothing();
  if (!streams) return add(seen, await chat.sendMessage({ message: question }));
  for await (const chunk of await chat.sendMessageStream({ message: question })) add(seen, chunk);
  return seen;
}

await drive('gemini', connect, {
  'question': (c) => plain(c, question),
  'question, streamed': (c) => streamed(c, question),
  'question, stream helper': (c) => chat(c, question),
  'question, structured': (c) => plain(c, asJSON, structured),
  'question, structured and streamed': (c) => streamed(c, asJSON, structured),
  'reasoning': (c) => plain(c, thinking, { thinkingConfig: { includeThoughts: true } }),
  'reasoning, streamed': (c) => streamed(c, thinking, { thinkingConfig: { includeThoughts: true } }),
  'tool call': (c) => plain(c, weather, { tools }),
  'tool call, streamed': (c) => streamed(c, weather, { tools }),
  'tool result': (c) => plain(c, [...called, result(toolResult)], { tools }),
  'tool loop': (c) => loop(c, toolResult),
  'attack': (c) => plain(c, attack),
  'attack, streamed': (c) => streamed(c, attack),
  'attack, stream helper': (c) => chat(c, attack),
  'attack, structured': (c) => plain(c, attack, structured),
  'attack, structured and streamed': (c) => streamed(c, attack, structured),
  'attack in a part': (c) => plain(c, [user(question, attack)]),
  'attack in a tool result': (c) => plain(c, [...called, result(attack)], { tools }),
  'attack in a tool loop': (c) => loop(c, attack),
  'role in the system prompt': (c) => plain(c, question, { systemInstruction: attack }),
  'after a refusal': (c, call) => after(c, call, attack),
  'after a refusal, streamed': (c, call) => after(c, call, attack, true),
  'after an answer': (c, call) => after(c, call, thinking),
  'answer that gives in': (c) => plain(c, story),
  'answer that gives in, streamed': (c) => streamed(c, story),
  'answer that gives in, stream helper': (c) => chat(c, story),
});

async function embedded(client, contents) {
  const { embeddings } = await client.models.embedContent({ model: 'gemini-embedding-001', contents });
  return { text: embeddings[0].values.join(), finish: 'values' };
}

async function counted(client, contents) {
  const { totalTokens } = await client.models.countTokens({ model, contents });
  return { text: String(totalTokens), finish: 'totalTokens' };
}

await drive('endpoints', connect, {
  'embedding': (c) => embedded(c, question),
  'embedding of an attack': (c) => embedded(c, attack),
  'count of tokens': (c) => counted(c, question),
  'count of tokens of an attack': (c) => counted(c, attack),
});

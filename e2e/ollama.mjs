// Drives the official Ollama SDK: chat and generate.
import { packages, attack, question, thinking, weather, story, asJSON, toolResult, schema, city, again, drive } from './harness.mjs';
const { Ollama } = await import(packages[0]);

const connect = (host) => new Ollama({ host });
const model = 'llama-e2e';
const user = (content) => ({ role: 'user', content });
const tools = [{ type: 'function', function: { name: 'get_weather', description: 'The weather of a city', parameters: city } }];

function add(seen, { message, response, done_reason }) {
  const text = message?.content ?? response ?? '';
  if (text) seen.pieces++;
  seen.text += text;
  seen.reasoning += message?.thinking ?? '';
  for (const call of message?.tool_calls ?? []) seen.calls += `${call.function.name}(${JSON.stringify(call.function.arguments)})`;
  seen.finish = done_reason ?? seen.finish;
  return seen;
}
const nothing = () => ({ text: '', reasoning: '', calls: '', finish: null, pieces: 0 });

const plain = async (client, body) => add(nothing(), await client.chat({ model, ...body }));

async function streamed(client, body) {
  const seen = nothing();
  for await (const line of await client.chat({ model, stream: true, ...body })) add(seen, line);
  return seen;
}

const called = [user(weather), { role: 'assistant', content: '', tool_calls: [{ function: { name: 'get_weather', arguments: { city: 'Paris' } } }] }];
const result = (content) => ({ role: 'tool', tool_name: 'get_weather', content });

async function loop(client, found) {
  const messages = [user(weather)];
  const { message } = await client.chat({ model, messages, tools });
  return plain(client, { messages: [...messages, message, result(found)], tools });
}

async function after(client, call, first, send = plain) {
  const { message } = await client.chat({ model, messages: [user(first)] });
  again(call);
  return send(client, { messages: [user(first), message, user(question)] });
}

await drive('ollama', connect, {
  'question': (c) => plain(c, { messages: [user(question)] }),
  'question, streamed': (c) => streamed(c, { messages: [user(question)] }),
  'question, structured': (c) => plain(c, { messages: [user(asJSON)], format: schema }),
  'question, structured and streamed': (c) => streamed(c, { messages: [user(asJSON)], format: schema }),
  'reasoning': (c) => plain(c, { messages: [user(thinking)], think: true }),
  'reasoning, streamed': (c) => streamed(c, { messages: [user(thinking)], think: true }),
  'tool call': (c) => plain(c, { messages: [user(weather)], tools }),
  'tool call, streamed': (c) => streamed(c, { messages: [user(weather)], tools }),
  'tool result': (c) => plain(c, { messages: [...called, result(toolResult)], tools }),
  'tool loop': (c) => loop(c, toolResult),
  'attack': (c) => plain(c, { messages: [user(attack)] }),
  'attack, streamed': (c) => streamed(c, { messages: [user(attack)] }),
  'attack, structured': (c) => plain(c, { messages: [user(attack)], format: schema }),
  'attack, structured and streamed': (c) => streamed(c, { messages: [user(attack)], format: schema }),
  'attack in a tool result': (c) => plain(c, { messages: [...called, result(attack)], tools }),
  'attack in a tool loop': (c) => loop(c, attack),
  'role in the system prompt': (c) => plain(c, { messages: [{ role: 'system', content: attack }, user(question)] }),
  'after a refusal': (c, call) => after(c, call, attack),
  'after a refusal, streamed': (c, call) => after(c, call, attack, streamed),
  'after an answer': (c, call) => after(c, call, thinking),
  'answer that gives in': (c) => plain(c, { messages: [user(story)] }),
  'answer that gives in, streamed': (c) => streamed(c, { messages: [user(story)] }),
});

const generate = async (client, body) => add(nothing(), await client.generate({ model, ...body }));

async function generateStreamed(client, body) {
  const seen = nothing();
  for await (const line of await client.generate({ model, stream: true, ...body })) add(seen, line);
  return seen;
}

await drive('ollama generate', connect, {
  'question': (c) => generate(c, { prompt: question }),
  'question, streamed': (c) => generateStreamed(c, { prompt: question }),
  'question, structured': (c) => generate(c, { prompt: asJSON, format: schema }),
  'attack': (c) => generate(c, { prompt: attack }),
  'attack, streamed': (c) => generateStreamed(c, { prompt: attack }),
  'attack, structured': (c) => generate(c, { prompt: attack, format: schema }),
  'attack beside the messages': (c) => generate(c, { prompt: question, suffix: attack }),
  'role in the system prompt': (c) => generate(c, { prompt: question, system: attack }),
  'answer that gives in': (c) => generate(c, { prompt: story }),
  'answer that gives in, streamed': (c) => generateStreamed(c, { prompt: story }),
});

async function embedded(client, input) {
  const { embeddings } = await client.embed({ model, input });
  return { text: embeddings[0].join(), finish: 'embeddings' };
}

await drive('endpoints', connect, {
  'embedding': (c) => embedded(c, question),
  'embedding of an attack': (c) => embedded(c, attack),
});

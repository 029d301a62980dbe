// Drives the official OpenAI SDK: Chat Completions, completions and Responses.
import { packages, attack, question, thinking, weather, story, asJSON, toolResult, schema, city, again, drive } from './harness.mjs';
const { default: OpenAI } = await import(packages[0]);

const connect = (origin) => new OpenAI({ baseURL: `${origin}/v1`, apiKey: 'sk-e2e-not-a-real-key' });
const model = 'gpt-e2e';
const user = (content) => ({ role: 'user', content });

// --- Chat Completions

const chatTool = { type: 'function', function: { name: 'get_weather', description: 'The weather of a city', parameters: city, strict: true } };
const chatFormat = { type: 'json_schema', json_schema: { name: 'capital', strict: true, schema } };

function chatSaw({ choices: [{ message, finish_reason }] }) {
  const calls = (message.tool_calls ?? []).map((c) => `${c.function.name}(${c.function.arguments})`).join();
  return { text: message.content ?? '', refusal: message.refusal ?? '', reasoning: message.reasoning_content ?? '', calls, finish: finish_reason };
}

const chat = async (client, body) => chatSaw(await client.chat.completions.create({ model, ...body }));

async function chatStreamed(client, body) {
  const stream = await client.chat.completions.create({ model, stream: true, ...body });
  const seen = { text: '', refusal: '', reasoning: '', calls: '', finish: null, pieces: 0 };
  for await (const { choices: [choice] } of stream) {
    if (!choice) continue;
    const { delta } = choice;
    if (delta.content) seen.pieces++;
    seen.text += delta.content ?? '';
    seen.refusal += delta.refusal ?? '';
    seen.reasoning += delta.reasoning_content ?? '';
    for (const call of delta.tool_calls ?? []) {
      if (call.function.name) seen.calls += `${call.function.name}(`;
      seen.calls += call.function.arguments ?? '';
    }
    seen.finish = choice.finish_reason ?? seen.finish;
  }
  if (seen.calls) seen.calls += ')';
  return seen;
}

const chatHelper = async (client, body) => chatSaw(await client.chat.completions.stream({ model, ...body }).finalChatCompletion());
const chatParsed = async (client, body) => chatSaw(await client.chat.completions.parse({ model, response_format: chatFormat, ...body }));
const chatParsedStream = (client, body) => chatHelper(client, { response_format: chatFormat, ...body });

// The SDK runs the tool, which finds what it is given.
async function chatLoop(client, found) {
  const runner = client.chat.completions.runTools({
    model, messages: [user(weather)],
    tools: [{ type: 'function', function: { name: 'get_weather', description: 'The weather of a city', parameters: city, parse: JSON.parse, function: () => found } }],
  });
  return chatSaw({ choices: [(await runner.finalChatCompletion()).choices[0]] });
}

const chatCalled = [user(weather), { role: 'assistant', content: null, tool_calls: [{ id: 'call_e2e', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Paris"}' } }] }];

// The conversation goes on with the message as the SDK gave it.
async function chatAfter(client, call, first, send = chat) {
  const { choices: [{ message }] } = await client.chat.completions.create({ model, messages: [user(first)] });
  again(call);
  return send(client, { messages: [user(first), message, user(question)] });
}

await drive('chat', connect, {
  'question': (c) => chat(c, { messages: [user(question)] }),
  'question, streamed': (c) => chatStreamed(c, { messages: [user(question)] }),
  'question, stream helper': (c) => chatHelper(c, { messages: [user(question)] }),
  'question, structured': (c) => chatParsed(c, { messages: [user(asJSON)] }),
  'question, structured and streamed': (c) => chatParsedStream(c, { messages: [user(asJSON)] }),
  'reasoning': (c) => chat(c, { messages: [user(thinking)] }),
  'reasoning, streamed': (c) => chatStreamed(c, { messages: [user(thinking)] }),
  'tool call': (c) => chat(c, { messages: [user(weather)], tools: [chatTool] }),
  'tool call, streamed': (c) => chatStreamed(c, { messages: [user(weather)], tools: [chatTool] }),
  'tool result': (c) => chat(c, { messages: [...chatCalled, { role: 'tool', tool_call_id: 'call_e2e', content: toolResult }], tools: [chatTool] }),
  'tool loop': (c) => chatLoop(c, toolResult),
  'attack': (c) => chat(c, { messages: [user(attack)] }),
  'attack, streamed': (c) => chatStreamed(c, { messages: [user(attack)] }),
  'attack, stream helper': (c) => chatHelper(c, { messages: [user(attack)] }),
  'attack, structured': (c) => chatParsed(c, { messages: [user(attack)] }),
  'attack, structured and streamed': (c) => chatParsedStream(c, { messages: [user(attack)] }),
  'attack in a part': (c) => chat(c, { messages: [user([{ type: 'text', text: question }, { type: 'text', text: attack }])] }),
  'attack beside the messages': (c) => chat(c, { messages: [user(question)], prediction: { type: 'content', content: attack } }),
  'attack in a tool result': (c) => chat(c, { messages: [...chatCalled, { role: 'tool', tool_call_id: 'call_e2e', content: attack }], tools: [chatTool] }),
  'attack in a tool loop': (c) => chatLoop(c, attack),
  'role in the system prompt': (c) => chat(c, { messages: [{ role: 'developer', content: attack }, user(question)] }),
  'after a refusal': (c, call) => chatAfter(c, call, attack),
  'after a refusal, streamed': (c, call) => chatAfter(c, call, attack, chatStreamed),
  'after an answer': (c, call) => chatAfter(c, call, thinking),
  'answer that gives in': (c) => chat(c, { messages: [user(story)] }),
  'answer that gives in, streamed': (c) => chatStreamed(c, { messages: [user(story)] }),
  'answer that gives in, stream helper': (c) => chatHelper(c, { messages: [user(story)] }),
});

// --- completions

async function complete(client, prompt) {
  const { choices: [{ text, finish_reason }] } = await client.completions.create({ model, prompt });
  return { text, finish: finish_reason };
}

async function completeStreamed(client, prompt) {
  const seen = { text: '', finish: null, pieces: 0 };
  for await (const { choices: [choice] } of await client.completions.create({ model, prompt, stream: true })) {
    seen.text += choice.text;
    seen.pieces++;
    seen.finish = choice.finish_reason ?? seen.finish;
  }
  return seen;
}

await drive('completions', connect, {
  'question': (c) => complete(c, question),
  'question, streamed': (c) => completeStreamed(c, question),
  'attack': (c) => complete(c, attack),
  'attack, streamed': (c) => completeStreamed(c, attack),
  'answer that gives in': (c) => complete(c, story),
  'answer that gives in, streamed': (c) => completeStreamed(c, story),
});

// --- Responses

const flatTool = { type: 'function', name: 'get_weather', description: 'The weather of a city', parameters: city, strict: true };
const format = { format: { type: 'json_schema', name: 'capital', strict: true, schema } };

function responseSaw(response) {
  const parts = response.output.filter(({ type }) => type === 'message').flatMap(({ content }) => content);
  return {
    text: response.output_text,
    refusal: parts.map((p) => p.refusal ?? '').join(''),
    reasoning: response.output.filter(({ type }) => type === 'reasoning').flatMap(({ summary }) => summary.map((s) => s.text)).join(''),
    calls: response.output.filter(({ type }) => type === 'function_call').map((c) => `${c.name}(${c.arguments})`).join(),
    finish: response.status,
  };
}

const respond = async (client, body) => responseSaw(await client.responses.create({ model, ...body }));

async function respondStreamed(client, body) {
  const stream = await client.responses.create({ model, stream: true, ...body });
  const seen = { text: '', refusal: '', reasoning: '', calls: '', finish: null, pieces: 0 };
  for await (const event of stream) {
    switch (event.type) {
      case 'response.output_text.delta': seen.text += event.delta; seen.pieces++; break;
      case 'response.refusal.delta': seen.refusal += event.delta; break;
      case 'response.reasoning_summary_text.delta': seen.reasoning += event.delta; break;
      case 'response.output_item.added': if (event.item.type === 'function_call') seen.calls += `${event.item.name}(`; break;
      case 'response.function_call_arguments.delta': seen.calls += event.delta; break;
      case 'response.completed': case 'response.failed': case 'response.incomplete': seen.finish = event.response.status; break;
      case 'error': throw Object.assign(new Error(event.message), { name: 'error event' });
    }
  }
  if (seen.calls) seen.calls += ')';
  return seen;
}

const respondHelper = async (client, body) => responseSaw(await client.responses.stream({ model, ...body }).finalResponse());

const respondParsed = async (client, body) => responseSaw(await client.responses.parse({ model, text: format, ...body }));
const respondParsedStream = (client, body) => respondHelper(client, { text: format, ...body });
const flatCalled = [user(weather), { type: 'function_call', call_id: 'call_e2e', name: 'get_weather', arguments: '{"city":"Paris"}' }];
const flatResult = (output) => ({ type: 'function_call_output', call_id: 'call_e2e', output });

// The application runs the tool and goes on by the id of the response.
async function flatLoop(client, found) {
  const first = await client.responses.create({ model, input: weather, tools: [flatTool] });
  return respond(client, { previous_response_id: first.id, input: [flatResult(found)], tools: [flatTool] });
}

async function respondAfter(client, call, first, next, send = respond) {
  const response = await client.responses.create({ model, input: [user(first)] });
  again(call);
  return send(client, next(response));
}
const items = (first) => ({ output }) => ({ input: [user(first), ...output, user(question)] });
const byID = ({ id }) => ({ previous_response_id: id, input: question });

await drive('responses', connect, {
  'question': (c) => respond(c, { input: question }),
  'question, streamed': (c) => respondStreamed(c, { input: question }),
  'question, stream helper': (c) => respondHelper(c, { input: question }),
  'question, structured': (c) => respondParsed(c, { input: asJSON }),
  'question, structured and streamed': (c) => respondParsedStream(c, { input: asJSON }),
  'reasoning': (c) => respond(c, { input: thinking, reasoning: { summary: 'auto' } }),
  'reasoning, streamed': (c) => respondStreamed(c, { input: thinking, reasoning: { summary: 'auto' } }),
  'tool call': (c) => respond(c, { input: weather, tools: [flatTool] }),
  'tool call, streamed': (c) => respondStreamed(c, { input: weather, tools: [flatTool] }),
  'tool result': (c) => respond(c, { input: [...flatCalled, flatResult(toolResult)], tools: [flatTool] }),
  'tool loop': (c) => flatLoop(c, toolResult),
  'attack': (c) => respond(c, { input: attack }),
  'attack, streamed': (c) => respondStreamed(c, { input: attack }),
  'attack, stream helper': (c) => respondHelper(c, { input: attack }),
  'attack, structured': (c) => respondParsed(c, { input: attack }),
  'attack, structured and streamed': (c) => respondParsedStream(c, { input: attack }),
  'attack in a part': (c) => respond(c, { input: [user([{ type: 'input_text', text: question }, { type: 'input_text', text: attack }])] }),
  'attack beside the messages': (c) => respond(c, { input: question, prompt: { id: 'pmpt_e2e', variables: { topic: attack } } }),
  'attack in a tool result': (c) => respond(c, { input: [...flatCalled, flatResult(attack)], tools: [flatTool] }),
  'attack in a tool loop': (c) => flatLoop(c, attack),
  'role in the system prompt': (c) => respond(c, { instructions: attack, input: question }),
  'after a refusal': (c, call) => respondAfter(c, call, attack, items(attack)),
  'after a refusal, streamed': (c, call) => respondAfter(c, call, attack, items(attack), respondStreamed),
  'after a refusal, by id': (c, call) => respondAfter(c, call, attack, byID),
  'after a refusal, by id and streamed': (c, call) => respondAfter(c, call, attack, byID, respondStreamed),
  'after an answer': (c, call) => respondAfter(c, call, thinking, items(thinking)),
  'after an answer, by id': (c, call) => respondAfter(c, call, thinking, byID),
  'answer that gives in': (c) => respond(c, { input: story }),
  'answer that gives in, streamed': (c) => respondStreamed(c, { input: story }),
  'answer that gives in, stream helper': (c) => respondHelper(c, { input: story }),
});

// --- Other endpoints

async function embedded(client, input) {
  const { data } = await client.embeddings.create({ model: 'text-embedding-e2e', input });
  return { text: data[0].embedding.join(), finish: 'embedding' };
}

await drive('endpoints', connect, {
  'embedding': (c) => embedded(c, question),
  'embedding of an attack': (c) => embedded(c, attack),
});

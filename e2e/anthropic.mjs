// Drives the official Anthropic SDK: Messages.
import { packages, attack, question, thinking, weather, story, asJSON, toolResult, schema, city, again, drive } from './harness.mjs';
const { default: Anthropic } = await import(packages[0]);
const { jsonSchemaOutputFormat } = await import(`${packages[0]}/helpers/json-schema`);
const { betaTool } = await import(`${packages[0]}/helpers/beta/json-schema`);

const connect = (origin) => new Anthropic({ baseURL: origin, apiKey: 'sk-ant-e2e-not-a-real-key' });
const common = { model: 'claude-e2e', max_tokens: 1024 };
const user = (content) => ({ role: 'user', content });
const tool = { name: 'get_weather', description: 'The weather of a city', input_schema: city };
const output_config = { format: jsonSchemaOutputFormat(schema) };

function saw({ content, stop_reason, stop_details }) {
  const of = (type) => content.filter((block) => block.type === type);
  return {
    text: of('text').map((block) => block.text).join(''),
    refusal: stop_details?.explanation ?? '',
    reasoning: of('thinking').map((block) => block.thinking).join(''),
    calls: of('tool_use').map((block) => `${block.name}(${JSON.stringify(block.input)})`).join(),
    finish: stop_reason,
  };
}

const plain = async (client, body) => saw(await client.messages.create({ ...common, ...body }));

async function streamed(client, body) {
  const stream = await client.messages.create({ ...common, stream: true, ...body });
  const seen = { text: '', refusal: '', reasoning: '', calls: '', finish: null, pieces: 0 };
  let ended = false;
  for await (const event of stream) {
    switch (event.type) {
      case 'content_block_start': if (event.content_block.type === 'tool_use') seen.calls += `${event.content_block.name}(`; break;
      case 'content_block_delta':
        if (event.delta.text) seen.pieces++;
        seen.text += event.delta.text ?? '';
        seen.reasoning += event.delta.thinking ?? '';
        seen.calls += event.delta.partial_json ?? '';
        break;
      case 'message_delta': seen.finish = event.delta.stop_reason; seen.refusal = event.delta.stop_details?.explanation ?? ''; break;
      case 'message_stop': ended = true;
    }
  }
  if (seen.calls) seen.calls = `${seen.calls})`.replace(': ', ':');
  return ended ? seen : { ...seen, finish: null };
}

const helper = async (client, body) => saw(await client.messages.stream({ ...common, ...body }).finalMessage());
const parsed = async (client, body) => saw(await client.messages.parse({ ...common, output_config, ...body }));
const parsedStream = (client, body) => helper(client, { output_config, ...body });

async function loop(client, found) {
  const tools = [betaTool({ name: 'get_weather', description: 'The weather of a city', inputSchema: city, run: () => found })];
  return saw(await client.beta.messages.toolRunner({ ...common, messages: [user(weather)], tools }).runUntilDone());
}

const called = [user(weather), { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_e2e', name: 'get_weather', input: { city: 'Paris' } }] }];
const result = (content) => user([{ type: 'tool_result', tool_use_id: 'toolu_e2e', content }]);
const document = (data) => ({ type: 'document', source: { type: 'text', media_type: 'text/plain', data }, title: 'A page' });

async function after(client, call, first, send = plain, options = {}) {
  const { content } = await client.messages.create({ ...common, ...options, messages: [user(first)] });
  again(call);
  return send(client, { messages: [user(first), { role: 'assistant', content }, user(question)] });
}

await drive('anthropic', connect, {
  'question': (c) => plain(c, { messages: [user(question)] }),
  'question, streamed': (c) => streamed(c, { messages: [user(question)] }),
  'question, stream helper': (c) => helper(c, { messages: [user(question)] }),
  'question, structured': (c) => parsed(c, { messages: [user(asJSON)] }),
  'question, structured and streamed': (c) => parsedStream(c, { messages: [user(asJSON)] }),
  'reasoning': (c) => plain(c, { messages: [user(thinking)], thinking: { type: 'enabled', budget_tokens: 1024 }, max_tokens: 2048 }),
  'reasoning, streamed': (c) => streamed(c, { messages: [user(thinking)], thinking: { type: 'enabled', budget_tokens: 1024 }, max_tokens: 2048 }),
  'tool call': (c) => plain(c, { messages: [user(weather)], tools: [tool] }),
  'tool call, streamed': (c) => streamed(c, { messages: [user(weather)], tools: [tool] }),
  'tool result': (c) => plain(c, { messages: [...called, result(toolResult)], tools: [tool] }),
  'tool loop': (c) => loop(c, toolResult),
  'attack': (c) => plain(c, { messages: [user(attack)] }),
  'attack, streamed': (c) => streamed(c, { messages: [user(attack)] }),
  'attack, stream helper': (c) => helper(c, { messages: [user(attack)] }),
  'attack, structured': (c) => parsed(c, { messages: [user(attack)] }),
  'attack, structured and streamed': (c) => parsedStream(c, { messages: [user(attack)] }),
  'attack in a part': (c) => plain(c, { messages: [user([{ type: 'text', text: question }, { type: 'text', text: attack, cache_control: { type: 'ephemeral' } }])] }),
  'attack beside the messages': (c) => plain(c, { messages: [user([document(attack), { type: 'text', text: question }])] }),
  'attack in a tool result': (c) => plain(c, { messages: [...called, result([{ type: 'text', text: attack }])], tools: [tool] }),
  'attack in a tool loop': (c) => loop(c, attack),
  'role in the system prompt': (c) => plain(c, { system: [{ type: 'text', text: attack }], messages: [user(question)] }),
  'after a refusal': (c, call) => after(c, call, attack),
  'after a refusal, streamed': (c, call) => after(c, call, attack, streamed),
  'after a refusal, structured': (c, call) => after(c, call, attack, plain, { output_config }),
  'after an answer': (c, call) => after(c, call, thinking),
  'answer that gives in': (c) => plain(c, { messages: [user(story)] }),
  'answer that gives in, streamed': (c) => streamed(c, { messages: [user(story)] }),
  'answer that gives in, stream helper': (c) => helper(c, { messages: [user(story)] }),
});

async function counted(client, content) {
  const { input_tokens } = await client.messages.countTokens({ model: 'claude-e2e', messages: [user(content)] });
  return { text: String(input_tokens), finish: 'input_tokens' };
}

await drive('endpoints', connect, {
  'count of tokens': (c) => counted(c, question),
  'count of tokens of an attack': (c) => counted(c, attack),
});

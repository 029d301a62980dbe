// Drives the AWS SDK for Amazon Bedrock: Converse.
import { packages, attack, question, thinking, weather, story, asJSON, toolResult, schema, city, again, drive } from './harness.mjs';
const [{ BedrockRuntimeClient, ConverseCommand, ConverseStreamCommand }, { FetchHttpHandler }] =
  await Promise.all(packages.map((name) => import(name)));

const token = 'e2e-not-a-real-key';
const connect = (endpoint) => new BedrockRuntimeClient({
  endpoint, region: 'us-east-1', token: { token }, authSchemePreference: ['httpBearerAuth'],
  requestHandler: new FetchHttpHandler(), // the harness counts what goes through fetch
});
const modelId = 'amazon.nova-e2e-v1:0';
const user = (...content) => ({ role: 'user', content });
const said = (text) => user({ text });
const toolConfig = { tools: [{ toolSpec: { name: 'get_weather', description: 'The weather of a city', inputSchema: { json: city } } }] };
const outputConfig = { textFormat: { type: 'json_schema', structure: { jsonSchema: { name: 'capital', schema: JSON.stringify(schema) } } } };
const nothing = () => ({ text: '', refusal: '', reasoning: '', calls: '', finish: null, pieces: 0 });

async function plain(client, body) {
  const { output, stopReason, additionalModelResponseFields: more } = await client.send(new ConverseCommand({ modelId, ...body }));
  const seen = { ...nothing(), finish: stopReason, refusal: more?.refusal ?? '' };
  for (const { text, reasoningContent, toolUse } of output.message.content) {
    seen.text += text ?? '';
    seen.reasoning += reasoningContent?.reasoningText.text ?? '';
    if (toolUse) seen.calls += `${toolUse.name}(${JSON.stringify(toolUse.input)})`;
  }
  return seen;
}

async function streamed(client, body) {
  const { stream } = await client.send(new ConverseStreamCommand({ modelId, ...body }));
  const seen = nothing();
  for await (const { contentBlockStart, contentBlockDelta, messageStop } of stream) {
    const delta = contentBlockDelta?.delta ?? {};
    if (delta.text) seen.pieces++;
    seen.text += delta.text ?? '';
    seen.reasoning += delta.reasoningContent?.text ?? '';
    if (contentBlockStart?.start.toolUse) seen.calls += `${contentBlockStart.start.toolUse.name}(`;
    seen.calls += delta.toolUse?.input ?? '';
    if (messageStop) Object.assign(seen, { finish: messageStop.stopReason, refusal: messageStop.additionalModelResponseFields?.refusal ?? '' });
  }
  if (seen.calls) seen.calls = `${seen.calls})`.replace(': ', ':');
  return seen;
}

const called = [said(weather), { role: 'assistant', content: [{ toolUse: { toolUseId: 'tooluse_e2e', name: 'get_weather', input: { city: 'Paris' } } }] }];
const result = (toolUseId, text) => user({ toolResult: { toolUseId, content: [{ text }], status: 'success' } });

async function loop(client, found) {
  const messages = [said(weather)];
  const { output: { message } } = await client.send(new ConverseCommand({ modelId, messages, toolConfig }));
  const results = message.content.filter((block) => block.toolUse).map(({ toolUse }) => result(toolUse.toolUseId, found).content[0]);
  return plain(client, { messages: [...messages, message, user(...results)], toolConfig });
}

async function after(client, call, first, send = plain, options = {}) {
  const { output: { message } } = await client.send(new ConverseCommand({ modelId, ...options, messages: [said(first)] }));
  again(call);
  return send(client, { messages: [said(first), message, said(question)] });
}

await drive('bedrock', connect, {
  'question': (c) => plain(c, { messages: [said(question)] }),
  'question, streamed': (c) => streamed(c, { messages: [said(question)] }),
  'question, structured': (c) => plain(c, { messages: [said(asJSON)], outputConfig }),
  'question, structured and streamed': (c) => streamed(c, { messages: [said(asJSON)], outputConfig }),
  'reasoning': (c) => plain(c, { messages: [said(thinking)] }),
  'reasoning, streamed': (c) => streamed(c, { messages: [said(thinking)] }),
  'tool call': (c) => plain(c, { messages: [said(weather)], toolConfig }),
  'tool call, streamed': (c) => streamed(c, { messages: [said(weather)], toolConfig }),
  'tool result': (c) => plain(c, { messages: [...called, result('tooluse_e2e', toolResult)], toolConfig }),
  'tool loop': (c) => loop(c, toolResult),
  'attack': (c) => plain(c, { messages: [said(attack)] }),
  'attack, streamed': (c) => streamed(c, { messages: [said(attack)] }),
  'attack, structured': (c) => plain(c, { messages: [said(attack)], outputConfig }),
  'attack, structured and streamed': (c) => streamed(c, { messages: [said(attack)], outputConfig }),
  'attack in a part': (c) => plain(c, { messages: [user({ text: question }, { text: attack })] }),
  'attack beside the messages': (c) => plain(c, { messages: [user({ document: { format: 'txt', name: 'page', source: { bytes: new TextEncoder().encode(attack) } } }, { text: question })] }),
  'attack in a tool result': (c) => plain(c, { messages: [...called, result('tooluse_e2e', attack)], toolConfig }),
  'attack in a tool result, streamed': (c) => streamed(c, { messages: [...called, result('tooluse_e2e', attack)], toolConfig }),
  'attack in a tool loop': (c) => loop(c, attack),
  'role in the system prompt': (c) => plain(c, { system: [{ text: attack }], messages: [said(question)] }),
  'after a refusal': (c, call) => after(c, call, attack),
  'after a refusal, streamed': (c, call) => after(c, call, attack, streamed),
  'after a refusal, structured': (c, call) => after(c, call, attack, plain, { outputConfig }),
  'after an answer': (c, call) => after(c, call, thinking),
  'answer that gives in': (c) => plain(c, { messages: [said(story)] }),
  'answer that gives in, streamed': (c) => streamed(c, { messages: [said(story)] }),
});

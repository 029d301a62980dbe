// Drives Anthropic's SDK for Amazon Bedrock, which calls InvokeModel with the bodies of
// Anthropic's own API.
import { packages, attack, question, thinking, weather, story, city, again, drive } from './harness.mjs';
const { AnthropicBedrock } = await import(packages[0]);

const connect = (baseURL) => new AnthropicBedrock({ baseURL, awsRegion: 'us-east-1', apiKey: 'e2e-not-a-real-key' });
// The name of an inference profile does not tell its model.
const common = { model: 'arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/e2e', max_tokens: 1024 };
const tools = [{ name: 'get_weather', description: 'The weather of a city', input_schema: city }];

function saw({ content, stop_reason, stop_details }) {
  const of = (type) => content.filter((block) => block.type === type);
  return {
    finish: stop_reason, refusal: stop_details?.explanation ?? '',
    text: of('text').map(({ text }) => text).join(''),
    reasoning: of('thinking').map(({ thinking }) => thinking).join(''),
    calls: of('tool_use').map(({ name, input }) => `${name}(${JSON.stringify(input)})`).join(),
  };
}

const plain = async (client, body) => saw(await client.messages.create({ ...common, ...body }));

async function streamed(client, body) {
  let pieces = 0;
  const stream = client.messages.stream({ ...common, ...body }).on('text', () => pieces++);
  return { ...saw(await stream.finalMessage()), pieces };
}

async function after(client, call, first, send = plain) {
  const { content } = await client.messages.create({ ...common, messages: [{ role: 'user', content: first }] });
  again(call);
  return send(client, { messages: [{ role: 'user', content: first }, { role: 'assistant', content }, { role: 'user', content: question }] });
}

const asks = (content) => ({ messages: [{ role: 'user', content }] });
await drive('bedrock invoke', connect, {
  'question': (c) => plain(c, asks(question)),
  'question, streamed': (c) => streamed(c, asks(question)),
  'reasoning': (c) => plain(c, asks(thinking)),
  'reasoning, streamed': (c) => streamed(c, asks(thinking)),
  'tool call': (c) => plain(c, { ...asks(weather), tools }),
  'tool call, streamed': (c) => streamed(c, { ...asks(weather), tools }),
  'attack': (c) => plain(c, asks(attack)),
  'attack, streamed': (c) => streamed(c, asks(attack)),
  'after a refusal': (c, call) => after(c, call, attack),
  'after a refusal, streamed': (c, call) => after(c, call, attack, streamed),
  'after an answer': (c, call) => after(c, call, thinking),
  'answer that gives in': (c) => plain(c, asks(story)),
  'answer that gives in, streamed': (c) => streamed(c, asks(story)),
});

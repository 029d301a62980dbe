// Drives the official client of the Model Context Protocol: the package of its second
// version, which speaks the revision 2026-07-28, or of its first.
import { packages, attack, question, again, drive } from './harness.mjs';

const [name] = packages;
const second = name.endsWith('/client');
const { Client } = await import(second ? name : `${name}/client/index.js`);
const { StreamableHTTPClientTransport } = await import(second ? name : `${name}/client/streamableHttp.js`);
// The first version ignores the option, the second one asks the server first.
const options = { versionNegotiation: { mode: 'auto' } };

async function connect(origin) {
  const client = new Client({ name: 'e2e', version: '1.0.0' }, options);
  await client.connect(new StreamableHTTPClientTransport(new URL(`${origin}/mcp`)));
  return client;
}

// A call waits this long for an answer that never comes, in place of a minute.
const waits = { timeout: 20000 };

async function use(client, tool, query) {
  const asked = { name: tool, arguments: { query } };
  const { content, structuredContent, isError } = await (second ? client.callTool(asked, waits) : client.callTool(asked, undefined, waits));
  return { text: content.map(({ text }) => text).join(''), finish: isError ? 'isError' : structuredContent ? 'structuredContent' : 'content' };
}

// A client that has seen the tool's schema checks results against it.
async function useChecked(client, call, query) {
  await client.listTools();
  again(call);
  return use(client, 'lookup', query);
}

await drive('mcp', connect, {
  'list of tools': async (c) => ({ text: (await c.listTools()).tools.map((t) => t.name).join(), finish: 'tools' }),
  'question': (c) => use(c, 'search', question),
  'question, streamed': (c) => use(c, 'browse', question),
  'question, structured': (c, call) => useChecked(c, call, question),
  'attack': (c) => use(c, 'search', attack),
  'attack, streamed': (c) => use(c, 'browse', attack),
  'attack, structured': (c, call) => useChecked(c, call, attack),
  'attack in a tool result': (c) => use(c, 'search', 'a page that somebody prepared'),
  'attack in a tool result, streamed': (c) => use(c, 'browse', 'a page that somebody prepared'),
});

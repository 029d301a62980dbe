// What stands behind the figures: published benchmarks, the scripted tool calls, the
// statistics, and the constants of the policy.
import { get } from './api.js';
import { h, table } from './dom.js';
import { count, stranger } from './format.js';
import { part } from './part.js';

export function evidenceView(app) {
  const parts = [
    part(app, (signal) => benchmarks(signal), { class: 'panel' }),
    part(app, (signal) => statistics(signal), { class: 'panel' }),
    part(app, (signal) => toolCalls(signal), { class: 'panel' }),
  ];
  const node = h('div', null, h('div', { class: 'view-head' }, h('h1', null, 'Evidence'),
    h('p', { class: 'quiet' }, 'What was measured, and the constants by which turns are decided. ', h('a', { href: 'docs' }, 'The HTTP interface'))),
  h('div', { class: 'halves' }, parts[1].node, constants(app.about)), parts[0].node, parts[2].node);
  return { node, update: () => parts.forEach((p) => p.run()), close: () => parts.forEach((p) => p.close()) };
}

async function benchmarks(signal) {
  const { results } = await get('/benchmarks', {}, signal);
  const head = h('h2', null, 'Benchmarks');
  if (results.length === 0) return [head, h('p', null, 'No benchmark has been published here.')];
  const columns = [...new Set(results.flatMap(Object.keys))].filter((name) => results.some((r) => typeof r[name] !== 'object' && r[name] !== ''));
  return [head, table('Published benchmarks', columns.map((name) => name.replaceAll('_', ' ')),
    results.map((r) => columns.map((name) => (typeof r[name] === 'number' ? [String(r[name]), 'number'] : stranger(String(r[name] ?? ''), 80)))), true)];
}

async function statistics(signal) {
  const stats = await get('/stats', {}, signal);
  const rate = (n) => (typeof n === 'number' ? n.toFixed(3) : 'none');
  return [h('h2', null, 'Statistics'), h('p', { class: 'quiet' }, 'Of all receipts in the store, without evaluation sessions and sessions of more than 80 turns: they are not the sum of the counts on the first page.'),
    h('dl', { class: 'facts-list' }, [['receipts', count(stats.total_receipts)], ['intervention rate', rate(stats.intervention_rate)], ['stability margin', rate(stats.stability_margin)]]
      .map(([name, value]) => h('div', null, h('dt', null, name), h('dd', null, h('b', { class: 'number' }, value)))))];
}

async function toolCalls(signal) {
  const { scenarios } = await get('/agentic-sim', {}, signal);
  const blocked = scenarios.filter((s) => s.blocked).length;
  return [h('h2', null, 'Scripted tool calls'), h('p', { class: 'quiet' }, `${count(blocked)} of ${count(scenarios.length)} are blocked, the others are harmless. They leave no receipt.`),
    h('details', null, h('summary', null, 'Show them'), table('Scripted tool calls', ['Call', 'Decision', 'Why'],
      scenarios.map((s) => [stranger(s.name), s.blocked ? 'blocked' : 'approved', stranger(s.reason ?? '', 160)])))];
}

function constants({ policy, version, store, window: kept }) {
  const flat = Object.entries(policy.constants).flatMap(([name, value]) => (typeof value === 'object' && !Array.isArray(value)
    ? Object.entries(value).map(([inner, triple]) => [`${name}.${inner}`, `${triple.join(', ')}`]) : [[name, String(value)]]));
  return h('section', { class: 'panel' }, h('h2', null, 'Policy in force'), h('p', { class: 'quiet' }, h('code', { class: 'hash' }, policy.hash)),
    h('p', { class: 'quiet' }, `Version ${stranger(version)}, store ${stranger(store)}; ${count(kept.rows)} notable receipts are kept at hand.`),
    h('details', null, h('summary', null, 'Its constants'), table('Constants of the policy', ['Name', ['Value', 'number']], flat.map(([name, value]) => [h('code', null, name), [value, 'number']]))));
}

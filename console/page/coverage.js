// Is anything passing uninspected? The gaps by part and reason, the detectors, what leaves
// no receipt at all, and the settings that let things pass.
import { get } from './api.js';
import { h, table } from './dom.js';
import { bytes, clock, count, counted, moment, stranger } from './format.js';
import { link, ranges, span } from './filters.js';
import { part } from './part.js';

export function coverageView(app) {
  const body = part(app, async (signal) => {
    const { from, to } = span(app.place, app.now());
    return draw(app, await get('/lex/console/coverage', { from, to }, signal));
  });
  return { node: body.node, update: body.run, close: body.close };
}

const groups = [
  ['gap', 'Parts that nobody read', 'By place and reason; the numbers in paths are folded to *.'],
  ['read_elsewhere', 'No verdict of one detector', 'A detector failed, or does not read that far, and another one read the part. It is no gap.'],
  ['baseline', 'Ungoverned baselines', 'The answers of /lex/govern that are made for comparison only. They are no gap.'],
  ['provider_error', 'Errors of providers', 'They hold no answer of a model, and are no gap.'],
  ['no_text', 'Answers without text', 'The answer of this path carries no text of a model. It is no gap.'],
];

function draw(app, coverage) {
  const { turns, gaps, whole, parts } = coverage;
  const when = app.place.from ? 'In this span.' : `In the last ${ranges[app.place.range].words}.`;
  const incomplete = coverage.since > coverage.from ? ` Counted since ${moment(coverage.since)}.` : '';
  const title = turns === 0 ? 'No turn in this span' : gaps === 0 ? 'Every turn was inspected in full' : `${count(gaps)} of ${counted(turns, 'turn')} ${gaps === 1 ? 'was' : 'were'} not inspected in full`;
  return [
    h('div', { class: 'view-head' }, h('h1', null, title),
      h('p', { class: 'quiet' }, `${when}${incomplete} A part that no detector read is listed with its reason and never counts as clean.`,
        whole > 0 && ` Of ${counted(whole, 'turn')} nothing was read.`),
      gaps > 0 && h('p', null, h('a', { href: link(app.place, { view: 'now', show: 'uninspected', id: '' }) }, `Show ${gaps === 1 ? 'this turn' : `these ${count(gaps)} turns`}`))),
    withoutReceipt(coverage.without_receipt),
    groups.map(([kind, name, words]) => group(name, words, parts.filter((p) => p.class === kind), app)),
    h('div', { class: 'halves' }, detectors(coverage.detectors), settings(app.about.sites)),
  ];
}

/** What no receipt can show. It always stands. */
function withoutReceipt({ since, no_prompt, unknown_pass, rejected, left, failed }) {
  const all = no_prompt + unknown_pass + rejected + left + failed;
  return h('div', { class: all > 0 ? 'note' : 'note calm' }, h('b', null, 'What receipts cannot show. '),
    `Since ${moment(since)} in this process: `, h('b', null, count(no_prompt)), ' requests without a prompt (GET, HEAD, OPTIONS, empty bodies), ',
    h('b', null, count(unknown_pass)), ' forwarded by ', h('code', null, 'unknown pass'), ', ', h('b', null, count(rejected)), ' rejected before anything was read, ',
    h('b', null, count(left)), ' whose client left before there was a decision, ', h('b', null, count(failed)), ' on which Lex failed. Traffic on routes without the ',
    h('code', null, 'lex'), ' directive is not seen here at all.');
}

function group(name, words, parts, app) {
  if (parts.length === 0) return null;
  return h('section', { class: 'panel' }, h('h2', null, name), h('p', { class: 'quiet' }, words),
    table(name, ['Part', 'Why', ['Turns', 'number'], ['Bytes', 'number'], 'Latest'], parts.map((p) => [
      h('code', null, stranger(p.part, 96)), stranger(p.why, 96), [count(p.turns), 'number'], [bytes(p.bytes), 'number'],
      h('a', { href: link(app.place, { view: 'r', id: p.latest.id }) }, clock(p.latest.at))]), true));
}

function detectors(all) {
  return h('section', { class: 'panel' }, h('h2', null, 'Detectors'), h('p', { class: 'quiet' }, 'A judge does not run on a prompt that was refused.'),
    all.length === 0 ? h('p', null, 'None ran in this span.') : table('Detectors', ['Name', ...['Clean', 'Flagged', 'Not run', 'Failed'].map((n) => [n, 'number'])],
      all.map((d) => [h('code', null, stranger(d.name)), ...['clean', 'flagged', 'not_run'].map((n) => [count(d[n]), 'number']), [count(d.failed), d.failed > 0 ? 'number bad' : 'number']])));
}

const unknownWords = {
  inspect: 'what no dialect reads is read loosely, as text',
  observe: 'what no dialect reads is forwarded, with a receipt that says so',
  pass: 'what no dialect reads is forwarded, without a receipt',
  block: 'what no dialect reads is refused',
};
const modeWords = { enforce: 'a refusal stops the turn', observe: 'nothing is stopped' };

function settings(sites) {
  const hold = ({ hold_back: b }) => (b && typeof b === 'object' ? `${bytes(b.bytes)}, ${b.milliseconds / 1000} s` : String(b));
  return h('section', { class: 'panel' }, h('h2', null, 'Settings that let things pass'),
    sites.length === 0 ? h('p', null, 'No site governs traffic in this process.') : sites.map((site) => h('div', { class: 'site' }, h('h3', null, stranger(site.listen)),
      h('dl', { class: 'facts-list' }, [['mode', site.mode, modeWords[site.mode]], ['unknown', site.unknown, unknownWords[site.unknown]],
        ['hold_back', hold(site), 'text that left before a late finding stays out']].map(([name, value, words]) => h('div', null,
        h('dt', null, h('code', null, name)), h('dd', null, h('b', null, stranger(String(value))), h('span', { class: 'quiet' }, words ?? ''))))))));
}

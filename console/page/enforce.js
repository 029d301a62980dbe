// What would enforce have done? The would-be refusals of sites in the mode observe, the
// certain ones apart from those that depend on them, and a threshold to move.
import { get } from './api.js';
import { h, svg, table } from './dom.js';
import { clock, count, counted, stranger } from './format.js';
import { link, ranges, span } from './filters.js';
import { part } from './part.js';
import { why } from './words.js';

const mostPages = 10;
const mostChains = 60;
const atOnce = 4;
const bins = 50;

export function enforceView(app) {
  const body = part(app, async (signal) => {
    const { rows, whole } = await observed(app, signal);
    if (rows.length === 0) return nothing(app);
    const refusals = rows.filter((row) => row.flags.includes('would_refuse'));
    const split = await certain(refusals, signal);
    return draw(app, rows, whole, refusals, split);
  });
  return { node: body.node, update: body.run, close: body.close };
}

/** All observed turns of the span, newest first, as far as the page reads. */
async function observed(app, signal) {
  const { from, to, rolls } = span(app.place, app.now());
  const rows = [];
  let before;
  for (let i = 0; i < mostPages; i++) {
    const page = await get('/lex/console/receipts', { from, to: rolls ? undefined : to, show: 'all', mode: 'observe', limit: 1000, before }, signal);
    rows.push(...page.receipts);
    before = page.next;
    if (!before) return { rows, whole: true };
  }
  return { rows, whole: false };
}

/**
 * Splits would-be refusals. The first one in a session's whole chain is certain: up to it
 * nothing would have differed. Whether one is the first, its chain tells; open are those
 * whose chain was too long, or one of too many.
 */
async function certain(refusals, signal) {
  const sessions = Map.groupBy ? Map.groupBy(refusals, (row) => row.session_id) : grouped(refusals);
  const split = { certain: [], conditional: [], open: [] };
  const queue = [...sessions.values()];
  split.open.push(...queue.splice(mostChains).flat());
  const worker = async () => {
    for (let rows = queue.shift(); rows; rows = queue.shift()) sort(split, rows, await firstsOf(rows, signal));
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  split.certain.sort((a, b) => b.at - a.at);
  return split;
}

function grouped(rows) {
  const groups = new Map();
  for (const row of rows) groups.set(row.session_id, [...(groups.get(row.session_id) ?? []), row]);
  return groups;
}

/** The ids in the chains of some rows that come first, and all ids that were seen. */
async function firstsOf(rows, signal) {
  const firsts = new Set();
  const seen = new Set();
  for (const row of [...rows].reverse()) {
    if (seen.has(row.id)) continue;
    if (row.prev === null) {
      seen.add(row.id);
      firsts.add(row.id);
      continue;
    }
    const { steps, truncated } = await get(`/lex/console/chains/${encodeURIComponent(row.id)}`, { limit: 500 }, signal);
    if (truncated && steps[0]?.prev !== null) continue;
    const refusals = steps.filter((step) => step.flags.includes('would_refuse'));
    if (refusals.length > 0) firsts.add(refusals[0].id);
    for (const step of refusals) seen.add(step.id);
  }
  return { firsts, seen };
}

function sort(split, rows, { firsts, seen }) {
  for (const row of rows) {
    if (firsts.has(row.id)) split.certain.push(row);
    else if (seen.has(row.id)) split.conditional.push(row);
    else split.open.push(row);
  }
}

function nothing(app) {
  const observing = app.about.sites.some((site) => site.mode === 'observe');
  return [h('div', { class: 'view-head' }, h('h1', null, observing ? 'No observed turn in this span' : 'No site is in the mode observe'),
    h('p', { class: 'quiet' }, observing ? 'Choose a longer span, or send a turn.' : 'A site in this mode records what it would refuse, and refuses nothing. One line makes it so:')),
  !observing && h('section', { class: 'panel' }, h('pre', { tabindex: '0' }, 'lex {\n    mode observe\n}'))];
}

function draw(app, rows, whole, refusals, split) {
  const when = app.place.from ? 'In this span' : `In the last ${ranges[app.place.range].words}`;
  const figure = (name, words, n, kind) => h('section', { class: 'panel' }, h('h2', null, name), h('p', { class: 'quiet' }, words), h('b', { class: `large ${kind}` }, count(n)));
  return [
    h('div', { class: 'view-head' }, h('h1', null, `Enforce would have refused ${count(refusals.length)} of ${counted(rows.length, 'observed turn')}`),
      h('p', { class: 'quiet' }, `${when}, on sites in the mode observe${whole ? '' : `; these are the newest ${count(rows.length)} turns of it`}.`)),
    h('div', { class: 'halves' },
      figure('Certain', 'The first would-be refusal in a session’s whole chain. Up to it nothing would have differed.', split.certain.length, 'would_refuse'),
      figure('Conditional', 'Later ones in those sessions. After a refusal the caller might have said something else.', split.conditional.length, '')),
    split.open.length > 0 && h('p', { class: 'note' }, `${counted(split.open.length, 'would-be refusal')} could not be told apart: the chain is too long, or one of too many.`),
    threshold(rows.filter((row) => row.scored && row.kind === 'KRN'), app.about.policy.constants),
    h('section', { class: 'panel' }, h('h2', null, 'The first would-be refusals'), split.certain.length === 0 ? h('p', null, 'None in this span.')
      : table('The first would-be refusals', ['Time', 'Why', ['Severity', 'number'], 'Session'], split.certain.slice(0, 100).map((row) => [
        h('a', { href: link(app.place, { view: 'r', id: row.id }) }, clock(row.at)), stranger(why(row), 120), [row.scored ? row.severity.toFixed(2) : 'not scored', 'number'],
        h('a', { class: 'name', href: link(app.place, { view: 's', id: row.id }) }, stranger(row.session_id, 40))]), true)),
  ];
}

/** The histogram of severities, and how many turns a threshold would refuse by severity alone. */
function threshold(rows, { refuse_at, watch_at }) {
  const title = h('h2');
  const bars = histogram(rows);
  const move = () => {
    const at = Math.max(watch_at + 0.01, Math.min(0.99, Number(slider.value)));
    const n = rows.filter((row) => row.severity >= at).length;
    title.textContent = `At refuse_at ${at.toFixed(2)}: ${counted(n, 'turn')} by severity alone`;
    slider.setAttribute('aria-valuetext', `${at.toFixed(2)}: ${counted(n, 'turn')}`);
    bars.move(at);
  };
  const slider = h('input', { type: 'range', id: 'threshold', min: 0, max: 1, step: 0.01, value: refuse_at, input: move });
  move();
  return h('section', { class: 'panel' }, title,
    h('p', { class: 'quiet' }, 'Severity of observed turns; the height is the logarithm of the count. Other reasons (slow drip, an answer that gave in) do not move with this threshold. Nothing is changed by moving it here.'),
    bars.node, h('label', { class: 'slider', for: 'threshold' }, h('span', null, 'Threshold'), slider, h('button', { type: 'button', click: () => { slider.value = refuse_at; move(); } }, `Back to ${refuse_at.toFixed(2)}`)));
}

function histogram(rows) {
  const [W, H] = [innerWidth < 760 ? 340 : 1320, innerWidth < 760 ? 160 : 210];
  const counts = Array(bins).fill(0);
  for (const row of rows) counts[Math.min(bins - 1, Math.floor(row.severity * bins))]++;
  const most = Math.log1p(Math.max(1, ...counts));
  const wide = W / bins;
  const bars = counts.map((n, i) => {
    const high = (H - 30) * Math.log1p(n) / most;
    return svg('rect', { x: i * wide + 0.5, y: H - 20 - high, width: wide - 1, height: high }, svg('title', null, `${(i / bins).toFixed(2)} to ${((i + 1) / bins).toFixed(2)}: ${counted(n, 'turn')}`));
  });
  const line = svg('path', { class: 'threshold' });
  const node = svg('svg', { class: 'histogram', viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': `Severity of ${counted(rows.length, 'observed turn')}` }, bars,
    svg('path', { class: 'axis', d: `M0 ${H - 20}H${W}` }),
    [0, 0.25, 0.5, 0.75, 1].map((v) => svg('text', { class: 'tick', x: v * W, y: H - 4, 'text-anchor': v === 0 ? 'start' : v === 1 ? 'end' : 'middle' }, v.toFixed(2))), line);
  const move = (at) => {
    line.setAttribute('d', `M${at * W} 0V${H - 20}`);
    bars.forEach((bar, i) => bar.setAttribute('class', (i + 0.5) / bins > at ? 'over' : 'under'));
  };
  return { node, move };
}

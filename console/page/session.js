// How a session's state moves. A session is addressed by one of its receipts and followed
// by the receipts' own chain: a name may belong to several callers.
import { get } from './api.js';
import { h, table } from './dom.js';
import { clock, count, counted, moment, stranger } from './format.js';
import { link, span } from './filters.js';
import { dripLine, energyLine, marginLine } from './lines.js';
import { mark } from './marks.js';
import { part } from './part.js';
import { simplex } from './simplex.js';
import { gravity, verdictWord, why } from './words.js';

const most = 500;

/** The view #/s/{id}. */
export function chainView(app) {
  const body = part(app, async (signal) => {
    const { id } = app.place;
    const chain = await get(`/lex/console/chains/${encodeURIComponent(id)}`, { limit: most }, signal).catch((error) => {
      if (error.status !== 404) throw error;
      return null;
    });
    if (!chain) return [h('h1', null, 'No such receipt here'), h('p', null, 'It may belong to another store.'), all(app)];
    const names = [...new Set(chain.steps.map((step) => step.policy))];
    const policy = names.length === 1 && names[0] === app.about.policy.hash ? app.about.policy.constants
      : await get(`/lex/policies/${chain.steps.at(-1).policy}`, {}, signal);
    return draw(app, chain, policy, names.length);
  });
  return { node: body.node, update: body.run, close: body.close };
}

const all = (app) => h('p', null, h('a', { class: 'back', href: link(app.place, { view: 'session', id: '' }) }, 'All sessions'));

function draw(app, { steps, branched, truncated, head }, policy, policies) {
  const chosen = steps.find((step) => step.id === app.place.id) ?? steps.at(-1);
  const remarks = [
    truncated && `Only ${counted(steps.length, 'step')} of the chain are shown.`,
    branched && 'The client went back and asked again: this is one branch of several.',
    head === null && 'The head of the session is not known here.',
    policies > 1 && 'The policy changed on the way; the bands are those of the newest.',
  ].filter(Boolean);
  return [
    h('div', { class: 'view-head' }, h('h1', null, 'Session ', h('span', { class: 'name' }, stranger(chosen.session_id))),
      h('p', { class: 'quiet' }, `${counted(steps.length, 'step')}, from ${moment(steps[0].at)} to ${moment(steps.at(-1).at)}, followed by the receipts’ own chain: a name alone may belong to several callers.`),
      remarks.map((remark) => h('p', { class: 'note' }, remark)), all(app)),
    h('div', { class: 'session' },
      h('section', { class: 'panel' }, h('h2', null, 'On the simplex'), h('p', { class: 'quiet' }, 'What an attack presses down, the others gain. Outside the dashed line the governor brings the state back.'),
        simplex(steps, policy, chosen.id), legend(policy)),
      steps.length > 1 && h('div', { class: 'lines' },
        panel('Margin by turn', 'min(C, R, S), with the bands', marginLine(steps, policy)),
        panel('Slow drip by turn', `The running sum; it alarms at ${(steps[0].cusum_h ?? policy.cusum_h).toFixed(2)}`, dripLine(steps, policy)),
        h('section', { class: 'panel' }, h('details', null, h('summary', null, 'Energy V and its change, in nats'), energyLine(steps))))),
    h('section', { class: 'panel' }, h('h2', null, 'Turns'), table('The turns of this session, newest first', ['Turn', 'Time', 'Outcome', 'Why', ['Severity', 'number'], ['Margin', 'number'], ['ΔV', 'number']],
      [...steps].reverse().map((step) => [String(step.turn), h('a', { href: link(app.place, { view: 'r', id: step.id }) }, clock(step.at)),
        h('span', { class: `verdict ${step.verdict}` }, mark(step.verdict), verdictWord(step)), stranger(why(step), 120),
        [step.scored ? step.severity.toFixed(3) : 'not scored', 'number'], [step.m_after.toFixed(3), 'number'], [step.delta_V.toFixed(4), 'number']]), true)),
  ];
}

const panel = (title, words, drawing) => h('section', { class: 'panel' }, h('h2', null, title), h('p', { class: 'quiet' }, words), drawing);

function legend({ optimal, recovery, tau }) {
  const band = (kind, words) => h('li', null, h('i', { class: `swatch ${kind}` }), words);
  return h('ul', { class: 'key' }, ['answered', 'corrected', 'refused', 'would_refuse'].map((v) => h('li', { class: `verdict ${v}` }, mark(v), h('span', null, { answered: 'answered', corrected: 'corrected', refused: 'refused', would_refuse: 'would refuse' }[v]))),
    h('li', null, h('i', { class: 'swatch before' }), 'before correction'),
    band('optimal', `optimal, from ${optimal}`), band('alert', `alert, from ${recovery}`), band('stressed', `stressed, from ${tau}`), band('outside', 'outside the barrier'));
}

/** The view #/session: the sessions with the lowest margins. */
export function sessionsView(app) {
  const body = part(app, async (signal) => {
    const { from, to, rolls } = span(app.place, app.now());
    const { receipts, next } = await get('/lex/console/receipts', { from, to: rolls ? undefined : to, show: 'all', limit: 1000 }, signal);
    const sessions = lowest(receipts);
    const words = next ? `Among the newest ${count(receipts.length)} turns of this span.` : `All ${counted(receipts.length, 'turn')} of this span.`;
    return [h('div', { class: 'view-head' }, h('h1', null, 'Sessions with the lowest margins'), h('p', { class: 'quiet' }, `${words} Choose one to see how its state moved.`)),
      h('section', { class: 'panel' }, sessions.length === 0 ? h('p', null, 'No turn in this span.')
        : table('Sessions', ['Session', ['Turns here', 'number'], ['Lowest margin', 'number'], 'Gravest', 'Last turn'], sessions.slice(0, 100).map((s) => [
          h('a', { class: 'name', href: link(app.place, { view: 's', id: s.last.id }) }, stranger(s.last.session_id)), [count(s.turns), 'number'],
          [s.scored ? s.margin.toFixed(3) : 'no step', 'number'], h('span', { class: `verdict ${s.gravest.verdict}` }, mark(s.gravest.verdict), verdictWord(s.gravest)), clock(s.last.at)]), true))];
  });
  return { node: body.node, update: body.run, close: body.close };
}

const rank = (row) => gravity.indexOf(row.verdict);

/** Rows by session, those with the lowest margin first. The rows are newest first. */
function lowest(rows) {
  const sessions = new Map();
  for (const row of rows) {
    const s = sessions.get(row.session_id) ?? { last: row, turns: 0, margin: Infinity, gravest: row, scored: false };
    s.turns++;
    s.scored ||= row.scored;
    if (row.scored) s.margin = Math.min(s.margin, row.m_after);
    if (rank(row) < rank(s.gravest)) s.gravest = row;
    sessions.set(row.session_id, s);
  }
  return [...sessions.values()].sort((a, b) => a.margin - b.margin || rank(a.gravest) - rank(b.gravest));
}

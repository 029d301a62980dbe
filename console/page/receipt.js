// One receipt: the decision in a sentence, what the detectors saw, how the state moved,
// what was inspected, and the proof.
import { get, getText } from './api.js';
import { h, table } from './dom.js';
import { bytes, counted, moment, shortId, stranger } from './format.js';
import { link } from './filters.js';
import { mark } from './marks.js';
import { part } from './part.js';
import { copyButton, policyOf, proof } from './proof.js';
import { simplex } from './simplex.js';
import { attack, attackTypes, noVerdict, plain, reason, verdictWord } from './words.js';

/** The receipt with an id, as a part that loads by itself. */
export function receiptView(app, id) {
  let proved = null;
  const body = part(app, async (signal) => {
    const record = await getText(`/audits/${encodeURIComponent(id)}`, signal).catch((error) => {
      if (error.status !== 404) throw error;
      return null;
    });
    if (record === null) return missing(app, id);
    const receipt = JSON.parse(record);
    const [policy, chain] = await Promise.all([policyOf(receipt, signal),
      get(`/lex/console/chains/${encodeURIComponent(id)}`, { limit: 200 }, signal).catch((error) => {
        if (error.name === 'AbortError' || error.status === 401) throw error;
        return null; // the rest of the receipt stands without its chain
      })]);
    if (signal.aborted) return null;
    proved = proof(app, record, policy);
    return sections(app, receipt, policy && JSON.parse(policy), chain).concat(proved.node);
  }, { class: 'receipt' });
  body.run();
  return { id, node: body.node, close: () => { body.close(); proved?.close(); } };
}

const missing = (app, id) => [h('h2', null, 'No such receipt here'), h('p', null, 'It may belong to another store.'),
  h('p', { class: 'quiet' }, h('code', null, stranger(id))), back(app)];

const back = (app) => h('a', { class: 'back', href: link(app.place, { view: 'now', id: '' }) }, 'Close');

function sections(app, receipt, policy, chain) {
  const row = chain?.steps.find((step) => step.id === receipt.id) ?? rowOf(receipt);
  return [
    h('section', null, h('div', { class: 'receipt-head' }, h('h2', { class: `verdict ${row.verdict}` }, mark(row.verdict), heading(row)), back(app)),
      h('p', { class: 'sentence' }, sentence(receipt, row, policy)),
      h('p', { class: 'facts quiet' }, [moment(receipt.timestamp), `turn ${receipt.turn}`, receipt.mode, stranger(receipt.endpoint), stranger(receipt.model),
        receipt.tool && `tool ${stranger(receipt.tool)}`].filter(Boolean).map((fact) => h('span', null, fact)),
      h('span', null, h('code', { title: receipt.id }, shortId(receipt.id)), ' ', copyButton('Copy id', receipt.id)))),
    scoresSection(receipt, row, policy), stateSection(app, receipt, row, policy, chain), coverageSection(receipt, row),
    h('section', null, h('details', null, h('summary', null, 'Everything that was recorded'),
      h('pre', { class: 'record', tabindex: '0' }, JSON.stringify(receipt, null, 1).split('\n').map((line) => stranger(line, 2000)).join('\n')))),
  ];
}

/** The verdict of a receipt whose chain could not be read: what its own members say. */
function rowOf(receipt) {
  const verdict = receipt.refused ? (receipt.tool ? 'blocked' : 'refused') : receipt.would_refuse ? 'would_refuse'
    : !['answered', 'refused'].includes(receipt.outcome) ? 'failed' : receipt.governor_mode === 'correct' ? 'corrected' : receipt.unassessed ? 'uninspected' : 'answered';
  const scored = !receipt.unassessed && (!receipt.tool || Object.values(receipt.scores).some((score) => score > 0));
  return { ...receipt, verdict, scored, gap: receipt.unassessed ? 'whole' : '' };
}

function heading(row) {
  const type = attack(row.attack_type);
  return `${verdictWord(row)}${type && ['refused', 'would_refuse', 'blocked'].includes(row.verdict) ? `: ${type}` : ''}`;
}

/** What was decided and why, as one would say it. */
function sentence(receipt, row, policy) {
  const p = policy ?? {};
  const limit = receipt.detection_degraded ? ['refuse_at_degraded', p.refuse_at_degraded] : ['refuse_at', p.refuse_at];
  const first = receipt.tool ? denied(receipt) : {
    operator_policy: operator(receipt), semantic_classifier: `Severity ${receipt.severity.toFixed(3)} is at or above ${limit[1]} (${limit[0]}).`,
    contrastive_threat: `The prompt is closer to harm than to benign text by ${receipt.prompt_threat_signal.toFixed(3)}, over ${p.threat_at} (threat_at).`,
    slow_drip: `Small pressure over several turns added up to the alarm level (${receipt.cusum_next.toFixed(2)}; cusum_h is ${p.cusum_h}).`,
    sovereignty_drift: 'The prompt speaks of the assistant’s rules in order to change them.',
    constitutional_floor: `The step would lead to a margin of ${(receipt.m_floor ?? receipt.m_before).toFixed(3)}, under the floor ${p.floor}.`,
    capitulation: `The answer gave in (${plain(receipt.category).toLowerCase()}, confidence ${receipt.confidence.toFixed(2)}).`,
  }[receipt.reasons[0]] ?? '';
  const others = receipt.reasons.slice(1).map((code) => reason(code).toLowerCase());
  const also = others.length ? ` Also: ${others.join(', ')}.` : '';
  const only = receipt.reasons.length === 1 && receipt.reasons[0] === 'capitulation';
  if (row.verdict === 'refused') return `${first}${also} ${only ? 'It was withheld from the client.' : 'The prompt never reached the model.'}`;
  if (row.verdict === 'would_refuse') return `${first}${also} The mode is observe, so nothing was stopped.`;
  if (row.verdict === 'blocked') return `${first}${also} The call did not reach the tool.`;
  if (row.verdict === 'failed') return { provider_failed: 'The provider answered with an error or not at all.', client_gone: 'The client left before the answer was complete.', aborted: 'The answer broke off.' }[receipt.outcome] ?? 'The turn could not be completed.';
  if (row.gap === 'whole') return 'No detector read anything of this turn: not scored, no step.';
  if (row.verdict === 'corrected') return `The turn led to a margin of ${receipt.m_before.toFixed(3)}, outside the barrier ${p.tau}. The state was brought back to it, and the turn was answered.`;
  if (row.verdict === 'uninspected') return 'A part of it was read by no detector. What was read is scored below.';
  const silent = row.no_verdicts?.[0];
  const without = silent ? ` ${stranger(noVerdict(silent), 120)}.` : '';
  return `${receipt.tool ? 'Nothing spoke against this call.' : 'No reason to refuse held.'}${without}`;
}

function operator(receipt) {
  if (receipt.denied_by === 'unknown_block') return 'No dialect reads this endpoint, and “unknown block” refuses what cannot be read.';
  if (receipt.denied_by === 'tool_call_blocked') return 'A tool call in the answer was blocked.';
  return `The operator’s rule ${stranger(receipt.denied_by)} refuses it.`;
}

function denied(receipt) {
  if (receipt.rule) return `The operator’s rule ${stranger(receipt.rule)} denies calls of ${stranger(receipt.tool)}.`;
  if (receipt.invariant === 'session_risk') return `The session’s margin is ${Math.min(...receipt.x).toFixed(3)}: too low for a call that may ${receipt.high_risk ? 'do lasting harm' : stranger(receipt.effect || 'act')}.`;
  return receipt.invariant ? `The call of ${stranger(receipt.tool)} breaks the invariant ${plain(receipt.invariant).toLowerCase()}.` : '';
}

function scoresSection(receipt, row, policy) {
  const head = h('h3', null, 'What the detectors saw');
  if (!row.scored) return h('section', null, head, h('p', null, 'Not scored, no step.'));
  const scores = Object.entries(receipt.scores).sort((a, b) => b[1] - a[1]);
  const marks = policy ? [['watch', policy.watch_at], ['refuse', receipt.detection_degraded ? policy.refuse_at_degraded : policy.refuse_at]] : [];
  return h('section', null, h('div', { class: 'section-head' }, head, h('span', { class: 'quiet' }, 'calibrated score')),
    h('dl', { class: 'scores' }, scores.map(([name, score]) => {
      const bar = h('i', { class: marks[1] && score >= marks[1][1] ? 'high' : marks[0] && score >= marks[0][1] ? 'watch' : '' });
      bar.style.width = `${Math.max(1, 100 * score)}%`;
      const ticks = marks.map(([, value]) => {
        const tick = h('b');
        tick.style.left = `${100 * value}%`;
        return tick;
      });
      return h('div', null, h('dt', null, plain(attackTypes[name] ?? name)), h('dd', null, h('span', { class: 'track', 'aria-hidden': 'true' }, bar, ticks), h('span', { class: 'number' }, score.toFixed(3))));
    })),
    marks.length > 0 && h('p', { class: 'quiet legend' }, `Marks: watch_at ${marks[0][1].toFixed(2)}, ${receipt.detection_degraded ? 'refuse_at_degraded' : 'refuse_at'} ${marks[1][1].toFixed(2)}. Severity ${receipt.severity.toFixed(3)}.`));
}

function stateSection(app, receipt, row, policy, chain) {
  const head = h('div', { class: 'section-head' }, h('h3', null, 'How the state moved'),
    h('a', { href: link(app.place, { view: 's', id: receipt.id }) }, `session ${stranger(receipt.session_id, 24)}${chain ? `, ${counted(chain.steps.length, 'step')}` : ''}`));
  if (!policy) return h('section', null, head, h('p', null, 'The policy of this receipt could not be read.'));
  const upTo = chain?.steps.findIndex((step) => step.id === receipt.id) ?? -1;
  const path = upTo >= 0 ? chain.steps.slice(0, upTo + 1) : [{ ...receipt, verdict: row.verdict }];
  const three = (m) => [0, 1, 2].map((i) => [receipt[m][i].toFixed(3), 'number']);
  const [before, raw, after] = [three('x'), three('raw_state'), three('state')];
  return h('section', null, head, h('div', { class: 'moved' }, simplex(path, policy, receipt.id),
    row.scored || receipt.standalone ? table('The state of this turn', ['', ['before', 'number'], ['raw', 'number'], ['after', 'number']], [
      ...['C', 'R', 'S'].map((name, i) => [name, before[i], raw[i], after[i]]),
      ['margin', [Math.min(...receipt.x).toFixed(3), 'number'], [receipt.m_before.toFixed(3), 'number'], [receipt.m_after.toFixed(3), 'number']],
    ]) : h('p', null, 'No step: the state is where it was.')),
  row.scored && h('p', { class: 'quiet legend' }, `Band ${receipt.health_band}, energy V ${receipt.lyapunov_V.toFixed(4)}, ΔV ${receipt.delta_V.toFixed(4)}.`));
}

function coverageSection(receipt, row) {
  const { coverage } = receipt;
  const words = { none: 'in full', part: 'in part', whole: 'nothing' }[row.gap] ?? '';
  const line = (kind) => ({ part, why, detector, bytes: n }) => h('li', { class: kind },
    h('code', null, stranger(part, 96)), h('span', { class: 'quiet' }, [detector ?? stranger(why, 96), n > 0 && bytes(n)].filter(Boolean).join(', ')));
  const group = (title, kind, entries) => entries?.length > 0 && [h('h4', null, title), h('ul', { class: 'parts' }, entries.slice(0, 40).map(line(kind)),
    entries.length > 40 && h('li', null, `and ${entries.length - 40} more`))];
  return h('section', null, h('div', { class: 'section-head' }, h('h3', null, 'What was inspected'), h('span', { class: 'quiet' }, words)),
    group('Read', 'read', coverage.inspected), group('Not known', 'unread', coverage.unknown), group('Not read', 'unread', coverage.skipped), group('Replaced', 'redacted', coverage.redacted),
    h('h4', null, 'Detectors'), h('ul', { class: 'parts' }, coverage.detectors.map(({ name, outcome, why }) => h('li', { class: outcome }, h('code', null, stranger(name)),
      h('span', { class: 'quiet' }, [plain(outcome).toLowerCase(), why && stranger(why, 96)].filter(Boolean).join(', '))))));
}

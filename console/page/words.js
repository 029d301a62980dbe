// The page's words for what receipts say.

/** The verdicts in words; their shapes are in marks.js. */
const verdicts = {
  __proto__: null,
  blocked: 'Blocked',
  refused: 'Refused',
  would_refuse: 'Would refuse',
  failed: 'Failed',
  corrected: 'Corrected',
  uninspected: 'Uninspected',
  answered: 'Answered',
};

/** The verdicts by gravity, the gravest first. */
export const gravity = Object.keys(verdicts);

export const attackTypes = {
  __proto__: null,
  none: 'none', identity: 'identity attack', coercion: 'coercion', exploitative: 'exploitation', harm_request: 'harmful request',
  sycophancy: 'sycophancy', injection: 'injected instructions', multi: 'several attacks at once', slow_drip: 'slow drip',
};

const reasons = {
  __proto__: null,
  operator_policy: 'A rule of the operator',
  semantic_classifier: 'Attack in the prompt',
  contrastive_threat: 'Closer to harm than to benign text',
  slow_drip: 'Slow drip over several turns',
  sovereignty_drift: 'Tries to change the rules',
  constitutional_floor: 'Margin under the floor',
  capitulation: 'The answer gave in',
};

/** What denies a turn beside the rules that operators write. */
const denials = { __proto__: null, unknown_block: 'No dialect for this endpoint: blocked', tool_call_blocked: 'A tool call in the answer was blocked' };

const outcomes = {
  provider_failed: 'The provider failed', client_gone: 'The client left', aborted: 'The answer broke off', failed: 'The turn failed',
};

/** @param {string} code a word of the API, such as data_exfiltration */
export const plain = (code) => (code ? code[0].toUpperCase() + code.slice(1).replaceAll('_', ' ') : '');

/** The attack type of a row in words, or "" where there is none. */
export const attack = (type) => (type && type !== 'none' ? attackTypes[type] ?? plain(type) : '');

/** The name of a reason, without the attack. */
export const reason = (code) => reasons[code] ?? plain(code);

/** The verdict's word for a row: a turn of which some was read is only partly uninspected. */
export function verdictWord(row) {
  if (row.verdict === 'uninspected' && row.gap === 'part') return 'Part uninspected';
  return verdicts[row.verdict] ?? plain(row.verdict);
}

/** Why a row has its verdict, in one line. */
export function why(row) {
  if (row.invariant) return `Tool call: ${plain(row.invariant).toLowerCase()}`;
  if (row.denied_by) return denials[row.denied_by] ?? `Rule of the operator: ${row.denied_by}`;
  if (row.reason === 'semantic_classifier' && attack(row.attack_type)) return `Attack in the prompt: ${attack(row.attack_type)}`;
  if (row.reason) return reason(row.reason);
  if (row.verdict === 'failed') return outcomes[row.outcome] ?? 'The turn failed';
  if (row.verdict === 'corrected') return `Margin ${row.m_before.toFixed(3)} lifted to ${row.m_after.toFixed(3)}`;
  if (row.gap && row.gap !== 'none') return gapWhy(row);
  if (row.no_verdicts?.length) return noVerdict(row.no_verdicts[0]);
  if (!row.scored) return row.kind === 'TCR' ? 'Tool call approved' : '';
  return attack(row.attack_type) ? `${plain(attack(row.attack_type))}, below refusal` : '';
}

/** The first thing that nobody read. */
function gapWhy(row) {
  const first = row.gaps?.find(({ part }) => part !== 'turn') ?? row.gaps?.[0]; // that no detector ran is said beside it
  if (!first) return row.gap === 'whole' ? 'Nothing was read' : 'A part was not read';
  if (first.part.startsWith('detector ')) return noVerdict({ detector: first.part.slice('detector '.length), why: first.why });
  const text = first.why || first.part;
  return /^\w+$/.test(text) ? `Not read: ${text.replaceAll('_', ' ')}` : plain(text);
}

/** That a detector gave no verdict; the role in which a guard was asked does not matter. */
export const noVerdict = ({ detector, why: reason }) => `${detector.replace(/^(guard_.*)\.(prompt|answer|tool_result|tool_call)$/, '$1')} gave no verdict: ${reason.replaceAll('_', ' ')}`;

/** What of a row was inspected. */
export const inspected = (row) => ({ none: 'in full', part: 'in part', whole: 'nothing' })[row.gap] ?? '';

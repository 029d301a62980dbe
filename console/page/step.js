// The step of the kernel and the decision, computed once more from a receipt's inputs as
// docs/receipts.md specifies them. The numbers after § are the sections of that page.
// Math.exp and Math.log differ from the kernel's in the last bits, so what comes out here
// agrees with a receipt to a tolerance; `caddy lex verify` compares bit by bit.

/** How far a number may be from the recorded one, relative to it where it is over 1. */
export const tolerance = 1e-12;

const CLASSES = ['identity', 'coercion', 'exploitative', 'harm_request', 'sycophancy'];
const NONE = [0, 0, 0];
const sum = (v) => v[0] + v[1] + v[2];
const margin = (v) => Math.min(...v);
const logs = (v) => v.map(Math.log);
const divergence = (z, a, b) => Math.max(0, sum(z.map((w, i) => w * (a[i] - b[i]))));

function softmax(v) {
  const top = Math.max(...v);
  const weights = v.map((c) => Math.exp(c - top));
  const n = sum(weights);
  return { point: weights.map((w) => w / n), log: v.map((c) => c - top - Math.log(n)) };
}

/** Raises a point to the floor (§6). */
function project(p, floor) {
  const [lo, mid, hi] = [0, 1, 2].sort((i, j) => p[i] - p[j]);
  if (p[lo] >= floor) return p;
  const scale = (1 - floor) / (p[mid] + p[hi]);
  const y = [floor, floor, floor];
  y[mid] = scale * p[mid];
  y[hi] = scale * p[hi];
  if (y[mid] < floor) [y[mid], y[hi]] = [floor, 1 - 2 * floor];
  return y;
}

/** The scores of the five classes: injected instructions attack the identity (§8). */
function classScores({ scores }) {
  return [Math.max(scores.identity, scores.injection), ...CLASSES.slice(1).map((name) => scores[name])];
}

const refuseAt = (policy, receipt) => (receipt.detection_degraded ? policy.refuse_at_degraded : policy.refuse_at);

function chart(before, severity, k, h, relief) {
  const next = Math.min(h, Math.max(0, before + Math.max(severity - k, -relief)));
  return { next, alarm: h > 0 && next >= h };
}

/** Severity, attack type and the slow drip (§8). */
function classify(policy, receipt) {
  const scores = classScores(receipt);
  const top = Math.max(...scores);
  const [a, b] = [...scores].sort((m, n) => n - m);
  const support = Math.max(0, b - policy.watch_at);
  const severity = support === 0 ? a : 1 - (1 - a) * (1 - support);
  let type = top >= policy.watch_at ? CLASSES[scores.indexOf(top)] : 'none';
  if (scores.filter((s) => s >= policy.multi_at).length >= 2) type = 'multi';
  if (receipt.repeated || receipt.unassessed) return still(receipt, severity, type);

  const fast = chart(receipt.cusum, severity, policy.cusum_k, policy.cusum_h, policy.cusum_relief);
  const slow = chart(receipt.cusum_slow ?? 0, severity, policy.cusum_slow_k ?? 0, policy.cusum_slow_h ?? 0, policy.cusum_slow_relief ?? 0);
  if (fast.alarm && !policy.revision) fast.next = policy.cusum_h / 2;
  const alarm = fast.alarm || slow.alarm;
  if (alarm && top < refuseAt(policy, receipt)) type = 'slow_drip';
  return { severity, attack_type: type, slow_drip: alarm, cusum_next: fast.next, cusum_slow_next: slow.next };
}

/** The statistics stay as they are. */
function still(receipt, severity, type) {
  return { severity, attack_type: type, slow_drip: false, cusum_next: receipt.cusum, cusum_slow_next: receipt.cusum_slow ?? 0 };
}

/** What presses on the state (§9). */
function pressure(policy, receipt, carry) {
  let attack = NONE;
  classScores(receipt).forEach((score, n) => {
    const gain = (score - policy.watch_at) / (1 - policy.watch_at);
    if (score > policy.watch_at) attack = attack.map((a, i) => Math.max(a, gain * policy.pressure[CLASSES[n]][i]));
  });
  const p = attack.map((a, i) => a + carry[i]);
  return p.map((c) => Math.min(c - margin(p), policy.clip));
}

/** The step (§10). Without relax it only presses. */
function step(policy, { x, z }, push, relax) {
  const drift = (v) => softmax(v.map((p, i) => (1 - relax) * Math.log(x[i]) + relax * Math.log(z[i]) - policy.eta * p));
  const rest = drift(NONE);
  const point = rest.point.map((c, i) => Math.max(c, Math.min(x[i], z[i])));
  const pushed = push.some((p) => p !== 0);
  const raw = pushed ? drift(push) : { point, log: rest.log };
  const raw_state = [...raw.point];
  const state = [...project(raw.point, policy.tau)];
  if (relax === 0 && policy.revision === 1) {
    const i = push.indexOf(Math.max(...push));
    raw_state[i] = Math.min(raw_state[i], x[i]);
    state[i] = Math.min(state[i], x[i]);
  }

  const after = divergence(z, logs(z), logs(state));
  const change = after - divergence(z, logs(z), logs(x));
  const delta_V = Math.abs(change) >= 1e-12 ? change : 0;
  const base = 0.001 + (pushed ? Math.max(0, divergence(z, logs(z), raw.log) - divergence(z, logs(z), rest.log)) : 0);

  const force = sum(push);
  const gain = policy.kappa * Math.min(1, force);
  const weights = push.map((p) => (force === 0 ? 1 / 3 : (1 - gain) / 3 + gain * (p / force)));
  const mixed = z.map((c, i) => (1 - policy.beta) * c + policy.beta * weights[i]);
  const z_next = mixed.map((c) => Math.max(c / sum(mixed), (1 - policy.kappa) / 3));
  return {
    pressure: push, raw_state, state, m_before: margin(raw_state), m_after: margin(state),
    intervention: margin(raw_state) < policy.tau, governor_effort: Math.hypot(...state.map((c, i) => c - raw_state[i])),
    sigma_viol: sum(raw_state.map((c) => Math.max(0, policy.tau - c))), m_floor: 0, delta_V, lyapunov_V: after,
    stability_ratio: (base - delta_V) / base, z_next, z_shift: divergence(z_next, logs(z_next), logs(state)) - after,
  };
}

/** The margin that the floor judges, in a severe text (§10). */
function floorMargin(policy, x, push) {
  const i = push.indexOf(Math.max(...push));
  const f = push.map((p) => Math.exp(-policy.eta * p));
  const others = (sum(f) - f[i]) / 2;
  return 1 / (1 + ((1 - x[i]) * others) / (x[i] * f[i]));
}

/** No step: what nobody read, and what was sent again, moves nothing (§13). */
function noStep({ x, z }) {
  return {
    pressure: NONE, raw_state: x, state: x, m_before: margin(x), m_after: margin(x), intervention: false, governor_effort: 0,
    sigma_viol: 0, m_floor: 0, delta_V: 0, lyapunov_V: divergence(z, logs(z), logs(x)), stability_ratio: 1, z_next: z, z_shift: 0,
  };
}

/** A turn of text (§11 to §13). */
function text(policy, receipt) {
  const out = classify(policy, receipt);
  const severe = out.severity >= policy.severe_at;
  const presses = severe && policy.revision === 1;
  if (receipt.repeated || receipt.unassessed) {
    Object.assign(out, noStep(receipt));
  } else {
    const push = pressure(policy, receipt, receipt.carry);
    Object.assign(out, step(policy, receipt, push, presses ? 0 : policy.rho));
    if (presses) out.m_floor = floorMargin(policy, receipt.x, push);
  }
  out.reasons = reasons(policy, receipt, out);
  out.carry_next = carryNext(policy, receipt, out.reasons);
  out.decision = '';
  out.pre_eval_label = 'CLEAR';
  if (out.severity >= policy.watch_at) out.pre_eval_label = 'WATCH';
  if (out.severity >= refuseAt(policy, receipt)) out.pre_eval_label = 'THREAT';
  if (receipt.unassessed) out.pre_eval_label = 'UNASSESSED';
  return { out, denied: out.reasons.length > 0 };
}

/** Every reason to refuse that holds, by priority (§11). */
function reasons(policy, receipt, out) {
  const suspected = Math.max(...classScores(receipt)) >= policy.watch_at;
  const floor = policy.revision === 1
    ? out.m_floor > 0 && out.m_floor < policy.floor
    : out.m_before < policy.floor && out.severity >= policy.severe_at;
  const holds = {
    operator_policy: receipt.denied_by !== '',
    semantic_classifier: out.severity >= refuseAt(policy, receipt),
    contrastive_threat: receipt.prompt_threat_signal > policy.threat_at && suspected && out.severity >= (policy.threat_severity ?? 0),
    slow_drip: out.slow_drip,
    sovereignty_drift: receipt.sovereignty_drift && suspected,
    constitutional_floor: floor,
    capitulation: receipt.capitulated,
  };
  return Object.keys(holds).filter((reason) => holds[reason] || (receipt.standing ?? []).includes(reason));
}

/** The pressure that is left for the next turn (§12). */
function carryNext(policy, receipt, found) {
  const left = [receipt.lost_thread ? policy.carry_lost_thread : 0, 0, 0];
  if (receipt.capitulated) left[receipt.category === 'harmful_compliance' ? 1 : 2] = policy.carry_capitulated * receipt.confidence;
  const refused = found.some((reason) => reason !== 'capitulation') || (receipt.standing ?? []).includes('capitulation');
  if (receipt.unassessed || (refused && policy.revision === 1)) return left.map((l, i) => Math.max(l, receipt.carry[i]));
  return left;
}

/** Whether the state denies a tool call (§14). */
function stateDenies(policy, { x, effect, high_risk }) {
  const m = margin(x);
  if (!effect) return false;
  if (high_risk && m < policy.optimal) return true;
  if (m <= policy.tau) return effect !== 'read';
  return m < policy.recovery && (effect === 'write' || effect === 'send');
}

/** A tool call (§14). */
function toolCall(policy, receipt) {
  let invariant = receipt.invariant === 'session_risk' ? '' : receipt.invariant;
  if (invariant === '' && !receipt.rule && stateDenies(policy, receipt)) invariant = 'session_risk';
  const denied = invariant !== '' || Boolean(receipt.rule);
  const scored = Object.values(receipt.scores).some((score) => score !== 0);
  let out = { ...still(receipt, 0, 'none'), ...noStep(receipt) };
  if (scored) out = { ...classify(policy, receipt), ...step(policy, receipt, pressure(policy, receipt, NONE), 0) };
  else if (receipt.standalone && !denied) out = { ...still(receipt, 0, 'none'), ...step(policy, receipt, NONE, policy.rho) };
  out.m_floor = 0;
  Object.assign(out, { reasons: [], carry_next: receipt.carry, invariant, pre_eval_label: invariant ? 'THREAT' : 'CLEAR' });
  out.decision = denied && receipt.mode === 'enforce' ? 'blocked' : 'approved';
  return { out, denied };
}

/**
 * Everything in a receipt that follows from its inputs under a policy (§15).
 * @param {object} policy
 * @param {object} receipt
 */
export function outcome(policy, receipt) {
  const { out, denied } = receipt.tool ? toolCall(policy, receipt) : text(policy, receipt);
  const refused = denied && receipt.mode === 'enforce';
  out.refused = refused;
  out.would_refuse = denied && !refused;
  out.health_band = 'STRESSED';
  if (out.m_after >= policy.recovery) out.health_band = 'ALERT';
  if (out.m_after >= policy.optimal) out.health_band = 'OPTIMAL';
  if (refused) out.health_band = 'CRITICAL';
  out.governor_mode = out.intervention ? 'correct' : 'pass';
  if (refused) out.governor_mode = 'refuse';
  if (receipt.mode === 'observe') out.governor_mode = 'observe';
  return out;
}

/**
 * The members of a receipt that do not follow from its inputs, in words. An empty list
 * means that the receipt agrees with the step.
 */
export function differences(policy, receipt) {
  return Object.entries(outcome(policy, receipt))
    .filter(([name, value]) => !agrees(receipt[name] ?? optional(value), value))
    .map(([name, value]) => `${name} is ${JSON.stringify(receipt[name])}, and follows as ${JSON.stringify(value)}`);
}

/** What a member that is left out stands for. */
const optional = (value) => (typeof value === 'number' ? 0 : undefined);

function agrees(recorded, value) {
  if (Array.isArray(value)) {
    return Array.isArray(recorded) && recorded.length === value.length && value.every((v, i) => agrees(recorded[i], v));
  }
  if (typeof value !== 'number') return recorded === value;
  return typeof recorded === 'number' && Math.abs(recorded - value) <= tolerance * Math.max(1, Math.abs(value));
}

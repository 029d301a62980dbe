// The ternary plot: the state is a point of the triangle of (C, R, S) with the sum 1.
// Continuity is the top, Sovereignty the left corner and Reciprocity the right one.
import { svg } from './dom.js';

const W = 300;
const H = W * Math.sqrt(3) / 2;
const at = ([c, r]) => [(c / 2 + r) * W, (1 - c) * H];
const spot = (state) => at(state).map((n) => n.toFixed(2)).join(' ');
const third = [1 / 3, 1 / 3, 1 / 3];

/** The triangle of the states whose margin is at least m. */
const inner = (m) => `M${spot([1 - 2 * m, m, m])}L${spot([m, 1 - 2 * m, m])}L${spot([m, m, 1 - 2 * m])}Z`;

const shapes = {
  refused: (x, y) => svg('rect', { x: x - 4, y: y - 4, width: 8, height: 8 }),
  would_refuse: (x, y) => svg('path', { d: `M${x} ${y - 5.5}l5.5 5.5l-5.5 5.5l-5.5 -5.5z` }),
  corrected: (x, y) => svg('path', { d: `M${x} ${y - 5}l5 8.6h-10z` }),
};
shapes.blocked = shapes.refused;

/**
 * Draws the path of a session. Over 500 steps it keeps what was corrected or refused and
 * thins the rest.
 * @param {object[]} steps of GET /lex/console/chains, oldest first
 * @param {object} policy its constants give the bands
 * @param {string} chosen the id of the receipt that is ringed
 */
export function simplex(steps, policy, chosen) {
  const shown = thinned(steps, chosen);
  const last = steps.find((s) => s.id === chosen) ?? steps.at(-1);
  const path = `M${spot(steps[0]?.x ?? third)}${shown.map((s) => `L${spot(s.state)}`).join('')}`;
  return svg('svg', { class: 'simplex', viewBox: `-36 -26 ${W + 72} ${H + 50}`, role: 'img', 'aria-label': sentence(shown, last) },
    svg('path', { class: 'band outside', d: inner(0) }),
    svg('path', { class: 'band stressed', d: inner(policy.tau) }),
    svg('path', { class: 'band alert', d: inner(policy.recovery) }),
    svg('path', { class: 'band optimal', d: inner(policy.optimal) }),
    svg('path', { class: 'barrier', d: inner(policy.tau) }),
    svg('path', { class: 'edge', d: inner(0) }),
    [policy.optimal, policy.recovery, policy.tau].map((m) => {
      const [x, y] = at([m, 0.5 - m / 2, 0.5 - m / 2]);
      return svg('text', { class: 'band-label', x, y: y - 4 }, m.toFixed(2).slice(1));
    }),
    svg('text', { class: 'corner', x: W / 2, y: -10, 'text-anchor': 'middle' }, 'Continuity'),
    svg('text', { class: 'corner', x: -34, y: H + 18, 'text-anchor': 'start' }, 'Sovereignty'),
    svg('text', { class: 'corner', x: W + 34, y: H + 18, 'text-anchor': 'end' }, 'Reciprocity'),
    svg('path', { class: 'path', d: path }),
    shown.filter((s) => s.m_after > s.m_before + 1e-12).map((s) => correction(s)),
    shown.filter((s) => s !== last).map((s) => point(s)),
    last && point(last),
    last && svg('circle', { class: 'chosen', cx: at(last.state)[0], cy: at(last.state)[1], r: 9 }));
}

/** The state before the correction, tied to the one after it. */
function correction(step) {
  const [x, y] = at(step.raw_state);
  return svg('g', { class: 'raw' }, svg('path', { d: `M${spot(step.raw_state)}L${spot(step.state)}` }), svg('circle', { cx: x, cy: y, r: 3 }));
}

function point(step) {
  const [x, y] = at(step.state);
  const shape = shapes[step.verdict]?.(x, y) ?? svg('circle', { cx: x, cy: y, r: 3.5 });
  shape.setAttribute('class', `point ${step.verdict}`);
  return shape;
}

function thinned(steps, chosen) {
  const every = Math.ceil(steps.length / 500);
  return every < 2 ? steps : steps.filter((s, i) => i % every === 0 || ['corrected', 'refused', 'blocked'].includes(s.verdict) || s.id === chosen);
}

function sentence(shown, last) {
  if (!last) return 'The middle of the simplex: no step yet';
  const [c, r, s] = last.state.map((n) => n.toFixed(3));
  return `The state on the simplex: Continuity ${c}, Reciprocity ${r}, Sovereignty ${s}, after ${shown.length === 1 ? '1 step' : `${shown.length} steps`}`;
}

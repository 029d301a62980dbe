// Lines over the turns of a session: the margin with its bands, and the slow drip.
import { svg } from './dom.js';

const H = 132;
const left = 40;
const right = 12;
const top = 8;
const bottom = 22;

const down = (value, most) => top + (H - top - bottom) * (1 - Math.min(1, value / most));

/** min(C, R, S) after each turn, with the bands of the policy. */
export function marginLine(steps, { tau, recovery, optimal }) {
  const bands = [[optimal, 1 / 3, 'optimal'], [recovery, optimal, 'alert'], [tau, recovery, 'stressed'], [0, tau, 'outside']];
  return line(steps, (s) => s.m_after, 1 / 3, bands, [tau, recovery, optimal], 'Margin');
}

/** The running sum of the fast slow-drip chart, with its alarm level. */
export function dripLine(steps, policy) {
  const level = steps[0].cusum_h ?? policy.cusum_h;
  const most = 1.15 * Math.max(level, ...steps.map((s) => s.cusum_next));
  return line(steps, (s) => s.cusum_next, most, [[level, most, 'outside']], [level], 'Running sum');
}

/** The divergence from the weights, in nats. */
export function energyLine(steps) {
  const most = 1.15 * Math.max(0.01, ...steps.map((s) => s.lyapunov_V));
  return line(steps, (s) => s.lyapunov_V, most, [], [most / 1.15], 'V');
}

function line(steps, of, most, bands, levels, name) {
  const n = steps.length;
  const W = innerWidth < 760 ? 340 : 880; // about as wide as it is shown, so that the letters keep their size
  const across = (i) => left + (W - left - right) * (n === 1 ? 0.5 : i / (n - 1));
  const places = steps.map((s, i) => [across(i), down(of(s), most)]);
  const values = steps.map(of);
  const every = Math.ceil(n / 12);
  return svg('svg', { class: 'line', viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': `${name} by turn: first ${values[0].toFixed(3)}, lowest ${Math.min(...values).toFixed(3)}, highest ${Math.max(...values).toFixed(3)}, last ${values.at(-1).toFixed(3)}` },
    bands.map(([from, to, kind]) => svg('rect', { class: `band ${kind}`, x: left, width: W - left - right, y: down(to, most), height: Math.max(0, down(from, most) - down(to, most)) })),
    [0, ...levels].map((v) => svg('text', { class: 'tick', x: left - 6, y: down(v, most) + 4, 'text-anchor': 'end' }, v.toFixed(2))),
    svg('path', { class: 'axis', d: `M${left} ${down(0, most)}H${W - right}` }),
    svg('path', { class: 'path', d: `M${places.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join('L')}` }),
    places.map(([x, y], i) => svg('circle', { class: `point ${steps[i].verdict}`, cx: x, cy: y, r: n > 100 ? 2 : 3.5 })),
    steps.map((s, i) => i % every === 0 && svg('text', { class: 'tick', x: across(i), y: H - 5, 'text-anchor': 'middle' }, String(i + 1))));
}

// Turns by time: three charts with one cursor, each with a scale of its own, because
// refusals stacked on fifty turns a minute would vanish.
import uPlot from 'uplot';

import { h, table } from './dom.js';
import { clock, count, counted, minute } from './format.js';
import { link, stepWords } from './filters.js';

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** The charts: what they count, in the order in which they are drawn (the outline first). */
const kinds = [
  { name: 'Refused', series: [{ of: (c, i) => c.refused[i] + c.would_refuse[i], stroke: '--would', fill: '--panel' }, { of: (c, i) => c.refused[i], fill: '--refused' }] },
  { name: 'Uninspected', series: [{ of: (c, i) => c.gaps[i], fill: '--gap' }] },
  { name: 'All turns', series: [{ of: (c, i) => c.turns[i], fill: '--turns' }] },
];

export class Charts {
  #plots = [];
  #counts = null;
  #place = null;

  /** @param {(span: {from: number, to: number}) => void} select */
  constructor(select) {
    this.select = select;
    this.readout = h('p', { class: 'readout' });
    this.holders = kinds.map(({ name }) => ({
      unit: h('span', { class: 'quiet' }), canvas: h('div', { class: 'plot', role: 'img', 'aria-label': name }),
    }));
    this.asTable = h('details', { class: 'as-table', toggle: () => this.#table() }, h('summary', null, 'As table'), h('div'));
    this.node = h('div', { class: 'panel charts' },
      kinds.map(({ name }, k) => h('div', { class: 'chart' },
        h('div', { class: 'chart-name' }, h('b', null, name), this.holders[k].unit), this.holders[k].canvas)),
      h('div', { class: 'under' }, this.readout, this.asTable));
    this.watch = new ResizeObserver(() => this.#resize());
    this.watch.observe(this.node);
  }

  close() {
    this.watch.disconnect();
    for (const plot of this.#plots) plot.destroy();
  }

  /** Draws counts of GET /lex/console/counts. */
  set(counts, place) {
    const same = this.#counts && this.#counts.from === counts.from && this.#counts.to === counts.to && this.#plots.length > 0;
    this.#counts = counts;
    this.#place = place;
    kinds.forEach((kind, k) => {
      this.holders[k].unit.textContent = `per ${stepWords(counts.step)}`;
      this.holders[k].canvas.setAttribute('aria-label', sentence(kind, counts));
    });
    this.#read(null);
    if (same) this.#plots.forEach((plot, k) => plot.setData(data(kinds[k], counts)));
    else this.redraw();
    this.#table();
  }

  /** Draws all of it anew, for instance in other colours. */
  redraw() {
    for (const plot of this.#plots) plot.destroy();
    this.#plots = this.#counts ? kinds.map((kind, k) => this.#plot(kind, k)) : [];
  }

  #resize() {
    this.#plots.forEach((plot, k) => {
      const width = this.holders[k].canvas.clientWidth;
      if (width > 0 && width !== plot.width) plot.setSize({ width, height: plot.height });
    });
  }

  #plot(kind, k) {
    const counts = this.#counts;
    const last = k === kinds.length - 1;
    const axis = { stroke: colour('--quiet'), font: '11px system-ui, sans-serif', grid: { show: false }, ticks: { show: false } };
    return new uPlot({
      width: this.holders[k].canvas.clientWidth || 600, height: last ? 60 : 40, padding: [6, 8, last ? 0 : 2, 0], legend: { show: false },
      tzDate: (ts) => uPlot.tzDate(new Date(ts * 1000), 'UTC'),
      scales: { x: { range: () => [counts.from / 1000, counts.to / 1000] }, y: { range: (_, __, most) => [0, Math.max(3, most ?? 0)] } },
      axes: [
        { ...axis, show: last, size: 18, gap: 3, space: 68, values: (_, at) => at.map((s) => (counts.step < 15_000 ? clock : minute)(s * 1000)) },
        { ...axis, size: 36, gap: 5, splits: (u) => [u.scales.y.max], values: (_, v) => v.map((n) => count(Math.round(n))), grid: { show: true, stroke: colour('--line'), width: 1 } },
      ],
      series: [{}, ...kind.series.map((s) => ({
        fill: colour(s.fill), stroke: s.stroke ? colour(s.stroke) : undefined, width: s.stroke ? 1.25 : 0,
        paths: uPlot.paths.bars({ size: [0.72, 16] }), points: { show: false },
      }))],
      cursor: { sync: { key: 'lex' }, y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
      hooks: { drawClear: [(u) => hatch(u, counts)], setCursor: [(u) => this.#read(u.cursor.idx)], setSelect: [(u) => this.#select(u)] },
    }, data(kind, counts), this.holders[k].canvas);
  }

  #select(plot) {
    const { left, width } = plot.select;
    if (width < 6) return;
    const { step } = this.#counts;
    const edge = (px) => Math.round(plot.posToVal(px, 'x') * 1000 / step) * step;
    const [from, to] = [edge(left), edge(left + width)];
    if (to > from) this.select({ from, to });
  }

  /** What stands under the pointer, or how the charts are used. */
  #read(i) {
    const counts = this.#counts;
    if (!counts) return;
    this.readout.textContent = i === null || i === undefined || counts.at[i] === undefined
      ? `Times are UTC. Drag over a chart to select a span.${known(counts)}`
      : `${clock(counts.at[i])}: ${count(counts.refused[i])} refused, ${count(counts.would_refuse[i])} would refuse, `
        + `${count(counts.gaps[i])} uninspected, ${counted(counts.turns[i], 'turn')}`;
  }

  #table() {
    if (!this.asTable.open || !this.#counts) return;
    const c = this.#counts;
    const rows = c.at.map((at, i) => ({ at, i })).filter(({ i }) => c.turns[i] > 0);
    this.asTable.lastChild.replaceChildren(table('Turns by time', ['From', 'Refused', 'Would refuse', 'Corrected', 'Uninspected', 'Failed', 'All'],
      rows.map(({ at, i }) => [h('a', { href: link(this.#place, { from: at, to: at + c.step, view: 'now', id: '' }) }, clock(at)),
        ...['refused', 'would_refuse', 'corrected', 'gaps', 'failed', 'turns'].map((name) => [count(c[name][i]), 'number'])])));
  }
}

const data = (kind, counts) => [counts.at.map((at) => (at + counts.step / 2) / 1000), ...kind.series.map((s) => counts.at.map((_, i) => s.of(counts, i) || null))];

/** A chart in a sentence: the sum, the peak and when. */
function sentence(kind, counts) {
  const values = counts.at.map((_, i) => kind.series[0].of(counts, i));
  const top = Math.max(0, ...values);
  const total = values.reduce((a, b) => a + b, 0);
  const peak = total ? `, most ${count(top)} in ${stepWords(counts.step)} at ${clock(counts.at[values.indexOf(top)])}` : '';
  return `${kind.name}${kind.series.length > 1 ? ' and would refuse' : ''}: ${count(total)} in all${peak}`;
}

const known = (counts) => (counts.since > counts.from ? ` Counted since ${clock(counts.since)}; what came before is hatched.` : '');

/** Hatches what is not known, before `since`, and what may still grow, from `provisional_from` on. */
function hatch(plot, counts) {
  const { ctx, bbox } = plot;
  const x = (ms) => Math.max(bbox.left, Math.min(bbox.left + bbox.width, plot.valToPos(ms / 1000, 'x', true)));
  ctx.save();
  ctx.strokeStyle = colour('--hatch');
  ctx.lineWidth = devicePixelRatio;
  for (const [from, to] of [[counts.from, Math.min(counts.to, counts.since)], [Math.max(counts.from, counts.provisional_from), counts.to]]) {
    const [left, right] = [x(from), x(to)];
    if (!(right > left)) continue;
    ctx.beginPath();
    ctx.rect(left, bbox.top, right - left, bbox.height);
    ctx.save();
    ctx.clip();
    ctx.beginPath();
    for (let at = left - bbox.height; at < right; at += 6 * devicePixelRatio) {
      ctx.moveTo(at, bbox.top + bbox.height);
      ctx.lineTo(at + bbox.height, bbox.top);
    }
    ctx.stroke();
    ctx.restore();
  }
  ctx.restore();
}

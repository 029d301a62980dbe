// What was refused, and why: figures that are filters, the charts, the list, and beside it
// the receipt that was chosen.
import { address, get, silent } from './api.js';
import { Charts } from './charts.js';
import { h } from './dom.js';
import { ago, clock, count, minute, stranger } from './format.js';
import { filterNames, link, parameters, ranges, span } from './filters.js';
import { List } from './list.js';
import { mark } from './marks.js';
import { part } from './part.js';
import { copyButton } from './proof.js';
import { receiptView } from './receipt.js';
import { attackTypes, plain, reason } from './words.js';

const pageSize = 1000;
const figures = [
  { show: 'refused', word: 'Refused', of: 'refused' }, { show: 'would_refuse', word: 'Would refuse', of: 'would_refuse' },
  { show: 'corrected', word: 'Corrected', of: 'corrected' }, { show: 'uninspected', word: 'Uninspected', of: 'gaps' },
  { show: 'failed', word: 'Failed', of: 'failed' }, { show: 'all', word: 'All turns', of: 'turns' },
];
const titles = { __proto__: null, notable: 'Everything that needs a look', all: 'All turns', ...Object.fromEntries(figures.slice(0, -1).map((f) => [f.show, f.word])) };

export class Now {
  constructor(app) {
    this.app = app;
    this.charts = new Charts((span) => app.go({ ...span, view: 'now', id: '' }));
    this.list = new List({
      open: (id) => app.go({ view: 'r', id }), href: (id) => link(app.place, { view: 'r', id }),
      nearEnd: () => this.#more(), thresholds: () => app.about.policy.constants,
    });
    this.figures = h('nav', { class: 'figures', 'aria-label': 'Counts, which are filters' });
    this.title = h('h1', { class: 'list-title' });
    this.amount = h('span', { class: 'quiet' });
    this.fresh = h('button', { class: 'fresh', type: 'button', hidden: true, click: () => this.#insert() });
    this.filter = h('form', { class: 'filter panel', hidden: true, submit: (e) => e.preventDefault(), change: (e) => this.#filtered(e) });
    this.opener = h('button', { type: 'button', 'aria-expanded': 'false', click: () => this.toggleFilter() }, 'Filter', h('kbd', null, '/'));
    this.copy = copyButton('Copy link', () => this.#frozen());
    this.copy.classList.add('wide');
    this.chips = h('div', { class: 'chips' });
    this.end = h('div', { class: 'end' });
    this.listPart = part(app, (signal) => this.#load(signal), { class: 'list' });
    this.countsPart = part(app, (signal) => this.#count(signal), { class: 'counts' });
    this.left = h('div', { class: 'left' }, this.countsPart.node,
      h('div', { class: 'list-head' }, this.title, this.amount, h('span', { class: 'stretch' }), this.fresh, this.copy, this.opener), this.filter, this.chips, this.listPart.node);
    this.right = h('aside', { class: 'beside', 'aria-label': 'Receipt', hidden: true });
    this.node = h('div', { class: 'now' }, this.left, this.right);
    this.waiting = [];
    this.key = '';
  }

  close() {
    this.charts.close();
    this.list.close();
    this.countsPart.close();
    this.listPart.close();
    this.receipt?.close();
    clearTimeout(this.recount);
  }

  /** Shows another place. What did not change stays. */
  update(place) {
    const key = link({ ...place, view: 'now', id: '' });
    if (key !== this.key) {
      this.key = key;
      this.waiting = [];
      this.#title(place);
      this.#offerFresh();
      this.countsPart.run();
      this.listPart.run();
    }
    this.#beside(place);
  }

  /** The server saw more than this page did. */
  reload() {
    this.countsPart.run();
    this.listPart.run();
  }

  colours() {
    this.charts.redraw();
  }

  /** New receipts. They wait where the reader would lose the row that they look at. */
  rows(rows) {
    const now = this.app.now();
    const { to, rolls } = span(this.app.place, now);
    const known = new Set([...this.waiting, ...this.list.rows.slice(0, 1000)].map((row) => row.id));
    const fitting = rows.filter((row) => (rolls || row.at < to) && matches(row, this.app.place) && !known.has(row.id));
    this.waiting.unshift(...fitting.reverse());
    if (this.#calm()) this.#insert();
    else this.#offerFresh();
    this.recount ||= setTimeout(() => {
      this.recount = 0;
      this.countsPart.run();
    }, 3000);
  }

  tick() {
    if (span(this.app.place, this.app.now()).rolls) this.countsPart.run();
  }

  /** Keys of the list. */
  step(by) {
    this.list.step(by);
    const row = this.list.current();
    if (row && this.app.place.view === 'r' && !this.right.hidden) this.app.go({ view: 'r', id: row.id }, true);
  }

  openCurrent() {
    const row = this.list.current();
    if (row) this.app.go({ view: 'r', id: row.id });
  }

  toggleFilter() {
    this.filter.hidden = !this.filter.hidden;
    this.opener.setAttribute('aria-expanded', String(!this.filter.hidden));
    if (this.filter.hidden) return;
    this.#fillFilter();
    this.filter.querySelector('select').focus();
  }

  /** The address of what is seen now; it stays when the clock goes on. */
  #frozen() {
    const { from, to } = span(this.app.place, this.app.now());
    return location.href.replace(/#.*/, '') + link(this.app.place, { from, to });
  }

  #calm() {
    return !this.list.node.matches(':hover, :focus') && scrollY <= this.listPart.node.offsetTop;
  }

  #offerFresh() {
    this.fresh.hidden = this.waiting.length === 0;
    this.fresh.textContent = `${count(this.waiting.length)} new`;
  }

  #insert() {
    if (this.waiting.length > 0 && this.list.node.isConnected) {
      this.list.set([...this.waiting.splice(0), ...this.list.rows], this.whole);
      this.#amount();
    } else if (this.waiting.length > 0) {
      this.waiting = [];
      this.listPart.run();
    }
    this.#offerFresh();
  }

  #title(place) {
    this.title.textContent = titles[place.show ?? 'notable'] ?? plain(place.show);
    const chosen = Object.keys(filterNames).filter((name) => name !== 'show' && place[name]);
    this.chips.replaceChildren(...chosen.map((name) => h('a', { class: 'chip', href: link(place, { [name]: null, view: 'now', id: '' }) },
      `${plain(name)}: ${stranger(place[name])}`, h('span', { 'aria-hidden': 'true' }, ' ×'), h('span', { class: 'unseen' }, ', remove'))));
    if (place.from) {
      this.chips.prepend(h('a', { class: 'chip', href: link(place, { from: null, to: null, view: 'now', id: '' }) },
        `${clock(place.from)} to ${clock(place.to)} UTC`, h('span', { 'aria-hidden': 'true' }, ' ×'), h('span', { class: 'unseen' }, ', back to now')));
    }
  }

  async #count(signal) {
    const { place } = this.app;
    const { from, to, step } = span(place, this.app.now());
    const counts = await get('/lex/console/counts', { from, to, step }, signal);
    if (signal.aborted) return null;
    this.counts = counts;
    this.#figures(counts);
    const empty = counts.turns.every((n) => n === 0) && this.app.about.window.rows === 0 && this.list.rows.length === 0;
    if (!this.countsPart.node.contains(this.charts.node)) this.countsPart.node.replaceChildren(this.figures, this.charts.node);
    this.charts.node.hidden = empty;
    this.charts.set(counts, place);
    return null;
  }

  #figures(counts) {
    const { place } = this.app;
    const show = place.show ?? 'notable';
    const words = place.from ? 'span before' : `${place.range} before`;
    const unknown = counts.since > counts.from - (counts.to - counts.from);
    this.figures.replaceChildren(...figures.map((figure) => {
      const total = counts[figure.of].reduce((a, b) => a + b, 0);
      const before = unknown ? '' : `${words}: ${count(counts.before[figure.of])}`;
      const chosen = figure.show === show;
      return h('a', {
        class: 'figure', href: link(place, { show: chosen ? null : figure.show, view: 'now', id: '' }), 'aria-current': chosen ? 'true' : null,
      }, h('span', { class: `figure-name verdict ${figure.show === 'all' ? 'answered' : figure.show}` }, mark(figure.show === 'all' ? 'answered' : figure.show), figure.word),
      h('b', null, count(total)), h('small', { class: 'quiet' }, before || '\u00a0'));
    }));
    this.figures.title = 'The counts overlap: a corrected turn may hold an image that nobody read.';
  }

  #query() {
    const { place } = this.app;
    const { from, to, rolls } = span(place, this.app.now());
    return { show: 'notable', ...parameters(place), from, to: rolls ? undefined : to, limit: pageSize };
  }

  async #load(signal) {
    this.next = null;
    const answer = await get('/lex/console/receipts', this.#query(), signal);
    if (signal.aborted) return null;
    const known = new Set(answer.receipts.map((row) => row.id));
    this.waiting = this.waiting.filter((row) => !known.has(row.id)); // those that came while the list was on its way
    this.#offerFresh();
    return this.#show(answer.receipts, answer);
  }

  #show(rows, answer) {
    this.next = answer.next;
    this.searched = !answer.complete;
    this.whole = !answer.next;
    this.list.set(rows, this.whole);
    this.list.choose(this.app.place.id);
    this.#amount();
    this.#end(rows);
    return rows.length > 0 || this.searched ? [this.list.node, this.end] : this.#empty();
  }

  /** The next page, when the reader comes near the end of the last. */
  async #more(asked) {
    if (!this.next || this.loading || (this.searched && !asked)) return;
    this.loading = true;
    const before = this.next;
    try {
      const answer = await get('/lex/console/receipts', { ...this.#query(), before });
      if (before === this.next) this.#show([...this.list.rows, ...answer.receipts], answer);
    } catch (error) {
      this.next = null;
      this.end.replaceChildren(h('p', { class: 'fault', role: 'alert' }, `${error.message} `, h('button', { type: 'button', click: () => this.listPart.run() }, 'Retry')));
    } finally {
      this.loading = false;
    }
  }

  #amount() {
    const n = this.list.rows.length;
    this.amount.replaceChildren(n === 0 ? '' : `${count(n)}${this.whole ? '' : ' so far'}`, n === 0 ? '' : h('span', { class: 'wide' }, ', newest first'));
  }

  #end(rows) {
    if (!this.searched || !this.next) return this.end.replaceChildren();
    const back = rows.length ? `Searched back to ${minute(rows.at(-1).at)}.` : 'Nothing in what was searched so far.';
    return this.end.replaceChildren(h('p', null, `${back} `, h('button', { type: 'button', click: () => this.#more(true) }, 'Go on')));
  }

  #empty() {
    const { place } = this.app;
    const filtered = Object.keys(filterNames).some((name) => place[name] && !(name === 'show' && place.show === 'all'));
    const turns = this.counts?.turns.reduce((a, b) => a + b, 0) ?? 0;
    if (filtered || turns > 0 || place.from) {
      return h('div', { class: 'panel empty' }, h('p', null, filtered ? 'No turn fits these filters.' : 'Nothing here needs a look.'),
        h('p', null, h('a', { href: link(place, { show: 'all', reason: null, type: null, session: null, mode: null, endpoint: null, gap: null, view: 'now', id: '' }) }, 'Show all turns')));
    }
    return h('div', { class: 'panel empty' }, h('p', null, `No turn in the last ${ranges[place.range].words}. Send one:`),
      h('pre', { tabindex: '0' }, `curl ${location.origin}${address('/v1/chat/completions')} \\\n  -H 'content-type: application/json' \\\n  -d '{"messages":[{"role":"user","content":"What is the capital of France?"}]}'`),
      this.app.about.sites.length > 0 && h('p', { class: 'quiet' }, `Governed here: ${this.app.about.sites.map((s) => stranger(s.listen)).join(', ')}.`));
  }

  #fillFilter() {
    const { place } = this.app;
    const choice = (name, words, options) => h('label', null, words, h('select', { name },
      h('option', { value: '' }, 'any'), options.map(([value, text]) => h('option', { value, selected: place[name] === value }, text))));
    const input = (name, words) => h('label', null, words, h('input', { name, value: place[name] ?? '', autocomplete: 'off', spellcheck: 'false', maxlength: 256 }));
    const codes = Object.keys({ ...this.counts?.reasons, ...(place.reason && { [place.reason]: 0 }) }).sort();
    this.filter.replaceChildren(
      choice('reason', 'Reason', codes.map((code) => [code, `${reason(code)}${this.counts?.reasons[code] ? ` (${count(this.counts.reasons[code])})` : ''}`])),
      choice('type', 'Attack', Object.entries(attackTypes).map(([code, words]) => [code, plain(words)])),
      choice('mode', 'Mode', [['enforce', 'enforce'], ['observe', 'observe']]),
      choice('gap', 'Inspected', [['none', 'in full'], ['part', 'in part'], ['whole', 'nothing']]),
      input('endpoint', 'Endpoint'), input('session', 'Session'));
  }

  #filtered(event) {
    this.app.go({ [event.target.name]: event.target.value || null, view: 'now', id: '' });
  }

  #beside(place) {
    const open = place.view === 'r' && place.id !== '';
    this.node.classList.toggle('with-receipt', open);
    this.right.hidden = !open;
    this.list.choose(open ? place.id : '');
    if (!open) {
      this.receipt?.close();
      this.receipt = null;
      return;
    }
    if (this.receipt?.id === place.id) return;
    this.receipt?.close();
    this.receipt = receiptView(this.app, place.id);
    this.right.replaceChildren(this.receipt.node);
    this.right.scrollTop = 0;
  }
}

/** Whether a live row belongs to the list, as the server would choose it. */
function matches(row, place) {
  const show = place.show ?? 'notable';
  const holds = { all: true, notable: row.flags.length > 0, refused: row.flags.includes('refused') || row.flags.includes('blocked') };
  if (!(holds[show] ?? row.flags.includes(show))) return false;
  const same = { type: 'attack_type', session: 'session_id', mode: 'mode', endpoint: 'endpoint', gap: 'gap' };
  if (place.reason && row.reason !== place.reason && row.invariant !== place.reason) return false;
  return Object.entries(same).every(([name, member]) => !place[name] || row[member] === place[name]);
}

/**
 * The state of the server in a line: whether it governs, its sites, and how live this page is.
 * A server that is not heard is not said to govern. A stream may be lost for as long as it
 * takes to take it up again.
 */
export function stateLine(app) {
  const node = h('p', { class: 'state' });
  const draw = () => {
    const { health, live, about } = app;
    const unheard = !health || (live.lostAt && Date.now() - live.lostAt > 10_000);
    const broken = health ? Object.entries(health.components).filter(([, state]) => state !== 'ok').map(([name, state]) => `${plain(name).toLowerCase()}: ${stranger(String(state))}`) : [];
    let [kind, name, words] = ['ill', 'Degraded.', `${plain(broken.join(', '))}.`];
    if (silent) [kind, name, words] = ['down', 'Not known.', 'The server does not answer.'];
    else if (app.storeDown) [kind, name, words] = ['down', 'Down.', 'The store does not answer: governed requests fail now, nothing passes unrecorded.'];
    else if (unheard) [kind, name, words] = ['', 'Not known.', 'The server does not say how it does.'];
    else if (health.status === 'ok') [kind, name, words] = ['well', 'Governing.', 'Store and detectors work.'];
    const modes = [...new Set(about.sites.map((site) => site.mode))].sort().map((mode) => [h('b', null, stranger(mode)),
      ` on ${about.sites.filter((site) => site.mode === mode).map((site) => stranger(site.listen)).join(', ')}`]);
    const connection = !live.on ? 'Paused' : live.lostAt ? `Not live since ${clock(live.lostAt)}`
      : app.lastAt ? `Last receipt ${ago(app.now() - app.lastAt)}` : 'Waiting for the next receipt';
    node.className = `state ${kind}`;
    node.replaceChildren(h('span', { class: 'lamp', 'aria-hidden': 'true' }), h('span', null, h('b', null, `${name} `), words),
      modes.length > 0 && h('span', { class: 'modes' }, 'Mode ', modes.flatMap((m, i) => (i ? ['; ', ...m] : m))), h('span', { class: 'stretch' }), h('span', { class: 'quiet' }, connection));
  };
  return { node, draw };
}

/** Said where the app behind lex shares the page's origin. */
export const sharedOrigin = () => h('details', { class: 'note' }, h('summary', null, 'An app answers on this address, too'),
  h('p', null, 'Its scripts could read what you see here. On a server, give the console an address of its own.'));

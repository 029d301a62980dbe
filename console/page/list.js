// The list of receipts: a grid of rows of one height, of which only those in sight are in
// the document. Ten thousand receipts are some forty elements that are filled anew.
import { h } from './dom.js';
import { clock, moment, shortId, stranger } from './format.js';
import { mark } from './marks.js';
import { inspected, verdictWord, why } from './words.js';

const columns = ['Time', 'Outcome', 'Why', 'Severity', 'Margin', 'Inspected', 'Session'];
const spare = 6; // rows above and below those in sight
const narrow = matchMedia('(max-width: 760px)');

export class List {
  rows = [];
  #pool = [];
  #current = -1;
  #chosen = '';
  #frame = 0;
  #first = 0; // the first row in the document
  #thresholds = null;

  /**
   * @param {{open: (id: string) => void, href: (id: string) => string, nearEnd: () => void, thresholds: () => object}} handler
   *   thresholds returns the constants of the policy in force, which the bars show
   */
  constructor(handler) {
    this.handler = handler;
    this.body = h('div', { class: 'rows', role: 'rowgroup' });
    this.node = h('div', { class: 'grid', role: 'grid', tabindex: '0', 'aria-label': 'Receipts, newest first', keydown: (e) => this.#key(e) },
      h('div', { role: 'rowgroup' },
        h('div', { class: 'row heads', role: 'row', 'aria-rowindex': 1 }, columns.map((name, i) => h('span', { role: 'columnheader', class: `c${i}` }, name)))),
      this.body);
    this.redraw = () => { this.#frame ||= requestAnimationFrame(() => this.#draw()); };
    addEventListener('scroll', this.redraw, { passive: true });
    addEventListener('resize', this.redraw, { passive: true });
  }

  close() {
    removeEventListener('scroll', this.redraw);
    removeEventListener('resize', this.redraw);
  }

  /** Shows these rows; whole says that there are no more. */
  set(rows, whole) {
    const current = this.rows[this.#current]?.id;
    this.rows = rows;
    this.#current = current ? rows.findIndex((row) => row.id === current) : -1;
    this.node.setAttribute('aria-rowcount', whole ? rows.length + 1 : -1);
    this.#thresholds = this.handler.thresholds();
    this.body.style.setProperty('--refuse-at', this.#thresholds.refuse_at);
    this.body.style.setProperty('--tau', 3 * this.#thresholds.tau);
    for (const element of this.#pool) element.shown = null;
    this.redraw();
  }

  /** Marks the row of the receipt that stands beside the list. */
  choose(id) {
    this.#chosen = id;
    const at = this.rows.findIndex((row) => row.id === id);
    if (at >= 0) this.#current = at;
    for (const element of this.#pool) element.shown = null;
    this.redraw();
  }

  /** The row under the keyboard. */
  current() {
    return this.rows[this.#current];
  }

  /** Moves the keyboard's row, and scrolls it into sight. */
  move(to) {
    if (this.rows.length === 0) return;
    this.#current = Math.max(0, Math.min(this.rows.length - 1, to));
    const top = this.body.getBoundingClientRect().top + this.#current * this.#height();
    const sill = document.getElementById('header').offsetHeight;
    if (top < sill) scrollBy(0, top - sill - 8);
    else if (top + this.#height() > innerHeight - 70) scrollBy(0, top + this.#height() - innerHeight + 78);
    for (const element of this.#pool) element.shown = null;
    this.redraw();
  }

  step(by) {
    this.move(this.#current + by);
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.floor(innerHeight / this.#height()) - 3;
    const to = {
      ArrowDown: this.#current + 1, ArrowUp: this.#current - 1, PageDown: this.#current + page, PageUp: this.#current - page,
      Home: 0, End: this.rows.length - 1,
    }[event.key];
    if (to !== undefined) this.move(to);
    else if (event.key === 'Enter' && this.current()) this.handler.open(this.current().id);
    else return;
    event.preventDefault();
  }

  #height() {
    return narrow.matches ? 62 : 36;
  }

  #draw() {
    this.#frame = 0;
    const height = this.#height();
    if (this.height !== height) {
      this.height = height;
      for (const element of this.#pool) element.shown = null;
    }
    const most = Math.ceil(innerHeight / height) + 2 * spare;
    while (this.#pool.length < Math.min(most, this.rows.length)) this.#pool.push(this.#element());
    this.body.style.height = `${this.rows.length * height}px`;

    const top = Math.max(0, Math.floor(-this.body.getBoundingClientRect().top / height));
    const first = Math.max(0, top - spare);
    const leapt = Math.abs(first - this.#first) >= most; // a list that is dragged: what is out of sight can wait
    this.#first = first;
    const [from, to] = leapt ? [top, top + most - 2 * spare + 1] : [first, first + this.#pool.length];
    for (let i = from; i < Math.min(to, first + this.#pool.length); i++) this.#place(this.#pool[i % this.#pool.length], i, height);
    if (leapt) this.redraw();
    const shown = this.#current >= first && this.#current < Math.min(this.rows.length, first + this.#pool.length);
    if (shown) this.node.setAttribute('aria-activedescendant', this.#pool[this.#current % this.#pool.length].id);
    else this.node.removeAttribute('aria-activedescendant');
    if (first + 3 * most > this.rows.length) this.handler.nearEnd();
  }

  #element() {
    const texts = columns.map(() => document.createTextNode(''));
    const link = h('a', { tabindex: '-1' }, texts[0]);
    const cells = columns.map((_, i) => h('span', { role: 'gridcell', class: `c${i}` }, i === 0 ? link : texts[i]));
    const element = h('div', { class: 'row', role: 'row', id: `row-${this.#pool.length}`, click: (e) => this.#click(e, element) }, cells);
    Object.assign(element, { cells, link, texts });
    this.body.append(element);
    return element;
  }

  #click(event, element) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // the link opens its own tab
    event.preventDefault();
    this.handler.open(element.shown.id);
  }

  #place(element, i, height) {
    const row = this.rows[i];
    element.hidden = !row;
    if (!row) {
      element.shown = null;
      return;
    }
    if (element.at !== i || element.high !== height) element.style.transform = `translateY(${i * height}px)`;
    if (element.shown !== row) this.#fill(element, row);
    if (element.at !== i) element.setAttribute('aria-rowindex', i + 2);
    Object.assign(element, { at: i, shown: row, high: height });
    element.classList.toggle('current', i === this.#current);
  }

  // Writes a row into an element: few elements, and nothing that stays as it was, because
  // a list that is dragged fills all of them in every frame.
  #fill(element, row) {
    const { cells, link, texts } = element;
    element.setAttribute('aria-selected', String(row.id === this.#chosen));
    link.title = `${moment(row.at)}, ${shortId(row.id)}`;
    link.href = this.handler.href(row.id);
    const word = verdictWord(row);
    if (texts[1].data !== word) {
      cells[1].className = `c1 verdict ${row.verdict}`;
      cells[1].replaceChildren(mark(row.verdict), texts[1]);
    }
    write(texts, [clock(row.at), word, stranger(why(row), 120), row.scored ? row.severity.toFixed(2) : 'not scored', row.scored ? row.m_after.toFixed(2) : 'no step',
      inspected(row), stranger(row.session_id, 40)]);
    const { refuse_at, tau } = this.#thresholds;
    bar(cells[3], 'c3', row.scored ? row.severity : null, row.severity >= refuse_at ? 'high' : '');
    bar(cells[4], 'c4', row.scored ? 3 * row.m_after : null, row.m_after <= tau + 1e-9 ? 'low' : '');
    cells[5].className = `c5 gap-${row.gap}`;
  }
}

function write(texts, values) {
  for (const [i, text] of texts.entries()) if (text.data !== values[i]) text.data = values[i];
}

/** A bar behind the number of a cell, with a share of its length. What was not measured has a word and no bar. */
function bar(cell, column, share, kind) {
  cell.className = share === null ? `${column} quiet` : `${column} bar ${kind}`;
  if (share !== null) cell.style.setProperty('--share', Math.max(0.02, Math.min(1, share)).toFixed(3));
}

// The page: it follows the fragment, keeps one live stream, and hands receipts, time and
// keys to the view in sight.
import { get, hasKey, useKey } from './api.js';
import { coverageView } from './coverage.js';
import { h } from './dom.js';
import { enforceView } from './enforce.js';
import { evidenceView } from './evidence.js';
import { link, parse, ranges } from './filters.js';
import { counted } from './format.js';
import { help, listen } from './keys.js';
import { Live } from './live.js';
import { login } from './login.js';
import { icon, logo } from './marks.js';
import { Now, sharedOrigin, stateLine } from './now.js';
import { faultNode } from './part.js';
import { chainView, sessionsView } from './session.js';

const views = { __proto__: null, now: (app) => new Now(app), r: (app) => new Now(app), s: chainView, session: sessionsView, coverage: coverageView, enforce: enforceView, evidence: evidenceView };
const family = { r: 'now', s: 'session' };
const navigation = [['now', 'Now'], ['coverage', 'Coverage'], ['enforce', 'What if'], ['session', 'Sessions'], ['evidence', 'Evidence']];

const main = document.getElementById('main');
const status = document.getElementById('status');

const app = {
  place: parse(location.hash), about: null, health: null, storeDown: false, lastAt: 0,
  skew: 0,
  /** The server's time, by which the receipts are stamped. */
  now: () => Date.now() + app.skew,
  /** Goes to a place; replacing keeps the history short. */
  go: (changes, replacing) => {
    const hash = link(app.place, changes);
    if (!replacing) location.hash = hash;
    else {
      history.replaceState(null, '', hash);
      follow();
    }
  },
  locked: (error) => ask(error),
};

let view = null;
let shown = '';
let listScroll = 0; // where the list stood when a receipt took its place
let state = null;
let spoken = 0;
let unspoken = 0;

app.live = new Live({
  rows: (rows) => {
    app.lastAt = Math.max(app.lastAt, ...rows.map((row) => row.at));
    app.storeDown = false;
    state?.draw();
    view?.rows?.(rows);
    speak(rows.filter((row) => ['refused', 'blocked'].includes(row.verdict)).length);
  },
  missed: () => view?.reload?.(),
  health: (health) => {
    app.health = health;
    app.storeDown = health.components.store !== undefined && health.components.store !== 'ok';
    state?.draw();
  },
  changed: () => {
    state?.draw();
    buttons();
  },
  failed: (error) => {
    if (error.code === 'governor_unavailable') app.storeDown = true;
    if (error.status === 401) app.locked(error);
  },
});

/** At most one sentence in ten seconds for screen readers. */
function speak(refused) {
  unspoken += refused;
  if (unspoken === 0 || Date.now() - spoken < 10_000) return;
  status.textContent = `${counted(unspoken, 'turn')} refused`;
  spoken = Date.now();
  unspoken = 0;
}

const liveButton = h('button', { type: 'button', class: 'live', click: () => toggleLive() });
const rangeLinks = h('nav', { class: 'ranges', 'aria-label': 'Time span' });
const viewLinks = h('nav', { class: 'views', 'aria-label': 'Views' });

function toggleLive() {
  if (app.live.on) app.live.stop();
  else app.live.start();
  buttons();
}

function buttons() {
  const { on, lostAt } = app.live;
  liveButton.setAttribute('aria-pressed', String(on));
  liveButton.replaceChildren(h('span', { class: `lamp ${on && !lostAt ? 'on' : ''}`, 'aria-hidden': 'true' }), on ? (lostAt ? 'Not live' : 'Live') : 'Paused');
}

function drawHeader() {
  const current = family[app.place.view] ?? app.place.view;
  viewLinks.replaceChildren(...navigation.map(([name, words]) => h('a', { href: link(app.place, { view: name, id: '' }), 'aria-current': name === current ? 'page' : null }, icon(name), h('span', null, words))));
  rangeLinks.replaceChildren(...Object.keys(ranges).map((range) => h('a', {
    href: link(app.place, { range, from: null, to: null }), 'aria-current': !app.place.from && range === app.place.range ? 'true' : null, 'aria-label': `${range}, the last ${ranges[range].words}`,
  }, range)));
}

function theme() {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme = dark ? 'light' : 'dark';
  localStorage.setItem('lex-theme', document.documentElement.dataset.theme);
  view?.colours?.();
}

/** Shows the place in the fragment. What serves the old place and the new one is kept. */
function follow() {
  const before = app.place;
  app.place = parse(location.hash);
  if (!(app.place.view in views)) app.place.view = 'now';
  drawHeader();
  if (!app.about) return;
  const kind = views[app.place.view] === views.r || app.place.view === 'now' ? 'now' : app.place.view;
  document.title = `${navigation.find(([name]) => name === (family[app.place.view] ?? app.place.view))[1]} · Lex console`;
  if (kind !== shown) {
    view?.close();
    view = views[app.place.view](app);
    shown = kind;
    main.replaceChildren(...[app.about.shared_origin && sharedOrigin(), state.node, view.node].filter(Boolean));
    scrollTo(0, 0);
  }
  const opens = kind === 'now' && before.view === 'now' && app.place.view === 'r';
  if (opens) listScroll = scrollY;
  view.update(app.place);
  if (kind === 'now' && before.view !== app.place.view && matchMedia('(max-width: 1179px)').matches) scrollTo(0, opens ? 0 : listScroll);
  state.draw();
}

/** Learns what serves this page, then shows the place. */
async function begin() {
  try {
    app.about = await get('/lex/console/about');
  } catch (error) {
    if (error.status === 401) ask(hasKey() ? error : null);
    else main.replaceChildren(h('div', { class: 'panel' }, faultNode(error, begin)));
    return;
  }
  app.skew = app.about.now - Date.now();
  state = stateLine(app);
  shown = '';
  app.live.start(); // before the list is read, so that nothing falls between the two
  follow();
}

/** Shows the form for the key. error is null where no key has been tried. */
function ask(error) {
  view?.close();
  view = null;
  shown = '';
  app.about = null;
  app.live.stop();
  useKey('', false);
  main.replaceChildren(login(error && error.message, begin));
}

const keys = {
  j: { words: 'next receipt', run: () => view?.step?.(1) }, k: { words: 'previous receipt', run: () => view?.step?.(-1) },
  Enter: { words: 'open the receipt', run: () => view?.openCurrent?.() }, Escape: { words: 'close the receipt', run: () => app.place.view === 'r' && app.go({ view: 'now', id: '' }) },
  '/': { words: 'filter', run: () => view?.toggleFilter?.() }, s: { words: 'the session of this receipt', run: () => app.place.view === 'r' && app.go({ view: 's' }) },
  ...Object.fromEntries(navigation.map(([name, words], i) => [String(i + 1), { words, run: () => app.go({ view: name, id: '' }) }])),
  l: { words: 'live or paused', run: toggleLive }, t: { words: 'light or dark', run: theme }, '?': { words: 'this help', run: () => dialog.showModal() },
};

const kept = localStorage.getItem('lex-theme');
if (kept) document.documentElement.dataset.theme = kept;
const dialog = help(keys);
document.getElementById('header').replaceChildren(
  h('a', { class: 'home', href: '#/now', 'aria-label': 'Lex, to the first page' }, logo(), h('b', null, 'Lex')), viewLinks, h('span', { class: 'stretch' }), rangeLinks, liveButton,
  h('button', { type: 'button', class: 'theme', click: theme }, 'Theme'), h('button', { type: 'button', class: 'help', 'aria-label': 'Keyboard', click: () => dialog.showModal() }, h('kbd', null, '?')));
document.getElementById('footer').replaceChildren(h('button', { type: 'button', click: theme }, 'Light or dark'));
buttons();
listen(keys);
addEventListener('hashchange', follow);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => view?.colours?.());
setInterval(() => {
  if (!document.hidden) view?.tick?.();
}, 15_000);
setInterval(() => state?.draw(), 1000);
drawHeader();
begin();

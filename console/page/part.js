// A part of a view that loads by itself: the others stand while it waits or fails.
import { h } from './dom.js';
import { clock, counted } from './format.js';

/**
 * Makes a part. load gets a signal and returns the nodes to show; what it throws stands
 * where the data would, with Retry. A refresh keeps the old content, and dims it after
 * ten seconds.
 * @param {(signal: AbortSignal) => Promise<any>} load
 * @param {{locked: () => void}} app
 */
export function part(app, load, attributes = {}) {
  const node = h('div', attributes);
  let current = new AbortController();

  async function run() {
    current.abort();
    const mine = current = new AbortController();
    const filled = node.childElementCount > 0 && !node.querySelector(':scope > .fault');
    const waiting = setTimeout(() => {
      if (filled) node.classList.add('old');
      else node.replaceChildren(skeleton());
    }, filled ? 10_000 : 150);
    try {
      const content = await load(mine.signal);
      if (!mine.signal.aborted && content) node.replaceChildren(...[content].flat(Infinity).filter(Boolean));
    } catch (error) {
      if (!mine.signal.aborted) show(error);
    } finally {
      clearTimeout(waiting);
      if (!mine.signal.aborted) node.classList.remove('old');
    }
  }

  function show(error) {
    if (error.status === 401) app.locked(error);
    if (error.status === undefined) console.error(error); // a fault of the page itself
    node.replaceChildren(faultNode(error, run));
  }

  return { node, run, close: () => current.abort() };
}

const skeleton = () => h('div', { class: 'skeleton', 'aria-hidden': 'true' }, Array.from({ length: 6 }, () => h('div')));

/** What went wrong, as the API says it, with Retry. After 429 it counts down by itself. */
export function faultNode(error, retry) {
  const button = h('button', { type: 'button', click: retry }, 'Retry');
  const node = h('div', { class: 'fault', role: 'alert' },
    h('p', null, error.status === undefined ? 'The page failed here.' : error.message),
    h('p', { class: 'quiet' }, error.code ? h('code', null, error.code) : error.message, ` at ${clock(Date.now())}`), button);
  if (error.status === 429) countDown(button, error.retryAfter || 60, retry);
  return node;
}

function countDown(button, seconds, retry) {
  button.textContent = `Retry in ${counted(seconds, 'second')}`;
  setTimeout(() => {
    if (!button.isConnected) return;
    if (seconds > 1) countDown(button, seconds - 1, retry);
    else retry();
  }, 1000);
}

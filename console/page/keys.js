// Keyboard shortcuts, their help, and the switch that turns them off (WCAG 2.1.4).
import { h } from './dom.js';

const slot = 'lex-shortcuts';
let on = localStorage.getItem(slot) !== 'off';

/**
 * Listens to single keys.
 * @param {Record<string, {words: string, run: () => void}>} keys
 */
export function listen(keys) {
  addEventListener('keydown', (event) => {
    if (!on || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.closest('input:not([type=checkbox], [type=range]), select, textarea, dialog[open]')) return;
    if (event.key === 'Enter' && event.target.closest('a, button, summary')) return;
    const key = keys[event.key];
    if (!key) return;
    event.preventDefault();
    key.run();
  });
}

/** The dialog that lists them. */
export function help(keys) {
  const close = h('button', { type: 'button', class: 'main', click: () => dialog.close() }, 'Close');
  const toggle = h('input', {
    type: 'checkbox', id: 'shortcuts', change: () => {
      on = toggle.checked;
      localStorage.setItem(slot, on ? 'on' : 'off');
    },
  });
  toggle.checked = on;
  const dialog = h('dialog', { 'aria-labelledby': 'help-title' }, h('h2', { id: 'help-title' }, 'Keyboard'),
    h('dl', { class: 'keys' }, Object.entries(keys).filter(([, { words }]) => words).map(([key, { words }]) => h('div', null, h('dt', null, h('kbd', null, key === 'Escape' ? 'Esc' : key)), h('dd', null, words)))),
    h('p', null, 'In the list the arrow keys, Page Up, Page Down, Home and End move, too.'),
    h('label', { class: 'switch', for: 'shortcuts' }, toggle, ' Single keys are shortcuts'), close);
  document.body.append(dialog);
  return dialog;
}

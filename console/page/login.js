// The form for the read key.
import { useKey } from './api.js';
import { h } from './dom.js';

/** Asks for the key; done is called when one was given. */
export function login(fault, done) {
  const key = h('input', { id: 'key', type: 'password', autocomplete: 'off', spellcheck: 'false', required: true });
  const kept = h('input', { id: 'kept', type: 'checkbox' });
  const form = h('form', {
    class: 'panel login', submit: (event) => {
      event.preventDefault();
      useKey(key.value.trim(), kept.checked);
      done();
    },
  },
  h('h1', null, 'The read key'), h('p', null, 'This console asks for the secret of the option ', h('code', null, 'secrets { read … }'), '.'),
  fault && h('p', { class: 'bad', role: 'alert' }, fault),
  h('label', { for: 'key' }, 'Key'), key, h('label', { class: 'switch', for: 'kept' }, kept, ' Keep it while this tab is open'),
  h('p', { class: 'quiet' }, 'It is sent in a header, never in an address, and never stored beyond this tab.'),
  h('button', { type: 'submit', class: 'main' }, 'Open'));
  return form;
}

// The proof of a receipt in two columns: what the server says, and what this page computed
// by itself from the record's bytes and its policy.
import { address, getText, verify } from './api.js';
import { canonical, receiptId } from './canonical.js';
import { h, svg } from './dom.js';
import { stranger } from './format.js';
import { part } from './part.js';
import { sha256 } from './sha256.js';
import { differences } from './step.js';

const questions = {
  form: 'Is the id the hash of the record?', replay: 'Does the decision follow from the inputs?', chain: 'Does it start from what the turn before left?',
  log: 'Does it stand in the log?', stored: 'Is it the one in the store?', policy: 'Is the policy the one that it names?',
};

/**
 * What the page finds by itself: by the name of the check whether it holds (null if it
 * could not be checked), and a sentence.
 * @param {string} record the bytes that came
 * @param {string | null} policy those of its policy
 */
export function ownChecks(record, policy) {
  const receipt = JSON.parse(record);
  const exact = canonical(receipt) === record;
  const id = receiptId(receipt);
  const form = exact
    ? { ok: id === receipt.id, detail: id === receipt.id ? 'SHA-256 of the canonical JSON gives this id.' : `SHA-256 of the record gives ${id}.` }
    : { ok: false, detail: 'The record is not canonical JSON.' };
  if (policy === null) return { form, policy: { ok: null, detail: 'The policy could not be read.' }, replay: { ok: null, detail: 'Without the policy there is no step.' } };
  const named = sha256(policy) === receipt.policy;
  const wrong = replayed(JSON.parse(policy), receipt);
  return {
    form, policy: { ok: named, detail: named ? 'SHA-256 of the policy is the one in the receipt.' : 'SHA-256 of the policy is another.' },
    replay: { ok: named ? wrong.length === 0 : null, detail: wrong.length === 0 ? 'The step agrees to 1e-12.' : `Does not follow: ${wrong.map((w) => stranger(w, 160)).join('; ')}.` },
  };
}

/** What does not follow; a record that lacks a member may break the computation. */
function replayed(policy, receipt) {
  try {
    return differences(policy, receipt);
  } catch {
    return ['the record lacks what the step needs'];
  }
}

/** The policy that a receipt names, or null. */
export async function policyOf(receipt, signal) {
  try {
    return await getText(`/lex/policies/${receipt.policy}`, signal);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    return null;
  }
}

/** The section "Proof" of a receipt. */
export function proof(app, record, policy) {
  const receipt = JSON.parse(record);
  const own = ownChecks(record, policy);
  const checks = part(app, async (signal) => {
    await new Promise((resolve) => setTimeout(resolve, 300)); // j and k pass by receipts that nobody wants proved
    if (signal.aborted) return null;
    return columns(await verify(record, signal), own);
  }, { class: 'checks' });
  const again = h('button', { type: 'button', class: 'main', click: () => checks.run() }, 'Verify again');
  const commands = [['All receipts of this store', `caddy lex verify --url ${location.origin}${address('')}`],
    ['The download alone', `caddy lex verify --partial ${receiptId(receipt)}.jsonl`]];
  checks.run();
  const node = h('section', { class: 'proof' },
    h('h3', null, 'Proof'), checks.node,
    h('div', { class: 'buttons' }, again, copyButton('Copy record', record),
      h('button', { type: 'button', click: () => download(receipt, record, policy) }, 'Download receipt and policy')),
    h('p', { class: 'quiet' }, 'This page came from the same server. For proof against it, run elsewhere:'),
    commands.map(([what, command]) => h('div', { class: 'command' }, h('pre', { tabindex: '0', 'aria-label': what, role: 'region' }, command), copyButton('Copy', command))));
  return { node, close: checks.close };
}

function columns(answer, own) {
  const server = Object.fromEntries(answer.checks.map((c) => [c.name, c]));
  const names = Object.keys(questions).filter((name) => server[name] || own[name]).concat(Object.keys(server).filter((name) => !questions[name]));
  const all = [...answer.checks, ...Object.values(own)];
  const failed = all.filter((c) => c.ok === false).length;
  const open = all.filter((c) => c.ok === null).length;
  const total = failed ? `${failed} failed` : open ? `nothing failed, ${open} could not be checked` : 'nothing failed';
  return [h('p', { class: `total ${failed ? 'bad' : open ? 'open' : 'good'}` }, total),
    h('table', { class: 'proofs' }, h('caption', { class: 'unseen' }, 'Checks of this receipt'),
      h('thead', null, h('tr', null, ['Check', 'The server says', 'This page computed'].map((head) => h('th', { scope: 'col' }, head)))),
      h('tbody', null, names.map((name) => h('tr', null, h('th', { scope: 'row' }, name, h('small', null, questions[name] ?? '')),
        finding(server[name], 'The server'), finding(own[name], 'This page')))))];
}

/** One cell. Only what was checked and holds is green. */
function finding(check, who) {
  if (!check) return h('td', { class: 'quiet' }, 'not checked');
  const [kind, word] = check.ok ? ['good', 'passed'] : check.ok === false ? ['bad', 'failed'] : ['open', 'could not be checked'];
  const path = { good: 'M2 7.5l3.2 3.2L12 3.6', bad: 'M3 3l8 8M11 3l-8 8', open: 'M3 7h8' }[kind];
  return h('td', { class: kind }, svg('svg', { class: 'mark', viewBox: '0 0 14 14', 'aria-hidden': 'true' }, svg('path', { class: 'outlined', d: path })),
    h('b', null, word), h('span', { class: 'unseen' }, `, ${who.toLowerCase()}: `), h('small', null, stranger(check.detail ?? '', 600)));
}

/**
 * A button that puts a text into the clipboard, or says that there is none: browsers offer
 * it only over TLS and on localhost.
 * @param {string} words
 * @param {string | (() => string)} text or what makes it when the button is pressed
 */
export function copyButton(words, text) {
  const button = h('button', {
    type: 'button',
    click: async () => {
      const done = await navigator.clipboard?.writeText(typeof text === 'string' ? text : text()).then(() => true, () => false);
      button.textContent = done ? 'Copied' : 'No clipboard here';
      setTimeout(() => { button.textContent = words; }, 2000);
    },
  }, words);
  return button;
}

/** The record and its policy as an export that `caddy lex verify` reads. */
function download(receipt, record, policy) {
  const lines = `${policy ? `{"policy":${policy}}\n` : ''}${record}\n`;
  const url = URL.createObjectURL(new Blob([lines], { type: 'application/x-ndjson' }));
  h('a', { href: url, download: `${receiptId(receipt)}.jsonl` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

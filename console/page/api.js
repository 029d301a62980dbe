// The HTTP interface that the page reads. It writes nothing. The key for reading lives in
// memory, or in this tab's sessionStorage if asked, and leaves in a header only.

const slot = 'lex-read-key';
const root = location.pathname.replace(/\/lex\/console\/?$/, '');
let key = sessionStorage.getItem(slot) ?? '';

/** Whether nothing came back to what was last asked, or only what a gateway says in the server's place. */
export let silent = false;

/** Sets the key; kept says whether it outlives a reload of this tab. */
export function useKey(next, kept) {
  key = next;
  if (kept) sessionStorage.setItem(slot, next);
  else sessionStorage.removeItem(slot);
}

/** Whether a key was given. */
export const hasKey = () => key !== '';

/** An answer that is not 200: its status (0 if there was none), the API's sentence and code. */
export class Fault extends Error {
  constructor(status, code, sentence, retryAfter) {
    super(sentence);
    this.status = status;
    this.code = code;
    this.retryAfter = retryAfter;
  }
}

/** The address of a path of the site, with parameters that are not empty. */
export function address(path, parameters = {}) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== undefined && value !== ''));
  return root + path + (query.size ? `?${query}` : '');
}

/** Asks, and throws a Fault unless the answer is good. */
async function ask(path, parameters, options = {}) {
  const headers = { ...options.headers, ...(key && { Authorization: `Bearer ${key}` }) };
  let response;
  try {
    response = await fetch(address(path, parameters), { ...options, headers, credentials: 'omit', redirect: 'error' });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    silent = true;
    throw new Fault(0, 'unreachable', 'The server does not answer.');
  }
  silent = false;
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  silent = response.status >= 500 && !body.code;
  throw new Fault(response.status, body.code ?? String(response.status), body.error ?? `The server answered ${response.status}.`,
    Number(response.headers.get('Retry-After')) || 0);
}

/** The JSON under a path. */
export async function get(path, parameters, signal) {
  return (await ask(path, parameters, { signal })).json();
}

/** The bytes under a path, as text: what is verified is what came, not what it means. */
export async function getText(path, signal) {
  return (await ask(path, {}, { signal })).text();
}

/** What the server says of a receipt that this page was given. */
export async function verify(record, signal) {
  const headers = { 'Content-Type': 'application/json' };
  return (await ask('/audits/verify', {}, { method: 'POST', headers, body: `{"receipt":${record}}`, signal })).json();
}

/**
 * Reads the event stream until it ends, and calls on for each event with its name, its id
 * and its data. It is read with fetch, because EventSource would need the key in the URL.
 */
export async function events(parameters, on, signal) {
  const response = await ask('/lex/console/events', parameters, { signal, headers: { Accept: 'text/event-stream' } });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  on('open', '', null);
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read().catch((error) => {
      silent = !signal.aborted;
      throw error;
    });
    silent = false;
    if (done) return;
    const blocks = (rest + value).split('\n\n');
    rest = blocks.pop();
    for (const block of blocks) {
      const fields = Object.fromEntries(block.split('\n').filter((line) => !line.startsWith(':')).map((line) => line.split(/: ?(.*)/s)));
      if (fields.data) on(fields.event ?? 'message', fields.id ?? '', JSON.parse(fields.data));
      else on('beat', '', null);
    }
  }
}

// Times, numbers and strangers' texts as the page writes them. Times are UTC, like the
// buckets of the charts and the lines of the log.

const iso = (ms) => new Date(ms).toISOString();

/** 23:14:05 */
export const clock = (ms) => iso(ms).slice(11, 19);

/** 23:14 */
export const minute = (ms) => iso(ms).slice(11, 16);

/** 2026-11-22 23:14:05 UTC */
export const moment = (ms) => `${iso(ms).slice(0, 10)} ${clock(ms)} UTC`;

/** 12,345 */
export const count = (n) => n.toLocaleString('en-US');

/** 1 turn, 2 turns */
export const counted = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

/** 12.3 kB; bytes in thousands, as the documentation counts them. */
export function bytes(n) {
  if (n < 1000) return `${n} B`;
  const unit = Math.min(4, Math.floor(Math.log10(n) / 3));
  return `${(n / 1000 ** unit).toFixed(1)} ${['', 'kB', 'MB', 'GB', 'TB'][unit]}`;
}

/** How long ago, in the largest unit that is not 0. */
export function ago(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 90) return `${s} s ago`;
  return s < 5400 ? `${Math.round(s / 60)} min ago` : `${Math.round(s / 3600)} h ago`;
}

// What is not seen, or changes how its neighbours are seen: control and format characters
// (bidirectional marks are among them), unassigned ones, line ends, blanks other than the
// space, and characters that fonts leave out.
const hidden = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/u;

/**
 * A text that strangers chose, such as a session's name or a model: at most so many
 * characters, hidden ones as escapes.
 * @param {string} text
 * @param {number} [most]
 */
export function stranger(text, most = 64) {
  const points = [...String(text).slice(0, 4 * most)];
  const seen = points.slice(0, most).map((c) => (hidden.test(c) ? `\\u{${c.codePointAt(0).toString(16)}}` : c)).join('');
  return points.length > most || text.length > 4 * most ? `${seen}…` : seen;
}

/** KRN-50639DA7…01B1: enough of an id to tell it from its neighbours. */
export const shortId = (id) => (id.length > 20 ? `${id.slice(0, 12)}…${id.slice(-4)}` : id);

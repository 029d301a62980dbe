// Canonical JSON (RFC 8785) and the id of a receipt (docs/receipts.md, sections 1 and 2).
import { sha256 } from './sha256.js';

/**
 * The canonical form of a JSON value. ECMAScript sorts and writes as the RFC asks: names
 * by UTF-16 code units, the shortest digits of a number, no more escapes than needed.
 */
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  return `{${Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`).join(',')}}`;
}

/** The id that a receipt must have: the start of the hash of all its other members. */
export function receiptId(receipt) {
  const { id, ...rest } = receipt;
  return (receipt.tool ? 'TCR-' : 'KRN-') + sha256(canonical(rest)).slice(0, 32).toUpperCase();
}

// SHA-256 (FIPS 180-4) of our own, because browsers offer crypto.subtle only over TLS and
// on localhost, and the console is often read over plain http inside a network.

/** The first 32 bits of the fractional part of a root of the first n primes (FIPS 180-4, 4.2.2 and 5.3.3). */
function primeRoots(n, root) {
  const words = [];
  for (let p = 2; words.length < n; p++) {
    let prime = true;
    for (let d = 2; d * d <= p; d++) prime &&= p % d !== 0;
    if (prime) words.push(((p ** root) % 1) * 2 ** 32 | 0);
  }
  return words;
}

const K = primeRoots(64, 1 / 3);
const START = primeRoots(8, 1 / 2);
const turned = (x, n) => (x >>> n) | (x << (32 - n));

/**
 * The SHA-256 of a text's UTF-8, in lower-case hex.
 * @param {string} text
 */
export function sha256(text) {
  const bytes = new TextEncoder().encode(text);
  const padded = new Uint8Array(((bytes.length + 8 >> 6) + 1) << 6);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(bytes.length / 2 ** 29));
  view.setUint32(padded.length - 4, bytes.length << 3);

  let hash = START;
  for (let at = 0; at < padded.length; at += 64) hash = compress(hash, view, at);
  return hash.map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
}

/** The compression function (FIPS 180-4, 6.2.2) on the block of 64 bytes at a place. */
function compress(hash, view, at) {
  const w = new Int32Array(64);
  for (let t = 0; t < 16; t++) w[t] = view.getInt32(at + 4 * t);
  for (let t = 16; t < 64; t++) {
    const s0 = turned(w[t - 15], 7) ^ turned(w[t - 15], 18) ^ (w[t - 15] >>> 3);
    const s1 = turned(w[t - 2], 17) ^ turned(w[t - 2], 19) ^ (w[t - 2] >>> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  let [a, b, c, d, e, f, g, h] = hash;
  for (let t = 0; t < 64; t++) {
    const one = (h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + K[t] + w[t]) | 0;
    const two = ((turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
  }
  return [a, b, c, d, e, f, g, h].map((word, i) => (word + hash[i]) | 0);
}

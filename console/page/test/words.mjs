// Addresses and strangers' texts: what goes into the fragment comes out of it, and no
// text hides a character.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { link, parse, ranges, span } from '../filters.js';
import { bytes, stranger } from '../format.js';
import { verdictWord, why } from '../words.js';

test('a place goes into an address and comes out of it', () => {
  const places = [
    { view: 'now', id: '', range: '1h' }, { view: 'r', id: 'KRN-00FF', range: '15m', show: 'refused' },
    { view: 'now', id: '', range: '1h', from: 1_795_000_000_000, to: 1_795_000_600_000, reason: 'slow_drip', type: 'multi' },
    { view: 's', id: 'TCR-1', range: '24h', session: 'a&b=#/ü\u202E', mode: 'observe', endpoint: 'v1/chat?x', gap: 'part' },
  ];
  for (const place of places) assert.deepEqual(parse(link(place)), { ...place, id: encodeURIComponent(place.id) });
  assert.equal(link(places[1], { show: null, view: 'now', id: '' }), '#/now?range=15m');
});

test('a fragment that nobody wrote here makes a place, too', () => {
  for (const hash of ['', '#', '#/', '#//', '#/now?range=__proto__', '#/now?from=5&to=4', '#/now?from=1e99&to=1e300', '#/now?from=a', '#/%', '#/r/%E0%A4%A']) {
    const place = parse(hash);
    assert.equal(typeof place.view, 'string');
    const { from, to, step } = span(place, 1_795_000_000_000);
    assert.ok(place.range in ranges && from < to && (to - from) / step <= 500, hash);
  }
});

test('a span has whole buckets, and the one that is being filled', () => {
  for (const range of Object.keys(ranges)) {
    const now = 1_795_000_012_345;
    const { from, to, step } = span(parse(`#/now?range=${range}`), now);
    assert.ok(from % step === 0 && to > now && to - now <= step && (to - from) / step >= 60 && (to - from) / step <= 72, range);
  }
});

test('a row says why in one line', () => {
  const row = { verdict: 'refused', kind: 'KRN', reason: null, invariant: null, denied_by: null, attack_type: 'none', scored: true, gap: 'none', gaps: [], outcome: 'refused', m_before: 0.05, m_after: 0.08 };
  const gaps = [{ part: 'turn', why: 'no detector ran' }, { part: 'request', why: 'no dialect for this endpoint: text/plain' }];
  for (const [members, want] of [
    [{ reason: 'semantic_classifier', attack_type: 'identity' }, 'Attack in the prompt: identity attack'], [{ reason: 'slow_drip' }, 'Slow drip over several turns'],
    [{ reason: 'operator_policy', denied_by: 'unknown_block', scored: false, gap: 'whole' }, 'No dialect for this endpoint: blocked'],
    [{ reason: 'operator_policy', denied_by: 'no-secrets' }, 'Rule of the operator: no-secrets'], [{ kind: 'TCR', verdict: 'blocked', invariant: 'data_exfiltration' }, 'Tool call: data exfiltration'],
    [{ verdict: 'failed', outcome: 'client_gone' }, 'The client left'], [{ verdict: 'corrected', outcome: 'answered' }, 'Margin 0.050 lifted to 0.080'],
    [{ verdict: 'uninspected', outcome: 'answered', scored: false, gap: 'whole', gaps }, 'No dialect for this endpoint: text/plain'],
    [{ verdict: 'uninspected', outcome: 'answered', gap: 'part', gaps: [{ part: 'request', why: 'image' }] }, 'Not read: image'],
    [{ verdict: 'uninspected', outcome: 'answered', gap: 'part', gaps: [{ part: 'detector local', why: 'timeout' }] }, 'local gave no verdict: timeout'],
    [{ verdict: 'answered', outcome: 'answered', no_verdicts: [{ detector: 'guard_chat.prompt', why: 'server_error' }] }, 'guard_chat gave no verdict: server error'],
    [{ verdict: 'answered', outcome: 'answered', no_verdicts: [{ detector: 'openai_judge', why: 'timeout' }], attack_type: 'identity' }, 'openai_judge gave no verdict: timeout'],
  ]) assert.equal(why({ ...row, ...members }), want);
  assert.equal(verdictWord({ verdict: 'uninspected', gap: 'part' }), 'Part uninspected');
  assert.equal(verdictWord({ verdict: 'uninspected', gap: 'whole' }), 'Uninspected');
});

test('hidden characters are shown, and texts end', () => {
  for (const [given, want] of [
    ['plain – 日本 😀', 'plain – 日本 😀'], ['\u202Eabc', '\\u{202e}abc'], ['a\nb\0', 'a\\u{a}b\\u{0}'], ['a\u00A0b\u3000\u2800', 'a\\u{a0}b\\u{3000}\\u{2800}'],
    ['\u200B\uFEFF\u{E0041}\u115F', '\\u{200b}\\u{feff}\\u{e0041}\\u{115f}'], ['\uD800', '\\u{d800}'], ['x'.repeat(65), `${'x'.repeat(64)}…`], ['😀'.repeat(64), '😀'.repeat(64)],
  ]) assert.equal(stranger(given), want);
  assert.ok(stranger('\u202E'.repeat(1e6)).length < 600);
  assert.deepEqual([0, 999, 1000, 7_800_000].map(bytes), ['0 B', '999 B', '1.0 kB', '7.8 MB']);
});

// The page's own verification, held against the vectors that the Go code and the Python
// verifier are held against (docs/receipts.md, section 23).
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { canonical, receiptId } from '../canonical.js';
import { sha256 } from '../sha256.js';
import { differences } from '../step.js';

const vectors = new URL('../../../kernel/testdata/', import.meta.url);
const read = (name) => readFileSync(new URL(name, vectors), 'utf8');

test('SHA-256 is the one of the library, at every length around a block', () => {
  for (const unit of ['a', 'é', '😀']) {
    for (let n = 0; n < 140; n++) {
      const text = unit.repeat(n);
      assert.equal(sha256(text), createHash('sha256').update(text).digest('hex'), `${n} times ${unit}`);
    }
  }
});

test('texts are written as RFC 8785 writes them', () => {
  const rows = JSON.parse(read('canonical.json')).filter((row) => row.json);
  assert.ok(rows.length > 0);
  for (const row of rows) assert.equal(canonical(JSON.parse(row.json)), row.want);
});

// The export has a receipt of every kind: texts and tool calls, refused, observed,
// repeated, nobody read, sent under two policies.
const lines = read('receipts.jsonl').trim().split('\n').map((line) => [line, JSON.parse(line)]);
const policies = new Map(lines.filter(([, l]) => l.policy && !l.receipt && typeof l.policy === 'object')
  .map(([, l]) => [sha256(canonical(l.policy)), l.policy]));
const receipts = lines.map(([, l]) => l.receipt).filter(Boolean);

test('every receipt of the export has the id of its own hash and follows from its inputs', () => {
  assert.ok(receipts.length > 100 && policies.size > 0);
  for (const receipt of receipts) {
    assert.equal(receiptId(receipt), receipt.id);
    assert.deepEqual(differences(policies.get(receipt.policy), receipt), [], receipt.id);
  }
});

test('a changed digit is noticed', () => {
  const derived = ['severity', 'm_after', 'lyapunov_V', 'cusum_next', 'governor_effort', 'delta_V'];
  for (const receipt of receipts.slice(0, 40)) {
    for (const name of derived) {
      const other = { ...receipt, [name]: receipt[name] + 1e-9 };
      assert.notEqual(receiptId(other), receipt.id);
      assert.ok(differences(policies.get(receipt.policy), other).some((d) => d.startsWith(name)), `${receipt.id} ${name}`);
    }
    assert.ok(differences(policies.get(receipt.policy), { ...receipt, refused: !receipt.refused }).length > 0);
  }
});

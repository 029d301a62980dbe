// The console in Chromium: its five questions answered by clicking, its proof, its looks,
// and what it does when things break. Go starts the server and sends the traffic
// (e2e/console_test.go).
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';

import { accessible, answer, attack, drag, go, json, noSidewaysScroll, open, packed, proxy, row, say, site, startBrowser, stopBrowser } from './browser.mjs';

before(startBrowser);
after(stopBrowser);

const one = async (query) => (await json(`/lex/console/receipts?limit=1&${query}`)).receipts[0];
const views = async () => {
  const refused = (await json('/lex/console/receipts?limit=50&show=refused')).receipts.find((r) => r.prev && r.kind === 'KRN');
  return { now: '#/now', receipt: `#/r/${refused.id}`, session: `#/s/${refused.id}`, sessions: '#/session', coverage: '#/coverage', enforce: '#/enforce', evidence: '#/evidence' };
};
const settled = {
  now: 'main .grid .row >> nth=2', receipt: '.proof .proofs', session: 'main .simplex', sessions: 'main table', coverage: 'main .halves table', enforce: 'main .histogram', evidence: 'main details',
};
const grid = (page) => page.getByRole('grid', { name: 'Receipts' });
const rows = (page) => grid(page).getByRole('row').filter({ has: page.getByRole('gridcell') });

// First, while the list holds nothing but the traffic that Go sent.
const folder = process.env.LEX_SHOTS;
if (folder) test('the pictures of the documentation', async (t) => {
  const { receipt, session } = await views();
  const shots = [['receipt', `${receipt}?range=15m`, 1240, false], ['receipt', receipt, 800, false, 'proof'], ['coverage', '#/coverage', 1300, false], ['enforce', '#/enforce', 1300, false],
    ['session', session, 1300, true], ['now', '#/now?range=15m', 390, false, 'phone']];
  for (const [view, hash, width, dark, name] of shots) {
    const page = await open(t, {
      hash, width, height: { 390: 800, 800: 2000 }[width] ?? 740, dark, base: process.env.LEX_KEYED,
      before: (p) => p.addInitScript((key) => sessionStorage.setItem('lex-read-key', key), process.env.LEX_READ),
    });
    await page.locator(settled[view]).first().waitFor();
    await page.waitForTimeout(800); // for the numbers to come
    writeFileSync(`${folder}/console-${name ?? view}.png`, packed(await (name === 'proof' ? page.locator('.proof') : page).screenshot()));
  }
});

test('what was refused, and why', async (t) => {
  const page = await open(t);
  await page.getByRole('link', { name: /^Refused/ }).click();
  await page.getByRole('heading', { name: 'Refused', exact: true }).waitFor();
  const { receipts } = await json('/lex/console/receipts?show=refused&limit=100');
  await assert.doesNotReject(page.getByText(`${receipts.length}, newest first`).waitFor());
  for (const line of await rows(page).all()) assert.match(await line.innerText(), /Refused|Blocked/);
  await rows(page).filter({ hasText: 'identity' }).first().click();
  const receipt = page.getByRole('complementary', { name: 'Receipt' });
  await receipt.getByRole('heading', { name: 'Refused: identity attack' }).waitFor();
  assert.match(await receipt.innerText(), /Severity [01]\.\d{3} is at or above 0\.7 \(refuse_at\)/);
  assert.match(await receipt.innerText(), /never reached the model/);
});

test('is anything passing uninspected', async (t) => {
  const page = await open(t);
  await page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: 'Coverage' }).click();
  await page.getByRole('heading', { name: /^\d+ of \d+ turns were not inspected in full$/ }).waitFor();
  assert.match(await page.getByText('What receipts cannot show').locator('..').innerText(), /requests without a prompt/);
  await page.getByRole('region', { name: 'Parts that nobody read' }).getByRole('row', { name: /image_url/ }).getByRole('link').click();
  await page.getByRole('heading', { name: 'Part uninspected' }).waitFor();
  await page.getByRole('heading', { name: 'What was inspected' }).locator('..').getByText('in part').waitFor();
});

test('what would enforce have done', async (t) => {
  const page = await open(t);
  await page.getByRole('link', { name: 'What if' }).click();
  const { receipts } = await json('/lex/console/receipts?mode=observe&limit=1000');
  const refusals = receipts.filter((r) => r.flags.includes('would_refuse'));
  await page.getByRole('heading', { name: `Enforce would have refused ${refusals.length} of ${receipts.length} observed turns` }).waitFor();
  const figure = async (name) => Number(await page.getByRole('heading', { name, exact: true }).locator('..').locator('b').innerText());
  const sessions = new Set(refusals.map((r) => r.session_id)).size;
  assert.equal(await figure('Certain'), sessions);
  assert.equal(await figure('Conditional'), refusals.length - sessions);

  const slider = page.getByRole('slider', { name: 'Threshold' });
  await page.getByRole('heading', { name: /^At refuse_at 0\.70/ }).waitFor();
  await slider.focus();
  await slider.press('Home');
  const over = receipts.filter((r) => r.scored && r.severity >= 0.31).length;
  await page.getByRole('heading', { name: new RegExp(`^At refuse_at 0\\.31: ${over} turn`) }).waitFor();
});

test('show me this receipt and prove it', async (t) => {
  const { id } = (await json('/lex/console/receipts?show=refused&limit=50')).receipts.find((r) => r.prev); // in the middle of its chain
  const page = await open(t, { hash: `#/r/${id}` });
  const check = (name) => page.getByRole('row', { name: new RegExp(`^${name}`) });
  await page.getByText('nothing failed', { exact: true }).waitFor();
  for (const [name, columns] of [['form', 2], ['replay', 2], ['chain', 1], ['log', 1]]) {
    assert.equal(await check(name).getByText('passed', { exact: true }).count(), columns, name);
  }
  await page.getByText('This page came from the same server.').waitFor();
  const waiting = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download receipt and policy' }).click();
  const download = await waiting;
  assert.equal(download.suggestedFilename(), `${id}.jsonl`);

  // The commands that the page gives do what it says, the one on the download, too.
  const file = join(mkdtempSync(join(tmpdir(), 'lex-console-')), download.suggestedFilename());
  await download.saveAs(file);
  for (const command of await page.locator('.command pre').allInnerTexts()) {
    const [caddy, ...words] = command.replace(download.suggestedFilename(), file).split(' ');
    assert.equal(caddy, 'caddy');
    assert.match(execFileSync(process.env.LEX_BINARY, words, { encoding: 'utf8' }), /, 0 faults/, command);
  }
  rmSync(dirname(file), { recursive: true });
});

test('how does this session move', async (t) => {
  const { id } = (await json('/lex/console/receipts?show=refused&limit=50')).receipts.find((r) => r.prev);
  const page = await open(t, { hash: `#/r/${id}` });
  await page.getByRole('link', { name: /^session s_/ }).click();
  await page.getByRole('heading', { name: /^Session s_/ }).waitFor();
  await page.getByRole('img', { name: /The state on the simplex/ }).waitFor();
  await page.getByRole('img', { name: /^Margin by turn/ }).waitFor();
  await page.getByRole('img', { name: /^Running sum by turn/ }).waitFor();
  const { steps } = await json(`/lex/console/chains/${id}?limit=500`);
  assert.equal(await page.getByRole('region', { name: 'The turns of this session' }).getByRole('row').count(), steps.length + 1);
});

test('a receipt that does not exist, and an address that is no view', async (t) => {
  const page = await open(t, { hash: '#/r/KRN-00000000000000000000000000000000', allow: /404/ });
  await page.getByText('No such receipt here').waitFor();
  await go(page, '#/constructor?range=__proto__&from=-1&to=x');
  await page.getByRole('heading', { name: 'Everything that needs a look' }).waitFor();
});

for (const dark of [false, true]) {
  for (const width of [1440, 390, 320]) {
    test(`every view, ${dark ? 'dark' : 'light'}, ${width} px`, async (t) => {
      const page = await open(t, { dark, width, height: width > 800 ? 900 : 844 });
      for (const [name, hash] of Object.entries(await views())) {
        await go(page, hash);
        await page.locator(settled[name]).first().waitFor();
        await noSidewaysScroll(page, name);
        if (width !== 320) await accessible(page, `${name}, ${dark ? 'dark' : 'light'}, ${width} px`);
      }
    });
  }
}

test('a turn that nobody read is never green and has no numbers', async (t) => {
  const unread = await one('gap=whole');
  const page = await open(t, { hash: `#/r/${unread.id}?show=uninspected&gap=whole` });
  const line = rows(page).first();
  assert.match(await line.innerText(), /Uninspected[^]*not scored[^]*no step[^]*nothing/);
  await page.getByText('Not scored, no step.', { exact: true }).waitFor();
  const green = (locator) => locator.evaluate((element) => {
    const good = document.createElement('i');
    good.className = 'good';
    element.append(good);
    const { color } = getComputedStyle(good);
    good.remove();
    return [element, ...element.querySelectorAll('*')].filter((e) => [getComputedStyle(e).color, getComputedStyle(e).backgroundColor].includes(color)).map((e) => e.outerHTML.slice(0, 80));
  });
  assert.deepEqual(await green(line), []);
  for (const name of ['What the detectors saw', 'How the state moved', 'What was inspected']) {
    assert.deepEqual(await green(page.getByRole('heading', { name }).locator('xpath=ancestor::section')), [], name);
  }
});

test('a plain turn of /lex/govern is no gap', async (t) => {
  const { id } = (await json('/lex/console/receipts?limit=1000')).receipts.find((r) => r.endpoint.includes('govern'));
  const page = await open(t, { hash: `#/r/${id}?show=all` });
  await page.getByRole('heading', { name: 'Answered' }).waitFor();
  await page.getByRole('heading', { name: 'What was inspected' }).locator('..').getByText('in full').waitFor();
  await go(page, '#/coverage');
  await page.getByRole('region', { name: 'Parts that nobody read' }).waitFor();
  assert.equal(await page.getByRole('link').filter({ visible: true }).evaluateAll((links, id) => links.filter((a) => a.hash.includes(id)).length, id), 0);
});

test('a tampered receipt fails in both columns', async (t) => {
  const { id } = await one('show=refused&attack_type=identity');
  const page = await open(t, {
    hash: `#/r/${id}`, before: (p) => p.route(/\/audits\/KRN-/, async (route) => {
      const response = await route.fetch();
      const record = (await response.text()).replace(/"severity":0\.(\d)/, (_, digit) => `"severity":0.${(Number(digit) + 8) % 10}`);
      await route.fulfill({ response, body: record });
    }),
  });
  const form = page.getByRole('row', { name: /^form/ });
  await form.getByText('failed', { exact: true }).first().waitFor();
  assert.equal(await form.getByText('failed', { exact: true }).count(), 2);
  const replay = page.getByRole('row', { name: /^replay/ });
  await replay.getByText(/severity is 0\.\d+, and follows as 0\.\d+/).waitFor();
  assert.match(await page.locator('.proof .total').innerText(), /^\d failed$/);
});

test('strangers’ texts stay texts', async (t) => {
  const page = await open(t, {
    before: async (p) => {
      const hostile = ['</script><script>alert(1)</script>', '\u202Etxt.exe', 'x'.repeat(8192), '<img src=x onerror=alert(1)>', '=HYPERLINK("http://a")', 'zero\u200Bwidth\u00AD\u2066'];
      await answer(p, 'receipts', () => ({ body: { receipts: hostile.map((text, n) => row(n, { session_id: text, model: text, endpoint: text, reason: null, gap: 'part', verdict: 'uninspected', flags: ['uninspected'], gaps: [{ part: text, why: text, bytes: 1 }] })), scanned: 6, complete: true, next: null } }));
    },
  });
  await rows(page).first().waitFor();
  const text = await grid(page).innerText();
  assert.ok(text.includes('</script><script>alert(1)</script>') && text.includes('\\u{202e}txt.exe') && text.includes('zero\\u{200b}width\\u{ad}\\u{2066}'), text);
  assert.ok(!/[\u202E\u200B\u00AD\u2066]/.test(text) && !/x{200}/.test(text));
  await noSidewaysScroll(page, 'hostile rows');

  // The server keeps hostile names of models by their hashes; the page does not count on it.
  await page.route(/\/audits\/KRN-/, async (route) => {
    const response = await route.fetch();
    const record = JSON.parse(await response.text());
    await route.fulfill({ response, body: JSON.stringify({ ...record, model: '</script><img src=x onerror=alert(1)>\u202Egnp.exe' }) });
  });
  await go(page, `#/r/${(await one('show=refused&attack_type=identity')).id}`);
  await page.getByText('</script><img src=x onerror=alert(1)>\\u{202e}gnp.exe').first().waitFor();
});

test('ten thousand receipts are few elements', async (t) => {
  const kinds = [ // as many that an element gets another one in each frame
    {}, { verdict: 'corrected', reason: null, severity: 0.4, m_before: 0.04, m_after: 0.12 }, { verdict: 'answered', reason: null, attack_type: 'none', severity: 0.03, m_after: 0.31 },
    { verdict: 'uninspected', reason: null, gap: 'part', gaps: [{ part: 'image_url', why: 'image', bytes: 10 }], scored: false }, { verdict: 'would_refuse', severity: 0.77 },
  ];
  const page = await open(t, {
    before: (p) => answer(p, 'receipts', (query) => {
      const first = Number((query.get('before') ?? 'c-1').slice(1)) + 1;
      return { body: { receipts: Array.from({ length: 1000 }, (_, n) => row(first + n, kinds[(first + n) % kinds.length])), scanned: 1000, complete: true, next: first + 1000 < 10_000 ? `c${first + 999}` : null } };
    }),
  });
  await rows(page).first().waitFor();
  while ((await grid(page).getAttribute('aria-rowcount')) !== '10001') {
    await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
    await page.waitForTimeout(50); // for the page to ask for the next thousand
  }
  // The list is dragged: every frame is two windows further on, and fills all rows anew. How long
  // that takes is told and not asserted, because what else runs on the machine adds to it.
  const { work, waits } = await drag(page, 1900, 180);
  const sorted = (times) => times.toSorted((a, b) => a - b);
  t.diagnostic(`a frame takes the page's thread ${sorted(work)[90].toFixed(1)} ms, the longest ${Math.max(...work).toFixed(1)} ms; they came every ${sorted(waits)[90].toFixed(1)} ms, 95 % within ${sorted(waits)[171].toFixed(1)} ms`);
  const elements = await page.evaluate(() => document.querySelectorAll('.grid *').length);
  const rowsThere = await page.evaluate(() => document.querySelectorAll('.rows .row').length);
  assert.ok(rowsThere < 60 && elements < 700, `${rowsThere} rows, ${elements} elements`);
  const devtools = await page.context().newCDPSession(page);
  await devtools.send('HeapProfiler.collectGarbage');
  const { usedSize } = await devtools.send('Runtime.getHeapUsage');
  t.diagnostic(`${(usedSize / 1e6).toFixed(1)} MB of heap`);
  assert.ok(usedSize < 40e6, `${usedSize} bytes of heap`);
  await grid(page).press('End');
  await page.getByText('s_9999', { exact: true }).waitFor();
});

test('new receipts come by themselves, and wait where they would move the list', async (t) => {
  const page = await open(t, { hash: '#/now?show=refused' });
  const newest = () => rows(page).first().getByRole('link').getAttribute('href');
  await rows(page).first().waitFor();
  await page.mouse.move(5, 5);
  const first = await newest();
  await say(attack, 'live-1');
  await assert.doesNotReject(page.waitForFunction((old) => document.querySelector('.rows .row a').getAttribute('href') !== old, first));

  await rows(page).nth(3).hover();
  const second = await newest();
  await say(attack, 'live-2');
  await page.getByRole('button', { name: '1 new' }).waitFor();
  assert.equal(await newest(), second);
  await page.getByRole('button', { name: '1 new' }).click();
  await page.waitForFunction((old) => document.querySelector('.rows .row a').getAttribute('href') !== old, second);

  await page.getByRole('button', { name: 'Live' }).click();
  await page.getByRole('button', { name: 'Paused' }).waitFor();
});

test('a stream that was cut is caught up, without loss and without doubles', async (t) => {
  const between = await proxy(t);
  const page = await open(t, { base: between.base, hash: '#/now?show=refused', allow: /ERR_|Failed to load/ });
  await rows(page).first().waitFor();
  await page.mouse.move(5, 5);
  await page.getByRole('button', { name: 'Live' }).waitFor();
  await say(attack, 'cut-0');
  await page.getByText(/^Last receipt/).waitFor();
  between.cut();
  await page.getByText(/^Not live since \d\d:\d\d:\d\d/).waitFor();
  for (let i = 1; i <= 3; i++) await say(attack, `cut-${i}`);
  between.mend();
  const { receipts } = await json('/lex/console/receipts?show=refused&limit=1000');
  await page.getByText(`${receipts.length}, newest first`).waitFor();
  const shown = await page.evaluate(() => [...document.querySelectorAll('.rows .row:not([hidden]) a')].map((a) => a.getAttribute('href')));
  assert.equal(new Set(shown).size, shown.length);
  const newest = receipts.slice(0, 4).map((r) => r.id);
  for (const id of newest) assert.ok(shown.some((href) => href.includes(id)), `${id} is not shown`);
});

test('the key: asked for, wrong, right, never in an address, gone with the tab’s memory', async (t) => {
  const addresses = [];
  const page = await open(t, { base: process.env.LEX_KEYED, allow: /401/, before: (p) => p.on('request', (r) => addresses.push(r.url())) });
  await page.getByLabel('Key', { exact: true }).fill('not-the-key');
  await page.getByRole('button', { name: 'Open' }).click();
  await page.getByRole('alert').waitFor();
  await accessible(page, 'the form for the key');
  await page.getByLabel('Key', { exact: true }).fill(process.env.LEX_READ);
  await page.getByRole('button', { name: 'Open' }).click();
  await rows(page).first().click();
  await page.getByText('nothing failed').waitFor();
  await page.reload();
  await page.getByLabel('Key', { exact: true }).fill(process.env.LEX_READ);
  await page.getByLabel('Keep it while this tab is open').check();
  await page.getByRole('button', { name: 'Open' }).click();
  await rows(page).first().waitFor();
  await page.reload();
  await rows(page).first().waitFor();
  assert.ok(addresses.every((address) => !address.includes(process.env.LEX_READ)));
  assert.equal((await page.context().cookies()).length, 0);
});

test('one failed part leaves the others, and says what the API said', async (t) => {
  let times = 0;
  const page = await open(t, {
    allow: /429|500|503/, before: async (p) => {
      await answer(p, 'counts', () => ({ status: times++ ? 500 : 429, headers: { 'retry-after': '1' }, body: times > 1 ? { error: 'The store does not answer.', code: 'governor_unavailable' } : { error: 'Too many requests.', code: 'rate_limited' } }));
    },
  });
  await page.getByText('Too many requests.').waitFor();
  await rows(page).first().waitFor();
  await page.getByText('The store does not answer.', { exact: true }).waitFor(); // it asked again by itself
  await page.unroute(() => true).catch(() => {});
  await page.unrouteAll();
  await page.getByRole('button', { name: 'Retry' }).click();
  await page.getByRole('link', { name: /^Refused \d/ }).waitFor();
});

test('a store that does not answer is said in the first line', async (t) => {
  const health = (store) => `event: health\ndata: ${JSON.stringify({ status: store === 'ok' ? 'ok' : 'degraded', components: { detector: 'ok', store } })}\n\n`;
  let store = 'degraded';
  const page = await open(t, {
    before: (p) => p.route((url) => url.pathname === '/lex/console/events', (route) => route.fulfill({ headers: { 'content-type': 'text/event-stream' }, body: health(store) })),
  });
  await page.getByText('nothing passes unrecorded').waitFor();
  store = 'ok';
  await page.getByText('Store and detectors work.').waitFor(); // the stream is taken up again
});

test('of a server that does not answer nothing is said that is not known', async (t) => {
  const between = await proxy(t);
  const page = await open(t, { base: between.base, allow: /ERR_|Failed to load|502/ });
  const state = page.locator('.state');
  const says = (words) => state.getByText(words).waitFor();
  await says('Governing.');
  between.cut();
  await says('The server does not answer');
  assert.doesNotMatch(await state.innerText(), /Governing/);
  between.mend();
  await says('Governing.');

  await page.getByRole('button', { name: 'Live' }).click(); // paused: only what a view asks for is heard
  between.cut();
  await go(page, '#/coverage');
  await says('The server does not answer');
  assert.doesNotMatch(await state.innerText(), /Governing/);
  between.mend();

  // What answers in the place of the server is not the server.
  await page.route((url) => url.pathname.startsWith('/lex/'), (route) => route.fulfill({ status: 502, body: 'Bad Gateway' }));
  await go(page, '#/enforce');
  await page.getByText('The server answered 502').first().waitFor();
  assert.doesNotMatch(await state.innerText(), /Governing/);
});

test('a server that does not say how it does is not called governing', async (t) => {
  const page = await open(t, { allow: /429/, before: (p) => answer(p, 'events', () => ({ status: 429, body: { error: 'Too many requests.', code: 'rate_limited' } })) });
  await rows(page).first().waitFor();
  await page.locator('.state').getByText('Not known.').waitFor();
});

test('the keyboard does everything, and can be turned off', async (t) => {
  const page = await open(t);
  await rows(page).first().waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  const receipt = page.getByRole('complementary', { name: 'Receipt' });
  await receipt.getByRole('heading', { name: 'What was inspected' }).waitFor();
  const first = await page.evaluate(() => location.hash);
  await page.keyboard.press('j');
  await page.waitForFunction((old) => location.hash !== old, first);
  await page.keyboard.press('s');
  await page.getByRole('heading', { name: /^Session/ }).waitFor();
  for (const [key, heading] of [['2', /inspected in full/], ['3', /^Enforce would/], ['4', /lowest margins/], ['5', /^Evidence/], ['1', /needs a look/]]) {
    await page.keyboard.press(key);
    await page.getByRole('heading', { level: 1, name: heading }).waitFor();
  }
  await page.keyboard.press('/');
  await page.getByLabel('Mode').selectOption('observe');
  await page.getByRole('link', { name: /^Mode: observe/ }).waitFor();
  await page.getByRole('link', { name: /^Mode: observe/ }).click();
  await page.keyboard.press('t');
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keyboard' }).getByLabel('Single keys are shortcuts').uncheck();
  await page.getByRole('button', { name: 'Close' }).click();
  await page.keyboard.press('5');
  await page.getByRole('heading', { level: 1, name: /needs a look/ }).waitFor();
  assert.match(await page.evaluate(() => location.hash), /^#\/now/);
});

test('a span that is dragged is frozen in the address, and so is a link that is copied', async (t) => {
  const page = await open(t);
  const plot = page.locator('.u-over').first();
  await plot.waitFor();
  const box = await plot.boundingBox();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 10);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width - 2, box.y + 10, { steps: 4 });
  await page.mouse.up();
  await page.waitForFunction(() => /from=\d+&to=\d+/.test(location.hash));
  await page.getByRole('link', { name: /back to now/ }).click();
  await page.waitForFunction(() => !location.hash.includes('from='));

  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByRole('link', { name: /^Uninspected \d/ }).click();
  await page.getByRole('button', { name: 'Copy link' }).click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(copied, /\/lex\/console#\/now\?from=\d+&to=\d+&show=uninspected$/);
});

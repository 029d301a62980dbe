// Builds ../console.html: one file with its script and its style inside, and the licence
// of uPlot. The same sources give the same bytes; a test builds it again and compares.
import { readFileSync, writeFileSync } from 'node:fs';
import { build } from 'esbuild';

const read = (name) => readFileSync(new URL(name, import.meta.url), 'utf8');
const bundle = async (entry) => {
  const { outputFiles } = await build({
    entryPoints: [new URL(entry, import.meta.url).pathname], absWorkingDir: new URL('.', import.meta.url).pathname,
    bundle: true, minify: true, write: false, format: 'iife', target: 'es2022', charset: 'ascii', legalComments: 'none',
  });
  return outputFiles[0].text.trim();
};

const [script, style] = await Promise.all([bundle('main.js'), bundle('style.css')]);
if (/<\/(script|style)|<!--/i.test(script + style)) throw new Error('the bundle would end its own element');

const page = read('page.html')
  .replace('/* style */', () => style)
  .replace('/* script */', () => script)
  .replace('/* licence */', () => `\nThe charts are drawn by uPlot ${read('node_modules/uplot/package.json').match(/"version": "(.*)"/)[1]}.\n\n${read('node_modules/uplot/LICENSE').trim()}\n`);
writeFileSync(process.argv[2] ?? new URL('../console.html', import.meta.url), page);

// The shapes of the verdicts. Each has a word beside it: the shape and the colour never
// stand alone.
import { svg } from './dom.js';

const paths = {
  blocked: 'M2 2h10v10H2z', refused: 'M2 2h10v10H2z', would_refuse: 'M7 1.6 12.4 7 7 12.4 1.6 7z',
  failed: 'M3 3l8 8M11 3l-8 8', corrected: 'M7 1.8 13 12.2H1z', uninspected: 'M7 1.5a5.5 5.5 0 0 1 0 11z', answered: 'M7 5a2 2 0 1 1 0 4 2 2 0 0 1 0-4z',
};
const outlined = new Set(['would_refuse', 'failed']);

/** The mark of a verdict. Its colour is that of the text. */
export function mark(verdict) {
  return svg('svg', { class: 'mark', viewBox: '0 0 14 14', 'aria-hidden': 'true' },
    svg('path', { class: outlined.has(verdict) ? 'outlined' : 'solid', d: paths[verdict] ?? paths.answered }),
    verdict === 'uninspected' && svg('circle', { class: 'outlined', cx: 7, cy: 7, r: 5.2 }));
}

/** The mark of the page itself: the simplex with a state in it. */
export const logo = () => svg('svg', { class: 'logo', viewBox: '0 0 20 20', 'aria-hidden': 'true' },
  svg('path', { class: 'outlined', d: 'M10 2.6 18.4 17H1.6z' }), svg('circle', { class: 'solid', cx: 10, cy: 12.2, r: 2 }));

const icons = {
  now: 'M4 16v-5M8 16V5M12 16V9M16 16V3', coverage: 'M10 3a7 7 0 1 0 0 14a7 7 0 1 0 0-14M10 3v14', enforce: 'M3 7h9M16 7h1M3 13h2M9 13h8M14 5v4M7 11v4',
  session: 'M10 3.5 17.5 16.5H2.5z', evidence: 'M4 10.5l4 4 8-9',
};

/** The sign of a view in the navigation of the phone. */
export const icon = (view) => svg('svg', { class: 'icon', viewBox: '0 0 20 20', 'aria-hidden': 'true' }, svg('path', { class: 'outlined', d: icons[view] }));

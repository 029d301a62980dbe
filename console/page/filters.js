// The place and the filters stand in the fragment, so that every view is a link:
// #/view/id?range=1h&show=refused. Changing the view keeps the filters.

const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

/**
 * The spans that roll with the clock, and the width of a bucket in each: 60 to 72 of them.
 * It has no names but these, because what an address says is looked up here.
 */
export const ranges = {
  __proto__: null,
  '15m': { length: 15 * minute, step: 15 * second, words: '15 minutes' },
  '1h': { length: hour, step: minute, words: 'hour' },
  '6h': { length: 6 * hour, step: 5 * minute, words: '6 hours' },
  '24h': { length: 24 * hour, step: 20 * minute, words: '24 hours' },
};

const steps = [1, 5, 15, 60, 300, 1200, 3600].map((s) => s * second);

/** The filters that the page knows, by their names in the fragment and in the API. */
export const filterNames = { show: 'show', reason: 'reason', type: 'attack_type', session: 'session_id', mode: 'mode', endpoint: 'endpoint', gap: 'gap' };

/**
 * Reads a fragment.
 * @param {string} hash
 * @returns {{view: string, id: string, range: string, from: number, to: number} & Record<string, any>}
 */
export function parse(hash) {
  const [path, query] = hash.replace(/^#\/?/, '').split('?');
  const [view, id] = path.split('/');
  const given = new URLSearchParams(query);
  const place = { view: view || 'now', id: id ?? '', range: given.get('range') in ranges ? given.get('range') : '1h' };
  const [from, to] = [Number(given.get('from')), Number(given.get('to'))];
  if (from > 0 && to > from && to < 8.64e15) Object.assign(place, { from, to });
  for (const name of Object.keys(filterNames)) if (given.get(name)) place[name] = given.get(name);
  return place;
}

/** The link to a place with some of it changed; null removes a filter. */
export function link(place, changes = {}) {
  const next = { ...place, ...changes };
  const query = new URLSearchParams();
  if (next.from) {
    query.set('from', next.from);
    query.set('to', next.to);
  } else if (next.range !== '1h') {
    query.set('range', next.range);
  }
  for (const name of Object.keys(filterNames)) if (next[name]) query.set(name, next[name]);
  return `#/${next.view}${next.id ? `/${encodeURIComponent(next.id)}` : ''}${query.size ? `?${query}` : ''}`;
}

/**
 * The span that a place shows at a time, with its buckets. What rolls ends with the bucket
 * that is being filled.
 */
export function span(place, now) {
  if (place.from) {
    const step = steps.find((s) => (place.to - place.from) / s <= 90) ?? Math.ceil((place.to - place.from) / 90 / hour) * hour;
    return { from: Math.floor(place.from / step) * step, to: Math.ceil(place.to / step) * step, step, rolls: false };
  }
  const { length, step } = ranges[place.range];
  const to = (Math.floor(now / step) + 1) * step;
  return { from: to - length, to, step, rolls: true };
}

/** The filters of a place as parameters of the API. */
export function parameters(place) {
  return Object.fromEntries(Object.entries(filterNames).filter(([name]) => place[name]).map(([name, param]) => [param, place[name]]));
}

/** The width of a bucket in words. */
export const stepWords = (step) => (step < minute ? `${step / second} s` : step < hour ? `${step / minute} min` : `${step / hour} h`);

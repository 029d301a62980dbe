// Elements without innerHTML: the page's policy has no Trusted Types policy, so that
// nothing that is a text can become markup.

/**
 * An element. Attributes that are functions are listeners, false and null ones are left
 * out. Children that are no nodes are texts.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...any} children
 */
export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for an element of SVG. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== false && child !== null && child !== undefined));
  return element;
}

/**
 * A table with a caption for screen readers. Cells are [content, class] or the content.
 * A table that stacks shows a cell a line on a phone, with its head before it.
 */
export function table(caption, heads, rows, stacks) {
  const cell = (tag, scope) => (content, i) => {
    const [child, kind] = Array.isArray(content) ? content : [content];
    return h(tag, { class: kind, scope, 'data-head': stacks && tag === 'td' ? [heads[i]].flat()[0] : null }, child);
  };
  return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption },
    h('table', { class: stacks ? 'stacks' : null }, h('caption', { class: 'unseen' }, caption),
      h('thead', null, h('tr', null, heads.map(cell('th', 'col')))),
      h('tbody', null, rows.map((row) => h('tr', null, row.map(cell('td')))))));
}

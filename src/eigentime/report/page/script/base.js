// Elements, numbers and colours. Text only ever goes in as text: nothing here reads HTML.
const draw = {};
const content = JSON.parse(document.getElementById('data').textContent);
const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}
const el = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
const svg = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

let numbered = 0;
const unique = (word) => `${word}-${++numbered}`;

function show(value, digits = 3) {
  if (value === null || value === undefined) return '–';
  if (value === 0) return '0';
  const rounded = Number(value.toPrecision(digits));
  const text = Math.abs(rounded) >= 10 ** (digits - 1)
    ? Math.round(rounded).toLocaleString('en-US') : String(rounded);
  return text.replace('-', '−');
}
const nats = (error) => (error ? `${show(error[0])} ± ${show(error[1], 2)} nats` : '');

// Lines differ by colour, dash and mark, so that none has to be told apart by colour alone.
const DASHES = ['', '7 3', '2 3', '9 3 2 3', '5 2 1 2 1 2', '12 4'];
const KNOWN = ['uniform', 'cosine', 'eds', 'wds', 'wds-data', 'ods', 'plan', 'jys', 'eds-data', 'fisher-rao', 'sqrt-slope'];
const others = [];
function look(name) {
  const known = KNOWN.indexOf(name);
  if (known < 0 && !others.includes(name)) others.push(name);
  const place = known < 0 ? others.indexOf(name) : known;
  const strong = name === 'ods' || name.startsWith('plan');
  return {
    colour: known < 0 ? `var(--o${place % 6})` : `var(--s-${name})`,
    dash: strong ? '' : DASHES[place % DASHES.length],
    width: strong ? 2.8 : 1.8,
    mark: place % 4,
  };
}
function mark(kind, x, y, colour, size = 4) {
  const s = size;
  const path = [
    `M${x - s} ${y}a${s} ${s} 0 1 0 ${2 * s} 0a${s} ${s} 0 1 0 ${-2 * s} 0`,
    `M${x - s} ${y - s}h${2 * s}v${2 * s}h${-2 * s}z`,
    `M${x} ${y - 1.3 * s}L${x + 1.2 * s} ${y + s}H${x - 1.2 * s}z`,
    `M${x} ${y - 1.35 * s}L${x + 1.35 * s} ${y}L${x} ${y + 1.35 * s}L${x - 1.35 * s} ${y}z`,
  ][kind];
  return svg('path', { d: path, style: `fill:${colour}` });
}
function key(name, style = look(name)) {
  return svg('svg', { class: 'key', viewBox: '0 0 26 12', 'aria-hidden': 'true', style: 'width:26px' },
    svg('path', { d: 'M0 6H26', style: `stroke:${style.colour}`, 'stroke-width': style.width, 'stroke-dasharray': style.dash }),
    style.mark === undefined ? null : mark(style.mark, 13, 6, style.colour, 3.2));
}

// Controls
function slider(label, values, start, change) {
  const id = unique('slider');
  const output = el('output', { for: id }, String(values[start]));
  const input = el('input', {
    type: 'range', id, min: 0, max: values.length - 1, step: 1, value: start, 'aria-valuetext': String(values[start]),
    oninput: () => { set(Number(input.value)); },
  });
  function set(place) {
    input.value = place;
    output.textContent = values[place];
    input.setAttribute('aria-valuetext', String(values[place]));
    change(values[place]);
  }
  const node = el('div', { class: 'control grow' }, el('label', { for: id }, `${label}: `, output), input);
  return { node, set };
}
function choice(label, names, start, change) {
  const id = unique('choice');
  const select = el('select', { id, onchange: () => change(select.value) },
    ...names.map((name) => el('option', { value: name, selected: name === start ? '' : null }, name)));
  return el('div', { class: 'control' }, el('label', { for: id }, label), select);
}
function chips(label, names, type, checked, change, keyed) {
  const group = unique('chips');
  const inputs = names.map((name) => el('input', {
    type, name: group, value: name, checked: checked.includes(name) ? '' : null,
    onchange: () => change(inputs.filter((input) => input.checked).map((input) => input.value)),
  }));
  return el('fieldset', {}, el('legend', {}, label), el('div', { class: 'chips' },
    ...names.map((name, place) => el('label', {}, inputs[place], keyed ? key(name) : null, String(name)))));
}

// Draws now, and again whenever the width changes.
function fitted(host, paint) {
  let width = 0;
  const again = () => {
    const now = Math.floor(host.clientWidth);
    if (now > 0) { width = now; paint(now); }
  };
  new ResizeObserver(() => { if (Math.floor(host.clientWidth) !== width) again(); }).observe(host);
  again();
  return again;
}

// One chart: lines with bands or bars over a plain, logarithmic or nearly logarithmic axis.
const KINDS = {
  plain: { to: (v) => v, ticks: plainTicks },
  log: { to: (v) => Math.log10(v), ticks: logTicks },
  near: { to: (v) => Math.asinh(v), ticks: nearTicks }, // logarithmic away from 0, plain around it
};
function plainTicks(low, high, count) {
  const raw = (high - low) / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k += 1) ticks.push(Number((k * step).toPrecision(8)));
  return ticks;
}
function logTicks(low, high) {
  const all = [];
  for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p += 1) all.push(10 ** p, 3 * 10 ** p);
  const inside = all.filter((v) => v >= low * 0.999 && v <= high * 1.001);
  return inside.length > 7 ? inside.filter((v) => Math.abs(Math.log10(v) % 1) < 1e-6) : inside;
}
function nearTicks(low, high) {
  const positive = [1, 3, 10, 30, 100, 300, 1e3, 3e3, 1e4, 3e4, 1e5, 1e6];
  return [...positive.map((v) => -v), 0, ...positive].filter((v) => v >= low && v <= high);
}

function chart(host, spec) {
  const figure = el('figure', {});
  const holder = el('div', {});
  const readout = el('p', { class: 'readout' });
  if (spec.title) figure.append(el('figcaption', {}, el('h3', {}, spec.title), spec.unit || ''));
  figure.append(holder, readout);
  if (spec.about) figure.append(el('figcaption', {}, spec.about));
  host.append(figure);
  let now = spec;
  const again = fitted(holder, (width) => holder.replaceChildren(paint(now, width, readout)));
  return (changes) => { now = { ...now, ...changes }; again(); };
}

function paint(spec, width, readout) {
  const series = spec.series.filter((line) => !spec.hidden || !spec.hidden.has(line.name));
  const height = spec.height || 260;
  const box = { left: 52, right: width - 10, top: 12, bottom: height - 38 };
  const xKind = KINDS[spec.xKind || 'plain'];
  const yKind = KINDS[spec.yKind || 'plain'];
  const xs = spec.series.flatMap((line) => line.x);
  const [x0, x1] = spec.xDomain || [Math.min(...xs), Math.max(...xs)];
  const [y0, y1] = spec.yDomain || extent(spec);
  const scale = (kind, v, v0, v1, p0, p1) => p0 + ((kind.to(v) - kind.to(v0)) / ((kind.to(v1) - kind.to(v0)) || 1)) * (p1 - p0);
  const x = (v) => scale(xKind, v, x0, x1, box.left, box.right);
  const y = (v) => scale(yKind, v, y0, y1, box.bottom, box.top);
  const inside = (v) => Math.max(Math.min(v, box.bottom + 400), box.top - 400);
  const root = svg('svg', { viewBox: `0 0 ${width} ${height}`, height, role: 'img', 'aria-label': spec.label });
  const clip = unique('clip');
  root.append(svg('clipPath', { id: clip }, svg('rect', { x: box.left, y: box.top - 6, width: Math.max(0, box.right - box.left + 6), height: box.bottom - box.top + 12 })));

  for (const tick of yKind.ticks(y0, y1, 5)) {
    root.append(svg('line', { class: tick === 0 ? 'axis' : 'rule', x1: box.left, x2: box.right, y1: y(tick), y2: y(tick) }));
    root.append(svg('text', { x: box.left - 8, y: y(tick) + 4, 'text-anchor': 'end' }, (spec.yFormat || show)(tick)));
  }
  root.append(svg('line', { class: 'axis', x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  let last = -Infinity;
  for (const tick of spec.xTicks || xKind.ticks(x0, x1, 5)) {
    const at = x(tick);
    if (at - last < 26) continue;
    last = at;
    root.append(svg('line', { class: 'axis', x1: at, x2: at, y1: box.bottom, y2: box.bottom + 5 }));
    root.append(svg('text', { x: at, y: box.bottom + 18, 'text-anchor': 'middle' }, show(tick)));
  }
  root.append(svg('text', { x: (box.left + box.right) / 2, y: height - 4, 'text-anchor': 'middle' }, spec.xLabel));

  const lines = svg('g', { 'clip-path': `url(#${clip})` });
  for (const line of series) {
    const style = line.style || look(line.name);
    const points = line.x.map((v, k) => ({ v, k })).filter(({ k }) => finite(line.y[k], spec));
    if (line.low && !spec.points) {
      const band = points.filter(({ k }) => line.low[k] !== null && line.high[k] !== null);
      const path = [...band.map(({ v, k }) => `${x(v)} ${inside(y(line.high[k]))}`), ...band.reverse().map(({ v, k }) => `${x(v)} ${inside(y(line.low[k]))}`)];
      if (path.length) lines.append(svg('path', { d: `M${path.join('L')}z`, style: `fill:${style.colour}`, 'fill-opacity': 0.18 }));
    }
    const path = points.map(({ v, k }) => `${x(v)} ${inside(y(line.y[k]))}`);
    if (path.length) {
      lines.append(svg('path', {
        d: `M${path.join('L')}`, fill: 'none', style: `stroke:${style.colour}`, 'stroke-width': style.width,
        'stroke-dasharray': style.dash, 'stroke-linejoin': 'round',
      }));
    }
    if (spec.points) {
      for (const { v, k } of points) {
        if (line.low && line.low[k] !== null && line.high[k] !== null) {
          const floor = finite(line.low[k], spec) ? y(line.low[k]) : box.bottom + 20;
          lines.append(svg('line', { x1: x(v), x2: x(v), y1: inside(floor), y2: inside(y(line.high[k])), style: `stroke:${style.colour}`, 'stroke-width': 1.6, 'stroke-opacity': 0.75 }));
        }
        lines.append(mark(style.mark || 0, x(v), y(line.y[k]), style.colour, 3.6));
      }
    }
  }
  root.append(lines);
  if (spec.level !== undefined && spec.level >= y0 && spec.level <= y1) {
    root.append(svg('line', { x1: box.left, x2: box.right, y1: y(spec.level), y2: y(spec.level), style: 'stroke:var(--ink)', 'stroke-width': 1.2, 'stroke-dasharray': '4 3' }));
    root.append(svg('text', { class: 'strong', x: box.right, y: y(spec.level) - 6, 'text-anchor': 'end' }, spec.levelLabel));
  }
  const cursor = svg('line', { class: 'axis', y1: box.top, y2: box.bottom, visibility: 'hidden' });
  root.append(cursor);
  const look_at = (event) => {
    const at = ((event.clientX - root.getBoundingClientRect().left) / root.getBoundingClientRect().width) * width;
    const all = [...new Set(series.flatMap((line) => line.x))];
    if (!all.length) return;
    const nearest = all.reduce((best, v) => (Math.abs(x(v) - at) < Math.abs(x(best) - at) ? v : best));
    cursor.setAttribute('x1', x(nearest)); cursor.setAttribute('x2', x(nearest)); cursor.setAttribute('visibility', 'visible');
    const told = series.map((line) => [line.name, line.y[line.x.indexOf(nearest)]]).filter((pair) => pair[1] !== undefined && pair[1] !== null);
    readout.textContent = `${spec.at(nearest)}: ${told.map(([name, v]) => `${name} ${(spec.yFormat || show)(v)}`).join(' · ')}`;
  };
  root.addEventListener('pointermove', look_at);
  root.addEventListener('pointerdown', look_at);
  root.addEventListener('pointerleave', () => cursor.setAttribute('visibility', 'hidden'));
  return root;
}

const finite = (v, spec) => v !== null && v !== undefined && (spec.yKind !== 'log' || v > 0);

// What the means span, with a little room; bars and bands may be cut.
function extent(spec) {
  const values = spec.series.flatMap((line) => line.y.concat(spec.points ? [...line.low, ...line.high] : [])).filter((v) => finite(v, spec));
  let [low, high] = [Math.min(...values), Math.max(...values)];
  if (!values.length) return [0, 1];
  if (spec.yKind === 'log') return [Math.max(low, high / 1e5) / 1.3, high * 1.3];
  if (spec.yKind !== 'near') { low = Math.min(0, low); high = Math.max(0, high); }
  const room = (high - low || 1) * 0.05;
  return [low < 0 ? low - room : low, high + room];
}
function logged(lines) {
  const values = lines.flatMap((line) => line.y).filter((v) => v !== null);
  return values.length && Math.min(...values) > 0 && Math.max(...values) / Math.min(...values) > 12;
}

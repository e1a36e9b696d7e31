draw.steps = (host, data) => {
  const names = data.strategies.map((each) => each.name);
  let shown = names;
  let count = data.counts.includes(8) ? 8 : data.counts[Math.floor(data.counts.length / 2)];
  const holder = el('div', {});
  const readout = el('p', { class: 'readout', 'aria-live': 'polite' });
  const again = () => { repaint(); told(); };
  host.append(
    el('div', { class: 'controls' }, slider('Network evaluations', data.counts, data.counts.indexOf(count), (value) => { count = value; again(); }).node),
    chips('Strategies', names, 'checkbox', names, (chosen) => { shown = chosen; again(); }, true),
    el('figure', {}, holder), readout,
  );
  const repaint = fitted(holder, (width) => holder.replaceChildren(rails(data, count, shown, width)));
  function told() {
    const without = data.strategies.filter((each) => shown.includes(each.name) && !each.grids[count]).map((each) => each.name);
    readout.textContent = without.length ? `This page holds no schedule of ${without.join(', ')} with ${count} evaluations.` : '';
  }
  told();
};
function rails(data, count, shown, width) {
  const rows = data.strategies.filter((each) => shown.includes(each.name) && each.grids[count]);
  const hill = 96; const row = 44; const height = hill + rows.length * row + 40;
  const left = 8; const right = width - 8;
  const x = (t) => left + t * (right - left);
  const tallest = Math.max(...data.rate.filter((v) => v !== null), 1e-9);
  const y = (v) => hill - Math.min(1, (v ?? 0) / tallest) * (hill - 16);
  const root = svg('svg', {
    viewBox: `0 0 ${width} ${height}`, height, role: 'img',
    'aria-label': `Times of the steps with ${count} evaluations. ${rows.map((each) => `${each.name}: ${each.grids[count].times.map((t) => show(t)).join(', ')}`).join('. ')}`,
  });
  root.append(svg('path', { d: `M${x(0)} ${hill}L${data.times.map((t, k) => `${x(t)} ${y(data.rate[k])}`).join('L')}L${x(1)} ${hill}z`, style: 'fill:var(--hill)' }));
  root.append(svg('text', { x: left, y: 11 }, 'information per unit time'));
  rows.forEach((each, k) => {
    const grid = each.grids[count]; const style = look(each.name); const at = hill + (k + 1) * row - 12;
    root.append(svg('text', { class: 'strong', x: left, y: at - 14 }, each.name));
    root.append(svg('text', { x: right, y: at - 14, 'text-anchor': 'end' }, nats(grid.error)));
    root.append(svg('line', { class: 'rule', x1: left, x2: right, y1: at, y2: at }));
    const ticks = grid.times.map((t) => `M${x(t)} ${at - 8}v16`).join('');
    root.append(svg('path', { d: ticks, fill: 'none', style: `stroke:${style.colour}`, 'stroke-width': 2.6 }));
  });
  const axis = height - 30;
  root.append(svg('line', { class: 'axis', x1: left, x2: right, y1: axis, y2: axis }));
  for (const t of [0, 0.25, 0.5, 0.75, 1]) {
    root.append(svg('line', { class: 'axis', x1: x(t), x2: x(t), y1: axis, y2: axis + 5 }));
    root.append(svg('text', { x: x(t), y: axis + 19, 'text-anchor': t === 0 ? 'start' : t === 1 ? 'end' : 'middle' }, t === 0 ? '0 data' : t === 1 ? 'noise 1' : String(t)));
  }
  return root;
}

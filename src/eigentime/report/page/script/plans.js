draw.plans = (host, data) => {
  const counts = data.plans.map((plan) => plan.count);
  const start = Math.max(0, counts.findIndex((count) => count >= 8));
  let plan = data.plans[start];
  const caption = el('p', { class: 'readout' });
  const holder = el('div', {});
  host.append(
    el('div', { class: 'controls' }, slider('Network evaluations', counts, start, (value) => { plan = data.plans[counts.indexOf(value)]; again(); }).node),
    caption, el('figure', {}, holder),
  );
  const again = fitted(holder, (width) => {
    caption.textContent = `${plan.order} order, certified ${nats(plan.error)}`;
    const row = Math.max(7, Math.min(30, Math.round(380 / plan.count)));
    const height = row * plan.count + 34; const left = 26; const right = width - 44;
    const x = (place) => left + (place / data.length) * (right - left);
    const wide = Math.max(1, (right - left) / data.length - 0.4);
    const root = svg('svg', { viewBox: `0 0 ${width} ${height}`, height, role: 'img', 'aria-label': `Plan with ${plan.count} evaluations in ${plan.order} order; they reveal ${plan.tokens.join(', ')} places.` });
    const paths = plan.tokens.map(() => []);
    plan.steps.forEach((step, place) => { if (step >= 0) paths[step].push(`M${x(place).toFixed(2)} ${step * row + row / 2}h${wide.toFixed(2)}`); });
    let last = -Infinity;
    paths.forEach((path, step) => {
      const middle = step * row + row / 2;
      root.append(svg('line', { class: 'rule', x1: left, x2: right, y1: middle, y2: middle }));
      root.append(svg('path', { d: path.join(''), fill: 'none', style: 'stroke:var(--s-plan)', 'stroke-width': row * 0.72 }));
      if (middle - last < 13) return;
      last = middle;
      root.append(svg('text', { x: left - 6, y: middle + 4, 'text-anchor': 'end' }, String(step + 1)));
      root.append(svg('text', { class: 'strong', x: right + 6, y: middle + 4 }, String(plan.tokens[step])));
    });
    root.append(svg('text', { x: left, y: height - 8 }, 'place 1'));
    root.append(svg('text', { x: right, y: height - 8, 'text-anchor': 'end' }, String(data.length)));
    root.append(svg('text', { x: width, y: height - 8, 'text-anchor': 'end' }, 'places'));
    holder.replaceChildren(root);
  });
};

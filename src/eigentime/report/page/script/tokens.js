// How sequences look. `tokens` holds -1 where nothing is known; `fresh` and `given` are sets of places.
const views = {
  text(info, tokens, fresh, given) {
    const single = Object.values(info.symbols).every((text) => text.length <= 1);
    const host = el('div', { class: 'tokens text', style: single ? 'word-break:break-all' : null });
    let run = '';
    let kind = null;
    const flush = () => {
      if (run) host.append(kind === '' ? run : el(kind, kind === 'i' ? { 'aria-hidden': 'true' } : {}, run));
      run = '';
    };
    tokens.forEach((token, place) => {
      const now = token < 0 ? 'i' : fresh.has(place) ? 'mark' : given.has(place) ? 'u' : '';
      if (now !== kind) { flush(); kind = now; }
      run += token < 0 ? (single ? 'x' : 'xxx ') : (info.symbols[token] ?? '?');
    });
    flush();
    return host;
  },
  graph(info, tokens, fresh, given, small) {
    const height = small ? 64 : 120;
    return strip(height, tokens.length, (root, x) => {
      const y = (v) => height - 8 - (v / Math.max(1, info.values - 1)) * (height - 16);
      tokens.forEach((token, place) => {
        if (token < 0) root.append(svg('rect', { x: x(place), y: height - 4, width: Math.max(0.8, x(1) - x(0)), height: 3, style: 'fill:var(--unknown)' }));
        else root.append(svg('circle', { cx: x(place + 0.5), cy: y(token), r: fresh.has(place) ? 2.8 : 2, style: `fill:${fresh.has(place) ? 'var(--s-eds)' : given.has(place) ? 'var(--soft)' : 'var(--accent)'}` }));
      });
    });
  },
  roll(info, tokens, fresh, given, small) {
    const height = small ? 84 : 150;
    return strip(height, tokens.length, (root, x) => {
      const [low, high] = range(info);
      const y = (v) => height - 6 - ((Math.min(high, Math.max(low, v)) - low) / (high - low)) * (height - 12);
      for (let bar = 0; bar <= tokens.length; bar += info.bar) root.append(svg('line', { class: 'rule', x1: x(bar), x2: x(bar), y1: 0, y2: height }));
      tokens.forEach((token, place) => {
        const wide = x(1) - x(0) + 0.3;
        if (token < 0) root.append(svg('rect', { x: x(place), y: height - 4, width: wide, height: 3, style: 'fill:var(--unknown)' }));
        else if (token !== info.rest) root.append(svg('rect', { x: x(place), y: y(token) - 2, width: wide, height: 4, style: `fill:${fresh.has(place) ? 'var(--s-eds)' : given.has(place) ? 'var(--soft)' : 'var(--accent)'}` }));
      });
    });
  },
  image(info, tokens, fresh, given, small) {
    const [channels, high, wide] = info.shape;
    const zoom = Math.max(1, Math.floor((small ? 96 : 288) / wide));
    const canvas = el('canvas', { width: wide, height: high, style: `width:${wide * zoom}px;height:${high * zoom}px;max-width:100%` });
    const pencil = canvas.getContext('2d');
    const pixels = pencil.createImageData(wide, high);
    for (let place = 0; place < high * wide; place += 1) {
      let known = 0; // a pixel that nothing is known of shows the colour behind it
      for (let channel = 0; channel < 3; channel += 1) {
        const token = tokens[channels === 1 ? place : channel * high * wide + place];
        if (token >= 0) known = 255;
        pixels.data[4 * place + channel] = token < 0 ? 128 : (255 * token) / (info.values - 1);
      }
      pixels.data[4 * place + 3] = known;
    }
    pencil.putImageData(pixels, 0, 0);
    return el('div', { class: 'tokens image' }, canvas);
  },
};
// The pitches of what was finished; noise on the way may leave them and is drawn at the rim.
function range(info) {
  if (!info.range) {
    const finished = info.scenes.flatMap((scene) => [after(info, scene, scene.steps.length).tokens, ...scene.others]).flat();
    const pitches = finished.filter((token) => token !== info.rest);
    info.range = pitches.length ? [Math.min(...pitches) - 1, Math.max(...pitches) + 1] : [0, 127];
  }
  return info.range;
}
function strip(height, length, paintInto) {
  const host = el('div', { class: 'tokens strip' });
  queueMicrotask(() => fitted(host, () => {
    const width = host.clientWidth - 28;
    const root = svg('svg', { viewBox: `0 0 ${width} ${height}`, height, 'aria-hidden': 'true' });
    paintInto(root, (place) => (place / length) * width);
    host.replaceChildren(root);
  }));
  return host;
}
function sequence(info, tokens, label, { fresh = new Set(), given = new Set(), small = false } = {}) {
  const node = views[info.kind](info, tokens, fresh, given, small);
  node.setAttribute('role', 'img');
  const text = info.kind === 'text' ? `: ${tokens.map((token) => (token < 0 ? '·' : info.symbols[token] ?? '?')).join('')}` : '';
  node.setAttribute('aria-label', label + text);
  return node;
}
// The sequence of a scene after so many steps, and what the last of them changed.
function after(info, scene, step) {
  const tokens = new Array(info.length).fill(-1);
  scene.given[0].forEach((place, k) => { tokens[place] = scene.given[1][k]; });
  let fresh = [];
  for (const [places, values] of scene.steps.slice(0, step)) {
    places.forEach((place, k) => { tokens[place] = values[k]; });
    fresh = places;
  }
  return { tokens, fresh: new Set(fresh), given: new Set(scene.given[0]) };
}

draw.samples = (host, data) => {
  const counts = [...new Set(data.scenes.map((scene) => scene.count))];
  let count = counts[Math.floor((counts.length - 1) / 2)];
  const grid = el('div', { class: 'pair many' });
  host.append(chips('Network evaluations', counts, 'radio', [count], ([value]) => { count = Number(value); again(); }), grid);
  function again() {
    grid.replaceChildren(...data.scenes.filter((scene) => scene.count === count).map((scene) => {
      const { tokens, given } = after(data, scene, scene.steps.length);
      const all = [tokens, ...scene.others];
      return el('div', {}, el('h3', { class: 'strategy' }, key(scene.strategy), scene.strategy),
        ...(data.kind === 'image' ? [pictures(data, all, scene)] : all.map((one, k) => sequence(data, one, `${scene.strategy}, sample ${k + 1}`, { given, small: true }))));
    }));
  }
  again();
};
function pictures(data, all, scene) {
  const sheet = el('div', { class: 'tokens image' });
  all.forEach((one, k) => sheet.append(sequence(data, one, `${scene.strategy}, sample ${k + 1}`, { small: true })));
  return sheet;
}

draw.samples = (host, data) => {
  const counts = [...new Set(data.scenes.map((scene) => scene.count))];
  let count = counts[Math.floor(counts.length / 2)];
  const names = [...new Set(data.scenes.map((scene) => scene.strategy))];
  const telling = names.filter((name) => ['uniform', 'ods', 'plan'].includes(name));
  let shown = window.innerWidth >= 700 || telling.length < 2 ? names : telling; // all of them are a long way on a phone
  const grid = el('div', { class: 'pair many' });
  host.append(
    chips('Network evaluations', counts, 'radio', [count], ([value]) => { count = Number(value); again(); }),
    chips('Strategies', names, 'checkbox', shown, (chosen) => { shown = chosen; again(); }, true), grid,
  );
  function again() {
    grid.replaceChildren(...data.scenes.filter((scene) => scene.count === count && shown.includes(scene.strategy)).map((scene) => {
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

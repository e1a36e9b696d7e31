draw.film = (host) => {
  const data = content.samples;
  const counts = [...new Set(data.scenes.map((scene) => scene.count))];
  let count = counts[Math.floor(counts.length / 2)];
  const names = [...new Set(data.scenes.map((scene) => scene.strategy))];
  const best = names.includes('plan') ? 'plan' : names.includes('ods') ? 'ods' : names[names.length - 1];
  const chosen = [names[0], best];
  let step = Math.ceil(count / 2);
  let timer = null;
  let scrub = null;
  const controls = el('div', { class: 'controls' });
  const stage = el('div', { class: 'pair' });
  const play = el('button', { type: 'button', class: 'main', onclick: () => (timer ? stop() : start()) }, 'Play');
  const panels = chosen.map((name, side) => {
    const picture = el('div', {}); const caption = el('p', { class: 'readout' }); const bar = el('div', {});
    const node = el('div', {}, choice(side ? 'Right' : 'Left', names, name, (value) => { chosen[side] = value; paintAll(); }),
      el('div', { class: 'bar', 'aria-hidden': 'true' }, bar), caption, picture);
    stage.append(node);
    return { node, picture, caption, bar };
  });
  host.append(chips('Network evaluations', counts, 'radio', [count], ([value]) => { stop(); count = Number(value); step = Math.ceil(count / 2); layout(); }), controls, stage);
  const sceneOf = (name) => data.scenes.find((scene) => scene.count === count && scene.strategy === name);
  function layout() {
    scrub = slider('After evaluation', Array.from({ length: count + 1 }, (_, k) => k), step, (value) => { step = value; paintAll(); });
    controls.replaceChildren(play, scrub.node);
    scrub.node.addEventListener('input', stop, true);
    paintAll();
  }
  function paintAll() {
    panels.forEach((panel, side) => {
      const scene = sceneOf(chosen[side]);
      panel.node.style.setProperty('--mark', look(chosen[side]).colour);
      if (!scene) { panel.picture.replaceChildren(); panel.caption.textContent = `No film of ${chosen[side]} with ${count} evaluations.`; return; }
      const reached = Math.min(scene.steps.length, step);
      const state = after(data, scene, reached);
      const known = state.tokens.filter((token) => token >= 0).length;
      panel.bar.style.width = `${100 * (data.mask === null ? reached / scene.steps.length : known / data.length)}%`;
      panel.caption.textContent = reached === 0 ? 'Pure noise: nothing is decided yet.'
        : `Evaluation ${reached} of ${scene.steps.length}, time ${show(scene.times[reached - 1])}: ${data.mask === null ? `${state.fresh.size} of ${data.length} places changed` : `${known} of ${data.length} places known, ${state.fresh.size} of them new`}`;
      if (reached === scene.steps.length) state.fresh = new Set();
      panel.picture.replaceChildren(sequence(data, state.tokens, `${chosen[side]} after ${reached} of ${scene.steps.length} evaluations`, state));
    });
  }
  function start() {
    if (step >= count) scrub.set(0);
    play.textContent = 'Pause';
    timer = setInterval(() => { if (step >= count) stop(); else scrub.set(step + 1); }, Math.max(200, Math.min(900, 7000 / count)));
  }
  function stop() { clearInterval(timer); timer = null; play.textContent = 'Play'; }
  layout();
};

draw.errors = (host, data) => {
  const names = data.strategies.map((each) => each.name);
  let shown = new Set(names);
  const means = data.strategies.flatMap((each) => each.mean).filter((v) => v !== null && v > 0);
  const fine = Math.max(0.01, Math.min(...means)); const coarse = Math.max(...means);
  const round = (v) => Number(v.toPrecision(2));
  const levels = [...new Set(Array.from({ length: 61 }, (_, k) => round(fine * (coarse / fine) ** (k / 60))))];
  const start = nearest(levels, usual(data) ?? Math.sqrt(fine * coarse));
  let level = levels[start];
  const body = el('tbody', {});
  const table = el('table', { class: 'answer' }, el('caption', {}, 'Evaluations needed'), el('thead', {}, el('tr', {},
    el('th', { scope: 'col' }, 'strategy'), el('th', { scope: 'col' }, 'by the mean'), el('th', { scope: 'col' }, 'with 95 % confidence'))), body);
  const place = el('div', {});
  host.append(
    el('div', { class: 'controls' }, slider('Error that I accept, in nats', levels, start, (value) => { level = value; again(); }).node),
    chips('Strategies', names, 'checkbox', names, (chosen) => { shown = new Set(chosen); again(); }, true),
    el('div', { class: 'pair' }, place, el('div', {}, table, el('p', { class: 'muted' }, 'Among the numbers of evaluations that the chart shows; et.steps_for answers for any.'))),
  );
  const hidden = () => new Set(names.filter((name) => !shown.has(name)));
  const series = data.strategies.map((each) => ({ name: each.name, x: each.counts, y: each.mean, low: each.low, high: each.high }));
  const change = chart(place, {
    series, points: true, xKind: 'log', yKind: 'near', xTicks: data.counts, height: 380, xLabel: 'network evaluations',
    title: 'Certified error', unit: 'nats per sequence', at: (count) => `${count} evaluations`, level, levelLabel: `${show(level)} nats`,
    label: 'Certified error in nats against network evaluations, one line for each strategy. The numbers are in the table below.',
  });
  function needed(each, values) {
    const found = each.counts.findIndex((_, k) => values[k] !== null && values[k] <= level);
    return found < 0 ? `more than ${each.counts[each.counts.length - 1]}` : String(each.counts[found]);
  }
  function answers() {
    body.replaceChildren(...data.strategies.filter((each) => shown.has(each.name)).map((each) => el('tr', {},
      el('th', { scope: 'row' }, el('span', { class: 'strategy' }, key(each.name), each.name)), el('td', {}, needed(each, each.mean)), el('td', {}, needed(each, each.high)))));
  }
  function again() {
    change({ level, levelLabel: `${show(level)} nats`, hidden: hidden() });
    answers();
  }
  answers();
};
// What the slider starts with: the error of ODS with about eight evaluations.
function usual(data) {
  const ods = data.strategies.find((each) => each.name === 'ods');
  return ods ? ods.mean[nearest(ods.counts, 8)] : null;
}
function nearest(values, wanted) {
  return values.reduce((best, v, k) => (Math.abs(v - wanted) < Math.abs(values[best] - wanted) ? k : best), 0);
}

draw.dynamics = (host, data) => {
  const grid = el('div', { class: 'grid' });
  host.append(grid);
  const styles = [
    { colour: 'var(--s-ods)', dash: '', width: 2.4 }, { colour: 'var(--s-wds)', dash: '7 3', width: 2.2 },
    { colour: 'var(--s-plan)', dash: '2 3', width: 2.2 }, { colour: 'var(--s-jys)', dash: '9 3 2 3', width: 2 },
  ];
  for (const panel of data.panels) {
    const cell = el('div', {});
    grid.append(cell);
    const series = panel.lines.map((line, k) => ({ name: line.name, x: data.times, y: line.mean, low: line.low, high: line.high, style: styles[k % 4] }));
    chart(cell, {
      title: panel.title, unit: panel.unit, about: panel.about, series, height: 230, xDomain: [0, 1], xTicks: [0, 0.25, 0.5, 0.75, 1],
      yDomain: inner(series), xLabel: 'time (0 data, 1 noise)', at: (t) => `t = ${show(t)}`,
      label: `${panel.title} in ${panel.unit} over time, ${panel.lines.map((line) => line.name).join(' and ')}. The numbers are in the table below.`,
    });
    cell.querySelector('figcaption').append(el('div', { class: 'keys' }, ...series.map((line) => el('span', {}, key('', line.style), line.name))));
  }
};
// Rates may grow without bound at the very ends: the middle decides how tall a chart is.
function inner(series) {
  const values = series.flatMap((line) => line.y.slice(2, -2)).filter((v) => v !== null);
  const low = Math.min(0, ...values); const high = Math.max(0, ...values);
  const room = (high - low || 1) * 0.05;
  return [low < 0 ? low - room : 0, high + room];
}

draw.quality = (host, data) => {
  const names = [...new Set(data.charts.flatMap((each) => each.strategies.map((line) => line.name)))];
  const grid = el('div', { class: 'pair' });
  const changes = [];
  host.append(chips('Strategies', names, 'checkbox', names, (chosen) => changes.forEach((change) => change({ hidden: new Set(names.filter((name) => !chosen.includes(name))) })), true), grid);
  for (const each of data.charts) {
    const cell = el('div', {});
    grid.append(cell);
    const series = each.strategies.map((line) => ({ name: line.name, x: line.nfe, y: line.mean, low: line.low, high: line.high }));
    const spent = [...new Set(series.flatMap((line) => line.x))].sort((a, b) => a - b);
    changes.push(chart(cell, {
      title: each.title, unit: each.of, series, points: true, xKind: spent[0] > 0 ? 'log' : 'plain', yKind: logged(series) ? 'log' : 'plain', xTicks: spent, height: 280,
      xLabel: 'network evaluations', yFormat: each.percent ? (v) => `${show(100 * v)} %` : show, at: (nfe) => `${show(nfe)} evaluations`,
      label: `${each.title} ${each.of} against network evaluations, one line for each strategy. The numbers are in the table below.`,
    }));
  }
};

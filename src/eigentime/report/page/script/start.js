for (const [name, data] of Object.entries(content)) {
  draw[name](document.querySelector(`#${name} .drawing`), data);
}

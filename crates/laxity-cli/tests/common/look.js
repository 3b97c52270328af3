// Looks at a page once it is laid out, and leaves what is wrong with it as its only text: "[[", how much was looked at, a line for each fault, "]]".
addEventListener('load', () => {
  const wrong = new Set();
  const drawings = [...document.querySelectorAll('svg.chart')];
  const cells = [...document.querySelectorAll('.scroll td, .scroll th')];
  const overlap = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2;

  for (const drawing of drawings) {
    const place = drawing.getBoundingClientRect();
    const texts = [...drawing.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()]);
    texts.forEach(([text, box], index) => {
      if (box.left < place.left - 1 || box.right > place.right + 1) wrong.add(`cut off in a drawing: ${text}`);
      for (const [other, at] of texts.slice(index + 1)) if (overlap(box, at)) wrong.add(`texts collide: ${text} | ${other}`);
    });
    // What stands before the grid is the legend.
    const named = new Set(), drawn = new Set();
    let inLegend = true;
    for (const part of drawing.querySelectorAll('*')) {
      if (part.matches('.grid')) inLegend = false;
      for (const name of part.classList) if (/^s\d$|^slot$|^crowd$|^disturbed$/.test(name)) (inLegend ? named : drawn).add(name);
    }
    if (drawn.size > 1 || named.size > 0) for (const name of drawn) if (!named.has(name)) wrong.add(`no name for the colour ${name}: ${drawing.querySelector('desc')?.textContent}`);
  }

  for (const cell of cells) {
    const [box, place] = [cell.getBoundingClientRect(), cell.closest('.scroll').getBoundingClientRect()];
    if (box.right > place.right + 1 || box.left < place.left - 1) wrong.add(`cut off: ${cell.textContent}`);
    const [text, next] = [cell, cell.nextElementSibling].map(one => { const range = document.createRange(); if (one) range.selectNodeContents(one); return range.getBoundingClientRect(); });
    if (next.width > 0 && next.left - text.right < 9 && !cell.closest('.many')) wrong.add(`columns touch: ${cell.textContent} | ${cell.nextElementSibling.textContent}`);
    for (const other of cell.parentElement.cells) if (other !== cell && overlap(box, other.getBoundingClientRect())) wrong.add(`covered: ${cell.textContent} | ${other.textContent}`);
  }
  if (document.documentElement.scrollWidth > innerWidth) wrong.add('the page is wider than its window');

  // A number and its unit stand in one line.
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    if (node.parentElement.closest('svg, script')) continue;
    for (const found of node.data.matchAll(/\d[\d.\u202f]*[ \u00a0](ns|µs|ms|s|%)(?![\wµ])/g)) {
      const range = document.createRange();
      range.setStart(node, found.index);
      range.setEnd(node, found.index + found[0].length);
      const lines = new Set([...range.getClientRects()].map(box => Math.round(box.top)));
      if (lines.size > 1) wrong.add(`broken number: ${found[0]}`);
    }
  }

  // Where all values of a column come from one place, its heading says so.
  for (const table of document.querySelectorAll('table')) {
    const rows = [...table.tBodies[0].rows];
    for (let column = 0; column < (rows[0]?.cells.length ?? 0); column++) {
      const badges = rows.map(row => row.cells[column]?.querySelector('.o')?.textContent);
      if (badges.length > 1 && badges[0] && badges.every(badge => badge === badges[0])) wrong.add(`the same badge on all of a column: ${badges[0]}`);
    }
  }
  document.body.textContent = `[[${innerWidth} ${drawings.length} ${cells.length}\n${[...wrong].join('\n')}]]`;
});

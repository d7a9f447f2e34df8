// Returns what is wrong with the page for those who do not see it, or not well, or who
// have no mouse: the rules that break a page for them, not all there are.
(() => {
  const faults = [];
  const fault = (rule, element) => faults.push(`${rule}: ${element ? element.outerHTML.slice(0, 160) : ''}`);
  const all = selector => [...document.querySelectorAll(selector)];
  const shown = element => element.checkVisibility({visibilityProperty: true, opacityProperty: true});

  if (!/^[a-z]{2}/.test(document.documentElement.lang)) fault('no language');
  if (!document.title.trim()) fault('no title');
  if (all('main').length !== 1) fault('not one main');
  if (all('h1').length !== 1) fault('not one h1');
  if (/user-scalable=no|maximum-scale/.test(document.querySelector('meta[name=viewport]')?.content ?? 'maximum-scale')) fault('no zoom');
  if (document.scrollingElement.scrollWidth > innerWidth + 1) fault(`${document.scrollingElement.scrollWidth} wide on a screen of ${innerWidth}`);

  let level = 0;
  for (const heading of all('h1, h2, h3, h4, h5, h6').filter(shown)) {
    const now = Number(heading.localName[1]);
    if (now > level + 1) fault('a level of headings is left out', heading);
    if (!heading.textContent.trim()) fault('empty heading', heading);
    level = now;
  }

  const ids = new Set();
  for (const element of all('[id]')) {
    if (ids.has(element.id)) fault('the same id twice', element);
    ids.add(element.id);
  }
  for (const name of ['aria-labelledby', 'aria-describedby', 'aria-activedescendant', 'aria-controls', 'for']) {
    for (const element of all(`[${name}]`)) {
      for (const id of element.getAttribute(name).split(/\s+/)) if (!ids.has(id)) fault(`${name} of nothing`, element);
    }
  }

  for (const control of all('input:not([type=hidden]), select, textarea')) {
    if (!control.labels?.length && !control.getAttribute('aria-label')) fault('a control without a label', control);
  }
  for (const control of all('a, button')) {
    if (control.localName === 'a' && !control.hasAttribute('href')) fault('a link to nowhere', control);
    if (!(control.textContent.trim() || control.getAttribute('aria-label'))) fault('a link or button without a name', control);
  }
  for (const image of all('img, svg')) {
    if (image.closest('svg') !== image && image.localName === 'svg') continue;
    const named = image.getAttribute('alt') || image.getAttribute('role') === 'img' && image.getAttribute('aria-label');
    if (image.getAttribute('aria-hidden') !== 'true' && !named) fault('an image without a name', image);
  }
  for (const hidden of all('[aria-hidden=true] a, [aria-hidden=true] button, [aria-hidden=true] [tabindex]')) fault('hidden, and yet reached by keys', hidden);
  for (const element of all('[tabindex]')) if (element.tabIndex > 0) fault('an order of its own', element);

  for (const table of all('table')) {
    if (!table.querySelector('thead th[scope=col]')) fault('a table without a head', table);
    for (const th of table.querySelectorAll('th')) if (!th.getAttribute('scope')) fault('a head of nothing', th);
    const columns = table.rows[0] ? [...table.rows[0].cells].reduce((sum, cell) => sum + cell.colSpan, 0) : 0;
    for (const row of table.rows) {
      if ([...row.cells].reduce((sum, cell) => sum + cell.colSpan, 0) !== columns) fault(`not ${columns} columns`, row);
    }
  }
  for (const list of all('[role=listbox]')) if (!list.querySelector('[role=option]')) fault('a list box without options', list);
  for (const box of all('main *')) {
    const scrolls = ['auto', 'scroll'].includes(getComputedStyle(box).overflowX) && box.scrollWidth > box.clientWidth;
    if (scrolls && box.tabIndex < 0) fault('keys cannot scroll it', box);
  }

  // Contrast, from what the browser has computed.
  const context = Object.assign(document.createElement('canvas'), {width: 1, height: 1}).getContext('2d', {willReadFrequently: true});
  const known = new Map();
  const parse = colour => {
    if (!known.has(colour)) {
      context.clearRect(0, 0, 1, 1);
      context.fillStyle = colour;
      context.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
      known.set(colour, [r, g, b, a / 255]);
    }
    return known.get(colour);
  };
  const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const ground = element => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reduceRight((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const light = colour => {
    const [r, g, b] = colour.slice(0, 3).map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const contrast = (a, b) => {
    const [high, low] = [light(a), light(b)].sort((x, y) => y - x);
    return (high + .05) / (low + .05);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const judged = new Set();
  for (let text; (text = walker.nextNode());) {
    const element = text.parentElement;
    if (!text.data.trim() || judged.has(element) || element.closest('svg, noscript, script') || !shown(element)) continue;
    judged.add(element);
    const style = getComputedStyle(element);
    const size = parseFloat(style.fontSize);
    const wanted = size >= 24 || size >= 18.66 && style.fontWeight >= 700 ? 3 : 4.5;
    const below = ground(element);
    const got = contrast(over(parse(style.color), below), below);
    if (got < wanted) fault(`contrast ${got.toFixed(2)} of ${wanted}`, element);
  }
  for (const mark of all('[data-legend] li:not([hidden]) rect:not([fill]), .bar rect:not(.ground), .plot path:not(.area)')) {
    const style = getComputedStyle(mark);
    const below = ground(mark.closest('svg').parentElement);
    const opacity = parseFloat(style.opacity);
    const seen = ['fill', 'stroke'].map(name => style[name]).filter(value => value !== 'none')
      .map(value => parse(value)).map(([r, g, b, a]) => contrast(over([r, g, b, a * opacity], below), below));
    if (Math.max(...seen) < 3) fault(`contrast ${Math.max(...seen).toFixed(2)} of 3`, mark);
  }
  return faults;
})()

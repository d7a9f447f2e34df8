// Draws nodes as cells, one for each device, coloured by who holds it. The numbers are
// those of /api/v1/nodes; all that is done here is to lay them out.
import {released} from './press.js';

const most = 6000; // nodes that are drawn; a page says when there are more
const atOnce = 1000; // rows asked for at a time
const cellsOfNode = 64; // of a node with more, cells stand for several devices each
const svgNS = 'http://www.w3.org/2000/svg';
const kinds = {
  other: 'others', claims: 'claims', free: 'free', shut: 'free, not usable', lost: 'unhealthy or blocked', over: 'overcommitted',
};
const sorts = {
  node: (a, b) => compare(a.node, b.node), model: (a, b) => compare(a.model, b.model),
  allocatable: (a, b) => a.allocatable - b.allocatable, requested: (a, b) => a.requested - b.requested,
  free: (a, b) => a.free - b.free, usable: (a, b) => a.usableFree - b.usableFree, over: (a, b) => a.overcommitted - b.overcommitted,
};
const number = new Intl.NumberFormat('en');

function compare(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

class Field {
  constructor(root) {
    this.root = root;
    this.cells = root.querySelector('[data-cells]');
    this.legend = root.querySelector('[data-legend]');
    this.note = root.querySelector('[data-note]');
    this.known = new Map(); // address → {tag, body}
    this.rows = null;
    this.width = 0;
    new ResizeObserver(async () => {
      await released();
      if (this.rows && Math.abs(this.cells.clientWidth - this.width) > 1) this.draw();
    }).observe(this.cells);
    document.addEventListener('fresh', event => this.adopt(event.detail));
    this.load();
  }

  // adopt takes what a new copy of the page says, once the rows are there too.
  adopt(page) {
    const fresh = page.querySelector('[data-field]');
    if (!fresh) return;
    this.fresh = fresh;
    this.load();
  }

  async load() {
    if (this.loading) {
      this.again = true;
      return;
    }
    this.loading = true;
    try {
      const rows = [];
      let next = '';
      const seen = new Map();
      do {
        const address = `./api/v1/nodes?${this.root.dataset.query}&limit=${atOnce}${next && `&continue=${next}`}`;
        const part = await this.ask(address);
        seen.set(address, part);
        for (const row of part.body.rows) rows.push(row);
        next = part.body.continue;
      } while (next && rows.length < most);
      await released();
      this.known = seen;
      this.rows = rows;
      if (this.fresh) {
        this.root.dataset.nodes = this.fresh.dataset.nodes;
        this.legend.replaceChildren(...[...this.fresh.querySelector('[data-legend]').children].map(li => document.importNode(li, true)));
      }
      this.draw();
    } catch (error) {
      // The page says itself when nothing is heard of the controller. Cells that are
      // there stay.
      if (!this.rows) this.note.textContent = `The cells cannot be drawn: ${error.message}.`;
    } finally {
      this.loading = false;
      if (this.again) {
        this.again = false;
        this.load();
      }
    }
  }

  async ask(address) {
    const known = this.known.get(address);
    const answer = await fetch(address, {headers: known ? {'If-None-Match': known.tag} : {}, cache: 'no-store', signal: AbortSignal.timeout(15000)});
    if (answer.status === 304) return known;
    if (!answer.ok) throw new Error(`the controller answers ${answer.status}`);
    return {tag: answer.headers.get('ETag'), body: await answer.json()};
  }

  draw() {
    this.width = this.cells.clientWidth;
    const colours = new Map([...this.legend.querySelectorAll('[data-holder]')].map(li => [li.dataset.holder, `c${li.dataset.colour}`]));
    const counts = new Map();
    const models = new Map();
    for (const row of this.rows) {
      if (!models.has(row.model)) models.set(row.model, []);
      models.get(row.model).push(nodeOf(row, colours, counts));
    }
    const by = this.root.dataset.sort || 'node';
    const order = sorts[by.replace(/^-/, '')];
    const groups = [...models.keys()].sort(compare).map(model => {
      const nodes = models.get(model).sort((a, b) => (by[0] === '-' ? order(b.row, a.row) : order(a.row, b.row)) || compare(a.row.node, b.row.node));
      return new Group(model, nodes);
    });
    const plan = planFor(groups, this.width, this.rows.length);
    const before = this.groups?.find(group => group.at >= 0);
    // What has the focus loses it, and then is nowhere any more.
    const node = before?.nodes[before.at].row.node;
    const focused = document.activeElement === before?.list;
    this.groups = groups;
    this.cells.replaceChildren(...groups.map(group => group.render(plan)));
    if (before) groups.find(group => group.model === before.model)?.resume(node, focused);
    this.explain(counts);
  }

  // explain says in the legend how many cells there are of each kind.
  explain(counts) {
    for (const li of this.legend.querySelectorAll('[data-kind]')) li.remove();
    for (const li of this.legend.querySelectorAll('[data-holder]')) {
      const n = counts.get(`=${li.dataset.holder}`) ?? 0;
      li.querySelector('b').textContent = number.format(n);
      li.hidden = n === 0;
    }
    for (const [kind, label] of Object.entries(kinds)) {
      const n = counts.get(kind) ?? 0;
      if (!n) continue;
      const li = document.createElement('li');
      li.dataset.kind = kind;
      const sample = svg('svg', {width: 11, height: 11, 'aria-hidden': 'true'}, svg('rect', {class: kind, width: 11, height: 11}));
      if (kind === 'shut') sample.append(svg('rect', {width: 11, height: 11, fill: 'url(#hatch)'}));
      const name = document.createElement('span');
      name.textContent = label;
      const b = document.createElement('b');
      b.textContent = number.format(n);
      li.append(sample, name, ' ', b);
      this.legend.append(li);
    }
    const total = Number(this.root.dataset.nodes);
    const parts = [];
    if (total > this.rows.length) parts.push(`${number.format(this.rows.length)} of ${number.format(total)} nodes are drawn, the first by name; the filter shows others.`);
    if (this.rows.some(row => row.requested + row.free > cellsOfNode)) parts.push(`A node has ${cellsOfNode} cells at most; of larger ones each stands for several devices.`);
    if (!this.rows.length) parts.push('There is no node to draw.');
    this.note.textContent = parts.join(' ');
    this.note.hidden = !parts.length;
  }
}

// nodeOf decides what the cells of a row are, and counts the devices behind them.
function nodeOf(row, colours, counts) {
  const parts = [];
  const add = (kind, n, name) => {
    if (n <= 0) return;
    parts.push({kind, n});
    counts.set(name ?? kind, (counts.get(name ?? kind) ?? 0) + n);
  };
  let left = row.requested;
  for (const {namespace, devices} of row.holders ?? []) {
    const n = Math.min(devices, left);
    left -= n;
    const colour = colours.get(namespace);
    add(colour ?? 'other', n, colour && `=${namespace}`);
  }
  add('claims', left);
  add('free', row.usableFree);
  add('shut', row.free - row.usableFree);
  add('lost', Math.max(row.capacity, row.allocatable) - row.requested - row.free);
  if (row.overcommitted > 0) counts.set('over', (counts.get('over') ?? 0) + row.overcommitted);
  const total = parts.reduce((sum, part) => sum + part.n, 0);
  const scale = Math.min(1, cellsOfNode / total);
  let done = 0;
  const cells = [];
  for (const {kind, n} of parts) {
    done += n * scale;
    while (cells.length < Math.round(done)) cells.push(kind);
  }
  return {row, cells, over: Math.round(row.overcommitted * scale), held: Math.round(row.requested * scale)};
}

// planFor chooses the size of cells: as large as lets the field be about as high as a
// screen. Few nodes have a line each, with their name.
function planFor(groups, width, nodes) {
  if (nodes <= 24) {
    const longest = Math.max(...groups.flatMap(group => group.nodes.map(node => node.row.node.length)), 0);
    return {lines: true, size: 15, gap: 3, width, label: Math.min(width * .5, longest * 7.3 + 16)};
  }
  for (let size = 13; size > 3; size--) {
    const plan = {lines: false, size, gap: size > 8 ? 2 : 1, width};
    const height = groups.reduce((sum, group) => sum + group.measure(plan).height + 30, 0);
    if (height < 560) return plan;
  }
  return {lines: false, size: 3, gap: 1, width};
}

let ids = 0;

class Group {
  constructor(model, nodes) {
    this.model = model;
    this.nodes = nodes;
    this.widest = Math.max(1, ...nodes.map(node => node.cells.length));
    this.at = -1;
  }

  measure(plan) {
    const step = plan.size + plan.gap;
    if (plan.lines) {
      const columns = Math.max(1, Math.min(this.widest, Math.floor((plan.width - plan.label) / step)));
      return this.place(plan, columns, Math.ceil(this.widest / columns), plan.width, 1, plan.label);
    }
    const columns = this.widest <= 4 ? this.widest : this.widest <= 16 ? Math.ceil(this.widest / 2) : 8;
    const block = columns * step + plan.size * .7;
    return this.place(plan, columns, Math.ceil(this.widest / columns), block, Math.max(1, Math.floor(plan.width / block)), 0);
  }

  place(plan, columns, lines, block, across, left) {
    const high = lines * (plan.size + plan.gap) + (plan.lines ? 6 : plan.size * .7);
    return {columns, block, across, left, high, height: Math.ceil(this.nodes.length / across) * high};
  }

  render(plan) {
    this.plan = plan;
    const m = this.layout = this.measure(plan);
    const paths = new Map();
    const put = (kind, x, y, w, h) => {
      if (!paths.has(kind)) paths.set(kind, []);
      paths.get(kind).push(`M${round(x)} ${round(y)}h${round(w)}v${round(h)}h${round(-w)}z`);
    };
    const texts = [];
    this.nodes.forEach((node, i) => {
      const [left, top] = this.corner(i);
      node.cells.forEach((kind, j) => {
        const x = left + (j % m.columns) * (plan.size + plan.gap);
        const y = top + Math.floor(j / m.columns) * (plan.size + plan.gap);
        put(kind, x, y, plan.size, plan.size);
        if (kind === 'shut') put('hatch', x, y, plan.size, plan.size);
        if (j < node.held && j >= node.held - node.over) put('over', x + .75, y + .75, plan.size - 1.5, plan.size - 1.5);
      });
      if (node.row.states) put('hatch2', left - 1, top - 1, Math.min(node.cells.length, m.columns) * (plan.size + plan.gap) - plan.gap + 2, Math.ceil(node.cells.length / m.columns) * (plan.size + plan.gap) - plan.gap + 2);
      if (plan.lines) texts.push(svg('text', {x: 0, y: top + plan.size - 3}, short(node.row.node, Math.floor((m.left - 12) / 7.1))));
    });
    const drawing = svg('svg', {width: plan.width, height: Math.max(1, m.height), 'aria-hidden': 'true'});
    for (const [kind, d] of [...paths].sort((a, b) => rank(a[0]) - rank(b[0]))) {
      const path = svg('path', {class: kind, d: d.join('')});
      if (kind.startsWith('hatch')) path.setAttribute('fill', `url(#${kind})`);
      drawing.append(path);
    }
    this.cursor = svg('rect', {class: 'cursor', visibility: 'hidden'});
    drawing.append(...texts, this.cursor);
    return this.wrap(drawing);
  }

  // wrap makes a list of the drawing that can be walked through with the arrow keys. Its
  // one option is the node that one is at.
  wrap(drawing) {
    const title = document.createElement('h3');
    const devices = this.nodes.reduce((sum, node) => sum + Math.max(node.row.allocatable, node.row.requested), 0);
    title.textContent = this.model;
    const hint = document.createElement('span');
    hint.textContent = ` ${number.format(this.nodes.length)} ${this.nodes.length === 1 ? 'node' : 'nodes'}, ${number.format(devices)} devices`;
    title.append(hint);
    this.list = document.createElement('div');
    this.option = document.createElement('div');
    this.option.id = `option-${++ids}`;
    this.list.className = 'nodes';
    this.list.tabIndex = 0;
    this.list.dataset.model = this.model;
    const attributes = {role: 'listbox', 'aria-label': `Nodes of model ${this.model}; arrow keys go from node to node, Enter opens one`, 'aria-activedescendant': this.option.id};
    for (const [name, value] of Object.entries(attributes)) this.list.setAttribute(name, value);
    this.option.setAttribute('role', 'option');
    this.option.setAttribute('aria-selected', 'true');
    this.option.className = 'tip';
    this.describe(0);
    this.option.hidden = false;
    this.option.classList.add('hidden');
    this.list.append(drawing, this.option);
    this.list.addEventListener('pointermove', event => this.go(this.under(event), event.pointerType !== 'touch'));
    this.list.addEventListener('pointerleave', () => this.go(-1));
    this.list.addEventListener('click', event => this.open(this.under(event)));
    this.list.addEventListener('keydown', event => this.key(event));
    this.list.addEventListener('focus', () => {
      if (this.list.matches(':focus-visible')) this.go(Math.max(0, this.at));
    });
    this.list.addEventListener('blur', () => this.go(-1));
    const section = document.createElement('div');
    section.append(title, this.list);
    return section;
  }

  corner(i) {
    const m = this.layout;
    return [m.left + (i % m.across) * m.block, Math.floor(i / m.across) * m.high + 1];
  }

  under(event) {
    const box = this.list.getBoundingClientRect();
    const m = this.layout;
    const column = this.plan.lines ? 0 : Math.floor((event.clientX - box.left) / m.block);
    const i = Math.floor((event.clientY - box.top) / m.high) * m.across + column;
    return column < m.across && i >= 0 && i < this.nodes.length ? i : -1;
  }

  key(event) {
    const {across} = this.layout;
    const steps = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: across, ArrowUp: -across, Home: -Infinity, End: Infinity};
    if (event.key === 'Enter') this.open(this.at);
    else if (event.key in steps) this.go(Math.min(this.nodes.length - 1, Math.max(0, this.at + steps[event.key])));
    else return;
    event.preventDefault();
  }

  open(i) {
    if (i >= 0) location.assign(`./node?name=${encodeURIComponent(this.nodes[i].row.node)}`);
  }

  // resume goes to where a drawing before this one was.
  resume(node, focused) {
    const at = this.nodes.findIndex(other => other.row.node === node);
    if (focused) this.list.focus({preventScroll: true});
    this.go(at);
  }

  // go puts the cursor on a node and shows what there is to say of it.
  go(i) {
    if (i === this.at) return;
    this.at = i;
    const shown = i >= 0;
    this.cursor.setAttribute('visibility', shown ? 'visible' : 'hidden');
    this.option.classList.toggle('hidden', !shown);
    if (!shown) return;
    this.describe(i);
    const m = this.layout;
    const [x, y] = this.corner(i);
    const n = this.nodes[i].cells.length;
    const step = this.plan.size + this.plan.gap;
    const place = {x: x - 2, y: y - 2, width: Math.min(n, m.columns) * step - this.plan.gap + 4, height: Math.ceil(n / m.columns) * step - this.plan.gap + 4};
    for (const [name, value] of Object.entries(place)) this.cursor.setAttribute(name, Math.max(0, value));
    const wide = this.option.offsetWidth;
    this.option.style.left = `${Math.max(0, Math.min(x, this.plan.width - wide))}px`;
    this.option.style.top = `${y + place.height + 6}px`;
  }

  describe(i) {
    const {row} = this.nodes[i];
    const lines = [row.node, `${row.requested} of ${row.allocatable} requested, ${row.usableFree} usable${row.overcommitted ? `, ${row.overcommitted} overcommitted` : ''}`];
    if (row.states) lines.push(row.states.map(state => words[state] ?? state).join(', '));
    for (const {namespace, devices} of (row.holders ?? []).slice(0, 6)) lines.push(`${namespace}: ${devices}`);
    this.option.setAttribute('aria-posinset', i + 1);
    this.option.setAttribute('aria-setsize', this.nodes.length);
    this.option.replaceChildren(...lines.map((line, at) => {
      const part = document.createElement(at ? 'span' : 'b');
      part.textContent = line;
      return part;
    }));
  }
}

const words = {NotReady: 'not ready', SchedulingDisabled: 'cordoned', Tainted: 'tainted'};

function rank(kind) {
  return kind === 'over' ? 2 : kind.startsWith('hatch') ? 1 : 0;
}

function round(n) {
  return Math.round(n * 10) / 10;
}

function short(text, n) {
  return text.length <= n ? text : `${text.slice(0, n - 9)}…${text.slice(-8)}`;
}

function svg(name, attributes, ...children) {
  const element = document.createElementNS(svgNS, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

for (const root of document.querySelectorAll('[data-field]')) new Field(root);

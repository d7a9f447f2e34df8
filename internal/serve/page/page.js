// Keeps a page up to date. Every few seconds it asks whether anything has changed; if so
// it takes a new copy of the page and lets the parts that are marked data-live become
// what they are there. Nothing is rendered here, so there is nothing to escape.
import './field.js';
import {released} from './press.js';

const every = 5000; // ms between two questions
const patience = 15000; // ms without an answer after which the page says so
const asked = document.querySelector('[data-poll]')?.dataset.poll ?? './api/v1/snapshot';

let tag = null;
let heard = Date.now();
let silence = '';
let timer;

async function poll() {
  clearTimeout(timer);
  if (document.hidden) return;
  try {
    await ask();
  } catch {
    // No answer. say() tells, once it has lasted.
  }
  say();
  timer = setTimeout(poll, every);
}

async function ask() {
  const answer = await fetch(asked, {
    headers: tag ? {'If-None-Match': tag} : {}, cache: 'no-store', signal: AbortSignal.timeout(patience),
  });
  if (answer.status === 401 || answer.status === 403) {
    silence = 'You are logged out, or may not read this any more. Load the page again to log in.';
    return;
  }
  if (answer.status !== 304 && !answer.ok) {
    silence = `The controller answers ${answer.status}.`;
    return;
  }
  const changed = answer.status !== 304;
  if (changed) {
    await answer.arrayBuffer();
    await refresh();
    tag = answer.headers.get('ETag');
  }
  heard = Date.now();
  silence = '';
}

async function refresh() {
  const answer = await fetch(location.href, {headers: {Accept: 'text/html'}, cache: 'no-cache', signal: AbortSignal.timeout(patience)});
  if (!answer.ok) throw new Error(`the page answers ${answer.status}`);
  const fresh = new DOMParser().parseFromString(await answer.text(), 'text/html');
  await released();
  for (const part of document.querySelectorAll('[data-live][id]')) {
    const now = fresh.getElementById(part.id);
    if (now) become(part, now);
  }
  document.dispatchEvent(new CustomEvent('fresh', {detail: fresh}));
  tell();
}

// become changes an element into another and leaves alone what is the same, so that
// neither focus nor what has been scrolled to is lost.
function become(old, now) {
  if (old.isEqualNode(now)) return;
  if (old.nodeType !== now.nodeType || old.nodeName !== now.nodeName) {
    old.replaceWith(document.importNode(now, true));
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) {
    old.data = now.data;
    return;
  }
  for (const {name} of [...old.attributes]) if (!now.hasAttribute(name)) old.removeAttribute(name);
  for (const {name, value} of now.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const before = [...old.childNodes];
  const after = [...now.childNodes];
  for (let i = 0; i < Math.max(before.length, after.length); i++) {
    if (!before[i]) old.append(document.importNode(after[i], true));
    else if (!after[i]) before[i].remove();
    else become(before[i], after[i]);
  }
}

// say shows that the controller itself is not heard of.
function say() {
  const box = document.getElementById('silent');
  const since = Date.now() - heard;
  const text = silence || (since > patience ? 'The controller does not answer.' : '');
  if (!text) {
    box.replaceChildren();
    return;
  }
  if (!box.firstChild) {
    const alarm = document.createElement('div');
    alarm.className = 'alarm';
    alarm.append(document.createElement('strong'), ' ', document.createElement('span'));
    box.append(alarm);
  }
  box.querySelector('strong').textContent = text;
  box.querySelector('span').textContent = `The numbers below are ${age(since)} old.`;
}

// tell says how old stale data is, every second.
function tell() {
  for (const element of document.querySelectorAll('[data-age]')) {
    const text = `, ${age(Math.max(0, Date.now() - Date.parse(element.dataset.age)))} old`;
    if (element.textContent !== text) element.textContent = text;
  }
}

// age is written as the server writes it.
function age(ms) {
  const seconds = Math.floor(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} days`;
}

document.addEventListener('visibilitychange', () => {
  if (!document.hidden) poll();
});
setInterval(() => {
  tell();
  if (!document.hidden) say();
}, 1000);
poll();

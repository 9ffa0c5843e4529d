// @ts-check
// Follows the page that is open: the server says when it would be another one, and what has changed is put in its place.
// What somebody is at work in (a form, a selection, an opened detail) waits until they have left it, and what is read
// stays where it is on the screen.

const followed = document.getElementById('followed');
const FOLLOWED = 'This page keeps itself up to date.';

/** @param {string} text */
function say(text) {
  if (followed !== null && followed.textContent !== text) followed.textContent = text;
}

/** @param {Element} section */
function isAtWork(section) {
  const { activeElement } = document;
  if (
    activeElement !== null &&
    activeElement.matches('input, select, textarea') &&
    section.contains(activeElement)
  )
    return true;
  const selection = document.getSelection();
  return (
    selection !== null &&
    !selection.isCollapsed &&
    selection.anchorNode !== null &&
    section.contains(selection.anchorNode)
  );
}

/** @type {string | null} */
let waiting = null;

/** @param {string} html */
function show(html) {
  const next = new DOMParser().parseFromString(html, 'text/html');
  asOf(next.querySelector('footer time')?.getAttribute('datetime') ?? '');
  let left = false;
  for (const section of document.querySelectorAll('[data-live]')) {
    const id = section.getAttribute('data-live');
    const replacement = next.querySelector(`[data-live="${CSS.escape(id ?? '')}"]`);
    if (replacement === null || replacement.innerHTML === section.innerHTML) continue;
    if (isAtWork(section)) {
      left = true;
      continue;
    }
    replace(section, replacement);
  }
  waiting = left ? html : null;
}

/**
 * @param {Element} section
 * @param {Element} replacement
 */
function replace(section, replacement) {
  // What was opened stays open, and who stood on a link stands on it again.
  const open = new Set(
    [...section.querySelectorAll('details[open] > summary')].map((summary) => summary.textContent),
  );
  const focused = section.contains(document.activeElement) ? document.activeElement : null;
  const href = focused?.getAttribute('href') ?? null;
  const top = anchor();
  section.replaceChildren(...[...replacement.childNodes].map((node) => document.importNode(node, true)));
  for (const details of section.querySelectorAll('details')) {
    if (open.has(details.querySelector('summary')?.textContent ?? '')) details.open = true;
  }
  if (href !== null) {
    const same = [...section.querySelectorAll('a[href]')].find((link) => link.getAttribute('href') === href);
    if (same instanceof HTMLElement) same.focus({ preventScroll: true });
  }
  if (top !== null) window.scrollBy(0, top.element.getBoundingClientRect().top - top.at);
}

/** Something outside of the sections that is in sight: it must not move. */
function anchor() {
  for (const element of document.querySelectorAll('main h1, main h2, main h3, [data-still]')) {
    const at = element.getBoundingClientRect().top;
    if (at >= 0 && at < window.innerHeight && element.closest('[data-live]') === null) return { element, at };
  }
  return null;
}

/**
 * As of when the page is, which its last line says: by the clock of the server, as when it was made.
 * @param {string} at ISO 8601
 */
function asOf(at) {
  const shown = document.querySelector('footer time');
  shown?.setAttribute('datetime', at);
  if (shown !== null) shown.textContent = `${at.slice(0, 10)} ${at.slice(11, 19)}`;
}

const time = () => new Date().toLocaleTimeString();

const events = new EventSource(`/live?path=${encodeURIComponent(location.pathname + location.search)}`);
let since = time();
events.addEventListener('open', () => {
  since = time();
  say(FOLLOWED);
});
events.addEventListener('page', (event) => show(JSON.parse(event.data)));
events.addEventListener('same', (event) => {
  since = time();
  asOf(event.data);
  say(FOLLOWED);
  if (waiting !== null) show(waiting);
});
events.addEventListener('over', () => {
  events.close();
  say('What this page shows has ended: it changes no more.');
});
events.addEventListener('error', () => {
  say(`The dashboard does not answer: this page is as of ${since}. It is tried again.`);
});
addEventListener('pagehide', () => events.close());

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

/**
 * What is replaced under somebody's hands would be lost to them.
 * @param {Element} section
 */
function isAtWork(section) {
  const { activeElement } = document;
  if (activeElement?.matches('input, select, textarea') && section.contains(activeElement)) return true;
  const selection = document.getSelection();
  return (
    selection !== null &&
    !selection.isCollapsed &&
    selection.rangeCount > 0 &&
    selection.getRangeAt(0).intersectsNode(section)
  );
}

/** @type {string | null} */
let waiting = null;

/** @param {string} html */
function show(html) {
  const next = new DOMParser().parseFromString(html, 'text/html');
  asOf(next.querySelector('footer time')?.getAttribute('datetime') ?? '');
  const put = inSight();
  let left = false;
  for (const section of document.querySelectorAll('[data-live]')) {
    const id = section.getAttribute('data-live');
    const replacement = next.querySelector(`[data-live="${CSS.escape(id ?? '')}"]`);
    if (replacement === null || isSame(section, replacement)) continue;
    if (isAtWork(section)) {
      left = true;
      continue;
    }
    replace(section, replacement);
  }
  put();
  waiting = left ? html : null;
}

/**
 * What somebody has opened or closed since is no news.
 * @param {Element} section
 * @param {Element} replacement
 */
function isSame(section, replacement) {
  const shown = /** @type {Element} */ (section.cloneNode(true));
  const opened = (/** @type {Element} */ of) => [...of.querySelectorAll('details')];
  const next = opened(replacement);
  for (const [i, details] of opened(shown).entries()) details.open = next[i]?.open ?? false;
  return shown.innerHTML === replacement.innerHTML;
}

/**
 * @param {Element} section
 * @param {Element} replacement
 */
function replace(section, replacement) {
  // What was opened stays open, what was scrolled stays scrolled, and who stood on something stands on it again.
  const open = new Map(named(section, 'details > summary').map(([name, one]) => [name, isOpen(one)]));
  const scrolled = new Map(
    named(section, '.scroll, pre').map(([name, { scrollLeft, scrollTop }]) => [
      name,
      { left: scrollLeft, top: scrollTop },
    ]),
  );
  const [focused] = named(section, FOCUSABLE).find(([, one]) => one === document.activeElement) ?? [];
  section.replaceChildren(...[...replacement.childNodes].map((node) => document.importNode(node, true)));
  for (const [name, summary] of named(section, 'details > summary')) {
    const was = open.get(name);
    if (was !== undefined && was !== isOpen(summary)) summary.parentElement?.toggleAttribute('open', was);
  }
  for (const [name, one] of named(section, '.scroll, pre')) {
    const to = scrolled.get(name);
    if (to !== undefined) one.scrollTo({ ...to, behavior: 'instant' });
  }
  if (focused === undefined) return;
  const [, same] = named(section, FOCUSABLE).find(([name]) => name === focused) ?? [];
  if (same instanceof HTMLElement) same.focus({ preventScroll: true });
}

const FOCUSABLE = 'a[href], button, summary, [tabindex]';

/** @param {Element} summary */
const isOpen = (summary) => summary.parentElement?.hasAttribute('open') === true;

/**
 * Elements by what they are called, which of several that are called the same included.
 * @param {Element} within
 * @param {string} selector
 * @returns {[name: string, one: Element][]}
 */
function named(within, selector) {
  const seen = new Map();
  return [...within.querySelectorAll(selector)].map((one) => {
    const name = nameOf(one);
    const count = (seen.get(name) ?? 0) + 1;
    seen.set(name, count);
    return [`${name} ${count}`, one];
  });
}

/** @param {Element} one */
const nameOf = (one) =>
  [
    one.closest('[data-live]')?.getAttribute('data-live'),
    one.tagName,
    one.getAttribute('href') ?? one.closest('form')?.getAttribute('action'),
    // What scrolls has a name, and its text is what changes.
    one.getAttribute('aria-label') ?? one.textContent?.slice(0, 80),
  ].join('|');

const LANDMARKS = 'h1, h2, h3, figcaption, caption, dt, th, li, summary, a[href], button';

/** Something that is in sight, by which the page is put back to where it was when its parts have been replaced. */
function inSight() {
  const before = [...document.querySelectorAll(`main :is(${LANDMARKS})`)]
    .map((one) => ({ one, at: one.getBoundingClientRect() }))
    .filter(({ at: { top, bottom } }) => top >= 0 && bottom <= window.innerHeight && bottom > top)
    .map(({ one, at: { top } }) => ({ name: nameOf(one), top, isFocused: one === document.activeElement }));
  return () => {
    /** @type {Map<string, Element | null>} */
    const after = new Map();
    for (const one of document.querySelectorAll(`main :is(${LANDMARKS})`)) {
      const name = nameOf(one);
      after.set(name, after.has(name) ? null : one);
    }
    const focused = before.filter(({ isFocused }) => isFocused);
    for (const { name, top } of [...focused, ...before]) {
      const one = after.get(name);
      if (one == null) continue;
      window.scrollBy({ top: one.getBoundingClientRect().top - top, behavior: 'instant' });
      return;
    }
  };
}

// Browsers would hold on to something, too, and both together move the page.
document.documentElement.style.overflowAnchor = 'none';

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

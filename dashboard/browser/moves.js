// @ts-check
// Keys: j and k go to the next and the previous of what is listed, [ and ] to the page before and after this one.

/** @param {EventTarget | null} target */
const isTyping = (target) =>
  target instanceof HTMLElement &&
  (target.isContentEditable || ['INPUT', 'SELECT', 'TEXTAREA'].includes(target.tagName));

/** @param {1 | -1} step */
function move(step) {
  const items = [...document.querySelectorAll('[data-item] a[href]')].filter(
    (one) => one instanceof HTMLElement && one.matches('[data-item] a[href]:first-of-type'),
  );
  const at = items.indexOf(/** @type {Element} */ (document.activeElement));
  const next = items[at < 0 ? (step > 0 ? 0 : items.length - 1) : at + step];
  if (next instanceof HTMLElement) next.focus();
}

document.addEventListener('keydown', (event) => {
  if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === 'j') move(1);
  else if (event.key === 'k') move(-1);
  else if (event.key === '[' || event.key === ']') {
    const link = document.querySelector(`a[rel~="${event.key === '[' ? 'prev' : 'next'}"]`);
    if (link instanceof HTMLAnchorElement) link.click();
  }
});

/**
 * Characters that are another one in width or in type alone: full-width and half-width forms, ligatures of letters,
 * mathematical digits, the micro sign, an ellipsis.
 */
const SAME_BUT_FOR_ITS_FORM = /[\uFF00-\uFFEF\uFB00-\uFB06\u{1D7CE}-\u{1D7FF}\u00B5\u2026]/gu;

/** What nobody sees: a soft hyphen, marks of direction and of byte order. Joiners of letters stay: they change how these look. */
const INVISIBLE = /[\u00AD\u200E\u200F\u202A-\u202E\u2060-\u2064\u2066-\u2069\uFEFF]/gu;

/** Without the characters that nobody sees; a zero-width space, which ends a word, is a space. */
export const visibleCharacters = (text: string): string =>
  text.replace(INVISIBLE, '').replace(/\u200B/gu, ' ');

/**
 * One spelling for characters that Unicode has several of where they say the same. It is no NFKC, which makes 52 of 5²,
 * 10 of ⑩ and 51⁄2 of 5½: raised, lowered, circled and broken digits stay what they are. Characters that nobody sees go.
 */
export const plainCharacters = (text: string): string =>
  visibleCharacters(text)
    .normalize('NFC')
    .replace(SAME_BUT_FOR_ITS_FORM, (char) => char.normalize('NFKC'));

/** Words of the longest sentence that a reader is given. */
export const LONGEST = 35;

/** Words that Gradus had for what the field calls otherwise (CONTRIBUTING.md); in code spans they name stored fields. */
export const OLD_WORDS =
  /\b(?:rungs?|climb(?:s|ed|ing|ers?)?|dearer|dearest|lessons?|taught|learnt|mend(?:s|ed|ing)?|hasty|told|said|heed(?:s|ed|ing)?|conduct)\b/giu;

export const wordsOf = (text: string): string[] => text.match(/[\p{L}\p{N}][\p{L}\p{N}’'.,-]*/gu) ?? [];

/** Sentences end with a stop before a space, and with a paragraph or an item of a list. */
export const sentencesOf = (text: string): string[] =>
  text.split(/\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )|(?<=[.!?][)_*”]*)\s+/).map((sentence) => sentence.trim());

export const longSentences = (text: string): { words: number; sentence: string }[] =>
  sentencesOf(text)
    .map((sentence) => ({ words: wordsOf(sentence).length, sentence }))
    .filter(({ words }) => words > LONGEST);

/** A text in one line of so many characters at most. */
export function shortened(text: string, most: number): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  if (line.length <= most) return line;
  // No half of a character that is two units.
  return `${line.slice(0, most - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** What questions of one level are made of. */
export interface Level {
  level: number;
  /** Facts that follow from each other: so many searches. */
  hops: 1 | 2 | 3;
  /** One-word names and short passages, of which a search brings the best alone. */
  small: boolean;
  /** Where what is looked for stands in its passage: at its beginning, but for an article, or anywhere. */
  stands: 'first' | 'anywhere';
}

export const LEVELS: readonly Level[] = [
  { level: 1, hops: 1, small: true, stands: 'first' },
  { level: 2, hops: 1, small: true, stands: 'anywhere' },
  { level: 3, hops: 2, small: true, stands: 'anywhere' },
  { level: 4, hops: 3, small: true, stands: 'anywhere' },
  { level: 5, hops: 2, small: false, stands: 'anywhere' },
  { level: 6, hops: 3, small: false, stands: 'anywhere' },
];

export const levelOf = (wanted: number): Level | undefined => LEVELS.find(({ level }) => level === wanted);

/** Passages that a search brings. */
export const passagesOf = ({ small }: Level): number => (small ? 1 : 3);

/** What questions of one level are made of. */
export interface Level {
  level: number;
  /** Facts that follow from each other: so many searches. */
  hops: 1 | 2 | 3;
  /** One-word names and short passages, of which a search brings the best alone. */
  small: boolean;
}

export const LEVELS: readonly Level[] = [
  { level: 1, hops: 1, small: true },
  { level: 2, hops: 2, small: true },
  { level: 3, hops: 3, small: true },
  { level: 4, hops: 2, small: false },
  { level: 5, hops: 3, small: false },
];

export const levelOf = (wanted: number): Level | undefined => LEVELS.find(({ level }) => level === wanted);

/** Passages that a search brings. */
export const passagesOf = ({ small }: Level): number => (small ? 1 : 3);

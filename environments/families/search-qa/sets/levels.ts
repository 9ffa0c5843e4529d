/** What a question of one level is. */
export interface Level {
  level: number;
  /** Projections between the constants and what is asked for. */
  layers: 1 | 2 | 3;
  /** Whether there is one intersection or union, at a layer that is drawn. */
  operation: boolean;
}

export const LEVELS: readonly Level[] = [
  { level: 1, layers: 1, operation: false },
  { level: 2, layers: 1, operation: true },
  { level: 3, layers: 2, operation: false },
  { level: 4, layers: 2, operation: true },
  { level: 5, layers: 3, operation: true },
];

export const levelOf = (wanted: number): Level | undefined => LEVELS.find(({ level }) => level === wanted);

import { InvalidArgumentError } from 'commander';

/** `RUN` for a run's last checkpoint, `RUN@STEP` for one of its steps. */
export function parseCheckpointName(text: string): { run: string; step: number | null } {
  const parts = /^([A-Za-z0-9][A-Za-z0-9._-]*)(?:@(\d+))?$/.exec(text);
  if (!parts) throw new InvalidArgumentError('name a run, or RUN@STEP');
  return { run: parts[1]!, step: parts[2] === undefined ? null : Number(parts[2]) };
}

import type { FC } from 'hono/jsx';
import type { SynthesisFacts } from '../../../core/training/step-facts.ts';
import type { StoredStep } from '../../../store/training/step-facts.ts';
import { MadeByStage } from './made-by-stage.tsx';

const COLUMNS: [keyof Omit<SynthesisFacts, 'source'>, string][] = [
  ['tasks', 'tasks'],
  ['unsolved', 'not solved'],
  ['setAside', 'held out'],
  ['known', 'duplicates'],
  ['first', 'first actions'],
  ['plans', 'plans'],
  ['choices', 'choices'],
  ['tooFew', 'too few alternatives'],
  ['unwritable', 'not writable'],
  ['actions', 'actions tried'],
  ['same', 'the same'],
  ['notWorse', 'not worse'],
];

/** What supervised stages have made of verified trajectories: how much of what, and what the rest was left out by. */
export const Synthesis: FC<{ steps: readonly StoredStep[] }> = ({ steps }) => {
  const stages = new Map<string, SynthesisFacts>();
  for (const { stage, synthesis } of steps) if (synthesis) stages.set(stage, synthesis);
  return (
    <MadeByStage
      heading="Synthesis"
      caption="Examples made of verified trajectories, and what was left out, by reason"
      columns={COLUMNS}
      stages={stages}
    />
  );
};

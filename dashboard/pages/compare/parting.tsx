import type { FC } from 'hono/jsx';
import { commandLine } from '../../../core/installation.ts';
import { divergenceText } from '../../../runs/comparison/divergence-words.ts';
import type { RunDivergence } from '../../../runs/comparison/divergence.ts';
import { groupNumber } from '../../../runs/reweigh/reweigh-words.ts';
import { episodeAt, groupAddress, stepAt } from '../../address.ts';
import { Text } from '../../parts/text.tsx';

export const PartingPanel: FC<{ divergence: RunDivergence }> = ({ divergence }) => {
  const { runs, parting } = divergence;
  const at = parting?.at ?? null;
  const group = parting?.group ? groupNumber({ group: parting.group }) : null;
  const stage = parting?.evaluation ?? at?.stage ?? '';
  return (
    <section class="card" aria-label={runs.join(' and ')}>
      {divergenceText(divergence).map((line) => (
        <p>
          <Text value={line} max={1000} />
        </p>
      ))}
      {at && (
        <p>
          {runs.map((run) => {
            const step = { run, stage, step: at.stageStep };
            return (
              <>
                {run}: <a href={stepAt({ ...step, stage: at.stage })}>the step</a>
                {group !== null && (
                  <>
                    , <a href={groupAddress({ ...step, group })}>the group</a>
                    {parting?.episode && (
                      <>
                        ,{' '}
                        <a href={episodeAt({ ...step, group, episode: parting.episode.index })}>
                          the episode
                        </a>
                      </>
                    )}
                  </>
                )}
                {'. '}
              </>
            );
          })}
        </p>
      )}
      <p class="note">
        {divergence.looked === 'episodes'
          ? 'Every stored episode was compared, up to where they part. In a terminal: '
          : 'By the facts of steps and the weights after them; then by the groups, episodes and tokens of the step. Every stored episode is compared when that is chosen above, and by '}
        <code class="command">{commandLine(`compare ${runs.join(' ')} --episodes`)}</code>.
      </p>
    </section>
  );
};

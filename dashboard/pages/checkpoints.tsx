import type { FC } from 'hono/jsx';
import { readChanges } from '../../store/run/changes.ts';
import { findCheckpoints } from '../../store/training/find-checkpoints.ts';
import type { FoundCheckpoint } from '../../store/training/find-checkpoints.ts';
import { assertRun, specOfRun } from '../../store/run/find-run.ts';

import type { App, Context } from '../context.ts';
import { Layout } from '../layout.tsx';
import { crumbsOfRun } from '../parts/crumbs.ts';
import { bytes } from '../parts/numbers.tsx';
import { TextBlock, Text } from '../parts/text.tsx';
import { Table, numeric } from '../parts/table.tsx';

/** `/runs/RUN/checkpoints`: which are in the store, and which came from which. */
export function checkpointsPage(app: App, { sources: { store } }: Context): void {
  app.get('/runs/:run/checkpoints', async (c) => {
    const run = c.req.param('run');
    await assertRun(store, run);
    const { checkpoints, incomplete } = await findCheckpoints(store, run);
    return c.html(
      <Layout title="Checkpoints" crumbs={crumbsOfRun(run)}>
        {checkpoints.length === 0 ? (
          <p>No checkpoint of this run is in the store.</p>
        ) : (
          <Checkpoints checkpoints={checkpoints} />
        )}
        {incomplete.length > 0 && (
          <>
            <h2>No checkpoints</h2>
            <ul>
              {incomplete.map(({ folder, reason }) => (
                <li>
                  <code>{folder}</code>: <Text value={reason} max={500} />
                </li>
              ))}
            </ul>
          </>
        )}
      </Layout>,
    );
  });

  app.get('/runs/:run/spec', async (c) => {
    const run = c.req.param('run');
    const [spec, changes] = await Promise.all([specOfRun(store, run), readChanges(store, run)]);
    return c.html(
      <Layout title="Spec" crumbs={crumbsOfRun(run)}>
        {spec === null ? (
          <p>This is an imported model: it has no spec.</p>
        ) : (
          <TextBlock value={JSON.stringify(spec, null, 2)} max={200_000} label="spec" />
        )}
        {changes.length > 0 && (
          <>
            <h2>Changed while it ran</h2>
            <ol>
              {changes.map((change) => (
                <li>
                  <TextBlock value={JSON.stringify(change, null, 2)} label="a change" />
                </li>
              ))}
            </ol>
          </>
        )}
      </Layout>,
    );
  });
}

const Checkpoints: FC<{ checkpoints: readonly FoundCheckpoint[] }> = ({ checkpoints }) => {
  const there = new Set(checkpoints.map(({ ref }) => ref.weights));
  return (
    <Table
      caption="Newest first. Retention deletes those that are no longer needed."
      columns={[
        numeric('step'),
        'stage',
        'weights',
        'came from',
        numeric('updates'),
        numeric('size'),
        'learner',
      ]}
    >
      {checkpoints.toReversed().map(({ ref, manifest }) => (
        <tr data-item>
          <td class="number">{ref.step}</td>
          <td>{manifest.stage}</td>
          <td>
            <code title={ref.weights}>{ref.weights.slice(0, 12)}</code>
          </td>
          <td>
            {manifest.parent === undefined ? (
              'nothing: it was drawn, or brought in'
            ) : (
              <>
                <code title={manifest.parent.weights}>
                  {manifest.parent.step}-{manifest.parent.weights.slice(0, 12)}
                </code>
                {!there.has(manifest.parent.weights) && ', which is deleted'}
                {manifest.parent.step !== ref.step - 1 && <strong> went back</strong>}
              </>
            )}
          </td>
          <td class="number">{manifest.updates}</td>
          <td class="number">
            {bytes(Object.values(manifest.files).reduce((sum, file) => sum + file.bytes, 0))}
          </td>
          <td>{manifest.backend}</td>
        </tr>
      ))}
    </Table>
  );
};

import type { FC } from 'hono/jsx';
import type { Episode, GroupTask, RolloutGroup } from '../../core/episode/episode.ts';
import { isHinted } from '../../core/episode/facts.ts';
import { GradusError } from '../../core/errors.ts';
import { commonStart } from '../../runs/episodes/common-start.ts';
import { NO_REWARD, rowsOfStep } from '../../runs/episodes/episode-rows.ts';
import type { EpisodeRow } from '../../runs/episodes/episode-rows.ts';
import { placeNumber } from '../../runs/episodes/place.ts';
import type { Place } from '../../runs/episodes/place.ts';
import type { RunObserver } from '../../runs/overview/run.ts';
import { readGroupAt as storedGroup, stepFolder } from '../../runs/episodes/group-at.ts';
import type { TokenizersOfRuns, TokenTexts } from '../../runs/episodes/token-texts.ts';
import { episodeAt, groupAddress } from '../address.ts';
import type { App, Context } from '../context.ts';
import { Layout } from '../layout.tsx';
import { crumbsOfStep } from '../parts/crumbs.ts';
import { Num } from '../parts/numbers.tsx';
import { Components, OutcomeLine } from '../parts/outcome.tsx';
import { pageIn, Pages, rowsOfPage } from '../parts/pages.tsx';
import { TextBlock, Text } from '../parts/text.tsx';
import { Unreadable } from '../parts/unreadable.tsx';

/** Samples of a task that a page has beside each other. */
const BESIDE = 32;
/** Tokens of each that are made text: some more than a block of text shows. */
const MOST_TOKENS = 2000;
/** Advantages are told by all groups of a step: of one with more than these they are not looked for. */
const MOST_GROUPS = 2000;

/** `/runs/RUN/groups/STAGE/STEP/GROUP`: the samples of a task beside each other, from where they first differ. */
export function groupPage(
  app: App,
  { sources, observer, tokenizers }: Context & { observer: RunObserver; tokenizers: TokenizersOfRuns },
): void {
  app.get('/runs/:run/groups/:stage/:step/:group', async (c) => {
    const { run, stage } = c.req.param();
    const step = placeNumber('step', c.req.param('step'));
    const number = placeNumber('group', c.req.param('group'));
    const { spec, unreadable } = await observer.look(run);
    const damaged = [...unreadable];
    const folder = stepFolder(run, stage, step);
    const found = await storedGroup(sources.store, { run, stage, step, group: number });
    if (found === null) {
      throw new GradusError(
        'store',
        'no-group',
        `no group ${number} of step ${step} of ${stage} of ${run} is kept`,
      );
    }
    const { group, last } = found;
    const [texts, rows] = await Promise.all([
      tokenizers.of(run),
      last < MOST_GROUPS
        ? rowsOfStep(sources.store, run, folder, spec?.reward ?? NO_REWARD, { damaged })
        : [],
    ]);
    const place = { run, stage, step, group: number };
    // Whoever comes from an episode means its task.
    const from = c.req.query('episode');
    const asked =
      from === undefined
        ? placeNumber('task', c.req.query('task') ?? '0')
        : (group.episodes[placeNumber('episode', from)]?.task ?? 0);
    const task = Math.min(asked, group.tasks.length - 1);
    return c.html(
      <Layout
        title={`Group ${number}`}
        crumbs={crumbsOfStep(place)}
        prev={number > 0 ? groupAddress({ ...place, group: number - 1 }) : null}
        next={number < last ? groupAddress({ ...place, group: number + 1 }) : null}
      >
        <Unreadable of={damaged} />
        {group.tasks.length > 1 && (
          <form method="get" class="filters">
            <label>
              task
              <select name="task">
                {group.tasks.map(({ ref }, i) => (
                  <option value={String(i)} selected={i === task}>
                    {ref.environment} level {ref.level}, {ref.split} {ref.index}
                  </option>
                ))}
              </select>
            </label>
            <button type="submit">Show</button>
          </form>
        )}
        <Samples
          place={place}
          group={group}
          task={task}
          page={pageIn(c.req.query('page'))}
          texts={texts}
          rows={rows.filter((row) => row.group === number)}
        />
      </Layout>,
    );
  });
}

const Samples: FC<{
  place: Omit<Place, 'episode'>;
  group: RolloutGroup;
  task: number;
  page: number;
  texts: TokenTexts | null;
  rows: readonly EpisodeRow[];
}> = ({ place, group, task, page, texts, rows }) => {
  const of = group.tasks[task]!;
  const rowOf = new Map(rows.map((row) => [row.episode, row]));
  const samples = group.episodes
    .map((episode, i) => ({ episode, i, row: rowOf.get(i) }))
    .filter(({ episode }) => episode.task === task);
  const shown = rowsOfPage(samples, page, BESIDE);
  const common = commonStart(shown.map(({ episode }) => episode.tokens));
  return (
    <>
      <TaskOf task={of} weights={group.weights} />
      {common > 0 && (
        <>
          <h2>The beginning that all samples share</h2>
          <TextBlock
            value={texts ? firstText(shown[0]!.episode.tokens.slice(0, common), texts) : `${common} tokens`}
            label="tokens that all samples have in common"
          />
        </>
      )}
      <h2>Samples, from the first token in which two differ</h2>
      {samples.length > shown.length && (
        <p class="note">
          {shown.length} of {samples.length} are shown, and compared with each other.
        </p>
      )}
      <Pages
        label="samples"
        page={page}
        last={Math.ceil(samples.length / BESIDE)}
        to={(number) => `${groupAddress(place)}?task=${task}${number === 1 ? '' : `&page=${number}`}`}
      />
      <div class="columns">
        {shown.map(({ episode, i, row }) => (
          <section class="card" data-item aria-label={`sample ${episode.sample}`}>
            <h3>
              <a href={episodeAt({ ...place, episode: i })}>Sample {episode.sample}</a>
            </h3>
            <p>
              <OutcomeLine outcome={episode.outcome} />
              {row && (
                <>
                  ; advantage <Num value={row.advantage} />
                </>
              )}
            </p>
            {episode.inherited && (
              <p class="note">
                Its first {episode.inherited.tokens} tokens are those of sample {episode.inherited.sample}.
              </p>
            )}
            <TextBlock value={restOf(episode, common, texts)} label={`sample ${episode.sample}, the rest`} />
            <Components outcome={episode.outcome} evidence={false} />
          </section>
        ))}
      </div>
    </>
  );
};

const TaskOf: FC<{ task: GroupTask; weights: string }> = ({ task, weights }) => (
  <>
    <p>
      <Text value={task.ref.environment} max={100} /> level {task.ref.level}, {task.ref.split}{' '}
      {task.ref.index}
      {task.retried && '; drawn again because samples had failed it'}
      {isHinted(task) && '; with a hint, because samples had failed it'}; sampled by{' '}
      <code>{weights.slice(0, 12)}</code>
    </p>
    <h2>Prompt</h2>
    <TextBlock value={task.prompt} label="prompt" />
  </>
);

function firstText(tokens: readonly number[], texts: TokenTexts): string {
  const more = tokens.length - MOST_TOKENS;
  const text = texts.textsOf(tokens.slice(0, MOST_TOKENS)).join('');
  return more > 0 ? `${text} … ${more} more tokens` : text;
}

/** By its tokens; where no checkpoint is left that knows them, by what its turns say. */
function restOf({ tokens, turns }: Episode, from: number, texts: TokenTexts | null): string {
  if (texts) return firstText(tokens.slice(from), texts);
  return turns
    .map(({ text, observation }) => `${text}${observation ? `\n← ${observation.text}\n` : ''}`)
    .join('');
}

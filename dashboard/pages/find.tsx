import { mkdtemp, rm } from 'node:fs/promises';
import { createReadStream } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import type { Context as Request } from 'hono';
import type { FC } from 'hono/jsx';
import { createTarPacker } from 'modern-tar';
import { OBSERVED_ERRORS } from '../../core/episode/facts.ts';
import { GradusError } from '../../core/errors.ts';
import { printable } from '../../core/printable.ts';
import type { EpisodeIndex } from '../../runs/find/episode-index.ts';
import { atifFiles, messageLines, writeFoundParquet } from '../../runs/exports/export-found.ts';
import { find, LAST_ROW } from '../../runs/find/find.ts';
import type { Findings } from '../../runs/find/find.ts';
import { FindJobs, MOST_HITS } from '../../runs/find/find-jobs.ts';
import type { Job, TextSearch } from '../../runs/find/find-jobs.ts';
import {
  ANY_ERROR,
  ORDERS,
  OUTCOMES,
  readQuery,
  SORTS,
  SPLITS,
  SUCCESS,
  wordsOf,
} from '../../runs/find/find-query.ts';
import type { Query, QueryName } from '../../runs/find/find-query.ts';
import { WORDS } from '../../runs/find/find-words.ts';
import { foundIn } from '../../runs/find/found-episodes.ts';
import type { FoundInStep } from '../../runs/find/found-episodes.ts';
import { assertRun } from '../../store/run/find-run.ts';
import { assertKey } from '../../store/keys.ts';
import { episodeAt, runAt, stepAt } from '../address.ts';
import type { App, Context } from '../context.ts';
import { Layout, Live } from '../layout.tsx';
import { Action } from '../parts/action.tsx';
import { rate } from '../../core/statistics/intervals.ts';
import { percent } from '../../core/percent.ts';
import { amount, Num } from '../parts/numbers.tsx';
import { pageIn } from '../parts/pages.tsx';
import { Scroll } from '../parts/scroll.tsx';
import { Text } from '../parts/text.tsx';
import { Unreadable } from '../parts/unreadable.tsx';

const ROWS = 50;
/** A page does not wait longer for what is being read. */
const PATIENCE_MS = 1200;
/** Of a list that becomes boxes to tick; a longer one is asked for by its name. */
const MOST_BOXES = 24;

/** `/find`: episodes of a run by what became of them, texts in them, and both as files for other programs. */
export function findPage(app: App, context: Context): void {
  const { store } = context.sources;
  const jobs = new FindJobs(store);

  app.get('/find', async (c) => {
    const asked = askedIn(c);
    if (asked.run === '') return c.html(<Layout title="Find">{await runsToChoose()}</Layout>);
    const { run, query, page } = asked;
    const look = await indexOf(run);
    const { index, asOf } = look;
    let { problem } = look;
    const at = { offset: (page - 1) * ROWS, limit: ROWS };
    const known = async (): Promise<Findings> => {
      if (problem !== null) return find(index, query, { ...at, isAway: true });
      try {
        return await find(index, query, at);
      } catch (error) {
        if (!(error instanceof GradusError) || !error.retryable) throw error;
        problem = error.message;
        return known();
      }
    };
    let findings = await known();
    let build: Job | null = null;
    if (findings.missing > 0 && problem === null) {
      build = await jobs.build(index, PATIENCE_MS);
      findings = await known();
    }
    const isAway = problem !== null;
    const search =
      query.text === undefined || isAway
        ? null
        : await jobs.search(index, { ...query, text: query.text }, PATIENCE_MS);
    const last = Math.ceil(Math.min(findings.total, LAST_ROW) / ROWS);
    const beside = (number: number): string | null =>
      search !== null || number < 1 || number > last ? null : linkTo('/find', asked, { page: number });
    return c.html(
      <Layout
        title="Find"
        crumbs={[
          { href: '/', label: 'Runs' },
          { href: runAt(run), label: run },
        ]}
        prev={beside(page - 1)}
        next={beside(page + 1)}
        stale={problem === null ? [] : [{ source: 'The store', problem, asOf }]}
        live={build?.state === 'goes on' || search?.state === 'goes on'}
      >
        <Form asked={asked} findings={findings} stages={index.stages} />
        <Live id="found">
          {build && <Reading job={build} asked={asked} missing={findings.missing} />}
          <Unreadable of={[...index.damaged, ...findings.unreadable.map(({ message }) => message)]} />
          {search ? (
            <Hits search={search} asked={asked} context={context} />
          ) : query.text !== undefined ? (
            <p>A text is looked for in trajectories, which only the store has.</p>
          ) : (
            <Rows asked={asked} findings={findings} />
          )}
        </Live>
        <Exports asked={asked} findings={findings} />
      </Layout>,
    );
  });

  app.get('/find/episodes.jsonl', async (c) => {
    const { index, found, name, signal } = await toExport(c);
    const lines = messageLines(store, index, found, { signal });
    return download(c, Readable.from(lines), 'application/jsonl', `${name}.jsonl`);
  });

  app.get('/find/episodes.parquet', async (c) => {
    const { index, found, name, signal } = await toExport(c);
    const folder = await mkdtemp(path.join(tmpdir(), 'gradus-find-'));
    const gone = (): Promise<void> => rm(folder, { recursive: true, force: true });
    try {
      const file = path.join(folder, 'rows.parquet');
      await writeFoundParquet(file, store, index, found, { signal });
      const stream = createReadStream(file);
      stream.once('close', () => void gone());
      return download(c, stream, 'application/vnd.apache.parquet', `${name}.parquet`);
    } catch (error) {
      await gone();
      throw error;
    }
  });

  app.get('/find/episodes.atif.tar', async (c) => {
    const { index, found, name, signal } = await toExport(c);
    return download(
      c,
      Readable.from(tarOf(atifFiles(store, index, found, { signal }))),
      'application/x-tar',
      `${name}.atif.tar`,
    );
  });

  app.post('/find/end-search', async (c) => {
    const { asked: words } = await c.req.parseBody();
    const asked = askedIn(c, new URLSearchParams(typeof words === 'string' ? words : ''));
    jobs.endSearch(asked.run, asked.query);
    return c.redirect(linkTo('/find', asked, { text: null }), 303);
  });

  async function indexOf(
    run: string,
  ): Promise<{ index: EpisodeIndex; problem: string | null; asOf: number | null }> {
    assertKey(`runs/${run}/`.slice(0, -1));
    const { value: index, problem, asOf } = await jobs.index(run);
    if (index === null) {
      // It says itself what is wrong.
      await assertRun(store, run);
      throw new GradusError('store', 'unavailable', problem ?? 'the store gave no answer', {
        retryable: true,
      });
    }
    if (index.size === 0) await assertRun(store, run);
    return { index, problem, asOf };
  }

  /** Everything that matches: where not all of it is known yet, it is being read, and there is no file of it yet. */
  async function toExport(
    c: Request,
  ): Promise<{ index: EpisodeIndex; found: FoundInStep[]; name: string; signal: AbortSignal }> {
    const { run, query } = askedIn(c);
    const { index } = await indexOf(run);
    const { signal } = c.req.raw;
    const { missing } = await index.scan(() => {}, { signal });
    if (missing > 0 && (await jobs.build(index, PATIENCE_MS)).state !== 'done') {
      throw new GradusError(
        'store',
        'being-read',
        `${missing} steps of ${run} are still being read: ask again in a while`,
        { retryable: true },
      );
    }
    return { index, found: await foundIn(index, query, { signal }), name: `${run}-episodes`, signal };
  }

  async function runsToChoose() {
    const { folders } = await store.listFolder('runs/');
    const runs = folders.map((folder) => folder.slice('runs/'.length, -1));
    return runs.length === 0 ? (
      <p>There is no run in this store yet.</p>
    ) : (
      <>
        <p>Of which run?</p>
        <ul>
          {runs.map((run) => (
            <li data-item>
              <a class="chip" href={`/find?run=${encodeURIComponent(run)}`}>
                <Text value={run} max={200} />
              </a>
            </li>
          ))}
        </ul>
      </>
    );
  }
}

interface Asked {
  run: string;
  query: Query;
  page: number;
}

function askedIn(c: Request, words = new URL(c.req.url).searchParams): Asked {
  const given: Record<string, string[]> = {};
  for (const [name, value] of words) {
    if (name !== 'run' && name !== 'page') (given[name] ??= []).push(value);
  }
  return {
    run: words.get('run') ?? '',
    query: readQuery(given),
    page: pageIn(words.get('page') ?? undefined),
  };
}

const linkTo = (
  to: string,
  { run, query }: Asked,
  { page, text }: { page?: number; text?: null } = {},
): string => {
  const words = wordsOf(query).filter(([name]) => text !== null || name !== 'text');
  const all: [string, string][] = [['run', run], ...words];
  return `${to}?${new URLSearchParams(page === undefined || page === 1 ? all : [...all, ['page', String(page)]]).toString()}`;
};

function download(c: Request, from: Readable, type: string, name: string): Response {
  c.header('Content-Type', type);
  c.header('Content-Disposition', `attachment; filename="${name}"`);
  return c.body(Readable.toWeb(from) as ReadableStream);
}

async function* tarOf(files: AsyncIterable<{ name: string; text: string }>): AsyncGenerator<Uint8Array> {
  const { readable, controller } = createTarPacker();
  const pack = async (): Promise<void> => {
    for await (const { name, text } of files) {
      const bytes = new TextEncoder().encode(text);
      const writer = controller.add({ name, size: bytes.length }).getWriter();
      await writer.write(bytes);
      await writer.close();
    }
    controller.finalize();
  };
  const packed = pack().catch((error: unknown) => controller.error(error));
  yield* readable as unknown as AsyncIterable<Uint8Array>;
  await packed;
}

const Form: FC<{ asked: Asked; findings: Findings; stages: string[] }> = ({
  asked: { run, query },
  findings: { there },
  stages,
}) => (
  <form method="get" action="/find" class="filters">
    <input type="hidden" name="run" value={run} />
    <Boxes legend="stage" name="stage" query={query} of={stages} />
    <Boxes legend="environment" name="environment" query={query} of={there.environments} />
    <Boxes legend="level" name="level" query={query} of={there.levels.map(String)} />
    <Boxes legend="split" name="split" query={query} of={SPLITS} />
    <Boxes legend="outcome" name="outcome" query={query} of={OUTCOMES} />
    <Boxes legend="solved" name="success" query={query} of={SUCCESS} />
    <Between legend="step" names={['from-step', 'to-step']} query={query} />
    <Between legend="reward" names={['min-reward', 'max-reward']} query={query} />
    <Between legend="sampled tokens" names={['min-tokens', 'max-tokens']} query={query} />
    <Between legend="turns" names={['min-turns', 'max-turns']} query={query} />
    <Choice label="called the tool" name="tool" query={query} of={there.tools} />
    <Choice label="was told of an error" name="error" query={query} of={[ANY_ERROR, ...OBSERVED_ERRORS]} />
    <label>
      text in it (every trajectory is read)
      <input name="text" value={query.text ?? ''} maxlength={200} />
    </label>
    <Choice label="sorted by" name="sort" query={query} of={SORTS} needed />
    <Choice label="order" name="order" query={query} of={ORDERS} needed />
    <button type="submit">Find</button>
  </form>
);

/** A policy can write a name that no form can say. */
const isSayable = (value: string): boolean => value.length <= 200 && printable(value) === value;

const valuesOf = (query: Query, name: QueryName): string[] => {
  const value = query[name];
  return value === undefined ? [] : (Array.isArray(value) ? value : [value]).map(String);
};

const Boxes: FC<{ legend: string; name: QueryName; query: Query; of: readonly string[] }> = ({
  legend,
  name,
  query,
  of,
}) => {
  const chosen = valuesOf(query, name);
  // What was asked for stays asked for, though there be none of it.
  const all = [...new Set([...of, ...chosen])].filter(isSayable);
  if (all.length > MOST_BOXES) return <Choice label={legend} name={name} query={query} of={all} />;
  if (all.length === 0) return null;
  return (
    <fieldset>
      <legend title={WORDS[name]}>{legend}</legend>
      {all.map((value) => (
        <label class="box">
          <input type="checkbox" name={name} value={value} checked={chosen.includes(value)} />
          <Text value={value} max={80} />
        </label>
      ))}
    </fieldset>
  );
};

const Between: FC<{ legend: string; names: readonly [QueryName, QueryName]; query: Query }> = ({
  legend,
  names,
  query,
}) => (
  <fieldset>
    <legend>{legend}</legend>
    {names.map((name, i) => (
      <label>
        {i === 0 ? 'from' : 'to'}
        <input name={name} inputmode="decimal" size={6} value={valuesOf(query, name)[0] ?? ''} />
      </label>
    ))}
  </fieldset>
);

const Choice: FC<{
  label: string;
  name: QueryName;
  query: Query;
  of: readonly string[];
  needed?: boolean;
}> = ({ label, name, query, of, needed = false }) => {
  const [chosen = ''] = valuesOf(query, name);
  const all = [...new Set([...of, ...(chosen === '' ? [] : [chosen])])].filter(isSayable);
  return (
    <label>
      {label}
      <select name={name}>
        {!needed && <option value="">any</option>}
        {all.map((value) => (
          <option value={value} selected={value === chosen}>
            <Text value={value} max={80} />
          </option>
        ))}
      </select>
    </label>
  );
};

const Reading: FC<{ job: Job; asked: Asked; missing: number }> = ({ job, asked, missing }) => {
  if (job.state === 'done' || missing === 0) return null;
  return (
    <p class="stale" role="status">
      {job.state === 'failed' ? (
        <>
          {missing} steps could not be read: <Text value={job.problem ?? ''} max={500} />{' '}
        </>
      ) : (
        <>
          The episodes of this run are being read for the first time: {job.at.done} of {job.at.total} steps.
          What is found below is of those.{' '}
        </>
      )}
      <a href={linkTo('/find', asked, { page: asked.page })}>Look again</a>
    </p>
  );
};

const Rows: FC<{ asked: Asked; findings: Findings }> = ({ asked, findings }) => {
  const { run, page } = asked;
  const { rows, total, there, success, meanReward, unknown } = findings;
  const first = (page - 1) * ROWS + 1;
  return (
    <>
      <h2>
        {total} of {amount(there.episodes, 'episode')}
      </h2>
      {unknown.map((message) => (
        <p class="note">
          <Text value={message} max={1000} />
        </p>
      ))}
      <p class="note">
        {success.trials > 0 && (
          <>
            solved {percent(rate(success))} ({success.successes} of {success.trials}),{' '}
          </>
        )}
        mean reward <Num value={meanReward} />
        {rows.length > 0 && `; shown are ${first} to ${first + rows.length - 1}`}
        {total > LAST_ROW && `; pages end after ${LAST_ROW}, files have all`}
      </p>
      {rows.length > 0 && (
        <Scroll label="episodes">
          <table>
            <thead>
              <tr>
                <th scope="col">episode</th>
                <th scope="col">step</th>
                <th scope="col">task</th>
                <th scope="col">outcome</th>
                <th scope="col" class="number">
                  reward
                </th>
                <th scope="col" class="number">
                  tokens
                </th>
                <th scope="col" class="number">
                  turns
                </th>
                <th scope="col">calls</th>
                <th scope="col">errors</th>
                <th scope="col">answer</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr data-item>
                  <th scope="row">
                    <a href={episodeAt({ run, ...row })}>
                      {row.group}/{row.episode}
                    </a>
                  </th>
                  <td>
                    <a href={stepAt({ run, ...row })}>
                      <Text value={row.stage} max={80} /> {row.step}
                    </a>
                  </td>
                  <td>
                    <Text value={row.environment} max={80} /> level {row.level}, {row.split} {row.index}
                    {row.retried && ' (again)'}
                  </td>
                  <td>
                    {row.outcome}
                    {row.success === true && ', solved'}
                    {row.boundary !== null && ` at ${row.boundary}`}
                    {row.reason !== null && (
                      <>
                        {': '}
                        <Text value={row.reason} max={120} />
                      </>
                    )}
                  </td>
                  <td class="number">
                    <Num value={row.reward} />
                  </td>
                  <td class="number">{row.sampledTokens}</td>
                  <td class="number">{row.turns}</td>
                  <td>
                    <Counts of={row.tools} />
                  </td>
                  <td>
                    <Counts of={row.errors} />
                  </td>
                  <td>
                    <Text value={row.answer ?? ''} max={60} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </>
  );
};

const Counts: FC<{ of: Record<string, number> }> = ({ of }) => (
  <>
    {Object.entries(of)
      .slice(0, 5)
      .map(([name, count], i) => (
        <>
          {i > 0 && ', '}
          {count} <Text value={name} max={60} />
        </>
      ))}
  </>
);

const Hits: FC<{ search: TextSearch; asked: Asked; context: Context }> = ({ search, asked, context }) => {
  const { at, state, hits, full, problem } = search;
  return (
    <>
      <h2>
        {hits.length}
        {full ? ' or more' : ''} episodes have “<Text value={asked.query.text ?? ''} max={200} />”
      </h2>
      <p role="status">
        {state === 'goes on' && `${at.done} of ${at.total} groups are read. `}
        {state === 'done' &&
          (full ? `The first ${MOST_HITS} are shown. ` : `All ${at.total} groups are read. `)}
        {state === 'ended' && `Nobody waited for it, so it ended after ${at.done} of ${at.total} groups. `}
        {state === 'failed' && (
          <>
            It came to an end after {at.done} of {at.total} groups:{' '}
            <Text value={problem ?? ''} max={500} />{' '}
          </>
        )}
        {state !== 'done' && <a href={linkTo('/find', asked)}>Look again</a>}
      </p>
      {state === 'goes on' && context.actions && (
        <Action to="/find/end-search" token={context.formToken} label="End the search">
          <input type="hidden" name="asked" value={linkTo('', asked).slice(1)} />
        </Action>
      )}
      {hits.length > 0 && (
        <ul>
          {hits.map(({ place, where, turn, before, text, after }) => (
            <li data-item>
              <a href={episodeAt(place)}>
                <Text value={place.stage} max={80} /> {place.step}, group {place.group}, episode{' '}
                {place.episode}
              </a>
              , {turn === null ? where : `${where} ${turn}`}:{' '}
              <Excerpt before={before} text={text} after={after} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
};

const Excerpt: FC<{ before: string; text: string; after: string }> = ({ before, text, after }) => (
  <>
    <Text value={before} />
    <mark>
      <Text value={text} />
    </mark>
    <Text value={after} />
  </>
);

const Exports: FC<{ asked: Asked; findings: Findings }> = ({ asked, findings: { total } }) => {
  const { text, ...query } = asked.query;
  if (total === 0) return null;
  const to = (kind: string): string => linkTo(`/find/episodes.${kind}`, { ...asked, query });
  return (
    <>
      <h2>As files</h2>
      <p>
        All {total}
        {text !== undefined && ', whatever text they have'}: <a href={to('parquet')}>Parquet</a> (a row of
        numbers each), <a href={to('jsonl')}>JSONL</a> (conversations in the form of OpenAI’s API),{' '}
        <a href={to('atif.tar')}>ATIF</a> (a trajectory each, with tokens and log-probs).
      </p>
    </>
  );
};

import { mkdtemp, rm } from 'node:fs/promises';
import { createReadStream } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import type { Context as Request } from 'hono';
import { GradusError } from '../../core/errors.ts';
import type { EpisodeIndex } from '../../runs/find/episode-index.ts';
import { atifFiles, messageLines, writeFoundParquet } from '../../runs/exports/export-found.ts';
import { LAST_ROW, searchEpisodes } from '../../runs/find/find.ts';
import type { Findings } from '../../runs/find/find.ts';
import { FindJobs } from '../../runs/find/find-jobs.ts';
import type { Job } from '../../runs/find/find-jobs.ts';
import { foundIn } from '../../runs/find/found-episodes.ts';
import type { FoundInStep } from '../../runs/find/found-episodes.ts';
import { assertRun } from '../../store/run/find-run.ts';
import { assertKey } from '../../store/keys.ts';

import type { App, Context } from '../context.ts';
import { Layout, Live } from '../layout.tsx';
import { crumbsOfRun } from '../parts/crumbs.ts';
import { Text } from '../parts/text.tsx';
import { Unreadable } from '../parts/unreadable.tsx';
import { FOUND_ROWS, Reading, FoundRows } from './find/rows.tsx';
import { findRequestIn, linkTo } from './find/asked.ts';
import { Exports, download, tarOf } from './find/files.tsx';
import { Form } from './find/form.tsx';
import { Hits } from './find/hits.tsx';

/** A page does not wait longer for what is being read. */
const PATIENCE_MS = 1200;

/** `/find`: episodes of a run by what became of them, texts in them, and both as files for other programs. */
export function findPage(app: App, context: Context): void {
  const { store } = context.sources;
  const jobs = new FindJobs(store);

  app.get('/find', async (c) => {
    const asked = findRequestIn(c);
    if (asked.run === '') return c.html(<Layout title="Find">{await runsToChoose()}</Layout>);
    const { run, query, page } = asked;
    const look = await indexOf(run);
    const { index, asOf } = look;
    let { problem } = look;
    const at = { offset: (page - 1) * FOUND_ROWS, limit: FOUND_ROWS };
    const known = async (): Promise<Findings> => {
      if (problem !== null) return searchEpisodes(index, query, { ...at, isAway: true });
      try {
        return await searchEpisodes(index, query, at);
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
    const last = Math.ceil(Math.min(findings.total, LAST_ROW) / FOUND_ROWS);
    const beside = (number: number): string | null =>
      search !== null || number < 1 || number > last ? null : linkTo('/find', asked, { page: number });
    return c.html(
      <Layout
        title="Find"
        crumbs={crumbsOfRun(run)}
        prev={beside(page - 1)}
        next={beside(page + 1)}
        stale={problem === null ? [] : [{ source: 'The store', problem, asOf }]}
        live={build?.state === 'goes on' || search?.state === 'goes on'}
      >
        <Form asked={asked} findings={findings} stages={index.stages} />
        <Live id="found">
          {build && <Reading job={build} asked={asked} missing={findings.missing} />}
          <Unreadable
            of={[...index.damaged, ...(search?.damaged ?? findings.unreadable.map(({ message }) => message))]}
          />
          {search ? (
            <Hits search={search} asked={asked} context={context} />
          ) : query.text !== undefined ? (
            <p>A text is searched in trajectories, which only the store has.</p>
          ) : (
            <FoundRows asked={asked} findings={findings} />
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
    const asked = findRequestIn(c, new URLSearchParams(typeof words === 'string' ? words : ''));
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
    const { run, query } = findRequestIn(c);
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

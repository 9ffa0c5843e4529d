import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Hono } from 'hono';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { replayStored } from '../../../activities/replay/replay.ts';
import type { ReplayAnswer } from '../../../activities/replay/replay.ts';
import type { RolloutGroup } from '../../../core/episode/episode.ts';
import type { Role } from '../../../core/names.ts';
import type { CurriculumResult } from '../../../core/training/curriculum.ts';
import type { Context } from '../../../dashboard/context.ts';
import { episodePage } from '../../../dashboard/pages/episode.tsx';
import { createDecoder } from '../../../engine/decoder/decoder.ts';
import { openDialect } from '../../../engine/dialect/open-dialect.ts';
import { Tokenizer } from '../../../engine/tokenizer/tokenizer.ts';
import { trainTokenizer } from '../../../engine/tokenizer/train-bpe.ts';
import { describeTool } from '../../../environments/host/facts.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';
import { TokenizersOfRuns } from '../../../runs/episodes/token-texts.ts';
import type { Sources } from '../../../runs/sources.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadTrajectories, rolloutKeys } from '../../../store/rollout/trajectories.ts';
import { batchKey } from '../../../store/keys.ts';
import { loadBatch } from '../../../store/training/batches.ts';
import { importModel } from '../../../store/training/import-model.ts';
import { DONE } from '../../support/ended.ts';
import { gradusCommand } from '../../support/gradus-command.ts';
import { killAndReplace } from '../../support/kill-workers.ts';
import { until } from '../../support/run-client.ts';
import survey from '../../support/survey-module.ts';
import type { SurveyCall } from '../../support/survey-module.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { hardestGoal, tinySpec } from '../../support/tiny-spec.ts';
import { writeTinyQwen } from '../../support/tiny-qwen.ts';

// A Qwen2 that writes three calls in a turn, long ones and one of an inline tool, whose workers are killed between them.

const SPECIAL_TOKENS = [
  '<|endoftext|>',
  '<|im_start|>',
  '<|im_end|>',
  '<tool_call>',
  '</tool_call>',
  '<tool_response>',
  '</tool_response>',
  '<think>',
  '</think>',
];
const chatTemplate = path.resolve(import.meta.dirname, '../../parity/dialects/templates/qwen2.5-like.jinja');
const tokenizerConfig = {
  chat_template: readFileSync(chatTemplate, 'utf8'),
  eos_token: '<|im_end|>',
  pad_token: '<|endoftext|>',
};

/** Merges what the template and the expert write, so that the tiny model's prompts are short. */
function surveyTokenizer(): string {
  const json = (corpus: string[], size: number) =>
    JSON.stringify(trainTokenizer(corpus, size, SPECIAL_TOKENS));
  const bytes = Tokenizer.fromJson(json([], 256 + SPECIAL_TOKENS.length));
  const dialect = openDialect(bytes, tokenizerConfig, survey.tools.map(describeTool));
  const corpus = Array.from({ length: 16 }, (_, index) => {
    const task = survey.task({ environment: 'survey', split: 'train', level: 1, index });
    const prompt = bytes.decode(dialect.promptTokens([{ role: 'user', content: task.prompt }]));
    const turns = task.calls.map((call) => dialect.turnText({ call })).join('');
    return `${prompt}${turns}<tool_response>\nnoted hill\n</tool_response>`;
  });
  return json(corpus, 500);
}

const tasks = [{ environment: 'survey', levels: [1] }];
const tiny = tinySpec();
const [warmStart, stage] = tiny.stages;
const spec = (from: string, maxSteps: number) => ({
  seed: 5,
  model: { from },
  sampling: { maxTurns: 2, maxCompletionTokens: 120, maxParallelCalls: 3 },
  reward: { components: [{ verifier: 'surveyed', role: 'outcome', weight: 1 }] },
  stages: [
    {
      ...stage,
      tasks,
      groupsPerStep: 4,
      groupsPerWorkflow: 1,
      numGenerations: 4,
      maxSteps,
      graduation: { successAtLeast: hardestGoal(8, 1), tasks: 8, everySteps: maxSteps },
    },
  ],
  evaluation: { tasks, count: 8 },
});

let installation: TestInstallation;
let store: ObjectStore;
let scratch: string;
let callsFile: string;
let plain: CurriculumResult;

beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), 'gradus-several-'));
  callsFile = path.join(scratch, 'calls.jsonl');
  installation = await startTestInstallation({
    processes: [['orchestrator', 'verifier'], ['tool'], ['rollout'], ['learner']],
    env: {
      GRADUS_ENVIRONMENTS: path.join(import.meta.dirname, '../../support/survey-module.ts'),
      GRADUS_TEST_CALLS: callsFile,
    },
  });
  store = await ObjectStore.connect(installation.settings.store);
  const folder = path.join(scratch, 'qwen');
  await writeTinyQwen(folder, surveyTokenizer(), { maxPositions: 512, tokenizerConfig });
  await importModel(store, folder, 'qwen');
  const warm = {
    ...warmStart,
    tasks,
    minibatch: 16,
    updatesPerRound: 150,
    maxRounds: 1,
    optimizer: { learningRate: 0.01 },
    graduation: { successAtLeast: 0, tasksPerLevel: 4 },
  };
  const begun = { ...spec('qwen', 1), stages: [warm, ...spec('qwen', 1).stages] };
  expect((await (await installation.runs.start('warm', begun)).result()).end).toEqual(DONE);
  plain = await (await installation.runs.start('plain', spec('warm', 2))).result();
}, 600_000);
afterAll(async () => {
  store?.close();
  await installation?.remove();
  await rm(scratch, { recursive: true, force: true });
});

/** Of a run, by the call without the run's name. */
async function calls(run: string): Promise<SurveyCall[]> {
  const lines = (await readFile(callsFile, 'utf8')).split('\n').filter((line) => line !== '');
  return lines
    .map((line) => JSON.parse(line) as SurveyCall)
    .filter(({ call }) => call.startsWith(`${run}/`))
    .map((one) => ({ ...one, call: one.call.slice(run.length + 1) }));
}

async function groupsOf(run: string): Promise<{ key: string; group: RolloutGroup }[]> {
  const keys = await rolloutKeys(store, run, 'rl');
  return Promise.all(
    keys.map(async (key) => ({ key, group: await loadTrajectories(store, (await store.head(key))!) })),
  );
}

test('three calls of a turn are made in order, and their results are read as one piece, untrained', async () => {
  expect(plain.end).toEqual(DONE);
  const tokenizer = Tokenizer.fromJson(surveyTokenizer());
  const episodes = (await groupsOf('plain')).flatMap(({ group }) => group.episodes);
  const whole = episodes.filter(({ turns }) => turns[0]!.results?.length === 3);
  expect(whole.length, 'turns of three calls').toBeGreaterThan(8);
  for (const { tokens, mask, turns } of whole) {
    const [first, second] = turns;
    expect(first!.action).toMatchObject({ kind: 'calls' });
    const read = tokens.slice(first!.end, second?.start ?? tokens.length);
    expect(mask.slice(first!.end, second?.start ?? tokens.length).every((bit) => bit === 0)).toBe(true);
    const told = first!.results!.map(({ text }) => `<tool_response>\n${text}\n</tool_response>`).join('\n');
    const behind = `\n<|im_start|>user\n${told}<|im_end|>\n<|im_start|>assistant\n`;
    if (second) expect(tokenizer.decode(read)).toBe(behind);
    else expect(behind).toContain(tokenizer.decode(read));
  }
  const ended = (await calls('plain')).filter(({ event }) => event === 'end');
  expect(new Set(ended.map(({ call }) => call)).size).toBe(ended.length);
});

test('what a run exports with such turns is taught as the same turns', async () => {
  const { settings, runs } = installation;
  const { temporalAddress: address, namespace } = settings;
  const gradus = gradusCommand({
    temporal: { address, namespace },
    objectStore: { ...settings.store, useSSL: false },
  });
  const file = path.join(scratch, 'found.jsonl');
  expect(await gradus('find', 'plain', '--split', 'train', '--jsonl', file)).toMatchObject({ code: 0 });
  const lines = (await readFile(file, 'utf8')).trim().split('\n');
  const whole = lines.filter((line) => {
    const { messages } = JSON.parse(line) as { messages: { role: string; tool_calls?: unknown[] }[] };
    const [, first, ...rest] = messages;
    return first!.tool_calls?.length === 3 && rest.length === 4 && !rest[3]!.tool_calls;
  });
  expect(whole.length, 'episodes of three calls and an answer').toBeGreaterThan(4);
  const data = path.join(scratch, 'several.jsonl');
  await writeFile(data, `${whole.join('\n')}\n`);
  const stage = { ...warmStart, tasks, data, minibatch: 4, updatesPerRound: 2, maxRounds: 1 };
  const taught = { ...stage, graduation: { successAtLeast: 0, tasksPerLevel: 1 } };
  const result = await (await runs.start('taught', { ...spec('warm', 1), stages: [taught] })).result();
  expect(result.end).toEqual(DONE);
  const batch = await loadBatch(store, (await store.head(batchKey('taught', warmStart.name, 1)))!);
  const tokenizer = Tokenizer.fromJson(surveyTokenizer());
  const episodes = (await groupsOf('plain')).flatMap(({ group }) => group.episodes);
  const sampled = new Set(episodes.map(({ tokens }) => tokens.join(' ')));
  for (let i = 0; i < 8; i++) {
    const [from, to] = [batch.offsets[i]!, batch.offsets[i + 1]!];
    const mask = batch.mask.slice(from, to);
    const tokens = Array.from(batch.tokens.subarray(from, to));
    expect(sampled).toContain(tokens.slice(mask.indexOf(1)).join(' '));
    const trained = tokenizer.decode(tokens.filter((_, at) => mask[at] === 1));
    expect(trained.match(/<tool_call>/gu)).toHaveLength(3);
    expect(trained).not.toContain('<tool_response>');
  }
  const refused = {
    ...spec('warm', 1),
    sampling: { maxTurns: 2, maxCompletionTokens: 120 },
    stages: [taught],
  };
  const failure = await (await runs.start('refused', refused)).result().then(
    () => 'it was taken',
    (error: Error) => String((error.cause as Error | undefined)?.cause),
  );
  expect(failure).toContain(`${data}, line 1 has 3 calls in a turn`);
}, 600_000);

test('the page of such an episode shows every call and what each brought', async () => {
  const app = new Hono();
  const sources = { store } as unknown as Sources;
  episodePage(app, { ...({} as Context), sources, tokenizers: new TokenizersOfRuns(store) });
  const { group } = (await groupsOf('plain'))[0]!;
  const at = group.episodes.findIndex(({ turns }) => turns[0]!.results?.length === 3);
  const response = await app.request(`/runs/plain/episodes/rl/1/0/${at}`);
  const page = (await response.text()).replaceAll(/<[^>]+>/gu, ' ').replaceAll(/\s+/gu, ' ');
  const { action, results } = group.episodes[at]!.turns[0]!;
  if (action.kind !== 'calls') throw new Error('it has several calls');
  for (const { name } of action.calls) expect(page).toContain(`calls ${name}`);
  for (const { text } of results!) expect(page).toContain(text);
  expect(page).toContain('what came back of call 3');
});

/**
 * Kills workers when nothing but these activities runs, and gives the calls of the run's first step that wait. They stand still
 * while that is looked up once more: no other call begins between the look and the kill.
 */
function killedWhereHeld(
  run: string,
  nth: number,
  under: readonly string[],
  roles: readonly Role[],
): Promise<SurveyCall[]> {
  const { workers } = installation;
  const [activities, of] = [['advance', 'dueCalls', 'callTool', 'resume', 'gather'], `${run}/rl/1/`];
  let seen: object = {};
  const heldUp = async (): Promise<SurveyCall[] | undefined> => {
    const made = (await calls(run)).filter(({ call }) => call.startsWith('rl/1/'));
    const ends = made.flatMap(({ call, event }) => (event === 'end' ? [call] : []));
    const open = made.filter(({ call, event }) => event === 'start' && !ends.includes(call));
    const running = await installation.runs.running(of, ...under);
    const others = await installation.runs.running(of, ...activities.filter((one) => !under.includes(one)));
    seen = { open: open.length, running: running.length, others: others.length };
    const settled = open.length > 0 && running.length > 0 && others.length === 0;
    return settled && open.every(({ call }) => call.endsWith(`.${nth}`)) ? open : undefined;
  };
  return until(
    async () => {
      if (!(await heldUp())) return undefined;
      const pids = roles.map((role) => workers.pid(role)!);
      const signal = (name: NodeJS.Signals): void => pids.forEach((pid) => process.kill(pid, name));
      signal('SIGSTOP');
      let held: SurveyCall[] | undefined;
      try {
        held = await heldUp();
      } finally {
        if (!held) signal('SIGCONT');
      }
      if (held) await killAndReplace(workers, ...roles);
      return held;
    },
    300_000,
    () => `no turn waits for its call ${nth}: ${JSON.stringify(seen)}`,
  );
}

test.each([
  ['third', 3, ['callTool'], ['tool', 'rollout']],
  ['second', 2, ['resume'], ['rollout']],
] as const)(
  'where workers are killed in the %s call of a turn, none before it is repeated, none is lost, and the weights are the same',
  async (run, nth, under, roles) => {
    const handle = await installation.runs.start(run, spec('warm', 2));
    const waiting = await killedWhereHeld(run, nth, under, roles);
    await writeFile(`${callsFile}.release`, '');
    const result = await handle.result();
    await rm(`${callsFile}.release`);
    expect(result.end).toEqual(DONE);
    expect(result.checkpoint.weights).toBe(plain.checkpoint.weights);
    expect(result.checkpoint.weights).not.toBe(result.reference!.weights);

    const made = await calls(run);
    // What was under way was begun again; what had come back was not.
    const begun = made.filter(({ event }) => event === 'start').map(({ call }) => call);
    const again = begun.filter((call, i) => begun.indexOf(call) < i);
    expect(again).toEqual(expect.arrayContaining(waiting.map(({ call }) => call)));
    expect(new Set(again).size).toBe(again.length);
    for (const call of again) expect(call).toMatch(new RegExp(`^rl/1/.*\\.${nth}$`));
    const ends = (events: SurveyCall[]) =>
      events.flatMap(({ call, event }) => (event === 'end' ? [call] : [])).toSorted();
    expect(ends(made)).toEqual(ends(await calls('plain')));
  },
  600_000,
);

test('such a turn is replayed to the bit, and another one may be forked off behind its results', async () => {
  const groups = await groupsOf('plain');
  const place = groups
    .flatMap(({ group }, at) =>
      group.episodes.map((episode, i) => ({
        group: at % 4,
        step: 1 + Math.floor(at / 4),
        episode: i,
        is: episode,
      })),
    )
    .find(({ is: { turns } }) => turns[0]!.results?.length === 3 && turns.length === 2)!;
  const { is, ...of } = place;
  const environments = inThisProcess([survey]);
  const replay = (fork: { at: number } | null): Promise<ReplayAnswer> =>
    replayStored(
      {
        place: { run: 'plain', stage: 'rl', ...of },
        alternatives: 0,
        fork: fork && { ...fork, token: null, seed: 9 },
      },
      { store, environments, createDecoder, signal: new AbortController().signal },
    );
  const { replay: replayed } = await replay(null);
  expect(replayed).toMatchObject({ equal: true, unread: false, differences: [] });
  process.env['GRADUS_TEST_CALLS'] = callsFile;
  const { fork: behind } = await replay({ at: is.turns[1]!.start });
  expect(behind!.turns[0]).toEqual(is.turns[0]);
  // From its first token on, whatever it calls is called here.
  const { fork: anew } = await replay({ at: is.turns[0]!.start });
  expect(anew!.stopped).toBeNull();
  expect(anew!.status.kind).not.toBe('calling');
}, 600_000);

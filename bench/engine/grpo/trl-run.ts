import { cp } from 'node:fs/promises';
import path from 'node:path';
import type { RolloutGroup } from '../../../core/episode/episode.ts';
import { trainableReward } from '../../../core/episode/outcome.ts';
import type { Environment, PlainEnvironment } from '../../../environments/contract/environment.ts';
import type { ParsedSpec } from '../../../spec/parse-spec.ts';
import type { Child } from '../../child.ts';
import { sum } from '../../processes.ts';
import { anchor, THREADS } from '../engines.ts';
import { stageOf } from './specs.ts';

/** A step of it may take minutes where other work shares the cores. */
const STEP_LIMIT_MS = 3_600_000;

/** TRL's GRPOTrainer, which stands still between calls of `advance`. */
export class TrlRun {
  private readonly process: Child;
  private readonly warm: string;
  readonly stepSeconds: number[] = [];
  peakBytes = 0;

  private constructor(process: Child, warm: string) {
    this.process = process;
    this.warm = warm;
  }

  /** Gives `use` one with the model in the folder `warm`; `tasks` is the file with what `dumpTasks` gave. */
  static async with<T>(
    { warm, tasks, spec }: { warm: string; tasks: string; spec: ParsedSpec },
    say: (text: string) => void,
    use: (run: TrlRun) => Promise<T>,
  ): Promise<T> {
    const { groupsPerStep, numGenerations, algorithm, optimizer } = stageOf(spec);
    if (algorithm.kind !== 'grpo') throw new Error(`${algorithm.kind} is not what TRL is told`);
    const { temperature, maxTurns, maxCompletionTokens } = spec.sampling;
    const sizes = { maxTurns, maxCompletionTokens, groupsPerStep, numGenerations };
    // None of these is set, and TRL has none.
    const {
      importanceFloor: _,
      differenceLow: __,
      differenceHigh: ___,
      leastDeviation: ____,
      ...told
    } = algorithm;
    const settings = { seed: spec.seed, temperature, ...sizes, ...told, optimizer: { ...optimizer } };
    const process = await anchor('trl_grpo', say, { avx512: true });
    try {
      await process.call('load', { folder: warm, tasks, threads: THREADS, settings });
      return await use(new TrlRun(process, warm));
    } finally {
      await process.close();
    }
  }

  /** Throws Error where it reads, answers or rewards anything in these episodes in another way than ours did. */
  async agree(
    groups: readonly RolloutGroup[],
    spec: ParsedSpec,
    environments: ReadonlyMap<string, Environment>,
  ): Promise<number> {
    const cases = casesOf(groups, spec, environments);
    const { rewards, prompts, results } = (await this.process.call('judge', {
      episodes: cases.episodes.map(({ written, answer }) => ({ turns: written, answer })),
      prompts: cases.prompts.map(({ prompt }) => prompt),
      expressions: cases.calls.map(({ expression }) => expression),
    })) as unknown as { rewards: number[]; prompts: number[][]; results: string[] };
    const same = (alike: boolean, what: string, ours: unknown, theirs: unknown): void => {
      if (!alike)
        throw new Error(
          `the two sides do not agree about ${what}: ours ${String(ours)}, TRL's ${String(theirs)}`,
        );
    };
    cases.episodes.forEach(({ written, reward }, i) => {
      same(Math.abs(reward - rewards[i]!) < 1e-6, written.join(' | '), reward, rewards[i]);
    });
    cases.prompts.forEach(({ prompt, tokens }, i) => {
      same(tokens.join() === prompts[i]!.join(), prompt, tokens, prompts[i]);
    });
    const refused = (result: string): boolean => result.startsWith('error:');
    cases.calls.forEach(({ expression, result }, i) => {
      // Why a call was refused may be said in other words.
      const alike = result === results[i] || (refused(result) && refused(results[i]!));
      same(alike, expression, result, results[i]);
    });
    return cases.episodes.length;
  }

  /** Makes the trainer, and takes its first steps or its next. */
  async advance(steps: number): Promise<void> {
    if (this.stepSeconds.length === 0) await this.process.call('start');
    const answer = await this.process.call('advance', { steps }, STEP_LIMIT_MS * steps);
    this.stepSeconds.push(...(answer['stepSeconds'] as number[]));
    this.peakBytes = answer.peakBytes;
  }

  /** Wall seconds of training so far; what is between calls is not in them. */
  get seconds(): number {
    return sum(this.stepSeconds);
  }

  /** Puts the model as it is now below `folder`, with the tokenizer that it began with. */
  async save(folder: string): Promise<string> {
    const target = path.join(folder, `step-${this.stepSeconds.length}`);
    await cp(this.warm, target, { recursive: true });
    await this.process.call('save', { folder: target });
    return target;
  }
}

function casesOf(
  groups: readonly RolloutGroup[],
  spec: ParsedSpec,
  environments: ReadonlyMap<string, Environment>,
) {
  const all = groups.flatMap((group) =>
    group.episodes.map((episode) => ({ ...episode, ref: group.tasks[episode.task]!.ref })),
  );
  const episodes = all.flatMap(({ ref, turns, outcome }) => {
    const reward = outcome ? trainableReward(outcome, spec.reward.truncated) : null;
    const { answer } = (environments.get(ref.environment) as PlainEnvironment).task(ref);
    return reward === null ? [] : [{ written: turns.map(({ text }) => text), answer: answer!, reward }];
  });
  const tasks = groups.flatMap((group) => group.tasks);
  const prompts = tasks.map(({ prompt, promptTokens }) => ({ prompt, tokens: promptTokens }));
  const calls = all.flatMap(({ turns }) =>
    turns.flatMap(({ action, observation }) => {
      if (action.kind !== 'call' || !observation || action.call.name !== 'calculator') return [];
      const { expression } = action.call.arguments as { expression?: unknown };
      return typeof expression === 'string' ? [{ expression, result: observation.text }] : [];
    }),
  );
  return { episodes, prompts, calls };
}

import { cp } from 'node:fs/promises';
import path from 'node:path';
import type { ParsedSpec } from '../../../spec/parse-spec.ts';
import { stageOf } from './specs.ts';
import { trainableReward } from '../../../core/episode/outcome.ts';
import type { RolloutGroup } from '../../../core/episode/episode.ts';
import type { Environment, PlainEnvironment } from '../../../environments/contract/environment.ts';
import type { AnchorProcess } from '../anchor-process.ts';
import { anchor, THREADS } from '../engines.ts';

/** A step of it may take minutes where other work shares the cores. */
const STEP_LIMIT_MS = 3_600_000;

/** TRL's GRPOTrainer, which stands still between calls of `advance`. */
export class TrlRun {
  private readonly process: AnchorProcess;
  private readonly warm: string;
  readonly stepSeconds: number[] = [];
  peakBytes = 0;

  private constructor(process: AnchorProcess, warm: string) {
    this.process = process;
    this.warm = warm;
  }

  /** Loads the model in the folder `warm`; `tasks` is the file with what `dumpTasks` gave. */
  static async start(
    { warm, tasks, spec }: { warm: string; tasks: string; spec: ParsedSpec },
    say: (text: string) => void,
  ): Promise<TrlRun> {
    const process = await anchor('trl_grpo', { avx512: true, say });
    try {
      const { groupsPerStep, numGenerations, algorithm, optimizer } = stageOf(spec);
      if (algorithm.kind !== 'grpo') throw new Error(`${algorithm.kind} is not what TRL is told`);
      const { temperature, maxTurns, maxCompletionTokens } = spec.sampling;
      await process.call('load', {
        folder: warm,
        tasks,
        threads: THREADS,
        settings: {
          seed: spec.seed,
          temperature,
          maxTurns,
          maxCompletionTokens,
          groupsPerStep,
          numGenerations,
          ...algorithm,
          optimizer: { ...optimizer },
        },
      });
      return new TrlRun(process, warm);
    } catch (error) {
      await process.close();
      throw error;
    }
  }

  /** Throws Error where it reads, answers or rewards anything in these episodes in another way than ours did. */
  async agree(
    groups: readonly RolloutGroup[],
    spec: ParsedSpec,
    environments: ReadonlyMap<string, Environment>,
  ) {
    const cases = casesOf(groups, spec, environments);
    const { rewards, prompts, results } = (await this.process.call('judge', {
      episodes: cases.episodes.map(({ written, answer }) => ({ turns: written, answer })),
      prompts: cases.prompts.map(({ prompt }) => prompt),
      expressions: cases.calls.map(({ expression }) => expression),
    })) as unknown as { rewards: number[]; prompts: number[][]; results: string[] };
    const differ = (what: string, ours: unknown, theirs: unknown): never => {
      throw new Error(
        `the two sides do not agree about ${what}: ours ${String(ours)}, TRL's ${String(theirs)}`,
      );
    };
    cases.episodes.forEach(({ written, reward }, i) => {
      if (!(Math.abs(reward - rewards[i]!) < 1e-6)) differ(written.join(' | '), reward, rewards[i]);
    });
    cases.prompts.forEach(({ prompt, tokens }, i) => {
      if (tokens.join() !== prompts[i]!.join()) differ(prompt, tokens, prompts[i]);
    });
    const refused = (result: string): boolean => result.startsWith('error:');
    cases.calls.forEach(({ expression, result }, i) => {
      // Why a call was refused may be said in other words.
      if (result !== results[i] && !(refused(result) && refused(results[i]!)))
        differ(expression, result, results[i]);
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
    return this.stepSeconds.reduce((a, b) => a + b, 0);
  }

  /** Puts the model as it is now below `folder`, with the tokenizer that it began with. */
  async save(folder: string): Promise<string> {
    const target = path.join(folder, `step-${this.stepSeconds.length}`);
    await cp(this.warm, target, { recursive: true });
    await this.process.call('save', { folder: target });
    return target;
  }

  close(): Promise<void> {
    return this.process.close();
  }
}

function casesOf(
  groups: readonly RolloutGroup[],
  spec: ParsedSpec,
  environments: ReadonlyMap<string, Environment>,
) {
  const episodes = groups.flatMap((group) =>
    group.episodes.flatMap(({ task, turns, outcome }) => {
      const { ref } = group.tasks[task]!;
      const reward = outcome ? trainableReward(outcome, spec.reward.truncated) : null;
      const { answer } = (environments.get(ref.environment) as PlainEnvironment).task(ref);
      return reward === null ? [] : [{ written: turns.map(({ text }) => text), answer: answer!, reward }];
    }),
  );
  const prompts = groups.flatMap((group) =>
    group.tasks.map(({ prompt, promptTokens }) => ({ prompt, tokens: promptTokens })),
  );
  const calls = groups.flatMap((group) =>
    group.episodes.flatMap(({ turns }) =>
      turns.flatMap(({ action, observation }) => {
        if (action.kind !== 'call' || !observation || action.call.name !== 'calculator') return [];
        const { expression } = action.call.arguments as { expression?: unknown };
        return typeof expression === 'string' ? [{ expression, result: observation.text }] : [];
      }),
    ),
  );
  return { episodes, prompts, calls };
}

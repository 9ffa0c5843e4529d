import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { demonstrationSequences } from '../../../activities/training/demonstrations.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';
import { attemptCall, refuseCall } from '../../../environments/host/tool-call.ts';
import { composeReward } from '../../../core/episode/reward.ts';
import type { Turn } from '../../../core/episode/episode.ts';
import type { Split } from '../../../core/refs.ts';
import { gradusDialect } from '../../../engine/dialect/gradus/dialect.ts';
import { parseAction } from '../../../engine/dialect/gradus/parse-action.ts';
import { turnText } from '../../../engine/dialect/gradus/render.ts';
import { SPECIAL_TOKENS } from '../../../engine/dialect/gradus/special-tokens.ts';
import { Tokenizer } from '../../../engine/tokenizer/tokenizer.ts';
import { trainTokenizer } from '../../../engine/tokenizer/train-bpe.ts';
import type {
  Candidate,
  Environment,
  PlainEnvironment,
  Task,
  ToolContext,
} from '../../../environments/contract/environment.ts';
import { demonstrationCorpus } from '../../../activities/training/corpus.ts';
import { loadEnvironments } from '../../../environments/families/index.ts';
import { reverse } from '../../../examples/tool.ts';
import { lettersInPlace } from '../../../examples/verifier.ts';
import { ChatServer } from '../../support/chat-server.ts';
import { codeBlocks, ROOT, taggedBlock } from '../../support/markdown.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';

interface MoleculesSpec {
  stages: { algorithm: object }[];
}

const SPLITS: Split[] = ['train', 'heldout', 'test'];
const { signal } = new AbortController();
const context: ToolContext = {
  idempotencyKey: 'example/1',
  attempt: 1,
  signal,
  heartbeat: () => undefined,
  task: () => Promise.reject(new Error('no task was made')),
};

let environments: Map<string, Environment>;
let environment: PlainEnvironment;
beforeAll(async () => {
  // As the workers load it.
  environments = await loadEnvironments([path.join(ROOT, 'examples/environment.ts')]);
  environment = environments.get('backwards') as PlainEnvironment;
});
const taskAt = (split: Split, level: number, index: number): Task =>
  environment.task({ environment: 'backwards', split, level, index });

const GUIDE = 'docs/guide.md';

describe('the guide', () => {
  test.each([
    'examples/tool.ts',
    'examples/verifier.ts',
    'examples/judge.ts',
    'examples/environment.ts',
    'examples/house.ts',
  ])('shows %s as it is', (file) => {
    const shown = codeBlocks(GUIDE).find(({ info }) => info === `file=${file}`);
    expect(shown?.text).toBe(readFileSync(path.join(ROOT, file), 'utf8'));
  });

  test('has a spec for the example environment that is accepted', () => {
    const spec = parseSpec(JSON.parse(taggedBlock(GUIDE, 'spec')), 'guide', environments);
    expect(spec.stages.map(({ kind, arms }) => [kind, arms.length])).toEqual([
      ['supervised', 3],
      ['rl', 3],
    ]);
  });

  test('is followed by a page on the ladder with a part of a spec that is accepted', () => {
    const { stages, ...ladder } = JSON.parse(taggedBlock('docs/ladder.md', 'ladder-spec')) as MoleculesSpec;
    const molecules = JSON.parse(
      readFileSync(path.join(ROOT, 'examples/molecules.json'), 'utf8'),
    ) as MoleculesSpec;
    const [warmStart, stage] = molecules.stages;
    const whole = {
      ...molecules,
      ...ladder,
      stages: [warmStart, { ...stage!, algorithm: { ...stage!.algorithm, ...stages[0]!.algorithm } }],
    };
    expect(parseSpec(whole, 'guide', environments).verification?.rungs).toHaveLength(3);
  });
});

describe('the example tool', () => {
  const call = (args: { [name: string]: string }) => ({ name: 'reverse', arguments: args });

  test('answers', async () => {
    expect(await refuseCall(call({ text: 'lemon' }), [reverse], new AbortController().signal)).toBeNull();
    expect(await attemptCall(reverse, call({ text: 'lemon' }), context)).toMatchObject({ text: 'nomel' });
  });

  test('refuses what the policy got wrong, and says what to write', async () => {
    expect((await refuseCall(call({ word: 'lemon' }), [reverse], new AbortController().signal))?.error).toBe(
      'invalid-arguments',
    );
    expect(
      (await refuseCall(call({ text: 'x'.repeat(13) }), [reverse], new AbortController().signal))?.error,
    ).toBe('invalid-arguments');
    const observation = await attemptCall(reverse, call({ text: 'Two words' }), context);
    expect(observation.error).toBe('tool-error');
    expect(observation.text).toContain('like lemon');
  });
});

describe('the example verifier', () => {
  const candidate = (answer: string | null, task: Partial<Task> = { answer: 'nomel' }): Candidate => ({
    task: { ref: { environment: 'backwards', split: 'train', level: 5, index: 0 }, prompt: '', ...task },
    episode: {
      turns: [],
      status: answer === null ? { kind: 'truncated', limit: 'turns' } : { kind: 'answered', answer },
    },
    answer,
    tools: ['reverse'],
  });

  test.each([
    ['nomel', 1],
    [' nomel ', 1],
    ['nomex', 0.8],
    ['nomelnomel', 0.5],
    ['', 0],
    [null, 0],
  ])('scores %j with %d', async (answer, score) => {
    expect(await lettersInPlace.verify(candidate(answer), { signal })).toMatchObject({
      kind: 'score',
      score,
    });
  });

  test('abstains where there is nothing to compare with', async () => {
    expect(await lettersInPlace.verify(candidate('x', {}), { signal })).toMatchObject({ kind: 'abstain' });
  });
});

describe('the example judge', () => {
  test('decides by its rule what needs no judge, and asks three times about the rest', async () => {
    const server = await ChatServer.open(
      () => ({
        says: JSON.stringify({ reason: 'one call', score: 1 }),
        usage: { prompt: 1000, completion: 100 },
      }),
      { key: 'a-key-of-the-example' },
    );
    vi.stubEnv('JUDGE_URL', server.baseUrl);
    vi.stubEnv('JUDGE_API_KEY', 'a-key-of-the-example');
    try {
      const { tidyWork } = await import('../../../examples/judge.ts');
      const verdict = (answer: string) => {
        if (tidyWork.served.by !== 'function') throw new Error('a judge is a function');
        const task = taskAt('train', 5, 0);
        const candidate: Candidate = {
          task,
          episode: { turns: [], status: { kind: 'answered', answer } },
          answer,
          tools: ['reverse'],
        };
        return tidyWork.served.verify(tidyWork.subject(candidate), { signal, heartbeat: () => undefined });
      };
      expect(await verdict('wrong')).toMatchObject({ kind: 'scored', score: 0, usd: 0 });
      expect(server.asked).toHaveLength(0);
      const right = await verdict(taskAt('train', 5, 0).answer!);
      expect(right).toMatchObject({ kind: 'scored', score: 1 });
      expect(right.usd).toBeCloseTo((3 * (1000 * 0.1 + 100 * 0.3)) / 1e6, 12);
      expect(server.asked).toHaveLength(3);
    } finally {
      vi.unstubAllEnvs();
      await server.close();
    }
  });

  test('is a verifier that the workers accept', async () => {
    const module = path.join(ROOT, 'test/support/judged-environment.ts');
    const loaded = (await loadEnvironments([module])).get('backwards-judged')!;
    expect(loaded.verifiers.map(({ name }) => name)).toContain('tidy-work');
  });
});

describe('the example environment', () => {
  test('has disjoint splits', () => {
    const owner = new Map<string, Split>();
    for (const level of environment.levels) {
      for (const split of SPLITS) {
        const count = environment.taskCount(split, level);
        const sample = Array.from({ length: Math.min(count, 3000) }, (_, i) => i);
        for (const index of [...sample, count - 1]) {
          const { prompt } = taskAt(split, level, index);
          expect(owner.get(prompt) ?? split, prompt).toBe(split);
          owner.set(prompt, split);
        }
      }
    }
    // Nor does a word come twice in its own split: 3 levels × 3 splits × 3,000 tasks and the last one.
    expect(owner.size).toBeGreaterThanOrEqual(3 * 3 * 3000);
  });

  test('demonstrates what solves its tasks, through the real tool and the real verifiers', async () => {
    for (const level of environment.levels) {
      for (const split of SPLITS) {
        for (let index = 0; index < 20; index++) {
          const task = taskAt(split, level, index);
          const reward = composeReward(rewardSpec(), await verdictsOf(task, await play(task)));
          expect(reward).toMatchObject({ kind: 'scored', reward: 1.25 });
        }
      }
    }
  });

  test('becomes training sequences with a tokenizer learnt from it', async () => {
    const tokenizer = Tokenizer.fromJson(
      JSON.stringify(trainTokenizer(demonstrationCorpus([environment], 100), 400, SPECIAL_TOKENS)),
    );
    const arms = environment.levels.map((level) => ({ environment: 'backwards', level }));
    const request = { arms, count: 6, round: 1, seed: 1 };
    const sequences = await demonstrationSequences(
      inThisProcess(environments.values()),
      () => gradusDialect(tokenizer),
      request,
      signal,
    );
    expect(sequences).toHaveLength(6);
    for (const { tokens } of sequences) {
      expect(tokenizer.decode(tokens)).toMatch(/<tool_response>[a-z]+<\/tool_response>/);
      expect(tokens.length).toBeLessThan(60);
    }
  });

  const rewardSpec = () => parseSpec(JSON.parse(taggedBlock(GUIDE, 'spec')), 'guide', environments).reward;

  /** The turns of an expert's demonstration, as the rollout would record them. */
  async function play(task: Task): Promise<Turn[]> {
    const turns: Turn[] = [];
    for (const demonstrated of environment.demonstrate(task, 0).turns) {
      const text = turnText(demonstrated);
      const action = parseAction(text);
      const turn: Turn = { start: 0, end: 0, text, action };
      if (action.kind === 'call') {
        expect(await refuseCall(action.call, environment.tools, new AbortController().signal)).toBeNull();
        turn.observation = await attemptCall(environment.tools[0]!, action.call, context);
      }
      turns.push(turn);
    }
    return turns;
  }

  async function verdictsOf(task: Task, turns: Turn[]) {
    const last = turns.at(-1)!.action;
    if (last.kind !== 'answer') throw new Error('a demonstration ends with an answer');
    const { answer } = last;
    const candidate: Candidate = {
      task,
      episode: { turns, status: { kind: 'answered', answer } },
      answer,
      tools: ['reverse'],
    };
    return Promise.all(
      environment.verifiers.map(async (verifier) => {
        if (verifier.tier !== 'fast') throw new Error(`${verifier.name} is not fast`);
        const verdict = await verifier.verify(candidate, { signal });
        const { name, version } = verifier;
        return { verifier: name, version, score: verdict.kind === 'score' ? verdict.score : null };
      }),
    );
  }
});

import { describe, expect, test } from 'vitest';
import type { Json } from '../../../../core/json/json.ts';
import { RandomStream } from '../../../../core/random.ts';
import type { ToolCall, Turn } from '../../../../core/episode/episode.ts';
import type { Candidate, Demonstration, Task } from '../../../../environments/contract/environment.ts';
import { calculatorEnvironment } from '../../../../environments/families/calculator/environment.ts';
import { calculate } from '../../../../environments/families/calculator/tool.ts';
import { goalOf } from '../../../../environments/families/retail/goal.ts';
import { retailEnvironment } from '../../../../environments/families/retail/environment.ts';
import { webShopEnvironment } from '../../../../environments/families/web-shop/environment.ts';
import { createVisits } from '../../../../environments/families/web-shop/goals.ts';
import { ENTRANCE, pageAt } from '../../../../environments/families/web-shop/pages.ts';
import { purchaseReward } from '../../../../environments/families/web-shop/reward.ts';
import { addressAfter, readAt } from '../../../../environments/families/web-shop/visit.ts';
import { played, say, scoreOf } from './retail/played.ts';

const SEEDS = Array.from({ length: 60 }, (_, index) => index);

function episodeOf(task: Task, calls: readonly (readonly [ToolCall, string])[], answer: string | null) {
  const turns = calls.map(([call, text]): Turn => ({
    start: 0,
    end: 0,
    text: '',
    action: { kind: 'call', call },
    observation: { text },
  }));
  const status = answer === null ? { kind: 'ended' as const } : { kind: 'answered' as const, answer };
  return { task, episode: { turns, status }, answer, tools: [] } satisfies Candidate;
}

describe('a hint of the calculator', () => {
  const environment = calculatorEnvironment();
  const taskAt = (level: number, index: number) =>
    environment.task({ environment: 'calculator', split: 'train', level, index });
  const hintOf = (task: Task, expressions: readonly string[], answer: string | null) => {
    const calls = expressions.map((expression) => {
      const call = { name: 'calculator', arguments: { expression } };
      return [call, calculate(expression)] as const;
    });
    return environment.hint!(episodeOf(task, calls, answer));
  };
  const wayOf = ({ calls }: Task) =>
    calls!.map((call) => (call.arguments as { expression: string }).expression);

  test('says where the way was left', () => {
    const task = environment.task({ environment: 'calculator', split: 'train', level: 2, index: 0 });
    const [first, second] = wayOf(task) as [string, string];
    const other = first.replace(/^\d+/u, (number) => String(Number(number) + 100));
    expect(hintOf(task, [], '7')).toContain('Nothing was computed');
    expect(hintOf(task, [first], '7')).toContain('The second operation was left out');
    expect(hintOf(task, [other], '7')).toContain('of other numbers');
    expect(hintOf(task, [`99/9`], '7')).toMatch(/^The first operation is .*, and not a division\.$/u);
    expect(hintOf(task, [first, second], '7')).toContain('the answer is the result of the last one');
    expect(hintOf(task, [first, second, '1+1'], '2')).toContain('More was computed');
    // Nothing is amiss.
    expect(hintOf(task, [first, second], task.answer!)).toBeNull();
  });

  test('has no number in it, whatever was left out or exchanged', () => {
    let said = 0;
    for (const level of environment.levels) {
      for (const index of SEEDS) {
        const task = taskAt(level, index);
        const way = wayOf(task);
        const attempts = [
          [],
          ...way.map((_, i) => way.slice(0, i)),
          ...way.map((_, i) => way.toSpliced(i, 1)),
          ...way.map((_, i) => way.toSpliced(i, 1, '12+7')),
          [...way, '12+7'],
          way,
        ];
        for (const attempt of attempts) {
          const hint = hintOf(task, attempt, '7');
          if (hint === null) continue;
          said++;
          expect(hint).not.toMatch(/\d/u);
          expect(hintOf(task, attempt, '7')).toBe(hint);
        }
      }
    }
    expect(said).toBeGreaterThan(1000);
  });

  test('leaves a call that failed to its error', () => {
    const task = taskAt(1, 0);
    const candidate = episodeOf(task, [[{ name: 'calculator', arguments: {} }, 'error: no']], '7');
    candidate.episode.turns[0]!.observation!.error = 'invalid-arguments';
    expect(environment.hint!(candidate)).toBeNull();
  });
});

describe('a hint of the web shop', () => {
  const environment = webShopEnvironment();
  const visits = createVisits();

  /** Clicks and searches at random until something is bought, or for a while. */
  function wandered(level: number, index: number): Candidate {
    const ref = { environment: 'web-shop', split: 'train' as const, level, index };
    const visit = visits(ref);
    const random = new RandomStream('hints', level, index);
    const calls: [ToolCall, string][] = [];
    let address = ENTRANCE;
    for (let n = 0; n < 12 && pageAt(visit.shop, address)!.purchase === undefined; n++) {
      const links = pageAt(visit.shop, address)!
        .lines.flat()
        .filter((part) => typeof part !== 'string');
      const call =
        links.length === 0
          ? { name: 'search', arguments: { query: visit.goal.type } }
          : { name: 'click', arguments: { on: random.pick(links).label } };
      address = addressAfter(visit.shop, address, call);
      calls.push([call, readAt(visit, address).text]);
    }
    return episodeOf(environment.task(ref) as Task, calls, null);
  }

  test('says what was not met, has nothing of what was wanted in it, and is null where all was met', () => {
    const kinds = new Map<string, number>();
    for (const level of environment.levels) {
      for (const index of SEEDS) {
        const candidate = wandered(level, index);
        const { goal, shop } = visits(candidate.task.ref);
        const hint = environment.hint!(candidate);
        expect(environment.hint!(candidate)).toBe(hint);
        const { turns } = candidate.episode;
        let address = ENTRANCE;
        for (const { action } of turns)
          if (action.kind === 'call') address = addressAfter(shop, address, action.call);
        const { purchase } = pageAt(shop, address)!;
        expect(hint === null).toBe(purchase !== undefined && purchaseReward(goal, purchase).reward === 1);
        if (hint === null) continue;
        kinds.set(hint, (kinds.get(hint) ?? 0) + 1);
        const fitting = shop.products.filter(
          (product) => purchaseReward(goal, { product, options: goal.options }).reward === 1,
        );
        const secrets = [goal.type, ...goal.attributes, ...Object.values(goal.options)];
        for (const secret of [...secrets, ...fitting.map(({ id }) => id)])
          if (secret !== 'a') expect(` ${hint.replace(/[.,;:]/gu, '')} `).not.toContain(` ${secret} `);
        expect(hint).not.toMatch(/\d/u);
      }
    }
    const said = [...kinds.keys()].join(' ');
    for (const part of ['another thing', 'attribute', 'was not chosen', 'is not as wanted', 'costs more'])
      expect(said).toContain(part);
    expect(said).toContain('Nothing was bought');
    const idle = episodeOf(wandered(1, 0).task, [], null);
    expect(environment.hint!(idle)).toBe('No product was looked at, and nothing was bought.');
  });
});

describe('a hint of retail', () => {
  const environment = retailEnvironment();
  const taskAt = (level: number, index: number) =>
    environment.task({ environment: 'retail', split: 'train', level, index }) as Task;

  test('says what is amiss where something is, and has no id, value or change of the way in it', async () => {
    const said = new Set<string>();
    for (const level of environment.levels) {
      for (const index of SEEDS) {
        const task = taskAt(level, index);
        const { turns } = environment.demonstrate!(task, 0) as Demonstration;
        const way = turns.flatMap(({ call }) => call ?? []);
        const { answer } = turns.at(-1)!;
        const attempts: [ToolCall[], string | null][] = [
          [way, answer!],
          [[], answer!],
          [way, null],
          [way.filter(({ name }) => name !== 'say'), answer!],
          [way.slice(0, -2), 'done'],
          [[say('Cancel?'), ...way.slice(1)], 'done'],
        ];
        for (const [calls, last] of attempts) {
          const candidate = played(task, calls, last);
          const hint = environment.hint!(candidate);
          expect(hint === null).toBe((await scoreOf(candidate)) === 1);
          if (hint === null) continue;
          said.add(hint);
          expect(environment.hint!(candidate)).toBe(hint);
          const { shop } = goalOf(task);
          const values = [
            ...shop.customers.flatMap(({ name, email, payments }) => [name, email, ...payments]),
            ...task.calls!.flatMap(({ name, arguments: args }) => [name, ...valuesOf(args)]),
          ];
          for (const value of values) expect(hint).not.toContain(value);
          expect(hint).not.toMatch(/\d/u);
        }
      }
    }
    const all = [...said].join(' ');
    for (const part of ['never found', 'said yes', 'was not made', 'all of her wishes', 'to be told'])
      expect(all).toContain(part);
    for (const part of ['What cannot be', 'come to its end']) expect(all).toContain(part);
  });
});

const valuesOf = (args: Json): string[] => Object.values(args as Record<string, string>);

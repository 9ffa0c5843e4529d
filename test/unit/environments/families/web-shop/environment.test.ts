import { describe, expect, test } from 'vitest';
import { hostedHere } from '../../../../../environments/host/hosted-environment.ts';
import { PlayedSession } from '../../../../../environments/host/played-session.ts';
import { webShopEnvironment } from '../../../../../environments/families/web-shop/environment.ts';

const { signal } = new AbortController();
/** All turns are used up, or the page has ended it. */
const UP = { answer: null, by: 'turns' } as const;
const asker = { signal };
const shop = hostedHere(webShopEnvironment());
const refAt = (level: number, index: number) =>
  ({ environment: 'web-shop', split: 'heldout', level, index }) as const;

describe('an episode in the shop', () => {
  test.each(shop.levels)(
    'that does what is demonstrated ends with the full reward, at level %i',
    async (level) => {
      const [shown] = await shop.demonstrations([{ ref: refAt(level, 1), index: 0 }], { signal });
      if (shown === undefined || shown instanceof Error) throw shown;
      const played = new PlayedSession(shop, refAt(level, 1), `shop/${level}`);
      for (const { call, observation } of shown.demonstration.turns) {
        const { text } = await played.call({ name: call!.name, arguments: call!.arguments }, asker);
        expect(text).toBe(observation);
      }
      expect(played.turns.at(-1)!.observation).toMatchObject({ done: true, reward: 1 });
      expect(await played.end(UP, asker)).toMatchObject({ reward: 1 });
    },
  );

  test('that buys the wrong thing, or nothing, gets less', async () => {
    const [task] = await shop.tasks([refAt(1, 0)], { signal });
    const ids = [...(task as { prompt: string }).prompt.matchAll(/\[([^\]]+)\]/g)].map(([, id]) => id!);
    const rewards = [];
    for (const id of ids) {
      const played = new PlayedSession(shop, refAt(1, 0), `shop/wrong/${id}`);
      await played.call({ name: 'click', arguments: { on: id } }, asker);
      await played.call({ name: 'click', arguments: { on: 'buy now' } }, asker);
      rewards.push((await played.end(UP, asker)).reward!);
    }
    expect(rewards.filter((reward) => reward === 1)).toHaveLength(1);
    expect(rewards.filter((reward) => reward === 0)).toHaveLength(2);
    const idle = new PlayedSession(shop, refAt(1, 0), 'shop/idle');
    const refused = await idle.call({ name: 'click', arguments: { on: 'buy now' } }, asker);
    expect(refused).toMatchObject({ text: 'error: no [buy now] here', error: 'tool-error' });
    expect(await idle.end(UP, asker)).toEqual({ reward: 0, info: null });
  });
});

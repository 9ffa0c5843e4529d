import { afterAll, describe, expect, test } from 'vitest';
import { chromium } from '../../../environments/sandbox/browser/chromium.ts';
import { hostedHere } from '../../../environments/host/hosted-environment.ts';
import { PlayedSession } from '../../../environments/host/played-session.ts';
import {
  miniwobEnvironment,
  problemAt,
  simpleMiniwobEnvironment,
} from '../../../environments/families/miniwob/environment.ts';
import { PAGES, SIMPLE_PAGES } from '../../../environments/families/miniwob/levels.ts';
import { miniwob } from './available.ts';

const hosted = hostedHere(miniwobEnvironment());
let episodes = 0;
/** All turns are used up, or the page has ended it. */
const UP = { answer: null, by: 'turns' } as const;
const asker = { signal: new AbortController().signal };

/** An episode on that page. */
function play(page: string, turn = 0): PlayedSession {
  const level = PAGES.findIndex((pages) => pages.includes(page)) + 1;
  const pages = PAGES[level - 1]!;
  const ref = {
    environment: 'miniwob',
    split: 'train',
    level,
    index: turn * pages.length + pages.indexOf(page),
  } as const;
  expect(problemAt(ref).page).toBe(page);
  return new PlayedSession(hosted, ref, `miniwob/${page}/${episodes++}`);
}

const look = async (played: PlayedSession): Promise<string> => {
  const { text } = await played.call({ name: 'look', arguments: {} }, asker);
  return text;
};

/** The ref of the element that a snapshot has with this role and name. */
function refOf(snapshot: string, element: string): string {
  const line = snapshot.split('\n').find((one) => one.includes(`- ${element}`));
  return /\[ref=(\w+)\]/.exec(line ?? '')?.[1] ?? expect.fail(`no ${element} in\n${snapshot}`);
}

describe.skipIf(!miniwob.there)(`MiniWoB in Chromium${miniwob.leftOut}`, () => {
  afterAll(async () => (await chromium()).kill());

  test('rewards what its page asks for, and not the opposite', async () => {
    for (const [wanted, reward] of [
      [true, 1],
      [false, -1],
    ] as const) {
      const played = play('click-test-2');
      const page = await look(played);
      const one = /Click button (\w+)/.exec(page)![1]!;
      const other = one === 'ONE' ? 'TWO' : 'ONE';
      const click = { ref: refOf(page, `button "${wanted ? one : other}"`) };
      expect(await played.call({ name: 'click', arguments: click }, asker)).toMatchObject({
        done: true,
        reward,
      });
      expect(await played.end(UP, asker)).toEqual({ reward });
    }
  });

  test('is typed into, selected from and left alone', async () => {
    const typed = play('enter-text');
    const page = await look(typed);
    const text = /Enter "(\w+)"/.exec(page)![1]!;
    await typed.call({ name: 'type', arguments: { ref: refOf(page, 'textbox'), text } }, asker);
    const submit = { ref: refOf(page, 'button "Submit"') };
    expect(await typed.call({ name: 'click', arguments: submit }, asker)).toMatchObject({
      done: true,
      reward: 1,
    });

    const chosen = play('choose-list');
    const list = await look(chosen);
    const option = /Select (.+?) from the list/.exec(list)![1]!;
    const select = { ref: refOf(list, 'combobox'), option };
    expect(
      await chosen.call({ name: 'select', arguments: { ...select, option: 'none of these' } }, asker),
    ).toMatchObject({
      error: 'tool-error',
    });
    await chosen.call({ name: 'select', arguments: select }, asker);
    const done = { ref: refOf(list, 'button "Submit"') };
    expect(await chosen.call({ name: 'click', arguments: done }, asker)).toMatchObject({
      done: true,
      reward: 1,
    });

    const idle = play('click-button');
    expect(await idle.call({ name: 'click', arguments: { ref: 'e99' } }, asker)).toMatchObject({
      error: 'tool-error',
    });
    expect(await idle.end(UP, asker)).toEqual({ reward: -1 });
  });

  test('what is typed is as long as pages ask for, and longer text is refused before a key is pressed', async () => {
    const played = play('copy-paste');
    const field = refOf(await look(played), 'textbox');
    const type = (text: string) => played.call({ name: 'type', arguments: { ref: field, text } }, asker);
    const most = 'most of it '.repeat(19).slice(0, 200);
    expect((await type(most)).text).toContain(most);
    expect(await type(`${most}!`)).toMatchObject({ error: 'invalid-arguments' });
    expect(await look(played)).toContain(most);
  });

  test('after kill -9 of Chromium in mid-episode goes on where it was, with the same observations', async () => {
    const undisturbed = play('login-user');
    const killed = play('login-user');
    const observations = [];
    for (const played of [undisturbed, killed]) {
      const page = await look(played);
      const user = /username "(\w+)"/.exec(page)![1]!;
      const password = /password "(\w+)"/.exec(page)![1]!;
      const [first, second] = [...page.matchAll(/textbox.*\[ref=(\w+)\]/g)].map(([, ref]) => ref!);
      await played.call({ name: 'type', arguments: { ref: first!, text: user } }, asker);
      if (played === killed) {
        const running = await chromium();
        const gone = new Promise((resolve) => running.browser.once('disconnected', resolve));
        running.kill();
        await gone;
        // Until a rollout asks again, as it does where a failure may be retried.
        await expect(look(killed)).rejects.toMatchObject({ type: 'session-lost', retryable: true });
      }
      await played.call({ name: 'type', arguments: { ref: second!, text: password } }, asker);
      const login = { ref: refOf(page, 'button "Login"') };
      expect(await played.call({ name: 'click', arguments: login }, asker)).toMatchObject({
        done: true,
        reward: 1,
      });
      observations.push(played.turns.map(({ observation }) => [observation!.text, observation!.reward]));
    }
    expect(observations[1]).toEqual(observations[0]);
  });

  test('has an expert for the simple pages, whose calls bring the same observations and the reward', async () => {
    const simple = hostedHere(simpleMiniwobEnvironment());
    const refs = SIMPLE_PAGES.flatMap((pages, i) =>
      pages.map((_, index) => ({ environment: simple.name, split: 'train' as const, level: i + 1, index })),
    );
    const { signal } = new AbortController();
    const shown = await simple.demonstrations(
      refs.map((ref) => ({ ref, index: 0 })),
      { signal },
    );
    for (const [i, one] of shown.entries()) {
      if (one instanceof Error) throw one;
      const played = new PlayedSession(simple, refs[i]!, `simple/${i}`);
      for (const { call, observation } of one.demonstration.turns) {
        expect(await played.call(call!, asker)).toMatchObject({ text: observation });
      }
      expect(played.turns.at(-1)!.observation).toMatchObject({ done: true, reward: 1 });
    }
  });

  // One of each kind: animations, random pictures, a clock of its own.
  test.each(['click-collapsible-2', 'click-pie', 'stock-market', 'choose-date', 'chase-circle'])(
    '%s is the same page for the same seed, and another for another',
    async (page) => {
      const first = await look(play(page));
      expect(await look(play(page))).toBe(first);
      const others = [await look(play(page, 1)), await look(play(page, 2))];
      if (page !== 'chase-circle') expect(others.some((other) => other !== first)).toBe(true);
    },
  );
});

import type { Page } from 'playwright-core';
import type { ToolCall } from '../../../core/episode/episode.ts';
import { messageOf } from '../../../core/errors.ts';
import { openPage } from '../../sandbox/browser/open-page.ts';
import { ToolRefusal } from '../../contract/environment.ts';
import type { ActedFully, SessionEnd } from '../../contract/session.ts';
import { fileAt } from './page-files.ts';

/** A page of MiniWoB and what its random numbers begin with. */
export interface Problem {
  page: string;
  seed: number;
}

const ORIGIN = 'http://miniwob.test';
/** What the page's clock says at the beginning. */
const EPOCH = Date.UTC(2026, 0, 1);
/** How far it goes on with each call, milliseconds: animations and delays of the pages are over by then. */
const STEP_MS = 2000;
/** Such a key or a combination, as Playwright names them. */
const KEY =
  /^(?:(?:Control|Shift|Alt)\+)*(?:[A-Za-z0-9]|Enter|Tab|Escape|Backspace|Delete|Arrow(?:Up|Down|Left|Right)|Home|End|PageUp|PageDown|Space)$/;

// The pages' own display of reward and clock, and the sheet that says START, are not of the task.
const HIDE = `addEventListener('DOMContentLoaded', () => {
  const style = document.createElement('style');
  style.textContent = '#reward-display, #click-canvas, #sync-task-cover { display: none !important }';
  document.head.append(style);
});`;

interface State {
  done: boolean;
  reward: number;
}

const STATE = `({ done: WOB_DONE_GLOBAL, reward: WOB_RAW_REWARD_GLOBAL })`;

/** An episode on a page, as a session has it. */
export interface OpenProblem {
  act(call: ToolCall): Promise<ActedFully>;
  end(): SessionEnd;
  close(): Promise<void>;
}

/**
 * An episode on a page. Its random numbers are seeded and its clock stands but for two seconds a call, so the same calls
 * bring the same page. Throws what `openPage` throws.
 */
export async function openProblem({ page: name, seed }: Problem): Promise<OpenProblem> {
  const opened = await openPage({
    url: `${ORIGIN}/miniwob/${name}.html`,
    serve: (url) => (url.origin === ORIGIN ? fileAt(url) : null),
    init: HIDE,
    clock: EPOCH,
  });
  await opened.with(async (page) => {
    // As many milliseconds as nobody takes: the clock of the page ends no episode.
    await page.evaluate(`Math.seedrandom(${seed}); core.EPISODE_MAX_TIME = 1e9; core.startEpisodeReal();`);
    await page.clock.runFor(STEP_MS);
  });
  let state: State = { done: false, reward: 0 };
  let snapshot = '';
  return {
    act: (call) =>
      opened.with(async (page): Promise<ActedFully> => {
        await act(page, call, snapshot);
        await page.clock.runFor(STEP_MS);
        state = await page.evaluate<State>(STATE);
        if (state.done) return { text: 'done', reward: state.reward, done: true };
        snapshot = await page.ariaSnapshot({ mode: 'ai' });
        return { text: snapshot };
      }),
    // As the pages have it for an episode whose time is up.
    end: () => ({ reward: state.done ? state.reward : -1 }),
    close: () => opened.close(),
  };
}

async function act(page: Page, { name, arguments: args }: ToolCall, snapshot: string): Promise<void> {
  const given = args as { ref?: string; text?: string; option?: string; key?: string; to?: string };
  const element = (ref: string) => {
    if (!snapshot.includes(`[ref=${ref}]`)) throw new ToolRefusal(`no ref ${ref} on the page`);
    return page.locator(`aria-ref=${ref}`);
  };
  try {
    if (name === 'click') await element(given.ref!).click({ force: true });
    else if (name === 'type') {
      const field = element(given.ref!);
      await field.fill('', { force: true });
      await field.pressSequentially(given.text!);
    } else if (name === 'select') {
      const list = element(given.ref!);
      const labels = await list.evaluate((node) =>
        // A list of options, if it is one.
        [...((node as unknown as { options?: Iterable<{ label: string }> }).options ?? [])].map(
          ({ label }) => label,
        ),
      );
      if (!labels.includes(given.option!))
        throw new ToolRefusal(`no option ${given.option!} at ${given.ref!}`);
      await list.selectOption({ label: given.option! }, { force: true });
    } else if (name === 'drag') {
      await element(given.ref!).dragTo(element(given.to!), { force: true });
    } else if (name === 'press') {
      if (!KEY.test(given.key!)) throw new ToolRefusal(`no key ${given.key!}`);
      await page.keyboard.press(given.key!);
    }
  } catch (error) {
    // A page that is gone or does not answer has said nothing about the policy.
    const text = messageOf(error);
    const isLost = page.isClosed() || /timeout|closed|crashed|disconnected/i.test(text);
    if (error instanceof ToolRefusal || isLost) throw error;
    throw new ToolRefusal(`cannot ${name} that`);
  }
}

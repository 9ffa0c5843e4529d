import { createHash } from 'node:crypto';
import path from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { VerdictRequest } from '../../../core/ladder/requests.ts';
import type { Json } from '../../../core/json/json.ts';
import { ids, QUEUES } from '../../../core/names.ts';
import { candidateAt, closeAllAt, ladderAt, reviewAt, reviewsOf, runAt } from '../../../dashboard/address.ts';
import { hasChromium, launchChromium } from '../../support/chromium.ts';
import { ladderSpec, startLadderInstallation } from '../../support/ladder-installation.ts';
import type { LadderInstallation } from '../../support/ladder-installation.ts';
import { until } from '../../support/run-client.ts';
import { overhear, withPage, wrongIn } from '../../support/looks.ts';

// A run whose highest tier is people, who answer from the pages; and reviews that strangers began.

const RUN = 'judged';
const modules = ['shown-ladder.ts', 'hostile-environments.ts'].map((name) =>
  path.resolve('test/support', name),
);

let installation: LadderInstallation;
let base: string;
let browser: Browser | null;

beforeAll(async () => {
  browser = await launchChromium();
  installation = await startLadderInstallation({
    dashboard: true,
    env: { GRADUS_ENVIRONMENTS: modules.join(',') },
  });
  base = installation.dashboard!;
  const near = { verifier: 'near', passAtLeast: 0, budget: { count: 6 } };
  const expert = { verifier: 'expert', passAtLeast: 0.5, wait: false, reviewers: 2 };
  const spec = ladderSpec([near, expert], { seed: 90, maxSteps: 1, offer: 2 });
  await (await installation.runs.start(RUN, spec)).result();
}, 600_000);
afterAll(async () => {
  await browser?.close();
  await installation?.remove();
});

const get = async (at: string): Promise<{ status: number; body: string; headers: Headers }> => {
  const response = await fetch(new URL(at, base), { redirect: 'manual' });
  return { status: response.status, body: await response.text(), headers: response.headers };
};
const textOf = async (at: string): Promise<string> => {
  const { status, body } = await get(at);
  expect(status, at).toBe(200);
  return body;
};

/** As a person's browser sends the form of a page. */
async function send(at: string, to: string, fields: Record<string, string>) {
  const token = /name="token" value="([^"]+)"/.exec(await textOf(at))![1]!;
  const response = await fetch(new URL(to === '' ? at : `${at}/${to}`, base), {
    method: 'POST',
    redirect: 'manual',
    headers: { origin: new URL(base).origin, 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ token, ...fields }).toString(),
  });
  return { status: response.status, body: await response.text() };
}

/** By their buttons: the page that each is on, where it goes, and what nobody types. */
const FORMS = {
  'Submit verdict': { on: '', to: 'submit', hidden: {} },
  'Withdraw it': { on: '', to: 'withdraw', hidden: {} },
  'Close the review': { on: '/close', to: 'withdraw', hidden: { all: 'true' } },
};

/** As a person does who has no scripts, by what stands on the page; without a browser as it would send the form. */
async function fill(at: string, button: keyof typeof FORMS, fields: Record<string, string>): Promise<void> {
  const { on, to, hidden } = FORMS[button];
  if (browser === null) {
    expect(await send(at, to, { ...hidden, ...fields })).toMatchObject({ status: 303 });
    return;
  }
  await withPage(browser, { javaScriptEnabled: false }, async (page) => {
    await page.goto(new URL(`${at}${on}`, base).href);
    const form = page.locator('form', { has: page.getByRole('button', { name: button, exact: true }) });
    for (const [name, value] of Object.entries(fields)) {
      const field = form.locator(`[name="${name}"]`);
      if ((await field.evaluate(({ tagName }) => tagName)) === 'SELECT') await field.selectOption(value);
      else await field.fill(value);
    }
    const answer = page.waitForResponse((response) => response.request().method() === 'POST');
    await form.getByRole('button').click();
    expect((await answer).status()).toBe(303);
  });
}

/** The page once it has what it should: on a busy machine an environment has not shown its subject by the first look. */
const shown = (at: string, what: RegExp): Promise<string> =>
  until(
    async () => {
      const page = await textOf(at);
      return what.test(page) ? page : undefined;
    },
    300_000,
    () => `${at} never has ${String(what)}`,
  );
const openReviews = async (): Promise<string[]> => {
  const inbox = await textOf('/reviews');
  return [...new Set([...inbox.matchAll(/href="(\/reviews\/[^"]+)"/g)].map(([, at]) => at!))];
};
const digestIn = (at: string): string => /[0-9a-f]{64}/.exec(at)![0];

/** A review that nobody's run has asked for. */
async function beginReview(environment: string, subject: Json, seconds: number): Promise<string> {
  const digest = createHash('sha256').update(JSON.stringify(subject)).digest('hex');
  const request = { format: 'gradus.verify/1', verifier: 'stranger', version: '1', digest, subject } as const;
  const ask: VerdictRequest = {
    request,
    environment,
    cost: { seconds: 1, usd: 0 },
    limits: { timeoutSeconds: seconds, heartbeatSeconds: 1, maxAttempts: 1 },
    served: { by: 'people', reviewers: 1 },
  };
  const workflowId = ids.verdict(request);
  await installation.runs.client.workflow.start('review', {
    args: [ask],
    workflowId,
    taskQueue: QUEUES.orchestrator,
  });
  return reviewAt(workflowId);
}

test('the inbox has what is open, the nearest deadline first, whoever began it', async () => {
  const soon = await beginReview('calculator-ladder', { expected: 3, value: 4 }, 600);
  await until(
    async () => (await openReviews())[0] === soon || undefined,
    300_000,
    () => 'the review with the nearest deadline is not the first',
  );
  const inbox = await textOf('/reviews');
  await until(
    async () => (await textOf('/reviews')).includes('alt="A mark 1 off the middle"') || undefined,
    300_000,
    () => 'the subject is not drawn in the inbox',
  );
  expect((await openReviews()).length).toBeGreaterThan(2);
  expect(inbox).toContain('0 of 2');
  expect(inbox).toContain('{&quot;expected&quot;:3,&quot;value&quot;:4}');
});

test('a review shows its subject as the environment does, a drawing as an image that can do nothing', async () => {
  const review = await shown((await openReviews())[0]!, /alt="A mark 1 off the middle"/);
  expect(review).toContain('&lt;img src=x onerror=alert(1)&gt;');
  expect(review).not.toContain('\u202e');
  const src = /<img class="drawing" src="([^"]+)"/.exec(review)![1]!;
  const { headers, body } = await get(src);
  expect(headers.get('content-type')).toBe('image/svg+xml');
  expect(headers.get('content-security-policy')).toBe(
    "default-src 'none'; style-src 'unsafe-inline'; sandbox",
  );
  expect(headers.get('x-content-type-options')).toBe('nosniff');
  expect(body).toContain('<circle');
  expect((await get('/drawings/none/0')).status).toBe(404);
});

describe('an environment that does not show its subject as it should', () => {
  test.each([
    ['huge', /100000000 characters; at most 20000/],
    ['hang', /showed nothing in/],
    ['html', /blocks that are no array/],
    ['exit', /exit code 3|showed nothing/],
  ])('%s: the page has the JSON and says why', async (does, why) => {
    const page = await shown(await beginReview('hostile-present', { does }, 3600), why);
    expect(page).toContain(`&quot;does&quot;: &quot;${does}&quot;`);
    expect(page).not.toContain('class="drawing"');
  });

  test('of a name that nobody knows here: the page has the JSON and says what to do', async () => {
    const page = await textOf(await beginReview('elsewhere', { of: 'another' }, 3600));
    expect(page).toContain('start the dashboard with GRADUS_ENVIRONMENTS');
  });
});

test('people give verdicts from the page, take them back, are told what is refused, and decide', async () => {
  const at = (await openReviews()).find((one) => one.includes('expert'))!;
  const asked = await textOf(at);
  expect(asked).toContain(candidateAt(RUN, 'expert', digestIn(at)));
  expect(asked).toMatch(/Verdicts of lower tiers[\s\S]*near[\s\S]*Opinions/);
  const refused = await send(at, 'submit', { reviewer: 'ann', score: '2', comment: 'can <b>be</b> made' });
  expect(refused.status).toBe(409);
  expect(refused.body).toContain('the score 2 is not in [0, 1]');
  expect(refused.body).toMatch(
    /value="ann"[\s\S]*value="2"[\s\S]*can &lt;b&gt;be&lt;\/b&gt; made<\/textarea>/,
  );
  expect((await send(at, 'submit', { reviewer: 'ann', score: '' })).status).toBe(409);
  await fill(at, 'Submit verdict', { reviewer: 'ann', score: '0.9', comment: 'yes' });
  expect((await send(at, 'submit', { reviewer: 'ann', score: '0.1' })).body).toContain(
    'ann has given a verdict already',
  );
  await fill(at, 'Withdraw it', { reviewer: 'ann', reason: 'a mistake' });
  expect(await textOf(at)).toMatch(/ann withdrew it: a mistake/);
  for (const [reviewer, score] of [
    ['ann', '0.9'],
    ['bob', '1'],
  ] as const) {
    await fill(at, 'Submit verdict', { reviewer, score });
  }
  await until(
    async () => (await textOf(at)).includes('this review is closed: the verdict is 0.95') || undefined,
    300_000,
    () => 'the review does not say its verdict',
  );
  await installation.runs.client.workflow
    .getHandle(decodeURIComponent(at.slice('/reviews/'.length)))
    .result();
  // What is listed follows what is so.
  await until(
    async () => !(await openReviews()).includes(at) || undefined,
    300_000,
    () => 'the review is still listed as open',
  );

  // The run's ladder hears of it, after its step has gone on.
  const life = candidateAt(RUN, 'expert', digestIn(at));
  await until(
    async () => /came[\s\S]{0,80}after the end of the run/.test(await textOf(life)) || undefined,
    300_000,
    () => "the candidate's life has no verdict that came after the run",
  );
  const page = await textOf(life);
  expect(page).toContain('US$ 5.00');
  expect(page).toContain('ann: 0.9');
  expect(page).toMatch(/escalated to[\s\S]*near[\s\S]*escalated to[\s\S]*expert/);
  expect(page).toContain('class="drawing"');
  const [, episode] = /href="([^"]+\/episodes\/[^"]+)"/.exec(page)!;
  const found = await get(episode!);
  expect(found.status).toBe(302);
  expect((await get(found.headers.get('location')!)).status).toBe(200);
});

test('a review is closed without a verdict by who is asked back', async () => {
  const at = await beginReview('calculator-ladder', { expected: 5, value: 5 }, 3600);
  expect(await textOf(`${at}/close`)).toContain('It ends without a verdict');
  await fill(at, 'Close the review', { reviewer: 'zoe', reason: 'not needed' });
  await until(
    async () => (await textOf(at)).includes('zoe took it back: not needed') || undefined,
    300_000,
    () => 'the review is not closed',
  );
});

test('what is no review is refused, whatever it is called', async () => {
  for (const id of ['verdict/none/1/x', RUN, `${RUN}/ladder`, `verdict/expert/1/${'0'.repeat(64)}`]) {
    expect((await get(reviewAt(id))).status, id).toBe(404);
  }
  expect((await get(candidateAt(RUN, 'near', '0'.repeat(64)))).status).toBe(404);
  expect((await get(ladderAt('no-such-run'))).status).toBe(404);
});

test('the page of the ladder has funnel, budgets with promises, calibration, what was deferred, and links to lives', async () => {
  const page = await textOf(ladderAt(RUN));
  const { totals } = (await installation.status(RUN))!;
  expect(page).toContain(`simulation: near`);
  expect(page).toContain(`${totals['near']!.computed} computed`);
  expect(page).toMatch(/computations have been asked for and have not answered/);
  expect(page).toMatch(/is-number → near/);
  expect(page).toMatch(/[1-9]\d* pairs counted, [1-9]\d* of them drawn/);
  expect(page).toMatch(/Candidates that no budget had room for/);
  expect(page).toMatch(/1 verdict came after/);
  const links = [...page.matchAll(/href="(\/runs\/judged\/candidates\/[^"]+)"/g)].map(([, at]) => at!);
  expect(new Set(links.map((at) => at.split('/')[4]))).toEqual(new Set(['near', 'expert']));
  // What was deferred has a life, too, though nobody has judged it.
  const deferred = await Promise.all(links.map(textOf));
  expect(
    deferred.some((one) => one.includes('<strong>deferred, for</strong>') && one.includes('nothing yet')),
  ).toBe(true);
});

describe.runIf(hasChromium())('in a browser', () => {
  test('ladder, candidate and reviews are within WCAG 2.2 AA, fit and obey their policy in every look', async () => {
    const candidate = /href="(\/runs\/judged\/candidates\/expert\/[^"]+)"/.exec(
      await textOf(ladderAt(RUN)),
    )![1]!;
    const review = (await openReviews()).find((one) => one.includes('expert'))!;
    await withPage(browser!, {}, async (page) => {
      const heard = overhear(page, base);
      for (const at of [ladderAt(RUN), '/reviews', review, `${review}/close`, candidate]) {
        await page.goto(new URL(at, base).href, { waitUntil: 'load' });
        expect(await wrongIn(page), at).toEqual([]);
      }
      expect(await page.evaluate("document.querySelector('img.drawing').naturalWidth")).toBe(220);
      expect(heard).toEqual([]);
    });
  });
});

test('reviews of a run that is over are told, and closed together, but for those that others began', async () => {
  const stranger = await beginReview('calculator-ladder', { expected: 8, value: 8 }, 3600);
  const page = await textOf(runAt(RUN));
  const [, count] = /(\d+) reviews? that this run asked for (?:is|are) still open/.exec(page)!;
  expect(page).toContain(`href="${reviewsOf(RUN)}"`);
  const inbox = await textOf(reviewsOf(RUN));
  expect(inbox.match(/is over: a verdict is stored for other runs/g)).toHaveLength(Number(count));
  expect(inbox).not.toContain(stranger);
  expect(inbox).toContain(closeAllAt(RUN));
  // It asks back, and names who did it.
  expect(await textOf(closeAllAt(RUN))).toContain('The run is over');
  expect((await send(closeAllAt(RUN), '', { reviewer: 'zoe', reason: 'it is over' })).status).toBe(303);
  await until(
    async () => !(await textOf(runAt(RUN))).includes('still open, though') || undefined,
    300_000,
    () => 'reviews of the run are still open',
  );
  expect(await openReviews()).toContain(stranger);
  // Nobody has said anything, so nobody is paid.
  await until(
    async () =>
      /withdrawn\), after the run<\/td><td>open for [^<]*, US\$ 0\.00/.test(await textOf(ladderAt(RUN))) ||
      undefined,
    300_000,
    () => 'the page of the ladder has no closed review without a price',
  );
});

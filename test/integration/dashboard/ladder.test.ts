import { createHash } from 'node:crypto';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Ask } from '../../../core/ladder/requests.ts';
import type { Json } from '../../../core/json/json.ts';
import { ids, QUEUES } from '../../../core/names.ts';
import { candidateAt, ladderAt, reviewAt } from '../../../dashboard/address.ts';
import { hasChromium, launchChromium } from '../../support/chromium.ts';
import { ladderSpec, startLadderInstallation } from '../../support/ladder-installation.ts';
import type { LadderInstallation } from '../../support/ladder-installation.ts';
import { until } from '../../support/run-client.ts';
import { violationsOf } from '../../support/axe.ts';

// A run whose dearest rung is people, who answer from the pages; and reviews that strangers began.

const RUN = 'judged';
const modules = ['shown-ladder.ts', 'hostile-environments.ts'].map((name) =>
  path.resolve('test/support', name),
);

let installation: LadderInstallation;
let base: string;

beforeAll(async () => {
  installation = await startLadderInstallation({
    dashboard: true,
    env: { GRADUS_ENVIRONMENTS: modules.join(',') },
  });
  base = installation.dashboard!;
  const near = { verifier: 'near', passAtLeast: 0, budget: { count: 6 } };
  const expert = { verifier: 'expert', passAtLeast: 0.5, wait: false, reviewers: 2 };
  const spec = ladderSpec([near, expert], { seed: 90, maxSteps: 1, offer: 2 });
  await (await installation.runs.start(RUN, spec)).result();
}, 300_000);
afterAll(() => installation?.remove());

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
  const response = await fetch(new URL(`${at}/${to}`, base), {
    method: 'POST',
    redirect: 'manual',
    headers: { origin: new URL(base).origin, 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ token, ...fields }).toString(),
  });
  return { status: response.status, body: await response.text() };
}

const openReviews = async (): Promise<string[]> => {
  const inbox = await textOf('/reviews');
  return [...new Set([...inbox.matchAll(/href="(\/reviews\/[^"]+)"/g)].map(([, at]) => at!))];
};
const digestIn = (at: string): string => /[0-9a-f]{64}/.exec(at)![0];

/** A review that nobody's run has asked for. */
async function beginReview(environment: string, subject: Json, seconds: number): Promise<string> {
  const digest = createHash('sha256').update(JSON.stringify(subject)).digest('hex');
  const request = { format: 'gradus.verify/1', verifier: 'stranger', version: '1', digest, subject } as const;
  const ask: Ask = {
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
    30_000,
    () => 'the review with the nearest deadline is not the first',
  );
  const inbox = await textOf('/reviews');
  await until(
    async () => (await textOf('/reviews')).includes('alt="A mark 1 off the middle"') || undefined,
    30_000,
    () => 'the subject is not drawn in the inbox',
  );
  expect((await openReviews()).length).toBeGreaterThan(2);
  expect(inbox).toContain('0 of 2');
  expect(inbox).toContain('{&quot;expected&quot;:3,&quot;value&quot;:4}');
});

test('a review shows its subject as the environment does, a drawing as an image that can do nothing', async () => {
  const review = await textOf((await openReviews())[0]!);
  expect(review).toContain('alt="A mark 1 off the middle"');
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
    ['script', /&lt;script&gt; is not taken/],
    ['huge', /100000000 characters; at most 20000/],
    ['hang', /showed nothing in/],
    ['html', /blocks that are no array/],
    ['exit', /exit code 3|showed nothing/],
  ])('%s: the page has the JSON and says why', async (does, why) => {
    const page = await textOf(await beginReview('hostile-present', { does }, 3600));
    expect(page).toMatch(why);
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
  expect(asked).toMatch(/Cheaper verdicts[\s\S]*near[\s\S]*Opinions/);
  const refused = await send(at, 'submit', { reviewer: 'ann', score: '2', comment: 'can <b>be</b> made' });
  expect(refused.status).toBe(409);
  expect(refused.body).toContain('the score 2 is not in [0, 1]');
  expect(refused.body).toMatch(
    /value="ann"[\s\S]*value="2"[\s\S]*can &lt;b&gt;be&lt;\/b&gt; made<\/textarea>/,
  );
  expect((await send(at, 'submit', { reviewer: 'ann', score: '' })).status).toBe(409);
  expect(await send(at, 'submit', { reviewer: 'ann', score: '0.9', comment: 'yes' })).toMatchObject({
    status: 303,
  });
  expect((await send(at, 'submit', { reviewer: 'ann', score: '0.1' })).body).toContain(
    'ann has given a verdict already',
  );
  expect(await send(at, 'withdraw', { reviewer: 'ann', reason: 'a mistake' })).toMatchObject({ status: 303 });
  expect(await textOf(at)).toMatch(/ann took it back: a mistake/);
  for (const [reviewer, score] of [
    ['ann', '0.9'],
    ['bob', '1'],
  ] as const) {
    expect(await send(at, 'submit', { reviewer, score })).toMatchObject({ status: 303 });
  }
  await until(
    async () => (await textOf(at)).includes('this review is closed: the verdict is 0.95') || undefined,
    30_000,
    () => 'the review does not say its verdict',
  );
  await installation.runs.client.workflow
    .getHandle(decodeURIComponent(at.slice('/reviews/'.length)))
    .result();
  // What is listed follows what is so.
  await until(
    async () => !(await openReviews()).includes(at) || undefined,
    30_000,
    () => 'the review is still listed as open',
  );

  // The run's ladder hears of it, after its step has gone on.
  const life = candidateAt(RUN, 'expert', digestIn(at));
  await until(
    async () => /came[\s\S]{0,80}late/.test(await textOf(life)) || undefined,
    60_000,
    () => "the candidate's life has no late verdict",
  );
  const page = await textOf(life);
  expect(page).toContain('US$ 5.00');
  expect(page).toContain('ann: 0.9');
  expect(page).toMatch(/sent up to[\s\S]*near[\s\S]*sent up to[\s\S]*expert/);
  expect(page).toContain('class="drawing"');
  const [, episode] = /href="([^"]+\/episodes\/[^"]+)"/.exec(page)!;
  const found = await get(episode!);
  expect(found.status).toBe(302);
  expect((await get(found.headers.get('location')!)).status).toBe(200);
});

test('a review is closed without a verdict by who is asked back', async () => {
  const at = await beginReview('calculator-ladder', { expected: 5, value: 5 }, 3600);
  expect(await textOf(`${at}/close`)).toContain('It ends without a verdict');
  expect(await send(at, 'withdraw', { reviewer: 'zoe', all: 'true', reason: 'not needed' })).toMatchObject({
    status: 303,
  });
  await until(
    async () => (await textOf(at)).includes('zoe took it back: not needed') || undefined,
    30_000,
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
  expect(page).toMatch(/What no budget had room for/);
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
  test('ladder, candidate and reviews are within WCAG 2.2 AA in light, dark, forced colours and 320 pixels, and obey their policy', async () => {
    const browser = (await launchChromium())!;
    try {
      const candidate = /href="(\/runs\/judged\/candidates\/expert\/[^"]+)"/.exec(
        await textOf(ladderAt(RUN)),
      )![1]!;
      const review = (await openReviews()).find((one) => one.includes('expert'))!;
      const pages = [ladderAt(RUN), candidate, '/reviews', review, `${review}/close`];
      for (const options of [
        { colorScheme: 'light' },
        { colorScheme: 'dark', viewport: { width: 320, height: 640 } },
        { forcedColors: 'active' },
      ] as const) {
        // The script of the checker is not ours: pages forbid it.
        const context = await browser.newContext({ ...options, bypassCSP: true });
        const page = await context.newPage();
        for (const at of pages) {
          await page.goto(new URL(at, base).href);
          expect(await violationsOf(page), at).toEqual([]);
          const wide = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
          expect(wide, `${at} scrolls sideways`).toBeLessThanOrEqual(0);
        }
        await context.close();
      }
      const page = await browser.newPage();
      const heard: string[] = [];
      page.on('console', (message) => heard.push(message.text()));
      page.on('dialog', (dialog) => {
        heard.push(dialog.message());
        void dialog.dismiss();
      });
      for (const at of pages) await page.goto(new URL(at, base).href, { waitUntil: 'load' });
      await page.goto(new URL(candidate, base).href);
      expect(await page.evaluate("document.querySelector('img.drawing').naturalWidth")).toBe(220);
      expect(heard).toEqual([]);
      const folder = process.env['GRADUS_SCREENSHOTS'];
      if (folder !== undefined) {
        for (const [i, at] of pages.entries()) {
          await page.goto(new URL(at, base).href);
          await page.screenshot({ path: path.join(folder, `ladder-${i}.png`), fullPage: true });
        }
      }
    } finally {
      await browser.close();
    }
  });
});

import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readLedger } from '../../../store/ladder/ledger.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { rolloutsPrefix } from '../../../store/keys.ts';
import type { LedgerEntry } from '../../../core/ladder/ledger.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { ChatServer } from '../../support/chat-server.ts';
import type { Asked, Reply } from '../../support/chat-server.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { DONE } from '../../support/ended.ts';

const USAGE = { prompt: 1000, completion: 100 };
/** By the prices of test/support/judged-calculator.ts. */
const USD = (USAGE.prompt * 0.1 + USAGE.completion * 0.3) / 1e6;

let server: ChatServer;
let installation: TestInstallation;
let store: ObjectStore;

/** The judge cannot make anything of every third subject, and passes or fails the others by a digit of theirs. */
function reply({ body }: Asked): Reply {
  // The first thing that it is asked: when it is asked once more, it has no other mind.
  const subject = body.messages.find(({ role }) => role === 'user')!.content;
  const sum = Buffer.from(subject).reduce((total, byte) => total + byte, 0);
  if (sum % 3 === 0) return { says: 'I would rather not say.', usage: USAGE };
  return { says: JSON.stringify({ reason: 'it looks so', score: sum % 3 === 1 ? 1 : 0 }), usage: USAGE };
}

beforeAll(async () => {
  server = await ChatServer.open(reply);
  installation = await startTestInstallation({
    processes: [['orchestrator', 'verifier', 'tool', 'simulation'], ['rollout'], ['learner']],
    env: {
      GRADUS_ENVIRONMENTS: path.resolve('test/support/judged-calculator.ts'),
      JUDGE_URL: server.baseUrl,
    },
  });
  store = await ObjectStore.connect(installation.settings.store);
}, 600_000);
afterAll(async () => {
  store?.close();
  await installation?.remove();
  await server?.close();
});

type VerdictEntry = Extract<LedgerEntry, { kind: 'verdict' }>;

test('a judge is a tier: what it costs is in the ledger, and what it cannot judge is no pass', async () => {
  const environment = 'calculator-judged';
  const brief = briefSpec({ environment });
  const [warmStart, stage] = brief.stages;
  const spec = {
    ...brief,
    stages: [{ ...warmStart, tasks: [{ environment, levels: [1] }] }, stage],
    reward: { components: [{ verifier: 'ladder', role: 'outcome' }] },
    verification: {
      rungs: [
        { verifier: 'is-number', passAtLeast: 0.5 },
        { verifier: 'close-enough', passAtLeast: 1 },
      ],
      evaluateBy: 'is-number',
    },
  };
  expect((await (await installation.runs.start('judged', spec)).result()).end).toEqual(DONE);

  const verdicts = (await readLedger(store, 'judged')).filter(
    (entry): entry is VerdictEntry => entry.kind === 'verdict',
  );
  const abstained = verdicts.filter(({ result }) => result === 'abstained');
  const scored = verdicts.filter(({ result }) => result === 'scored');
  expect(scored.length).toBeGreaterThan(0);
  expect(abstained.length).toBeGreaterThan(0);
  for (const { spent } of scored) expect(spent!.usd).toBeCloseTo(3 * USD, 9);
  const paid = verdicts.reduce((usd, { spent }) => usd + spent!.usd, 0);
  expect(paid).toBeCloseTo(server.asked.length * USD, 9);

  const keys = (await store.list(rolloutsPrefix('judged', 'rl'))).filter(({ key }) =>
    key.includes('.judged'),
  );
  const groups = await Promise.all(
    keys.map(async ({ key }) => loadTrajectories(store, (await store.head(key))!)),
  );
  const outcomes = groups.flatMap(({ episodes }) => episodes.map(({ outcome }) => outcome!));
  const said = outcomes.flatMap((outcome) => ('components' in outcome ? outcome.components : []));
  const byJudge = said.filter(({ version }) => version.startsWith('close-enough@'));
  expect(new Set(byJudge.map(({ score }) => score))).toEqual(new Set([0, 1]));
  // Who passed the fast tier and got no verdict, by a judge that will say the same again, earns nothing.
  const silent = said.filter(({ version, score }) => version === 'is-number@1' && score! > 0);
  expect(silent.length).toBeGreaterThan(0);
  for (const component of silent) {
    expect(component).toMatchObject({
      worth: 0,
      contribution: 0,
      passed: false,
      evidence: expect.stringMatching(/^close-enough: /) as string,
    });
  }
});

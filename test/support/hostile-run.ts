import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';
import { parseSpec } from '../../spec/parse-spec.ts';
import type { Episode, RolloutGroup, Turn } from '../../core/episode/episode.ts';
import { runKey } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { runClaims } from '../../store/run/run-claim.ts';
import { putStepFacts } from '../../store/training/step-facts.ts';
import { putTrajectories } from '../../store/rollout/trajectories.ts';
import { loadEnvironments } from '../../environments/families/index.ts';
import { briefSpec } from './brief-spec.ts';
import { someHeldOut, someStep } from './some-step.ts';

/** What would run, fetch, hide or reorder something where it is not taken for text. */
export const HOSTILE = [
  '</script><script>alert("script")</script>',
  '<img src=x onerror=alert("image")>',
  '"><svg onload=alert("svg")>',
  "javascript:alert('link')",
  '\u202egpj.exe\u202c',
  '\u001b[2J\u001b]0;title\u0007',
  '</pre></main></body></html>',
  '{{constructor.constructor("alert(1)")()}}',
  'http://192.0.2.1/pixel.png',
].join(' ');

/** One line of a megabyte. */
export const LONG_LINE = 'long '.repeat(200_000);

/** A finished run, in the store alone, in which everything that a model, a tool or a person wrote is hostile. */
export async function keepHostileRun(store: ObjectStore, run: string): Promise<void> {
  const spec = parseSpec({ ...briefSpec(), run }, run, await loadEnvironments([])) as CurriculumSpec;
  await store.putIfAbsent(runKey(run), runClaims, { execution: 'none', spec });
  const turns: Turn[] = [
    {
      start: 0,
      end: 2,
      text: HOSTILE,
      action: { kind: 'call', call: { name: HOSTILE, arguments: { [HOSTILE]: HOSTILE } } },
      observation: { text: HOSTILE + LONG_LINE, error: 'unknown-tool', seconds: 0.25 },
    },
    { start: 3, end: 4, text: LONG_LINE, action: { kind: 'malformed', reason: HOSTILE } },
    { start: 4, end: 5, text: HOSTILE, action: { kind: 'answer', answer: HOSTILE } },
  ];
  const sample = (number: number, last: number): Episode => ({
    sample: number,
    task: 0,
    tokens: [1, 2, 3, 4, last],
    mask: [1, 1, 0, 1, 1],
    samplerLogprobs: [-0.1, -3, 0, -0.01, -8],
    turns,
    status: { kind: 'answered', answer: HOSTILE },
    outcome: {
      kind: 'scored',
      reward: number,
      components: [
        { verifier: 'exact-match', version: HOSTILE, score: number, contribution: number, evidence: HOSTILE },
      ],
    },
  });
  const group: RolloutGroup = {
    id: 'group-0000',
    weights: 'f'.repeat(64),
    temperature: 1,
    tasks: [
      {
        ref: { environment: 'calculator', split: 'train', level: 1, index: 0 },
        prompt: HOSTILE,
        promptTokens: [1, 2],
      },
    ],
    episodes: [
      sample(0, 5),
      sample(1, 6),
      {
        ...sample(2, 7),
        status: { kind: 'failed', boundary: 'tool', reason: HOSTILE },
        outcome: { kind: 'failed', boundary: 'tool', reason: HOSTILE },
      },
    ],
  };
  await putTrajectories(store, { run, stage: 'rl', step: 1 }, group);
  const checkpoint = {
    manifest: { key: 'k', sha256: '0'.repeat(64), bytes: 1 },
    weights: '0'.repeat(64),
    step: 1,
  };
  await putStepFacts(
    store,
    run,
    someStep({
      checkpoint,
      heldOut: someHeldOut(3, 8),
      estimates: { [HOSTILE]: { successes: 1, trials: 2 } },
      alarms: [
        {
          name: 'loops',
          stageStep: 1,
          evidence: [{ what: HOSTILE, now: 1, before: null, limit: 0.5 }],
          remedy: HOSTILE,
          actions: [],
        },
      ],
      decision: { kind: 'collapse', reason: HOSTILE, action: 'ask', question: null },
      circumstances: {
        ...someStep().circumstances,
        incidents: [
          {
            environment: 'calculator',
            file: HOSTILE,
            function: HOSTILE,
            kind: 'crashed',
            count: 3,
            message: HOSTILE,
          },
        ],
      },
    }),
  );
}

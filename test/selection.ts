/**
 * What `npm test` runs, beside types, lint, format and replay: all unit tests but those of LONG_UNITS, and the
 * integration tests of PROMISES. `npm run test:all` runs everything. A new integration test is in neither list: it is
 * put here only where a promise of Gradus stands on it, or where it takes seconds.
 */

/** Integration tests by what they hold. A path is a file or a folder, below test/integration. */
export const PROMISES: readonly { promise: string; paths: readonly string[] }[] = [
  {
    promise: 'A run that is killed anywhere, with its servers or without, ends with the same weights.',
    paths: ['recovery/kill-anywhere.test.ts'],
  },
  {
    promise: 'Damaged objects lose nothing: the run asks, and goes on when they are restored.',
    paths: ['workflows/damage.test.ts', 'runs/damage.test.ts'],
  },
  {
    promise: 'People steer runs, and nothing that they send can break one.',
    paths: [
      'control/control.test.ts',
      'control/other-runs.test.ts',
      'control/another-spec.test.ts',
      'workflows/at-once.test.ts',
    ],
  },
  {
    promise: 'What a model writes does not leave the sandbox, and is not paid for a forged answer.',
    paths: ['sandbox/escapes.test.ts', 'sandbox/bubblewrap.test.ts', 'families/forged-answers.test.ts'],
  },
  {
    promise: 'The ladder computes each verdict once, and its ledger adds up.',
    paths: ['ladder/ladder.test.ts', 'ladder/late-lessons.test.ts', 'ladder/plan.test.ts'],
  },
  {
    promise: 'A policy may be on servers, and the death of one loses nothing that was sampled.',
    paths: ['serving/whole-run.test.ts'],
  },
  {
    promise: 'The package does what the README says, in a project that is not this one.',
    paths: ['package'],
  },
  {
    promise: 'The pages work in a browser, with keys alone and without scripts.',
    paths: ['dashboard/pages.test.ts'],
  },
  {
    promise: 'What is stored is written once, and read as it was written.',
    paths: [
      'store',
      'activities/answers-what-is-kept.test.ts',
      'activities/stored-episodes.test.ts',
      'activities/stored-splits.test.ts',
      'activities/named-checkpoints.test.ts',
    ],
  },
  {
    promise: 'An agent that knows nothing of Gradus gets its turns, and the same ones when it asks again.',
    paths: ['gateway'],
  },
  {
    promise:
      'No promise by itself, but seconds only: each activity, model and protocol against real servers.',
    paths: [
      'activities/hindsight.test.ts',
      'activities/policy-pool.test.ts',
      'activities/sessions.test.ts',
      'activities/train-step.test.ts',
      'activities/verification.test.ts',
      'infra/bootstrap.test.ts',
      'infra/what-commands-load.test.ts',
      'models/generate.test.ts',
      'models/import-adapter.test.ts',
      'models/import-export.test.ts',
      'runs/episode-index.test.ts',
      'runs/token-advantages.test.ts',
      'runs/steps.test.ts',
    ],
  },
];

/** Unit tests that `npm test` leaves out, below test/unit. */
export const LONG_UNITS: readonly { because: string; paths: readonly string[] }[] = [
  {
    because: 'They install Python packages, or compile C++.',
    paths: ['infra/setup/python-environment.test.ts', 'infra/setup/decoder-native.test.ts'],
  },
  {
    because: 'They count how often an alarm or a rule of a stage errs, over thousands of simulated stages.',
    paths: [
      'core/diagnosis/healthy.test.ts',
      'core/diagnosis/simulated.test.ts',
      'core/diagnosis/toy-training.test.ts',
      'core/training/changed-looks.test.ts',
      'core/training/repeated-looks.test.ts',
      'core/training/stage-errors.test.ts',
    ],
  },
  {
    because: 'They start a process for each case, and what they protect changes seldom.',
    paths: [
      'engine/decoder/thread-count.test.ts',
      'engine/learner/process/remote-learner.test.ts',
      'environments/check/each-by-itself.test.ts',
      'environments/host/arguments.test.ts',
      'environments/host/present.test.ts',
      'environments/host/realms.test.ts',
    ],
  },
];

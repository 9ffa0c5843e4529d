import { z } from 'zod';
import { ACTIONS } from '../../diagnosis/act.ts';
import type { AlarmAction, Rules } from '../../diagnosis/act.ts';
import { DIAGNOSES } from '../../diagnosis/alarm.ts';
import type { DiagnosisName } from '../../diagnosis/alarm.ts';
import { positive } from '../../fields.ts';
import type { Refuse } from '../check.ts';
import type { Path } from '../strict.ts';

const actions = (what: string) =>
  z.array(z.enum(ACTIONS)).max(ACTIONS.length).default(['note']).describe(what);

/** Of an alarm that older specs do not know: a stage that says nothing of it is the same as theirs. */
const newer = (what: string) => z.array(z.enum(ACTIONS)).max(ACTIONS.length).optional().describe(what);

/** What a stage does about each alarm, in `core/diagnosis/act.ts`'s words. */
export const diagnosisSchema = z.strictObject({
  'missing-mask': actions('Tokens that the policy did not sample are trained.'),
  'no-contrast': actions('The samples of nearly all tasks earn the same (σ = 0).'),
  'empty-batch': newer(
    'Steps sample episodes and train on none of them; `filter` and `slow-down` cannot help. Default: note.',
  ),
  'constant-judge': newer(
    'A verifier, or the model in its place, gives everything the same score. Default: note.',
  ),
  'echo-trap': actions('Variance and entropy fall, gradients or repetition rise, before the reward falls.'),
  'entropy-collapse': actions('A tenth of the entropy is left.'),
  'kl-blow-up': actions('The policy runs away from the reference, or its updates are clipped.'),
  'low-ess': newer('Few of the samples carry an update, by their importance weights. Default: note.'),
  'stale-samples': newer(
    'Samples of an asynchronous stage are about as old as they may be, for they wait for the learner. Default: note.',
  ),
  'reward-hacking': actions('The reward rises and success falls.'),
  'length-explosion': actions('Episodes grow longer without more success.'),
  truncation: actions('Half of the episodes are cut off by a limit, and it gets no better.'),
  'tool-hallucination': actions('Calls of unknown tools.'),
  'tool-errors': actions('Half of the turns end in an error, and it gets no better.'),
  loops: actions('Episodes repeat their calls or their words.'),
  temperatureFactor: z.number().min(1).max(2).default(1.2).describe('Of `explore`, each time.'),
  temperatureAtMost: z
    .number()
    .min(1)
    .max(4)
    .default(1.5)
    .describe("Of `explore`, all times together: so many times the spec's temperature."),
  learningRateFactor: positive(1, 'it slows down').default(0.5).describe('Of `slow-down`, each time.'),
  keepGroups: positive(1, 'that keeps all')
    .default(0.5)
    .describe(
      'Of `filter`: part of the groups that is trained on, those whose rewards deviate most. Groups with fewer than two rewards are not counted.',
    ),
});

type WhyNot = Partial<Record<AlarmAction, string>>;

/** What some kinds of stage cannot do about an alarm. */
const WHY_NOT = {
  /** Late verdicts are of groups of earlier steps. */
  late: {
    explore:
      'changes the temperature, and late verdicts train on episodes of another temperature: leave it out, or set verification.offerLateFor to 0',
    filter:
      'leaves groups out, and a late verdict needs the advantages that its group had: leave it out, or set verification.offerLateFor to 0',
  },
  /** Groups of one sample. */
  singles: {
    filter:
      'keeps the groups whose rewards deviate most, and a group of one sample has no deviation: it would never be trained on again. Leave it out, or take 2 samples or more',
  },
  asynchronous: {
    explore:
      'changes the temperature, and an asynchronous step takes groups of several temperatures then: leave it out',
  },
  replays: {
    explore:
      'changes the temperature, and groups of earlier steps, of another temperature, are replayed: leave it out',
  },
  /** Episodes of another run. */
  stored: {
    explore: 'raises the sampling temperature, and stored episodes are sampled already: leave it out',
  },
} satisfies Record<string, WhyNot>;

/** What can never help, whatever the rest of the stage is. */
const USELESS: Partial<Record<DiagnosisName, WhyNot>> = {
  'empty-batch': {
    filter: 'leaves groups out, and none is trained on: leave it out',
    'slow-down': 'makes updates smaller, and there are none: leave it out',
  },
};

/** Refuses actions that can never help, and those that such a stage cannot go with; `at` is the path of the section. */
export function refuseActions(
  rules: Rules,
  stage: Record<keyof typeof WHY_NOT, boolean>,
  at: Path,
  refuse: Refuse,
): void {
  const kinds = (Object.keys(WHY_NOT) as (keyof typeof WHY_NOT)[]).filter((kind) => stage[kind]);
  const whyNots = kinds.map((kind): WhyNot => WHY_NOT[kind]);
  for (const alarm of DIAGNOSES) {
    rules[alarm]?.forEach((action, place) => {
      const useless = USELESS[alarm]?.[action];
      const messages = useless === undefined ? whyNots.map((whyNot) => whyNot[action]) : [useless];
      for (const message of messages) if (message !== undefined) refuse([...at, alarm, place], message);
    });
  }
}

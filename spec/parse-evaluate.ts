import type { Refuse, SpecEnvironment, SpecEnvironments } from '../core/schema/check.ts';
import type { CurriculumSpec } from '../core/schema/curriculum-spec.ts';
import { checkAgent } from '../core/schema/agent.ts';
import { checkBeams } from '../core/schema/beams.ts';
import { checkDialect } from '../core/schema/dialect.ts';
import { evaluateSchema } from '../core/schema/evaluate.ts';
import type { EvaluateSpec, WrittenEvaluate } from '../core/schema/evaluate.ts';
import { checkPolicy, toleranceOf } from '../core/schema/policy.ts';
import type { ServedPolicySpec } from '../core/schema/policy.ts';
import { retentionSchema } from '../core/schema/retention.ts';
import { LADDER } from '../core/ladder/requests.ts';
import { checkReward, rewardSchema, rewardSpecOf } from '../core/schema/reward.ts';
import type { RewardSpec } from '../core/schema/reward.ts';
import { samplingSchema } from '../core/schema/sampling.ts';
import type { SamplingSpec } from '../core/schema/sampling.ts';
import { inside, parseStrictly, refusalOfSpec } from '../core/schema/strict.ts';
import type { SpecProblem } from '../core/schema/strict.ts';
import { armsOf, checkCount, checkNames, checkTasks, mostTasks, MOST_TASKS } from '../core/schema/tasks.ts';
import type { WrittenTasks } from '../core/schema/tasks.ts';
import { checkVerification, verificationOf, writtenTiers } from '../core/schema/verification.ts';
import type { VerificationSpec, WrittenVerification } from '../core/schema/verification.ts';

export const EVALUATION_INPUT = 'the evaluation';

/** What can be said of it without environments and store. Throws as `parseSpec`. */
export function readEvaluate(written: unknown): WrittenEvaluate {
  const shape = parseStrictly(evaluateSchema, written, EVALUATION_INPUT);
  if (shape.checkpoint === undefined && !shape.dryRun)
    throw refusalOfSpec(EVALUATION_INPUT, [
      { path: ['checkpoint'], message: 'is missing: name a run, RUN@STEP, or the key of a checkpoint' },
    ]);
  return shape;
}

/** Only the store can say which checkpoint it is of, and so what servers are given. */
export type ParsedEvaluate = Omit<EvaluateSpec, 'model' | 'policy'> & { policy?: ServedPolicySpec };

/**
 * Checks an evaluation against the environments that there are. What is not written is as in the run that the checkpoint
 * is from, `base`: null of an imported model. `name` names it where nobody did. Throws as `parseSpec`.
 */
export function parseEvaluate(
  written: unknown,
  name: string,
  base: CurriculumSpec | null,
  environments: SpecEnvironments,
): ParsedEvaluate {
  const shape = readEvaluate(written);
  const tasks = withLevels(shape.tasks, environments);
  const sampling = samplingOf(written, shape, base);
  const { seed, split, samples, confidence, dialect, beams } = shape;
  const used = tasks.flatMap(({ environment }) => environments.get(environment) ?? []);
  const problems: SpecProblem[] = [];
  const refuse: Refuse = (path, message) => void problems.push({ path, message });
  const count = countOf(written, shape, tasks, environments);

  checkNames([{ tasks, path: ['tasks'] }], environments, refuse);
  checkTasks(tasks, ['tasks'], environments, refuse);
  checkCount({ tasks, split, count, of: 'all' }, ['count'], environments, refuse);
  if (count * samples > MOST_TASKS)
    refuse(
      ['samples'],
      `makes ${count * samples} episodes of ${count} tasks, at most ${MOST_TASKS}: lower it or count`,
    );
  if (sampling.topP < 1 && sampling.topK === 0)
    refuse(
      ['sampling', 'topP'],
      'may leave the whole vocabulary in the sampling mask, which is stored with each token: also give a topK',
    );
  const agent = shape.agent === null ? undefined : (shape.agent ?? base?.agent);
  checkAgent(
    { agent, policy: shape.policy, stages: [], evaluation: { tasks } },
    environments,
    (path, message) =>
      refuse(
        path[0] === 'evaluation' ? path.slice(1) : path,
        shape.agent ? message : `${message}; or measure without the agent of the run, by "agent": null`,
      ),
  );
  if (beams) {
    const { topK, topP } = shape.sampling;
    const cuts = [...(topK > 0 ? (['topK'] as const) : []), ...(topP < 1 ? (['topP'] as const) : [])];
    const beside = { samples, cuts, served: shape.policy !== undefined, agent: agent !== undefined };
    checkBeams(beams, beside, refuse);
  }
  // The likeliest token needs no distribution.
  const topK = sampling.topK === 1 ? 0 : sampling.topK;
  checkPolicy(shape.policy, { ...sampling, topK }, refuse);
  checkDialect({ from: shape.checkpoint, dialect }, (path, message) => refuse(path.slice(1), message));
  const verification = verificationFor(shape, base, used, refuse);
  const reward = verification === null ? null : rewardOf(shape, sampling, base, used, verification, refuse);
  if (problems.length > 0 || reward === null || verification === null)
    throw refusalOfSpec(EVALUATION_INPUT, problems);

  const taskVersions = Object.fromEntries(
    used.flatMap(({ name: environment, version }) => (version ? [[environment, version]] : [])),
  );
  return {
    run: shape.run ?? name,
    seed,
    ...(shape.policy && { policy: servedOf(shape.policy) }),
    ...(agent && { agent }),
    ...(Object.keys(taskVersions).length > 0 && { taskVersions }),
    sampling,
    ...(beams && { beams }),
    reward,
    ...(verification && { verification }),
    stages: [],
    evaluation: { arms: armsOf(tasks), count, samples, confidence },
    retention: retentionSchema.parse(undefined),
    split,
  };
}

/** Whether servers get adapters, or nothing, the checkpoint says. No log-prob is compared: nothing is trained. */
const servedOf = (policy: NonNullable<WrittenEvaluate['policy']>): ServedPolicySpec => ({
  ...policy,
  folder: policy.folder ?? '',
  tolerance: toleranceOf(policy),
  maxLogprobGap: 0,
  adapters: false,
});

/** All levels of an environment of which none is named. */
const withLevels = (tasks: WrittenEvaluate['tasks'], environments: SpecEnvironments): WrittenTasks =>
  tasks.map(({ environment, levels }) => ({
    environment,
    levels: levels ?? [...(environments.get(environment)?.levels ?? [])],
  }));

/** What was written, and the rest as in the run, of which beams leave the cuts aside; a count that nobody wrote is no more than there are tasks. */
function samplingOf(
  written: unknown,
  { sampling, beams }: WrittenEvaluate,
  base: CurriculumSpec | null,
): SamplingSpec {
  const given = Object.keys(Object(inside(written, 'sampling')) as object);
  const own = Object.fromEntries(Object.entries(sampling).filter(([field]) => given.includes(field)));
  return {
    ...samplingSchema.parse(undefined),
    ...base?.sampling,
    ...own,
    ...(beams && { topK: 0, topP: 1 }),
  };
}

function countOf(
  written: unknown,
  { count, split }: WrittenEvaluate,
  tasks: WrittenTasks,
  environments: SpecEnvironments,
): number {
  if (inside(written, 'count') !== undefined) return count;
  const most = mostTasks({ tasks, split, of: 'all' }, environments);
  return most > 0 ? Math.min(count, most) : count;
}

/** null where nothing says what success is: that was refused. */
function rewardOf(
  { reward }: WrittenEvaluate,
  sampling: SamplingSpec,
  base: CurriculumSpec | null,
  used: readonly SpecEnvironment[],
  verification: VerificationSpec | undefined,
  refuse: Refuse,
): RewardSpec | null {
  if (reward) {
    if (refuseTiers(reward, used, refuse)) return null;
    checkReward(reward, { hasLadder: verification !== undefined, sampling, stages: [] }, used, refuse);
    // Without an outcome it has been refused.
    const decides = reward.components.some(({ role }) => role === 'outcome');
    return decides ? rewardSpecOf(reward, sampling, verification) : null;
  }
  if (verification) return rewardSpecOf(BY_LADDER, sampling, verification);
  const found = outcomeOf(base, used);
  if (found !== null || used.length === 0) return found;
  const listed = used.map((one) => `${one.name} has ${fast(one).join(', ')}`).join('; ');
  const how = '{"components": [{"verifier": NAME, "role": "outcome"}]}, or by --verifier NAME';
  refuse(['reward'], `name the verifier that decides success, by ${how}; ${listed}`);
  return null;
}

/** What success is where tiers judge and nobody says more. */
const BY_LADDER = rewardSchema.parse({ components: [{ verifier: LADDER, role: 'outcome' }] });

/** The tiers of an evaluation; undefined where fast verifiers alone judge, null for what was refused. */
function verificationFor(
  { verification, reward }: WrittenEvaluate,
  base: CurriculumSpec | null,
  used: readonly SpecEnvironment[],
  refuse: Refuse,
): VerificationSpec | undefined | null {
  if (!verification) return undefined;
  const ofRun = verification.rungs ? undefined : base?.verification;
  const rungs = verification.rungs ?? (ofRun && writtenTiers(ofRun));
  if (!rungs) {
    refuse(
      ['verification'],
      'names no tiers, and the checkpoint is of no run that has some: give "rungs" as in a spec, the cheapest first',
    );
    return null;
  }
  const evaluateBy = verification.evaluateBy ?? ofRun?.evaluateBy;
  const written: WrittenVerification = {
    ...OF_STEPS,
    rungs,
    ...(evaluateBy !== undefined && { evaluateBy }),
  };
  let refused = false;
  checkVerification(written, reward ?? BY_LADDER, used, (path, message) => {
    refused = true;
    refuse(path, message);
  });
  if (refused || used.length === 0) return null;
  const whole = verificationOf(written, used[0]!);
  if (whole.evaluateBy !== whole.rungs[0]!.verifier) return whole;
  refuse(
    ['verification', 'evaluateBy'],
    `"${whole.evaluateBy}" is the lowest tier, which judges without tiers, too: name one of ${whole.rungs
      .slice(1)
      .map(({ verifier }) => verifier)
      .join(', ')}, or leave out verification`,
  );
  return null;
}

/** What only steps read. */
const OF_STEPS = { offerLateFor: 0, counts: 'verdicts' } as const;

/** Whether a verifier of a higher tier is named as if it were a fast one: who judges by tiers says so. */
function refuseTiers(
  { components, ensembles = [] }: NonNullable<WrittenEvaluate['reward']>,
  used: readonly SpecEnvironment[],
  refuse: Refuse,
): boolean {
  const named = [
    ...components.map(({ verifier }, i) => ({ verifier, at: ['reward', 'components', i, 'verifier'] })),
    ...ensembles.flatMap((ensemble, e) =>
      ensemble.verifiers.map((verifier, i) => ({ verifier, at: ['reward', 'ensembles', e, 'verifiers', i] })),
    ),
  ];
  const above = named.flatMap(({ verifier, at }) => {
    const found = used.flatMap((one) =>
      one.verifiers.filter(({ name, tier }) => name === verifier && tier !== 'fast'),
    );
    return found.length === 0 ? [] : [{ verifier, tier: found[0]!.tier, at }];
  });
  for (const { verifier, tier, at } of above)
    refuse(
      at,
      `"${verifier}" is of the tier ${tier}, and here fast verifiers alone judge: name one of ${[...new Set(used.flatMap(fast))].join(', ')}; or let the tier judge, by a "verification" whose evaluateBy is "${verifier}"`,
    );
  return above.length > 0;
}

const fast = ({ verifiers }: SpecEnvironment): string[] =>
  verifiers.filter(({ tier }) => tier === 'fast').map(({ name }) => name);

/** The outcome of the run where all environments have its verifier, else the only verifier that they have. */
function outcomeOf(base: CurriculumSpec | null, used: readonly SpecEnvironment[]): RewardSpec | null {
  const { components = [], ensembles = [] } = base?.reward ?? {};
  const decisive = components.find(({ role }) => role === 'outcome')?.verifier;
  const ensemble = ensembles.find(({ name }) => name === decisive);
  const needed = ensemble?.verifiers ?? [decisive];
  const known = used.length > 0 && used.every((one) => needed.every((name) => fast(one).includes(name!)));
  const all = [...new Set(used.flatMap(fast))];
  const verifier = known ? decisive : all.length === 1 ? all[0] : undefined;
  if (verifier === undefined) return null;
  return {
    components: [{ verifier, role: 'outcome', weight: 1, gatedBy: null }],
    ...(known && ensemble && { ensembles: [ensemble] }),
    truncated: 'train',
  };
}

import type { Client } from '@temporalio/client';
import { Command, InvalidArgumentError, Option } from 'commander';
import { GradusError } from '../../core/errors.ts';
import { DIALECTS } from '../../core/names.ts';
import { POLICY_SERVERS } from '../../core/schema/policy.ts';
import type { Arm } from '../../core/schema/tasks.ts';
import type { EvaluateSpec, ExpectedVerdicts } from '../../core/schema/evaluate.ts';
import type { Watch } from '../../runs/control/evaluate.ts';
import type { StoredEvaluation } from '../../store/run/evaluation.ts';
import { withConnectionFlags, withStoreOf, withTemporal } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import {
  agentOf,
  checkpointOf,
  isAddress,
  isFolder,
  policyOf,
  sectionOf,
  wouldStore,
  written,
} from '../evaluated-model.ts';
import type { EvaluatedOptions } from '../evaluated-model.ts';
import { printJson } from '../json/print-json.ts';
import { numberFrom, wholeFrom } from '../numbers.ts';
import { note, print } from '../printable.ts';

interface EvaluateOptions extends EvaluatedOptions {
  environment?: { environment: string; levels?: number[] }[];
  tasks?: number;
  samples?: number;
  split?: string;
  seed?: number;
  confidence?: number;
  verifier?: string;
  dialect?: string;
  temperature?: number;
  topK?: number;
  topP?: number;
  maxTurns?: number;
  maxParallelCalls?: number;
  maxTokens?: number;
  beams?: number;
  groups?: number;
  diversity?: number;
  against?: string;
  againstSampling?: boolean;
  verification?: string;
  evaluateBy?: string;
  dryRun?: boolean;
  json?: boolean;
}

/** `gradus evaluate MODEL --environment E`: success of a checkpoint or a folder, without a run. */
export function evaluateCommand(): Command {
  return withConnectionFlags(new Command('evaluate'))
    .argument(
      '<model>',
      'RUN, its last checkpoint; RUN@STEP; the key of a checkpoint; a Hugging Face folder; a stored evaluation; or URL,URL: servers that hold a model',
    )
    .option(
      '--environment <name[:levels]...>',
      'environments, with their levels where not all are meant: calculator:1,2',
      parseTasks,
    )
    .option(
      '--tasks <n>',
      'tasks of all levels together (default: 1000, or as many as there are)',
      wholeFrom(1),
    )
    .option('--samples <n>', 'samples of each task (default: 1)', wholeFrom(1))
    .addOption(new Option('--split <split>', 'which tasks (default: test)').choices(['test', 'heldout']))
    .option('--seed <n>', 'the same seed samples the same episodes (default: 0)', wholeFrom(0))
    .option('--confidence <part>', 'of the intervals (default: 0.95)', numberFrom(0.5, 0.9999))
    .option('--verifier <name>', 'decides success (default: as in the run that the checkpoint is from)')
    .option('--evaluate-by <verifier>', 'a tier of the run judges what the lowest one passes')
    .option(
      '--verification <file>',
      'other tiers: a JSON file with "verification" as in a spec, of which "rungs" and evaluateBy are read',
    )
    .addOption(new Option('--dialect <name>', "default: the checkpoint's").choices(DIALECTS))
    .option('--temperature <t>', 'sampling temperature (default: as in the run)', numberFrom(0.01, 100))
    .option('--top-k <k>', 'sample among the k likeliest tokens; 1 takes the likeliest', wholeFrom(0))
    .option('--top-p <p>', 'sample among those that have this probability together', numberFrom(0, 1))
    .option('--max-turns <n>', 'turns of an episode (default: as in the run)', wholeFrom(1))
    .option('--max-parallel-calls <n>', 'tool calls of a turn (default: as in the run)', wholeFrom(1))
    .option(
      '--max-tokens <n>',
      'tokens of an episode after its prompt (default: as in the run)',
      wholeFrom(1),
    )
    .option('--beams <n>', 'turns are the best of so many beams, and not sampled', wholeFrom(1))
    .option(
      '--groups <n>',
      'with --beams: groups that the beams are shared among, which avoid the tokens of each other; attempt i of --samples begins with the best beam of group i (default: 1)',
      wholeFrom(1),
    )
    .option(
      '--diversity <nats>',
      'with --groups, which need it: what a token costs for each beam of an earlier group that has it there; begin with 0.5',
      numberFrom(0, Infinity),
    )
    .option('--against-sampling', 'with --beams: also the same model with sampled turns, and the difference')
    .option('--against <model>', 'another model on the same tasks, with the paired difference')
    .option('--as <name>', "name in the store of a folder's model (default: the folder's name)")
    .option('--agent <what>', 'makes the episodes: a JSON file with "agent" as in a spec, or the URL of one')
    .option('--no-agent', 'the policy acts with the tools of environments, also where the run had an agent')
    .option(
      '--tokenizer <folder>',
      'of the model that the servers at URL hold: config.json, tokenizer.json, chat template',
    )
    .option(
      '--at <URL,URL>',
      'servers that get the checkpoint and sample (default: the decoder of rollout workers)',
    )
    .addOption(
      new Option('--server <api>', 'which API servers speak').choices(POLICY_SERVERS).default('vllm'),
    )
    .option(
      '--served-model <name>',
      'name of the model that servers began with (default: the first that they list)',
    )
    .option('--folder <path>', 'with --at: a folder that rollout workers write and servers read')
    .option('--server-folder <path>', 'the same folder by the path that servers know')
    .option('--api-key-variable <name>', "variable of rollout workers that holds the servers' key")
    .option(
      '--dry-run',
      'only say what would be evaluated, what would be imported first, and what verdicts may cost at most',
    )
    .option('--json', 'print one JSON object; everything else goes to standard error')
    .action(async (model: string, options: EvaluateOptions) => {
      if (options.dryRun) return dryRun(model, options);
      const [first, second] = await evaluations(model, options);
      const { evaluationTables, summarizeEvaluations } = await import('../evaluate-report.ts');
      const confidence = options.confidence ?? first.spec.evaluation.confidence;
      if (options.json) printJson('evaluate', summarizeEvaluations(first, second, confidence));
      else {
        const other = options.againstSampling ? `${model}, sampled` : options.against;
        const names = [model, other ?? null] as const;
        for (const text of evaluationTables(first, second, names, confidence)) print(text);
        for (const one of [first, second]) if (one) print(`episodes and figures: ${one.spec.run}`);
      }
    });
}

/** Says what would be evaluated, before anything is spent. */
async function dryRun(model: string, options: EvaluateOptions): Promise<void> {
  if (options.json || options.against !== undefined || options.againstSampling)
    throw new GradusError(
      'spec',
      'dry-run',
      '--dry-run says what one evaluation would be, in words: leave out --json, --against and --against-sampling',
    );
  const { checkedEvaluate } = await import('../../runs/control/evaluate.ts');
  const input = written({ ...inputOf(options), policy: policyOf(options, model) });
  const isThere = !isFolder(model) && !isAddress(model);
  const { spec, counts, expected } = await withTemporal(options, (temporal) =>
    checkedEvaluate(temporal, isThere ? { ...input, checkpoint: model } : input, sayWhy(temporal)),
  );
  const first = await wouldStore(options, model);
  if (first !== null) print(first);
  const { count, samples } = spec?.evaluation ?? counts!;
  print(`would evaluate ${count} tasks × ${samples}`);
  print(expected ? expectedInWords(expected) : 'fast verifiers alone judge: no verdict has a price');
}

const expectedInWords = ({ verifier, count, seconds, usd }: ExpectedVerdicts): string =>
  `up to ${count} verdicts of ${verifier}, which are expected to take ${seconds.toFixed(1)} s of its computation and to cost US$ ${usd.toFixed(2)}; known ones cost nothing`;

function parseTasks(text: string, before: EvaluateOptions['environment'] = []) {
  const [, environment, levels] = /^(.+?)(?::(-?\d+(?:,-?\d+)*))?$/.exec(text) ?? [];
  if (environment === undefined) throw new InvalidArgumentError('name an environment, or NAME:LEVEL,LEVEL');
  return [...before, { environment, ...(levels !== undefined && { levels: levels.split(',').map(Number) }) }];
}

type Evaluations = [StoredEvaluation, StoredEvaluation | null];

/** Both are checked before anything of either is spent; then one is measured after the other. */
async function evaluations(model: string, options: EvaluateOptions): Promise<Evaluations> {
  if (options.againstSampling && options.against !== undefined)
    throw new GradusError(
      'spec',
      'two-others',
      'one other evaluation stands beside the first: leave out --against or --against-sampling',
    );
  return withTemporal(options, async (temporal) => {
    const { checkedEvaluate } = await import('../../runs/control/evaluate.ts');
    const input = inputOf(options);
    const stored = await storedEvaluation(options, model);
    if (options.againstSampling) assertSearched(stored === null ? input.beams : stored.spec.beams);
    if (stored === null) {
      if (options.environment === undefined)
        throw new GradusError(
          'spec',
          'no-environment',
          'say what it is to be evaluated on, by --environment NAME',
        );
      // A folder is gigabytes: what can be refused without it is refused first.
      if (isFolder(model) || isAddress(model)) await checkedEvaluate(temporal, input);
    }
    const first = stored ?? (await planned(temporal, options, model, input));
    if (options.againstSampling) {
      const sampled = await planned(temporal, options, ...sampledInstead(first.spec));
      return [await measured(temporal, options, first), await measured(temporal, options, sampled)];
    }
    if (options.against === undefined) return [await measured(temporal, options, first), null];
    const other =
      (await storedEvaluation(options, options.against)) ??
      (await planned(temporal, options, options.against, sameAs(first.spec)));
    return [await measured(temporal, options, first), await measured(temporal, options, other)];
  });
}

interface Planned {
  spec: EvaluateSpec;
  expected?: ExpectedVerdicts;
  input: Record<string, unknown>;
}

async function planned(
  temporal: Client,
  options: EvaluateOptions,
  model: string,
  input: Record<string, unknown>,
): Promise<Planned> {
  const { checkedEvaluate } = await import('../../runs/control/evaluate.ts');
  const policy = policyOf(options, model);
  const checkpoint = await checkpointOf(options, model);
  const asked = written({ ...input, checkpoint, policy });
  const { spec: whole, expected } = await checkedEvaluate(temporal, asked, sayWhy(temporal));
  const spec = whole!;
  // Which one it is stays decided, however many the run makes meanwhile.
  const { key } = spec.model.kind === 'from' ? spec.model.checkpoint.manifest : { key: checkpoint };
  return { spec, input: { ...asked, checkpoint: key }, ...(expected && { expected }) };
}

/** What is stored of it, or what its workflow comes to. */
async function measured(
  temporal: Client,
  options: EvaluateOptions,
  one: Planned | StoredEvaluation,
): Promise<StoredEvaluation> {
  if ('tasks' in one) return one;
  const { begin, evaluationId, outcomeOf } = await import('../../runs/control/evaluate.ts');
  const { count, samples } = one.spec.evaluation;
  const id = evaluationId(one.spec);
  const done = await storedEvaluation(options, id);
  if (done !== null) return done;
  note(
    `evaluating ${count} tasks × ${samples} as ${id}; whatever is killed, the same command goes on with it`,
  );
  if (one.expected) note(expectedInWords(one.expected));
  const handle = await begin(temporal, id, one.input);
  const { run } = await outcomeOf(handle, sayWhy(temporal));
  return (await storedEvaluation(options, run!))!;
}

const STILL_MS = 20_000;

/** Says what it waits for, where that is more than work that is being done. */
const sayWhy =
  (temporal: Client): Watch =>
  async (workflowId, signal) => {
    const [{ setTimeout: delay }, { executionOf }, { whyOfExecution }, { whyInWords }] = await Promise.all([
      import('node:timers/promises'),
      import('../../runs/temporal/executions.ts'),
      import('../../runs/overview/why.ts'),
      import('../../runs/overview/why-in-words.ts'),
    ]);
    let said = '';
    while (!signal.aborted) {
      // What ends it is no failure.
      await delay(STILL_MS, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      const execution = await executionOf(temporal, workflowId);
      if (execution === null) continue;
      const { reasons } = await whyOfExecution(temporal, execution, Date.now());
      const text = reasons.map((reason) => whyInWords(reason, Date.now())).join('; ');
      if (text !== said) note(text);
      said = text;
    }
  };

/** By its name in the store; null where nothing is stored under it. */
async function storedEvaluation(options: ConnectionOptions, name: string): Promise<StoredEvaluation | null> {
  const [{ isFileName }, { findEvaluation }] = await Promise.all([
    import('../../store/keys.ts'),
    import('../../store/run/evaluation.ts'),
  ]);
  if (!isFileName(name)) return null;
  return withStoreOf(options, (store) => findEvaluation(store, name), { patient: true });
}

/** Fields that nobody wrote are left out: the workers fill them in. */
function inputOf(options: EvaluateOptions): Record<string, unknown> {
  const { environment: tasks, tasks: count, samples, split, seed, confidence, verifier, dialect } = options;
  const { temperature, topK, topP, maxTurns, maxParallelCalls, maxTokens: maxCompletionTokens } = options;
  const sampling = written({ temperature, topK, topP, maxTurns, maxParallelCalls, maxCompletionTokens });
  return written({
    tasks,
    count,
    samples,
    split,
    seed,
    confidence,
    sampling: Object.keys(sampling).length === 0 ? undefined : sampling,
    beams: beamsOf(options),
    verification: verificationOf(options),
    reward: verifier === undefined ? undefined : { components: [{ verifier, role: 'outcome' }] },
    dialect: dialect === undefined ? undefined : { name: dialect },
    agent: options.agent === undefined ? undefined : agentOf(options.agent),
  });
}

/** undefined where turns are sampled. */
function beamsOf({ beams: width, groups, diversity }: EvaluateOptions): unknown {
  if (width !== undefined) return written({ width, groups, diversity });
  if (groups === undefined && diversity === undefined) return undefined;
  throw new GradusError(
    'spec',
    'no-beams',
    '--groups and --diversity say how beams are searched: give --beams N, in all groups together',
  );
}

/** Tiers of a file, or of the run; undefined where fast verifiers alone judge. */
function verificationOf({ verification: file, evaluateBy }: EvaluateOptions): unknown {
  if (file === undefined) return evaluateBy === undefined ? undefined : { evaluateBy };
  const given = sectionOf(file, 'verification', '--verification');
  const { rungs, evaluateBy: by } = given as { rungs?: unknown; evaluateBy?: unknown };
  return written({ rungs, evaluateBy: evaluateBy ?? by });
}

/** The same tasks, sampled and judged in the same way, of whatever else. */
function sameAs({
  evaluation,
  split,
  seed,
  sampling,
  beams,
  reward: whole,
  verification,
  agent,
}: EvaluateSpec): Record<string, unknown> {
  // The lowest tier is said by the tiers.
  const { ladder: _, ...reward } = whole;
  const { arms, ...counts } = evaluation;
  // As a person would write it: a minimum has none.
  const ensembles = reward.ensembles?.map(({ deviations, ...one }) =>
    one.by === 'minimum' ? one : { ...one, deviations },
  );
  const same = { ...reward, ...(ensembles && { ensembles }) };
  const tiers = verification && {
    rungs: verification.rungs.map((rung) => written({ ...rung, tier: undefined })),
    evaluateBy: verification.evaluateBy,
  };
  const judged = { reward: same, ...(tiers && { verification: tiers }) };
  const sampled = { sampling, ...(beams && { beams }) };
  return { tasks: tasksOf(arms), ...counts, split, seed, ...sampled, ...judged, agent: agent ?? null };
}

/** Beams, of whatever is measured against sampling: without them both would be the same. */
function assertSearched(beams: unknown): void {
  if (beams !== undefined) return;
  throw new GradusError(
    'spec',
    'no-beams',
    '--against-sampling measures what beams are worth, and there are none here: give --beams N with a run, checkpoint or folder, name a stored evaluation that had some, or leave it out',
  );
}

/** The same checkpoint, and what is asked of it where turns are sampled. */
function sampledInstead(spec: EvaluateSpec): [checkpoint: string, input: Record<string, unknown>] {
  // Beams with servers were refused: nobody else is without a checkpoint.
  if (spec.model.kind !== 'from') throw new Error(`beams of a model that is ${spec.model.kind}`);
  const { checkpoint, dialect } = spec.model;
  return [checkpoint.manifest.key, written({ ...sameAs(spec), beams: undefined, dialect })];
}

function tasksOf(arms: readonly Arm[]): { environment: string; levels: number[] }[] {
  const names = [...new Set(arms.map(({ environment }) => environment))];
  return names.map((environment) => ({
    environment,
    levels: arms.flatMap((arm) => (arm.environment === environment ? [arm.level] : [])),
  }));
}

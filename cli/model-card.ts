import type { CheckpointManifest } from '../store/training/manifest.ts';
import { armName } from '../core/names.ts';
import type { CheckpointRef } from '../core/refs.ts';
import type { ArmTally } from '../core/requests/verification.ts';
import { roleOfRule, ruleName } from '../core/reward/rules.ts';
import type { PreferenceSpec } from '../core/algorithms/preference.ts';
import type { CurriculumSpec } from '../core/schema/curriculum-spec.ts';
import type { RewardSpec } from '../core/schema/reward.ts';
import type { RlStageSpec } from '../core/schema/stages/rl.ts';
import type { Arm } from '../core/schema/tasks.ts';
import { total } from '../core/training/stage-policy.ts';
import { measuredShare } from '../core/statistics/measured.ts';
import { percent } from '../core/percent.ts';
import { interval } from './show-progress.ts';

/** What is known of how a checkpoint came to be. */
export interface Provenance {
  ref: CheckpointRef;
  manifest: CheckpointManifest;
  /** null for an imported model, of which nothing is known. */
  spec: CurriculumSpec | null;
  /** Success on test tasks before and after RL, where the run got there. */
  before: ArmTally[] | null;
  after: ArmTally[] | null;
}

/** The model's README in Hugging Face's form: metadata in YAML, then how it was trained, in words and tables. */
export function modelCard({ ref, manifest, spec, before, after }: Provenance): string {
  const lines = [
    '---',
    'library_name: transformers',
    'pipeline_tag: text-generation',
    'tags:',
    '- gradus',
    '- reinforcement-learning',
    '- tool-use',
    '---',
    '',
    `# ${manifest.run}, step ${manifest.step}`,
    '',
    `Written by ${manifest.createdBy}; SHA-256 of its weights as trained: \`${ref.weights}\`.`,
    '',
  ];
  if (spec === null) {
    const what = manifest.parent
      ? `An imported LoRA adapter, merged into \`${folderOf(manifest.parent)}\``
      : 'An imported model';
    return [...lines, `${what}, not trained further.`, ''].join('\n');
  }
  lines.push('## How it was trained', '', '| | |', '| --- | --- |');
  const row = (name: string, value: string | number): void => void lines.push(`| ${name} | ${value} |`);
  row(
    'first weights',
    spec.model.kind === 'from' ? `\`${folderOf(spec.model.checkpoint)}\`` : 'random, from the seed',
  );
  row('seed', spec.seed);
  row(
    'this checkpoint',
    `stage "${manifest.stage}", step ${manifest.step}, ${manifest.updates} optimizer updates`,
  );
  row('learner', manifest.backend);
  for (const stage of spec.stages) {
    const name = `stage "${stage.name}"`;
    if (stage.kind === 'supervised') {
      const { algorithm, arms: measured, optimizer } = stage;
      const learnt = algorithm
        ? `${algorithm.kind} on given preferences, measured on ${arms(measured)}`
        : `supervised on ${arms(measured)}`;
      const constants = algorithm ? constantsOf(algorithm) : '';
      row(name, `${learnt}, learning rate ${optimizer.learningRate}${constants}`);
      continue;
    }
    if (stage.kind === 'reward') {
      const ensemble = stage.models === 1 ? 'a reward model' : `${stage.models} reward models`;
      const { run = '', stage: from } = stage.episodes;
      const where = `episodes of stage "${from}"${run && ` of ${run}`}`;
      row(name, `${ensemble} of ${stage.labels} of ${where}; the policy stays as it is`);
      continue;
    }
    const { algorithm } = stage;
    row(
      name,
      `${algorithm.kind} on ${arms(stage.arms)}; ${stage.groupsPerStep} tasks a step, ${samplesInWords(stage)}, ` +
        `learning rate ${stage.optimizer.learningRate}${constantsOf(algorithm)}`,
    );
  }
  row('reward', rewardInWords(spec.reward));
  if (before !== null || after !== null) {
    const { confidence, samples } = spec.evaluation;
    const cell = (tallies: readonly ArmTally[] | null): string => show(tallies, confidence, samples);
    lines.push(
      '',
      '## Success on tasks that no decision of the run has seen',
      '',
      `With ${100 * confidence} % intervals (Wilson).`,
      '',
      '| tasks | before RL | after RL |',
      '| --- | --- | --- |',
    );
    for (const arm of spec.evaluation.arms) {
      const of = (tallies: ArmTally[] | null) =>
        tallies?.filter((tally) => armName(tally.arm) === armName(arm)) ?? null;
      lines.push(`| ${armName(arm)} | ${cell(of(before))} | ${cell(of(after))} |`);
    }
    lines.push(`| all | ${cell(before)} | ${cell(after)} |`);
  }
  lines.push('', '## The whole curriculum', '', '```json', JSON.stringify(spec, null, 2), '```', '');
  return lines.join('\n');
}

const arms = (all: readonly Arm[]): string => all.map(armName).join(', ');

function show(tallies: readonly ArmTally[] | null, confidence: number, samples: number): string {
  if (tallies === null || total(tallies).trials === 0) return '–';
  const { success, ...bounds } = measuredShare(total(tallies), confidence, samples);
  return `${percent(success)} (${interval(bounds)})`;
}

const folderOf = ({ manifest }: CheckpointRef): string => manifest.key.replace(/\/manifest\.json$/, '');

/** Where what a step learns from is from. */
function samplesInWords({ collect, numGenerations }: RlStageSpec): string {
  switch (collect.kind) {
    case 'stored':
      return `their samples taken as stage "${collect.stage}"${collect.run === undefined ? '' : ` of ${collect.run}`} has left them`;
    case 'tree':
      return `${numGenerations} samples of each, of which ${collect.roots} begin at the prompt and the others branch off`;
    case 'pipelined':
      return `${numGenerations} samples of each, by the policy of ${collect.lag} steps before`;
    case 'asynchronous':
      return `${numGenerations} samples of each, by a policy of at most ${collect.maxStaleness} steps before`;
    case 'replay':
      return `${numGenerations} samples of each, and up to ${percent(collect.part)} of them replayed from at most ${collect.maxStaleness} steps before`;
    default:
      return `${numGenerations} samples of each`;
  }
}

/** What a method was told, beyond its name. */
const constantsOf = (algorithm: RlStageSpec['algorithm'] | PreferenceSpec): string =>
  Object.entries(algorithm)
    .filter(([name]) => name !== 'kind')
    .map(([name, value]) => `, ${name} ${typeof value === 'object' ? JSON.stringify(value) : value}`)
    .join('');

/** What was paid for, and how much. */
export function rewardInWords({ components, rules = [], model, shapingMayDominate }: RewardSpec): string {
  const parts = [
    ...components.map(({ verifier, role, weight }) => `${role} ${verifier} × ${weight}`),
    ...rules.map((rule) => `${roleOfRule(rule)} ${ruleName(rule)} × ${rule.weight}`),
  ];
  const judge = model
    ? `; in training the reward model of "${model.stage}" judges in the outcome's place`
    : '';
  return `${parts.join(', ')}${judge}${shapingMayDominate ? '; by its spec the outcome weighs less than the rest' : ''}`;
}

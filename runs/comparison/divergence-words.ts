import { commandLine } from '../../core/installation.ts';
import { MOST_LOOKS } from './divergence.ts';
import type { RunDivergence, Parting, StepOfRun } from './divergence.ts';
import type { FirstOther } from './episode-difference.ts';

// Where two runs part, in words, for terminal and page.

const stepText = ({ stage, stageStep, step }: StepOfRun): string => `step ${step} (${stage}/${stageStep})`;

/** In sentences: whether they part, where, by what, and what could not be looked at. */
export function divergenceText(divergence: RunDivergence): string[] {
  const { unreadable } = divergence;
  return [
    ...wordsOf(divergence),
    ...(unreadable.length === 0
      ? []
      : [
          `${unreadable.length === 1 ? 'One object' : `${unreadable.length} objects`} could not be read and took no part in this; where they part may be there. The first: ${unreadable[0]}`,
        ]),
  ];
}

function wordsOf({
  runs,
  common,
  further,
  facts,
  parting,
  looked,
  unlooked,
  clocks,
}: RunDivergence): string[] {
  const [one, other] = runs;
  if (parting !== null) return [partingText(parting, runs), ...detailsOf(parting, runs)];
  const same =
    looked === 'episodes'
      ? 'every token, log-prob and verdict, and the weights'
      : facts === null
        ? 'all facts and the weights'
        : unlooked > 0
          ? 'the weights'
          : 'the training samples and the weights';
  const more =
    further[0] > 0
      ? `; ${one} has ${further[0]} more`
      : further[1] > 0
        ? `; ${other} has ${further[1]} more`
        : '';
  return [
    common === 0
      ? `${one} and ${other} have no step in common${more}.`
      : `${one} and ${other} do not part in the ${common} steps that both have: ${same} are the same${more}.`,
    ...(facts === null
      ? clocks
        ? ['They differ in clocks only.']
        : []
      : [
          `From ${stepText(facts.at)} on something is measured or decided differently: ${facts.differences
            .slice(0, 3)
            .map(({ path }) => path)
            .join(', ')}.`,
        ]),
    ...(unlooked > 0
      ? [
          `Of the steps with other facts and the same weights the first ${MOST_LOOKS} were looked into, and ${unlooked} were not: ${commandLine(`compare ${one} ${other} --episodes`)} looks into all.`,
        ]
      : []),
  ];
}

function partingText(
  { at, what, environments, evaluation, group, episode, counts }: Parting,
  [one, other]: RunDivergence['runs'],
): string {
  if (what === 'begin' || at === null) return `${one} and ${other} begin with other weights.`;
  const where = `${one} and ${other} part at ${stepText(at)}`;
  const of = evaluation === null ? '' : `, evaluation ${evaluation}`;
  const place = group === null ? of : `${of}, ${group}${episode ? `, episode ${episode.index}` : ''}`;
  switch (what) {
    case 'course':
      return `${where}: it is a step of ${one}, and ${other} does another one.`;
    case 'tasks':
      return environments === null
        ? `${where}${place}: it is of another task, of another policy, or only one has it.`
        : `${where}${place}: its tasks are of other environments: ${environments.join(' and ')}.`;
    case 'sampled':
      return `${where}${place}: it is sampled differently.`;
    case 'batch':
      return (counts?.groups ?? 0) > 0
        ? `${where}: its episodes are sampled alike, and another batch is made of them.`
        : `${where}: its batches are not the same, and no group that both have tells what was sampled.`;
    case 'demonstrations':
      return environments === null
        ? `${where}: nothing is sampled for it, and its batches are not the same.`
        : `${where}, which is supervised: its demonstrations are of other environments: ${environments.join(' and ')}.`;
    default:
      return `${where}: the same batch leads to other weights. The learners differ: their machine, their threads, or their settings.`;
  }
}

function detailsOf({ what, group, episode, counts, batch }: Parting, runs: RunDivergence['runs']): string[] {
  const lines: string[] = [];
  if (episode) {
    const { token, logprob, verdict, rewards } = episode.difference;
    const first = (name: string, { at, values }: FirstOther): string =>
      `${name} ${at} of the completion: ${values.map((value) => value ?? 'nothing').join(' and ')}`;
    if (logprob) lines.push(`${first('Log-prob', logprob)} nats.`);
    if (token) lines.push(`${first('Token', token)}.`);
    if (logprob && !token) lines.push('All of its tokens are the same.');
    if (verdict)
      lines.push(
        `${what === 'batch' ? `${group}, episode ${episode.index} is the first that is judged differently` : 'It is judged differently'}: reward ${rewards
          .map((reward, i) => `${reward === null ? 'none' : Number(reward.toPrecision(6))} in ${runs[i]}`)
          .join(', ')}.`,
      );
  }
  if (batch !== null) lines.push(`First of the batch: ${batch}.`);
  if (counts && counts.groups > 0) {
    const { groups, other, otherTokens, otherLogprobs, otherVerdicts } = counts;
    lines.push(
      `Of ${groups} groups that both have ${other} are not the same: ${otherTokens} episodes have other tokens, ${otherLogprobs} the same tokens with other log-probs, and ${otherVerdicts} only another verdict.`,
    );
  }
  return lines;
}

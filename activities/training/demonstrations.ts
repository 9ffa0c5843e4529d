import { actsOf } from '../../core/episode/acts.ts';
import type { EpisodeSession, Observation } from '../../core/episode/episode.ts';
import { GradusError } from '../../core/errors.ts';
import { RandomStream } from '../../core/random.ts';
import type { DemonstrationsRequest } from '../../core/requests.ts';
import type { Dialect } from '../../engine/dialect/contract.ts';
import { malformedObservation } from '../../engine/dialect/malformed.ts';
import { Turns } from '../../engine/in-pieces.ts';
import type { TaskRef } from '../../core/refs.ts';
import type { DemonstrationTurn } from '../../environments/contract.ts';
import type { AskKinds, SessionAsk } from '../../environments/host/asks.ts';
import type { ToolFacts } from '../../environments/host/facts.ts';
import type { HostedEnvironment } from '../../environments/host/hosted-environment.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import type { TrainSequence } from './training-batch.ts';

/** Demonstrations that are asked for at once. */
const BATCH = 256;

/**
 * A round's demonstrations, the arms in turn, each of another task; no two rounds of a run share one.
 * Throws GradusError('environment', …) where one cannot be made or read.
 */
export async function demonstrationSequences(
  environments: Environments,
  dialectFor: (environment: Pick<HostedEnvironment, 'tools'>) => Dialect,
  request: Pick<DemonstrationsRequest, 'arms' | 'count' | 'round' | 'seed' | 'shownBefore'>,
  signal: AbortSignal,
): Promise<TrainSequence[]> {
  const sequences: TrainSequence[] = [];
  const { seed, round, shownBefore = { rounds: 0, tasks: 0 } } = request;
  const ways = new RandomStream(seed, 'demonstrations', shownBefore.rounds + round);
  const turns = new Turns(signal);
  for (let from = 0; from < request.count; from += BATCH) {
    const batch = Array.from({ length: Math.min(BATCH, request.count - from) }, (_, n) => {
      const i = from + n;
      const { environment: name, level } = request.arms[i % request.arms.length]!;
      const environment = environmentOf(environments, name);
      const fresh = shownBefore.tasks + (round - 1) * request.count + i;
      const index = fresh % environment.taskCount('train', level);
      const ref: TaskRef = { environment: name, split: 'train', level, index };
      return { environment, item: { ref, index: ways.int(0, 2 ** 30) } };
    });
    for (const [i, shown] of (await demonstrated(batch, signal)).entries()) {
      if (turns.due) await turns.take();
      const { environment, item } = batch[i]!;
      const dialect = dialectFor(shown.tools ? { tools: shown.tools } : environment);
      // A mistake that a dialect cannot even write needs no unlearning.
      if (shown.demonstration.weight < 0 && !dialect.canWrite(shown.demonstration.turns.at(-1)!)) continue;
      sequences.push(await written(environment, dialect, { ref: item.ref, ...shown }, signal));
    }
  }
  return sequences;
}

type Shown = AskKinds['demonstrations']['answer'];

/** In order, with one question to each environment. */
async function demonstrated(
  batch: readonly { environment: HostedEnvironment; item: { ref: TaskRef; index: number } }[],
  signal: AbortSignal,
): Promise<Shown[]> {
  const all: Shown[] = [];
  await Promise.all(
    [...new Set(batch.map(({ environment }) => environment))].map(async (environment) => {
      const places = [...batch.keys()].filter((i) => batch[i]!.environment === environment);
      const items = places.map((i) => batch[i]!.item);
      const shown = await environment.demonstrations(items, { signal });
      shown.forEach((one, n) => {
        if (one instanceof GradusError) throw one;
        all[places[n]!] = one;
      });
    }),
  );
  return all;
}

/** A demonstration as tokens: what the policy writes is masked in; of a negative one only the last turn. */
async function written(
  environment: HostedEnvironment,
  dialect: Dialect,
  { ref, prompt, tools: own, demonstration: { turns, weight } }: Shown & { ref: TaskRef },
  signal: AbortSignal,
): Promise<TrainSequence> {
  const tools = own ?? environment.tools;
  const advantages: number[] = [];
  const rollout: number[] = [];
  const sequence: TrainSequence = { tokens: [], mask: [], streams: { advantages, rollout } };
  const append = (tokens: readonly number[], mask: 0 | 1): void => {
    for (const token of tokens) {
      sequence.tokens.push(token);
      sequence.mask.push(mask);
      advantages.push(mask * weight);
      rollout.push(0);
    }
  };
  append(dialect.promptTokens([{ role: 'user', content: prompt }]), 0);
  const id = `demonstration/${ref.environment}/${ref.split}/${ref.level}/${ref.index}`;
  let session: SessionAsk = { ref, id, acts: [] };
  for (const [i, turn] of turns.entries()) {
    const last = i === turns.length - 1;
    append(dialect.turnTokens(turn), weight > 0 || last ? 1 : 0);
    if (last) continue;
    const { observation, kept } = await observed(environment, dialect, tools, session, turn, signal);
    const acts = turn.call ? actsOf([{ action: { kind: 'call', call: turn.call }, observation }], tools) : [];
    session = { ...session, acts: [...session.acts, ...acts], kept };
    append(dialect.observationTokens({ text: observation.text }, dialect.turnText(turn)), 0);
  }
  if (session.acts.length > 0) await environment.close([session], { signal });
  return sequence;
}

/** What the expert reads after a turn: as the demonstration says, else from the tool itself. */
async function observed(
  environment: HostedEnvironment,
  dialect: Dialect,
  tools: readonly ToolFacts[],
  session: SessionAsk,
  turn: DemonstrationTurn,
  signal: AbortSignal,
): Promise<{ observation: Observation; kept?: EpisodeSession | undefined }> {
  const { kept } = session;
  if (turn.observation !== undefined) return { observation: { text: turn.observation }, kept };
  if (turn.raw !== undefined) {
    const action = dialect.parse(turn.raw);
    if (action.kind === 'malformed') return { observation: malformedObservation(action.reason), kept };
  }
  const { call } = turn;
  if (!call) {
    throw new GradusError(
      'environment',
      'demonstration',
      `${environment.name} goes on after a turn that calls no tool: only the last turn of a demonstration may answer`,
    );
  }
  const tool = tools.find(({ name }) => name === call.name);
  const refusal =
    tool?.placement === 'long' ? await environment.refusalOf(call, { signal, session }, tools) : null;
  if (refusal) return { observation: refusal, kept };
  if (tool && (tool.placement !== 'inline' || !(tool.ofSession || tool.effect === 'pure'))) {
    throw new GradusError(
      'environment',
      'demonstration',
      `${environment.name} demonstrates a call of ${tool.name}, which is not inline and pure: give the turn its observation`,
    );
  }
  const idempotencyKey = `${session.id}/${session.acts.length}`;
  const called = await environment.call(call, { idempotencyKey, attempt: 1, signal, session }, tools);
  return { observation: called.observation, kept: called.session ?? kept };
}

import { randomUUID } from 'node:crypto';
import type { Observation, ToolCall } from '../../core/episode/episode.ts';
import { GradusError } from '../../core/errors.ts';
import { RandomStream } from '../../core/random.ts';
import type { DemonstrationsRequest, EpisodeLimits } from '../../core/requests/demonstrations.ts';
import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';
import type { ChatMessage, Dialect, WrittenTurn } from '../../engine/dialect/contract.ts';
import { malformedObservation } from '../../engine/dialect/malformed.ts';
import { EventLoopTurns } from '../../engine/in-pieces.ts';
import type { TaskRef } from '../../core/refs.ts';
import type { Demonstration, DemonstrationTurn } from '../../environments/contract/environment.ts';
import { askByEnvironment } from '../../environments/host/ask-by-environment.ts';
import type { AskKinds } from '../../environments/host/asks.ts';
import { runsInDemonstrations } from '../../environments/host/facts.ts';
import type { ToolFacts } from '../../environments/host/facts.ts';
import type { HostedEnvironment } from '../../environments/host/hosted-environment.ts';
import { PlayedSession } from '../../environments/host/played-session.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import { writtenSequence } from './written-sequence.ts';
import type { TrainingSample } from '../../core/algorithms/training-sample.ts';

/** Demonstrations that are asked for at once. */
const BATCH = 256;

/**
 * A round's demonstrations, the arms in turn, each of another task; no two rounds of a run share one.
 * Throws GradusError('environment', …) where one cannot be made or read, and GradusError('spec', 'no-room') where the
 * episodes of an arm end before any of its demonstrations does.
 */
export async function demonstrationSequences(
  environments: Environments,
  dialectFor: (environment: Pick<HostedEnvironment, 'tools'>) => Dialect,
  request: Pick<DemonstrationsRequest, 'arms' | 'count' | 'round' | 'seed' | 'shownBefore' | 'limits'>,
  signal: AbortSignal,
): Promise<TrainingSample[]> {
  const sequences: TrainingSample[] = [];
  const { seed, round, shownBefore = { rounds: 0, tasks: 0 }, limits } = request;
  const lengths = new Map<string, Lengths>();
  const ways = new RandomStream(seed, 'demonstrations', shownBefore.rounds + round);
  const turns = new EventLoopTurns(signal);
  // Another run may show the same task at the same time, and so may an attempt that was given up.
  const own = `demonstration-${randomUUID()}`;
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
      if (shown.demonstration.weight < 0 && !dialect.canWrite(writtenTurn(shown.demonstration.turns.at(-1)!)))
        continue;
      const sequence = await written(
        environment,
        dialect,
        { ref: item.ref, ...shown },
        `${own}/${from + i}`,
        signal,
      );
      sequences.push(sequence);
      if (shown.demonstration.weight <= 0) continue;
      if (limits) assertCallsAllowed(item.ref.environment, shown.demonstration, limits);
      const arm = `${item.ref.environment} at level ${item.ref.level}`;
      const length = {
        turns: shown.demonstration.turns.length,
        tokens: sequence.tokens.length - sequence.mask.indexOf(1),
      };
      lengths.set(arm, withLength(lengths.get(arm), length, limits));
    }
  }
  if (limits) lengths.forEach((of, arm) => assertRoom(arm, of, limits));
  return sequences;
}

/** Of a demonstration; tokens are those after its prompt. */
interface Length {
  turns: number;
  tokens: number;
}

/** Of an arm's demonstrations: the least of each, and whether an episode has room for any. */
interface Lengths {
  least: Length;
  fits: boolean;
}

function withLength(
  before: Lengths | undefined,
  { turns, tokens }: Length,
  { maxTurns, maxCompletionTokens }: EpisodeLimits = { maxTurns: Infinity, maxCompletionTokens: Infinity },
): Lengths {
  return {
    least: {
      turns: Math.min(turns, before?.least.turns ?? Infinity),
      tokens: Math.min(tokens, before?.least.tokens ?? Infinity),
    },
    fits: before?.fits === true || (turns <= maxTurns && tokens <= maxCompletionTokens),
  };
}

/** What no episode can do however well it is learnt is not worth showing. */
function assertRoom(arm: string, { least, fits }: Lengths, limits: EpisodeLimits): void {
  if (fits) return;
  const { maxTurns, maxCompletionTokens } = limits;
  throw new GradusError(
    'spec',
    'no-room',
    `no demonstration of ${arm} fits into an episode: they take ${least.turns} turns or more and ${least.tokens} tokens or more after the prompt, where sampling.maxTurns is ${maxTurns} and sampling.maxCompletionTokens is ${maxCompletionTokens}: raise them`,
  );
}

/** Demonstrations of a level that are looked at when a run begins. */
const LOOKED_AT = 4;

/**
 * Throws GradusError('spec', 'invalid') where demonstrations of a run have several calls in a turn which its model's dialect
 * cannot write, or its spec does not allow: as far as the first of each level show it, before anything is spent.
 */
export async function assertDemonstrable(
  environments: Environments,
  dialectFor: (environment: Pick<HostedEnvironment, 'tools'>) => Dialect,
  { stages, sampling }: Pick<CurriculumSpec, 'stages' | 'sampling'>,
  signal: AbortSignal,
): Promise<void> {
  for (const stage of stages) {
    if (stage.kind !== 'supervised' || stage.data !== undefined) continue;
    for (const { environment: name, level } of stage.arms) {
      const environment = environmentOf(environments, name);
      const count = Math.min(LOOKED_AT, environment.taskCount('train', level));
      const items = Array.from({ length: count }, (_, index) => ({
        ref: { environment: name, split: 'train' as const, level, index },
        index: 0,
      }));
      for (const shown of await environment.demonstrations(items, { signal })) {
        // What else is wrong with one is said where it is to be taught.
        if (shown instanceof GradusError || shown.demonstration.weight <= 0) continue;
        const dialect = dialectFor(shown.tools ? { tools: shown.tools } : environment);
        for (const turn of shown.demonstration.turns.filter(({ calls }) => calls).map(writtenTurn)) {
          try {
            dialect.turnText(turn);
          } catch (cause) {
            if (!(cause instanceof GradusError)) throw cause;
            throw new GradusError(
              'spec',
              'invalid',
              `the stage ${stage.name} was refused before anything was spent: a demonstration of ${name} cannot be written in the dialect ${dialect.name}: ${cause.message}`,
              { cause },
            );
          }
        }
        assertCallsAllowed(name, shown.demonstration, sampling);
      }
    }
  }
}

/** A turn with more calls than the spec allows would be learnt, and be malformed whenever the policy writes it. */
function assertCallsAllowed(
  environment: string,
  { turns }: Demonstration,
  { maxParallelCalls = 1 }: Pick<EpisodeLimits, 'maxParallelCalls'>,
): void {
  const most = Math.max(...turns.map(({ calls }) => calls?.length ?? 1));
  if (most > maxParallelCalls)
    throw new GradusError(
      'spec',
      'invalid',
      `a demonstration of ${environment} ${tooManyCalls(most, maxParallelCalls)}`,
    );
}

/** In words. */
export const tooManyCalls = (calls: number, allowed: number): string =>
  `has ${calls} calls in a turn, which is malformed where sampling.maxParallelCalls is ${allowed}: raise it to ${calls}`;

type Shown = AskKinds['demonstrations']['answer'];

const demonstrated = (
  batch: readonly { environment: HostedEnvironment; item: { ref: TaskRef; index: number } }[],
  signal: AbortSignal,
): Promise<Shown[]> =>
  askByEnvironment(
    batch,
    ({ environment }) => environment,
    async (environment, some) => {
      const shown = await environment.demonstrations(
        some.map(({ item }) => item),
        { signal },
      );
      return shown.map((one) => {
        if (one instanceof GradusError) throw one;
        return one;
      });
    },
  );

/** A demonstration as tokens: what the policy writes is masked in; of a negative one only the last turn. */
async function written(
  environment: HostedEnvironment,
  dialect: Dialect,
  { ref, prompt, tools: own, demonstration: { turns, weight } }: Shown & { ref: TaskRef },
  id: string,
  signal: AbortSignal,
): Promise<TrainingSample> {
  const tools = own ?? environment.tools;
  const { sequence, append } = writtenSequence(weight);
  append(dialect.promptTokens([{ role: 'user', content: prompt }]), 0);
  const session = new PlayedSession(environment, ref, id, tools);
  // A call that fails may have opened it.
  let opened = false;
  try {
    for (const [i, turn] of turns.entries()) {
      const last = i === turns.length - 1;
      const written = writtenTurn(turn);
      append(dialect.turnTokens(written), weight > 0 || last ? 1 : 0);
      if (last) continue;
      if (turn.calls) {
        session.begin(plainCalls(turn.calls));
        const results: ChatMessage[] = [];
        for (const { observation, ...call } of turn.calls) {
          opened ||= observation === undefined;
          const one = { call, ...(observation !== undefined && { observation }) };
          const { text } = await observed(environment, dialect, tools, session, one, signal);
          results.push({ role: 'tool', content: text });
        }
        append(dialect.messageTokens(results, dialect.turnText(written)), 0);
        continue;
      }
      opened ||= turn.observation === undefined && turn.call !== undefined;
      const { text } = await observed(environment, dialect, tools, session, turn, signal);
      append(dialect.observationTokens({ text }, dialect.turnText(turn)), 0);
    }
    return sequence;
  } finally {
    if (opened) await session.close({ signal });
  }
}

/** As a dialect writes it: what its tools answer is no part of a turn. */
export const writtenTurn = ({ calls, ...turn }: DemonstrationTurn): WrittenTurn =>
  calls ? { ...turn, calls: plainCalls(calls) } : turn;

export const plainCalls = (calls: NonNullable<DemonstrationTurn['calls']>): ToolCall[] =>
  calls.map(({ name, arguments: given }) => ({ name, arguments: given }));

/** What the expert reads after a call, or after a turn without one: as the demonstration says, else from the tool itself. */
async function observed(
  environment: HostedEnvironment,
  dialect: Dialect,
  tools: readonly ToolFacts[],
  session: PlayedSession,
  turn: DemonstrationTurn,
  signal: AbortSignal,
): Promise<Observation> {
  const { call } = turn;
  const noted = (observation: Observation): Observation => {
    if (call) session.note({ kind: 'call', call }, observation);
    return observation;
  };
  if (turn.observation !== undefined) return noted({ text: turn.observation });
  if (turn.raw !== undefined) {
    const action = dialect.parse(turn.raw);
    if (action.kind === 'malformed') return malformedObservation(action.reason);
  }
  if (!call) {
    throw new GradusError(
      'environment',
      'demonstration',
      `${environment.name} goes on after a turn that calls no tool: only the last turn of a demonstration may answer`,
    );
  }
  const tool = tools.find(({ name }) => name === call.name);
  const refusal = tool?.placement === 'long' ? await session.refusalOf(call, { signal }) : null;
  if (refusal) return noted(refusal);
  if (tool && !runsInDemonstrations(tool)) {
    throw new GradusError(
      'environment',
      'demonstration',
      `${environment.name} demonstrates a call of ${tool.name}, which is not inline and pure: give the turn its observation`,
    );
  }
  return session.call(call, { signal });
}

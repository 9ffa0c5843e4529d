import { GradusError } from '../core/errors.ts';
import { RandomStream } from '../core/random.ts';
import type { DemonstrationsRequest } from '../core/requests.ts';
import type { Dialect } from '../engine/dialect/contract.ts';
import { malformedObservation } from '../engine/dialect/malformed.ts';
import type { Demonstration, DemonstrationTurn, Environment, Task } from '../environments/contract.ts';
import { environmentOf } from './environment-of.ts';
import type { Environments } from './environment-of.ts';
import { attemptCall, refuseCall } from './tool-call.ts';
import type { TrainSequence } from './training-batch.ts';

/** A round's demonstrations, the arms in turn, each of another task; no two rounds share one. */
export async function demonstrationSequences(
  environments: Environments,
  dialectFor: (environment: Environment) => Dialect,
  request: Pick<DemonstrationsRequest, 'arms' | 'count' | 'round' | 'seed'>,
  signal: AbortSignal,
): Promise<TrainSequence[]> {
  const sequences: TrainSequence[] = [];
  const ways = new RandomStream(request.seed, 'demonstrations', request.round);
  for (let i = 0; i < request.count; i++) {
    const { environment: name, level } = request.arms[i % request.arms.length]!;
    const environment = environmentOf(environments, name);
    const fresh = (request.round - 1) * request.count + i;
    const index = fresh % environment.taskCount('train', level);
    const task = environment.task({ environment: name, split: 'train', level, index });
    const demonstration = environment.demonstrate(task, ways.int(0, 2 ** 30));
    const dialect = dialectFor(environment);
    // A mistake that a dialect cannot even write needs no unlearning.
    if (demonstration.weight < 0 && !dialect.canWrite(demonstration.turns.at(-1)!)) continue;
    sequences.push(await written(environment, dialect, task, demonstration, signal));
  }
  return sequences;
}

/** A demonstration as tokens: what the policy writes is masked in; of a negative one only the last turn. */
async function written(
  environment: Environment,
  dialect: Dialect,
  task: Task,
  { turns, weight }: Demonstration,
  signal: AbortSignal,
): Promise<TrainSequence> {
  const sequence: TrainSequence = { tokens: [], mask: [], advantages: [], logprobs: [] };
  const append = (tokens: readonly number[], mask: 0 | 1): void => {
    for (const token of tokens) {
      sequence.tokens.push(token);
      sequence.mask.push(mask);
      sequence.advantages.push(mask * weight);
      sequence.logprobs.push(0);
    }
  };
  append(dialect.promptTokens([{ role: 'user', content: task.prompt }]), 0);
  for (const [i, turn] of turns.entries()) {
    const last = i === turns.length - 1;
    append(dialect.turnTokens(turn), weight > 0 || last ? 1 : 0);
    if (last) continue;
    const text = await observed(environment, dialect, task, turn, signal);
    append(dialect.observationTokens({ text }), 0);
  }
  return sequence;
}

/** What the expert reads after a turn: as the demonstration says, else from the tool itself. */
async function observed(
  environment: Environment,
  dialect: Dialect,
  task: Task,
  turn: DemonstrationTurn,
  signal: AbortSignal,
): Promise<string> {
  if (turn.observation !== undefined) return turn.observation;
  if (turn.raw !== undefined) {
    const action = dialect.parse(turn.raw);
    if (action.kind === 'malformed') return malformedObservation(action.reason).text;
  }
  const { call } = turn;
  if (!call) {
    throw new GradusError(
      'environment',
      'demonstration',
      `${environment.name} goes on after a turn that calls no tool: only the last turn of a demonstration may answer`,
    );
  }
  const refusal = refuseCall(call, environment.tools);
  if (refusal) return refusal.text;
  const tool = environment.tools.find(({ name }) => name === call.name)!;
  if (tool.placement !== 'inline' || tool.effect !== 'pure') {
    throw new GradusError(
      'environment',
      'demonstration',
      `${environment.name} demonstrates a call of ${tool.name}, which is not inline and pure: give the turn its observation`,
    );
  }
  const { text } = await attemptCall(tool, call, {
    idempotencyKey: `demonstration/${task.ref.level}/${task.ref.index}`,
    attempt: 1,
    signal,
    heartbeat: () => undefined,
  });
  return text;
}

import { randomUUID } from 'node:crypto';
import type { Episode } from '../../core/episode/episode.ts';
import { GradusError } from '../../core/errors.ts';
import { groupBy } from '../../core/group-by.ts';
import { canonicalJson } from '../../core/json/canonical-json.ts';
import { armName } from '../../core/names.ts';
import { RandomStream } from '../../core/random.ts';
import type { TaskRef } from '../../core/refs.ts';
import type { SynthesizeRequest } from '../../core/requests/demonstrations.ts';
import type { SynthesisFacts } from '../../core/training/step-facts.ts';
import type { Dialect } from '../../engine/dialect/contract.ts';
import { EventLoopTurns } from '../../engine/in-pieces.ts';
import type { DemonstrationTurn } from '../../environments/contract/environment.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import type { HostCaller } from '../../environments/host/hosted-environment.ts';
import type { Looked } from '../../store/training/synthesis.ts';
import type { Speaking } from '../rollout/policies.ts';
import { choiceOf, firstActionOf, planOf } from './action-examples.ts';
import type { Action } from './action-examples.ts';
import { measuredPrompts, promptName } from './measured-prompts.ts';
import { referenceEpisode } from './reference-episode.ts';
import { verifiedReference, verifiedSolution } from './verified-solution.ts';
import type { VerifiedSolution } from './verified-solution.ts';

// Action synthesis (AgentFounder, Su et al. 2025, arXiv 2509.13310). First-order: a question, and its first action or a plan,
// with nothing carried out. Higher-order: at each step of a trajectory other actions beside the one that was taken, then the
// choice, and what came of it. There language models write them. Here an expert's trajectory is verified, and other actions
// are those of other tasks, each carried out with the real tools in the place of the one that was taken.

/** Other actions that are looked at for one that is kept. */
const TRIES = 4;
/** Part of them that answer with what a tool has said on the way, where that is a line of so many characters at most. */
const HASTY = 0.25;
const SHORT = 80;

/** A trajectory that the verifiers pass, with what its actions brought. */
interface Trajectory extends Pick<VerifiedSolution, 'turns' | 'tools'> {
  ref: TaskRef;
  prompt: string;
  /** Of each turn, what was read after it; nothing after an answer. */
  observed: readonly (readonly string[])[];
}

type Request = Pick<SynthesizeRequest, 'run' | 'stage' | 'seed' | 'arms' | 'how' | 'reward' | 'limits'>;

/** Lines of data, and what became of all that was looked at. `isWritable` says whether one can be trained on. */
export async function synthesizeActions(
  environments: Environments,
  dialectFor: (environment: Speaking) => Dialect,
  isWritable: (line: string) => boolean,
  request: Request,
  asker: HostCaller,
): Promise<{
  lines: string[];
  facts: Omit<SynthesisFacts, 'source'>;
  tasks: { ref: TaskRef; became: Looked }[];
}> {
  const { run, stage, seed, how, reward } = request;
  const facts: Omit<SynthesisFacts, 'source'> = {
    tasks: how.tasks,
    unsolved: 0,
    setAside: 0,
    known: 0,
    actions: 0,
    same: 0,
    notWorse: 0,
    tooFew: 0,
    unwritable: 0,
    first: 0,
    plans: 0,
    choices: 0,
  };
  const pieces = new EventLoopTurns(asker.signal);
  // An attempt that was given up may still play: its sessions are no others' sessions.
  const own = `${run}/${stage}/synthesis-${randomUUID()}`;
  const measured = await measuredPrompts(environments, request.arms, asker);
  const { tasks, trajectories } = await verifiedTrajectories();
  const lines: string[] = [];
  const byArm = groupBy([...trajectories.values()], ({ ref }) => armName(ref));
  for (const [at, trajectory] of trajectories) {
    if (pieces.due) await pieces.take();
    const before = lines.length;
    const others = byArm.get(armName(trajectory.ref))!.filter((one) => one !== trajectory);
    keep('first', how.weights.first, () => firstActionOf(trajectory));
    keep('plans', how.weights.plans, () => planOf(trajectory));
    if (how.weights.choices > 0)
      for (const step of trajectory.turns.keys()) {
        const random = new RandomStream(seed, 'alternatives', stage, at, step);
        const worse = await alternatives(trajectory, step, others, random);
        if (worse.length < how.alternatives) facts.tooFew++;
        else keep('choices', how.weights.choices, () => choiceOf(trajectory, step, worse, random));
      }
    tasks[at]!.became = { kind: 'kept', examples: lines.length - before };
  }
  return { lines, facts, tasks };

  function keep(kind: 'first' | 'plans' | 'choices', weight: number, make: () => object | null): void {
    const example = weight > 0 ? make() : null;
    if (example === null) return;
    const line = JSON.stringify({ ...example, weight });
    if (!isWritable(line)) {
      facts.unwritable++;
      return;
    }
    facts[kind]++;
    lines.push(line);
  }

  /** Tasks of the train split, each once, which none that measures asks, and which an expert solves. */
  async function verifiedTrajectories() {
    const places = new RandomStream(seed, 'synthesis', stage);
    const prompts = new Set<string>();
    const looked: { ref: TaskRef; became: Looked }[] = [];
    const kept = new Map<number, Trajectory>();
    for (let i = 0; i < how.tasks; i++) {
      if (pieces.due) await pieces.take();
      const { environment, level } = request.arms[i % request.arms.length]!;
      const count = environmentOf(environments, environment).taskCount('train', level);
      if (count === 0)
        throw new GradusError(
          'spec',
          'no-tasks',
          `the stage ${stage} has no tasks to make data of: ${environment} has none of the split train at level ${level}. Leave out that level`,
        );
      const ref: TaskRef = {
        environment,
        split: 'train',
        level,
        index: places.int(0, Math.min(count - 1, 2 ** 30)),
      };
      looked.push({ ref, became: await look(ref, i) });
    }
    return { tasks: looked, trajectories: kept };

    async function look(ref: TaskRef, i: number): Promise<Looked> {
      const [task] = await environmentOf(environments, ref.environment).tasks([ref], asker);
      if (task instanceof GradusError) return unsolved(task.message);
      const { prompt } = task!;
      const name = promptName(ref.environment, prompt);
      if (measured.has(name)) {
        facts.setAside++;
        return { kind: 'set-aside' };
      }
      if (prompts.has(name)) {
        facts.known++;
        return { kind: 'known' };
      }
      prompts.add(name);
      const solved = await verifiedSolution(environments, dialectFor, ref, `${own}/${i}`, request, asker);
      if ('reason' in solved) return unsolved(solved.reason);
      const { episode, turns, tools } = solved;
      kept.set(i, { ref, prompt, turns, observed: observedIn(episode), ...(tools && { tools }) });
      return { kind: 'kept', examples: 0 };
    }

    function unsolved(reason: string): Looked {
      facts.unsolved++;
      return { kind: 'unsolved', reason };
    }
  }

  /** Other actions for a step, each of which is worse; fewer than wanted where not so many are found. */
  async function alternatives(
    trajectory: Trajectory,
    step: number,
    others: readonly Trajectory[],
    random: RandomStream,
  ): Promise<Action[]> {
    // An answer stands among answers: nobody can say that a call is worse than one.
    const like = ({ turns }: Trajectory): readonly DemonstrationTurn[] =>
      trajectory.turns[step]!.answer === undefined ? turns : turns.slice(-1);
    // What later results say nobody knows yet.
    const known = trajectory.observed.slice(0, step).flat();
    const said = known.filter((text) => text.length <= SHORT && !text.includes('\n'));
    const taken = new Set(trajectory.turns.map((turn) => nameOf(actionOf(turn))));
    const looked = new Set<string>();
    const found: Action[] = [];
    for (let i = 0; i < TRIES * how.alternatives && found.length < how.alternatives; i++) {
      const hasty = said.length > 0 && random.uniform() < HASTY;
      if (!hasty && others.length === 0) continue;
      const action = hasty ? { answer: random.pick(said) } : actionOf(random.pick(like(random.pick(others))));
      const name = nameOf(action);
      if (looked.has(name)) continue;
      looked.add(name);
      facts.actions++;
      const is = taken.has(name) ? 'same' : await compared(trajectory, step, action, i);
      if (is === 'worse') found.push(action);
      else facts[is]++;
    }
    return found;
  }

  /** Carries an action out in the place of the one that was taken. */
  async function compared(
    { ref, tools, turns, observed }: Trajectory,
    step: number,
    action: Action,
    i: number,
  ): Promise<'worse' | 'same' | 'notWorse'> {
    const environment = environmentOf(environments, ref.environment);
    // A call where all is known costs a turn, and no verifier says that it is worse.
    if (action.answer === undefined && turns[step]!.answer !== undefined) return 'notWorse';
    try {
      const played = await referenceEpisode(
        environment,
        dialectFor(tools ? { tools } : environment),
        { ref, tools, turns: [...turns.slice(0, step), action] },
        `${own}/alternative-${ref.level}-${ref.index}-${step}-${i}`,
        asker,
      );
      const { episode, success } = await verifiedReference(environments, ref, played, reward, asker);
      if (action.answer !== undefined) return success === false ? 'worse' : 'notWorse';
      const brought = observedIn(episode).at(-1)!;
      if (canonicalJson([...brought]) === canonicalJson([...observed[step]!])) return 'same';
      const answer = turns.at(-1)!.answer;
      const tells = answer !== undefined && brought.some((text) => wordsOf(text).includes(wordsOf(answer)));
      return success === true || tells ? 'notWorse' : 'worse';
    } catch (error) {
      if (!(error instanceof GradusError) || asker.signal.aborted) throw error;
      // What cannot be carried out here may be as good.
      return 'notWorse';
    }
  }
}

const actionOf = ({ call, calls, answer }: DemonstrationTurn): Action => ({
  ...(call && { call: { name: call.name, arguments: call.arguments } }),
  ...(calls && { calls: calls.map(({ name, arguments: given }) => ({ name, arguments: given })) }),
  ...(answer !== undefined && { answer }),
});

/** Equal for two that do the same. */
const nameOf = ({ answer, call, calls }: Action): string =>
  answer === undefined
    ? JSON.stringify((calls ?? [call!]).map((one) => [one.name, canonicalJson(one.arguments)]))
    : JSON.stringify(answer);

const observedIn = ({ turns }: Pick<Episode, 'turns'>): string[][] =>
  turns.map(({ observation, results }) =>
    (results ?? (observation ? [observation] : [])).map(({ text }) => text),
  );

/** For finding whole words. */
const wordsOf = (text: string): string =>
  ` ${(text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).join(' ')} `;

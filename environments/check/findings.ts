import type { Broken, Seen, SeenPlay, SeenTask } from './look.ts';
import type { Played } from './play.ts';
import { BEYOND } from '../verifiers/environment-reward.ts';
import { SPLITS } from './look.ts';

export interface Finding {
  /** An error makes a run wrong or impossible; a warning may have a reason. */
  is: 'error' | 'warning';
  /** null: of the module as a whole. */
  environment: string | null;
  what: string;
  remedy: string;
}

type Found = Omit<Finding, 'environment'>;

/** Fewer tasks than this are learnt by heart, or measured badly. */
const FEW_TASKS = 20;

/** What is wrong with an environment, of which another process has seen `other`. */
export function findingsOf(seen: Seen, other: Seen | undefined): Finding[] {
  const found = [
    ...countsFound(seen),
    ...brokenTasks(seen),
    ...(other ? changedTasks(seen, other) : []),
    ...sharedTasks(seen),
    ...repeatedTasks(seen),
    ...brokenPlays(seen),
    ...untoldCalls(seen),
    ...repeatedOnceCalls(seen),
    ...(other ? changedPlays(seen, other) : []),
    ...disturbedPlays(seen),
    ...poorPlays(seen),
    ...brokenPresentations(seen),
  ];
  return found.map((one) => ({ ...one, environment: seen.name }));
}

const isBroken = (value: object): value is Broken => 'broken' in value;
const at = ({ split, level, index }: Pick<SeenTask, 'split' | 'level' | 'index'>): string =>
  `${split}, level ${level}, index ${index}`;
const wayOf = ({ level, index, way }: SeenPlay): string =>
  `train, level ${level}, index ${index}, way ${way}`;
/** "(and 7 more)" */
const more = (count: number): string => (count > 1 ? ` (and ${count - 1} more)` : '');

function* countsFound({ counts, levels }: Seen): Generator<Found> {
  for (const split of SPLITS) {
    for (const level of levels) {
      const count = counts[split][level]!;
      const where = `taskCount('${split}', ${level})`;
      if (typeof count === 'object') {
        const remedy = 'Return a whole number, or Infinity where tasks are practically endless.';
        yield { is: 'error', what: `${where} ${count.broken}`, remedy };
      } else if (count === 0) {
        yield { is: 'error', what: `${where} is 0`, remedy: 'Each split needs tasks at each level.' };
      } else if (count !== 'endless' && count < FEW_TASKS) {
        const remedy =
          'A policy memorizes few tasks, and they measure success badly: add more, if there are any.';
        yield { is: 'warning', what: `${where} is ${count}`, remedy };
      }
    }
  }
}

function* brokenTasks({ tasks }: Seen): Generator<Found> {
  const broken = tasks.filter(({ task }) => isBroken(task));
  const [first] = broken;
  if (first === undefined) return;
  yield {
    is: 'error',
    what: `task(${at(first)}) failed: ${(first.task as Broken).broken}${more(broken.length)}`,
    remedy: 'Every index below taskCount() must give a task.',
  };
}

function* changedTasks(seen: Seen, other: Seen): Generator<Found> {
  const changed = seen.tasks.filter(({ task }, i) => {
    const twin = other.tasks[i]?.task;
    return !isBroken(task) && twin !== undefined && !isBroken(twin) && twin.digest !== task.digest;
  });
  const [first] = changed;
  if (first === undefined) return;
  const { task } = first as { task: { prompt: string } };
  const twin = other.tasks[seen.tasks.indexOf(first)]!.task as { prompt: string };
  const how =
    task.prompt === twin.prompt
      ? 'answer or info'
      : `prompt: ${quote(task.prompt)}, then ${quote(twin.prompt)}`;
  yield {
    is: 'error',
    what: `task(${at(first)}) differs in another process (${how})${more(changed.length)}`,
    remedy: 'Make a task from its coordinates alone: no Math.random, no clock, no counters of earlier calls.',
  };
}

function* sharedTasks({ tasks }: Seen): Generator<Found> {
  const first = new Map<string, SeenTask>();
  const shared: [SeenTask, SeenTask][] = [];
  for (const one of tasks) {
    if (isBroken(one.task)) continue;
    const known = first.get(one.task.digest);
    if (known === undefined) first.set(one.task.digest, one);
    else if (known.split !== one.split) shared.push([known, one]);
  }
  const [pair] = shared;
  if (pair === undefined) return;
  const { prompt } = pair[0].task as { prompt: string };
  yield {
    is: 'error',
    what: `${at(pair[0])} and ${at(pair[1])} are the same task, ${quote(prompt)}${more(shared.length)}`,
    remedy:
      'Held-out and test tasks must not be trained on: give each split tasks of its own, by index modulo say.',
  };
}

function* repeatedTasks({ tasks, levels, counts }: Seen): Generator<Found> {
  for (const split of SPLITS) {
    for (const level of levels) {
      const digests = tasks.flatMap((one) =>
        one.split === split && one.level === level && !isBroken(one.task) ? [one.task.digest] : [],
      );
      const different = new Set(digests).size;
      if (different * 2 > digests.length || digests.length === 0) continue;
      yield {
        is: 'warning',
        what: `of ${digests.length} tasks of ${split}, level ${level}, only ${different} are different`,
        remedy: `Let taskCount() say how many different tasks there are (it says ${JSON.stringify(counts[split][level])}).`,
      };
    }
  }
}

function* brokenPlays({ plays }: Seen): Generator<Found> {
  const broken = plays.filter(({ play }) => isBroken(play));
  const [first] = broken;
  if (first === undefined) return;
  yield {
    is: 'error',
    what: `the expert's episode of ${wayOf(first)} cannot be played: ${(first.play as Broken).broken}${more(broken.length)}`,
    remedy: 'A supervised stage would fail here: fix demonstrate(), or the tool or verifier that is named.',
  };
}

function* untoldCalls({ plays }: Seen): Generator<Found> {
  const untold = plays.filter(({ play }) => !isBroken(play) && play.untold.length > 0);
  const [first] = untold;
  if (first === undefined) return;
  const [name] = (first.play as Played).untold;
  yield {
    is: 'error',
    what: `the expert calls ${name}, which a supervised stage does not call, without an \`observation\` (${wayOf(first)})${more(untold.length)}`,
    remedy:
      'A supervised stage calls inline tools of sessions and pure inline tools: give the turn its `observation`.',
  };
}

function* repeatedOnceCalls({ onceOfSession, resume }: Seen): Generator<Found> {
  if (onceOfSession.length === 0 || (resume !== 'replay' && resume !== 'snapshot')) return;
  yield {
    is: 'error',
    what: `${onceOfSession.join(', ')} must be called once only, and sessions that come back by ${resume} make their calls again`,
    remedy: 'Give the tool a run() of its own, or the sessions another way to come back, such as `pin`.',
  };
}

function* changedPlays(seen: Seen, other: Seen): Generator<Found> {
  // What a process or a server of its own does need not be the same twice: it is never played again.
  if (seen.resume === 'pin' || seen.resume === 'reattach') return;
  const changed = seen.plays.filter(({ play }, i) => {
    const twin = other.plays[i]?.play;
    return (
      !isBroken(play) &&
      twin !== undefined &&
      !isBroken(twin) &&
      // What must be called once only was called in one of the two.
      !play.performed &&
      JSON.stringify(play) !== JSON.stringify(twin)
    );
  });
  const [first] = changed;
  if (first === undefined) return;
  yield {
    is: 'error',
    what: `the expert's episode of ${wayOf(first)} takes another course in another process${more(changed.length)}`,
    remedy:
      'Demonstrations, inline tools, sessions and fast verifiers must do the same each time. They run again after a kill, and a resumed run would differ.',
  };
}

function* disturbedPlays({ disturbed }: Seen): Generator<Found> {
  const [first] = disturbed;
  if (first === undefined) return;
  yield {
    is: 'error',
    what: `${first.broken}${more(disturbed.length)}`,
    remedy:
      'Many episodes run at a time: keep the state of each in its session, not in a variable of the module or a shared file.',
  };
}

function* poorPlays({ plays }: Seen): Generator<Found> {
  const good = plays.filter(({ play }) => !isBroken(play) && play.weight > 0);
  for (const unknown of [true, false]) {
    const refused = good.flatMap((one) => {
      if (isBroken(one.play)) return [];
      const turn = one.play.turns.find(
        (each) => each.refused && (each.refused === 'unknown-tool') === unknown,
      );
      return turn ? [{ one, ...turn }] : [];
    });
    const [bad] = refused;
    if (bad === undefined) continue;
    const { one, wrote, read } = bad;
    const shown = `(${wayOf(one)}): ${quote(wrote)}, ${quote(read ?? '')}${more(refused.length)}`;
    yield unknown
      ? {
          is: 'error',
          what: `the expert calls an unknown tool ${shown}`,
          remedy: "Let demonstrate() call tools by the names of the environment's tools, or of the task's.",
        }
      : {
          is: 'warning',
          what: `a tool refuses the arguments of the expert ${shown}`,
          remedy:
            'An expert that errs on purpose is fine; otherwise let demonstrate() write arguments that the tool accepts.',
        };
  }
  const said = good.flatMap((one) =>
    isBroken(one.play) ? [] : one.play.scores.map((score) => ({ one, ...score })),
  );
  const beyond = said.filter(({ why }) => why.includes(BEYOND));
  const [most] = beyond;
  if (most !== undefined) {
    yield {
      is: 'warning',
      what: `${most.verifier} says ${most.score} of the expert's episode of ${wayOf(most.one)}: ${most.why}${more(beyond.length)}`,
      remedy:
        'Scores are from 0 to 1: give rewards from 0 to 1, or tell environmentReward() their range by least and most.',
    };
  }
  for (const verifier of new Set(said.map((each) => each.verifier))) {
    const all = said.filter((each) => each.verifier === verifier);
    const poor = all.filter(({ score }) => (score ?? 0) < 0.5);
    const [worst] = poor;
    if (worst === undefined) continue;
    const score = worst.score === null ? 'abstains' : `says ${worst.score}`;
    yield {
      is: poor.length === all.length ? 'error' : 'warning',
      what: `${verifier} ${score} of the expert's episode of ${wayOf(worst.one)} (${worst.why})${more(poor.length)}`,
      remedy: 'A demonstration should be a success: fix demonstrate(), task.answer or the verifier.',
    };
  }
}

function* brokenPresentations({ presentations }: Seen): Generator<Found> {
  const broken = presentations.filter((one) => one.broken !== null);
  const [first] = broken;
  if (first === undefined) return;
  const { verifier, level, index } = first;
  yield {
    is: 'warning',
    what: `a subject of ${verifier} cannot be shown (train, level ${level}, index ${index}): ${first.broken}${more(broken.length)}`,
    remedy: 'Fix present(): until then people see the JSON of what they judge.',
  };
}

const quote = (text: string): string => JSON.stringify(text.length <= 100 ? text : `${text.slice(0, 100)}…`);

import { GradusError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json/json.ts';
import type { Split, TaskRef } from '../../../core/refs.ts';
import { taskRefOf } from '../../../core/training/tasks-again.ts';
import { defineEnvironment, sessionTool } from '../../contract/environment.ts';
import type {
  Candidate,
  Demonstration,
  DemonstrationTurn,
  Environment,
  FastVerifier,
  JsonSchema,
  Task,
  Tool,
  Verdict,
} from '../../contract/environment.ts';
import type { PythonModule } from './python.ts';
import { withoutNulls } from './python.ts';

export interface PythonEnvironmentOptions extends Pick<
  Environment,
  'name' | 'levels' | 'verifiers' | 'version' | 'demonstrate' | 'hint' | 'present'
> {
  /** What `python('module', …)` gives. */
  module: PythonModule;
  /**
   * Those without `run` act on a session, for which the module has `open(task, seed)`; an empty list where each task has its
   * own. Left out where tasks are only answered: then there are no sessions.
   */
  tools?: readonly Tool[];
  /** What `task` reads before split, level and index, where one module has several environments. */
  about?: readonly Json[];
  /** By default there is no end of tasks. */
  taskCount?: (split: Split, level: number) => number;
  /** How a session comes back whose process is gone: its calls are made again (`replay`), or not at all (`pin`). */
  resume?: 'replay' | 'pin';
}

/** Tasks that are kept, so that a verdict does not ask for them again. */
const KEPT_TASKS = 1024;

/**
 * An environment whose module has `task(split, level, index)`, which gives `{"prompt", "answer"?, "info"?, "tools"?}` (a
 * task's own tools as `{"name", "description", "arguments": JSON Schema}`), and where it has sessions `open(task, seed)`.
 */
export function pythonEnvironment(options: PythonEnvironmentOptions): Environment {
  const { module, tools, about = [], taskCount = () => Infinity, resume = 'replay', ...rest } = options;
  const kept = new Map<string, Promise<Task>>();
  const task = (ref: TaskRef): Promise<Task> => {
    const key = `${ref.split} ${ref.level} ${ref.index}`;
    const known = kept.get(key);
    if (known) return known;
    const made = module
      .call('task', [...about, ref.split, ref.level, ref.index])
      .then((reply) => readTask(ref, reply));
    kept.set(key, made);
    made.catch(() => kept.delete(key));
    if (kept.size > KEPT_TASKS) kept.delete(kept.keys().next().value!);
    return made;
  };
  return defineEnvironment({
    ...rest,
    tools: tools ?? [],
    task,
    taskCount,
    prepare: () => module.prepare(),
    needs: async () => [await module.need()],
    ...(tools && { sessions: { resume, open: (task, place) => module.open(task, place) } }),
  });
}

/**
 * A verifier in Python: `function(task, answer, episode)`, where `task` has `ref`, `prompt`, `answer` and `info`, and the
 * answer is None where there was none. It returns a score in [0, 1], `{"score", "evidence"?, "canonical"?}`, or None, with
 * which it abstains.
 */
export function pythonVerifier(
  module: PythonModule,
  { name, version, function: called = 'verify' }: { name: string; version: string; function?: string },
): FastVerifier {
  return {
    name,
    version,
    tier: 'fast',
    cost: { seconds: 0, usd: 0 },
    verify: async ({ task, answer, episode }, { signal }) => {
      const args = [taskAsRead(task), answer, plain(episode)];
      return readVerdict(name, await module.call(called, args, { signal }));
    },
  };
}

/**
 * An expert in Python, for `demonstrate`: `demonstrate(task)` returns the turns to imitate, each `{"call": {"name",
 * "arguments"}}`, `{"calls": [{"name", "arguments"}, …]}` or, at the end, `{"answer"}`. What the tools say is had from the tools.
 */
export function pythonExpert(module: PythonModule): (task: Task) => Promise<Demonstration> {
  return async (task) => {
    const turns = await module.call('demonstrate', [taskAsRead(task)]);
    return { weight: 1, turns: turns as unknown as DemonstrationTurn[] };
  };
}

const taskAsRead = ({ ref, prompt, answer, info }: Task): Json => ({
  ref: { ...taskRefOf(ref) },
  prompt,
  answer: answer ?? null,
  info: info ?? null,
});

const plain = (episode: Candidate['episode']): Json => JSON.parse(JSON.stringify(episode)) as Json;

function readVerdict(name: string, reply: Json): Verdict {
  const verdict = withoutNulls(typeof reply === 'number' ? { score: reply } : reply);
  if (verdict === null) return { kind: 'abstain', reason: `${name} does not say` };
  return { kind: 'score', ...(verdict as { score: number }) };
}

function readTask(ref: TaskRef, reply: Json): Task {
  const task = withoutNulls(reply) as unknown as { prompt: string; tools?: WrittenTool[] } | null;
  if (typeof task?.prompt !== 'string') {
    throw new GradusError(
      'environment',
      'python-task',
      `task() gave no prompt: ${JSON.stringify(reply).slice(0, 300)}`,
    );
  }
  const { tools, ...rest } = task;
  return { ref, ...rest, ...(tools && { tools: tools.map(sessionTool) }) };
}

interface WrittenTool {
  name: string;
  description: string;
  arguments: JsonSchema;
}

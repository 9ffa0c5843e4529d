import type { Observation, ToolCall } from '../../core/episode/episode.ts';
import { GradusError, isA } from '../../core/errors.ts';
import { limitsOf, ToolRefusal } from '../contract.ts';
import type { Tool, ToolContext } from '../contract.ts';
import { cutText, errorOfUsers, wordsOf } from './facts.ts';
import { inTime } from './in-time.ts';

/**
 * Why a call cannot even be tried, told to the policy; null when it can.
 * Throws GradusError('tool', 'arguments') when the tool's own check of its arguments throws, or takes longer than a
 * call may (retryable then), and the reason of an abort.
 */
export async function refuseCall(
  call: ToolCall,
  tools: readonly Tool[],
  signal: AbortSignal,
): Promise<Observation | null> {
  const tool = tools.find((candidate) => candidate.name === call.name);
  if (!tool) {
    return {
      text: `error: no tool ${call.name.slice(0, 40)}; tools: ${tools.map(({ name }) => name).join(', ')}`,
      error: 'unknown-tool',
    };
  }
  const { timeoutSeconds } = limitsOf(tool);
  const broken = (how: string, retryable: boolean, cause?: unknown): GradusError =>
    new GradusError('tool', 'arguments', `the check of the arguments of the tool ${tool.name} ${how}`, {
      retryable,
      cause,
    });
  const check = (): ReturnType<typeof tool.arguments.safeParseAsync> =>
    tool.arguments.safeParseAsync(call.arguments).catch((cause: unknown) => {
      throw broken(`threw: ${wordsOf(cause)}`, false, cause);
    });
  const parsed = await inTime(signal, timeoutSeconds * 1000, check, (seconds) =>
    broken(`took longer than ${seconds} s`, true),
  );
  if (parsed.success) return null;
  const issue = parsed.error.issues[0]!;
  const where = issue.path.length === 0 ? '' : ` ${issue.path.join('.')}`;
  return { text: `error: arguments${where}: ${issue.message}`, error: 'invalid-arguments' };
}

/**
 * One attempt of a call that `refuseCall` let through. A refusal by the tool is an observation; output that is too
 * long is cut and says so. Throws GradusError('tool', 'failed' | 'timeout', retryable) for what a retry may mend and
 * GradusError('tool', 'not-text') for a result that is no text, and passes on the abort of `context.signal`.
 */
export async function attemptCall(tool: Tool, call: ToolCall, context: ToolContext): Promise<Observation> {
  const limits = limitsOf(tool);
  const started = performance.now();
  let outOfTime: GradusError | undefined;
  const seconds = (): number => (performance.now() - started) / 1000;
  try {
    const run = async (limited: { readonly signal: AbortSignal }): Promise<unknown> => {
      const args = await tool.arguments.parseAsync(call.arguments);
      return tool.run(args, {
        ...context,
        get signal() {
          return limited.signal;
        },
      });
    };
    const output = await inTime(context.signal, limits.timeoutSeconds * 1000, run, (limit) => {
      const message = `the tool ${tool.name} took longer than ${limit} s: raise limits.timeoutSeconds or make it faster`;
      outOfTime = new GradusError('tool', 'timeout', message, { retryable: true });
      return outOfTime;
    });
    if (typeof output !== 'string') {
      throw new GradusError(
        'tool',
        'not-text',
        `the tool ${tool.name} returned ${output === null ? 'null' : typeof output}, not text: make its run() return a string`,
      );
    }
    return { text: cutText(output, limits.maxOutputCharacters), seconds: seconds() };
  } catch (error) {
    if (isA(error, ToolRefusal)) {
      const text = cutText(`error: ${error.message}`, limits.maxOutputCharacters);
      return { text, error: 'tool-error', seconds: seconds() };
    }
    context.signal.throwIfAborted();
    if (outOfTime && error === outOfTime) throw outOfTime;
    // Whether what it needs is away, the tool alone can tell; it speaks for no other part.
    if (isA(error, GradusError)) throw errorOfUsers(error.boundary === 'infra' ? 'infra' : 'tool', error);
    throw new GradusError('tool', 'failed', `the tool ${tool.name} failed: ${wordsOf(error)}`, {
      retryable: true,
      cause: error,
    });
  }
}

import type { Observation, ToolCall } from '../../core/episode/episode.ts';
import { GradusError, isA } from '../../core/errors.ts';
import { toolLimitsOf, ToolRefusal } from '../contract/environment.ts';
import type { Tool, ToolContext } from '../contract/environment.ts';
import { checkArguments } from './arguments.ts';
import { cutText, errorOfUsers, errorText } from './facts.ts';
import { withImages } from './images.ts';
import { inTime } from './in-time.ts';
import { readActed } from './read-answers.ts';
import type { Did } from './read-answers.ts';

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
  const { timeoutSeconds } = toolLimitsOf(tool);
  const broken = (how: string, retryable: boolean, cause?: unknown): GradusError =>
    new GradusError('tool', 'arguments', `the check of the arguments of the tool ${tool.name} ${how}`, {
      retryable,
      cause,
    });
  const check = () =>
    checkArguments(tool, call.arguments).catch((cause: unknown) => {
      throw broken(`threw: ${errorText(cause)}`, isA(cause, GradusError) && cause.retryable, cause);
    });
  const checked = await inTime(signal, timeoutSeconds * 1000, check, (seconds) =>
    broken(`took longer than ${seconds} s`, true),
  );
  if ('value' in checked) return null;
  const where = checked.at === '' ? '' : ` ${checked.at}`;
  return { text: `error: arguments${where}: ${checked.message}`, error: 'invalid-arguments' };
}

/** A tool's own function, with the arguments as its schema makes them. */
export async function runTool(tool: Tool, call: ToolCall, context: ToolContext): Promise<Did> {
  const checked = await checkArguments(tool, call.arguments);
  if (!('value' in checked)) throw new ToolRefusal(checked.message);
  const answer: unknown = await tool.run!(checked.value, context);
  if (typeof answer === 'string') return { text: answer };
  if (typeof answer !== 'object' || answer === null || !('text' in answer)) {
    throw new GradusError(
      'tool',
      'not-text',
      `the tool ${tool.name} returned ${answer === null ? 'null' : typeof answer}, not text: make its run() return a string`,
    );
  }
  const read = readActed({ text: answer.text, images: 'images' in answer ? answer.images : undefined });
  if ('value' in read) return read.value;
  throw new GradusError('tool', 'not-text', `the tool ${tool.name} ${read.fault}: fix its run()`);
}

/** What a call did, as the policy reads it and as it is kept. */
export const observationOf = ({ text, refused, reward, done, images }: Did, tool: Tool): Observation => ({
  ...withImages(cutText(text, toolLimitsOf(tool).maxOutputCharacters), images),
  ...(refused && { error: 'tool-error' as const }),
  ...(reward !== undefined && { reward }),
  ...(done && { done }),
});

/**
 * One attempt of a call that `refuseCall` let through, by `act`. A refusal by the tool is an observation; output that is
 * too long is cut and says so. Throws GradusError('tool', 'failed' | 'timeout', retryable) for what a retry may mend and
 * what `act` throws of its own as GradusError, and passes on the abort of `context.signal`.
 */
export async function attemptCall(
  tool: Tool,
  call: ToolCall,
  context: ToolContext,
  act: typeof runTool = runTool,
): Promise<Observation> {
  const limits = toolLimitsOf(tool);
  const started = performance.now();
  let outOfTime: GradusError | undefined;
  const seconds = (): number => (performance.now() - started) / 1000;
  try {
    const run = (limited: { readonly signal: AbortSignal }): Promise<Did> =>
      act(tool, call, {
        ...context,
        get signal() {
          return limited.signal;
        },
      });
    const did = await inTime(context.signal, limits.timeoutSeconds * 1000, run, (limit) => {
      const message = `the tool ${tool.name} took longer than ${limit} s: raise limits.timeoutSeconds or make it faster`;
      outOfTime = new GradusError('tool', 'timeout', message, { retryable: true });
      return outOfTime;
    });
    return { ...observationOf(did, tool), seconds: seconds() };
  } catch (error) {
    if (isA(error, ToolRefusal)) {
      const text = cutText(`error: ${error.message}`, limits.maxOutputCharacters);
      return { text, error: 'tool-error', seconds: seconds() };
    }
    context.signal.throwIfAborted();
    if (outOfTime && error === outOfTime) throw outOfTime;
    // Whether what it needs is away, the tool alone can tell; it speaks for no other part.
    if (isA(error, GradusError)) throw errorOfUsers(boundaryOfCall(error), error);
    throw new GradusError('tool', 'failed', `the tool ${tool.name} failed: ${errorText(error)}`, {
      retryable: true,
      cause: error,
    });
  }
}

/**
 * A call is its tool's matter, also where its session has thrown: what to call is the policy's choice, and failures at
 * other boundaries count nowhere. Unless what it needs is away.
 */
const boundaryOfCall = ({ boundary, type }: GradusError): 'infra' | 'environment' | 'tool' => {
  if (boundary === 'environment' && type === 'server-unreachable') return boundary;
  return boundary === 'infra' ? boundary : 'tool';
};

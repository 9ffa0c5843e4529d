import { DEFAULT_TIER_LIMITS, toolLimitsOf } from '../contract/environment.ts';
import type { HostRequest, AskKinds } from './asks.ts';
import type { ToolFacts } from './facts.ts';
import type { HostedEnvironment } from './hosted-environment.ts';
import { FAST_LIMIT_MS, FUNCTION_LIMIT_MS, PRESENT_LIMIT_MS } from './serve.ts';

// How long an ask may take in all. A host limits each function of an ask itself; but it shares its process with users' code,
// so the worker has a limit of its own, of all those limits together.

/** What is added for messages, and for items that begin one after the other. */
const GRACE_MS = 30_000;
/** Before the function that is asked for: `prepare()`, and the task. */
const BEFORE_MS = 2 * FUNCTION_LIMIT_MS;

type Known = Pick<HostedEnvironment, 'tools' | 'verifiers' | 'endSeconds'> | undefined;
type Tool = Pick<ToolFacts, 'placement' | 'effect' | 'limits'>;

export const calledTool = (known: Known, { call, ownTool }: AskKinds['refusals']['item']): Tool | undefined =>
  ownTool ?? known?.tools.find(({ name }) => name === call.name);

/**
 * Milliseconds in which the event loop of the host turns; a host whose loop does not turn is ended by the limit of that.
 * Infinity only for the last word of sessions whose environment says that it has limits of its own.
 */
export function deadlineMs(ask: HostRequest, known: Known): number {
  return GRACE_MS + BEFORE_MS + Math.max(...ask.items.map((item) => itemMs(ask.kind, item, known)));
}

function itemMs(kind: HostRequest['kind'], item: HostRequest['items'][number], known: Known): number {
  switch (kind) {
    case 'refusals':
      return callMs(known, item as AskKinds['refusals']['item']);
    case 'calls': {
      const called = item as AskKinds['calls']['item'];
      // Its arguments are checked twice, and then it is made.
      return 3 * callMs(known, called) + comingBackMs(called.session, known);
    }
    case 'endings': {
      const { session } = item as AskKinds['endings']['item'];
      const seconds = known?.endSeconds === undefined ? FUNCTION_LIMIT_MS / 1000 : known.endSeconds;
      return comingBackMs(session, known) + (seconds === null ? Infinity : 1000 * seconds);
    }
    case 'verdicts':
      return FAST_LIMIT_MS;
    case 'relabellings':
      return FUNCTION_LIMIT_MS + FAST_LIMIT_MS;
    case 'findings': {
      const { verifier } = item as AskKinds['findings']['item'];
      const { limits } = known?.verifiers.find(({ name }) => name === verifier) ?? {};
      return 1000 * (limits?.timeoutSeconds ?? DEFAULT_TIER_LIMITS.timeoutSeconds);
    }
    case 'presentations':
      return PRESENT_LIMIT_MS;
    default:
      return FUNCTION_LIMIT_MS;
  }
}

const callMs = (known: Known, item: AskKinds['refusals']['item']): number =>
  1000 * (calledTool(known, item)?.limits ?? toolLimitsOf({ placement: 'long' })).timeoutSeconds;

/** A session is opened, and its calls may have to be made again. */
function comingBackMs({ acts }: AskKinds['closings']['item'], known: Known): number {
  const longest = Math.max(0, ...(known?.tools ?? []).map(({ limits }) => limits.timeoutSeconds));
  return FUNCTION_LIMIT_MS + 1000 * longest * acts.length;
}

import { messageOf } from '../../core/errors.ts';
import { timeoutSignal } from '../../core/timeout-signal.ts';

/** How long a host may take to answer, milliseconds. */
const PROBE_MS = 3000;

/** Why a host cannot be asked for a download; undefined where it answers. */
export const whyUnreached = (host: string): Promise<string | undefined> =>
  fetch(host, { method: 'HEAD', signal: timeoutSignal(PROBE_MS) }).then(
    () => undefined,
    (error: unknown) => `${host} does not answer (${messageOf(error)})`,
  );

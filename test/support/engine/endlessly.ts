import type { LocalPolicy, SampleRequest } from '../../../engine/policy.ts';

/** The same again and again: on a starved machine a turn of any length may be over before what is to end it comes. */
export async function endlessly(
  policy: LocalPolicy,
  asked: SampleRequest,
  signal?: AbortSignal,
): Promise<never> {
  for (;;) await policy.sample(asked, signal);
}

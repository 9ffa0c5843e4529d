import { setTimeout as delay } from 'node:timers/promises';
import { GradusError, messageOf } from '../../core/errors.ts';
import { timeoutSignal } from '../../core/timeout-signal.ts';

export interface PostOptions {
  signal?: AbortSignal;
  /** Of one attempt. */
  timeoutMs?: number;
  attempts?: number;
  /** Before the second attempt; doubled each time. */
  pauseMs?: number;
}

/** Where alerts go. Throws GradusError('spec', 'webhook'), whose message does not have the address: it may be a secret. */
export function webhookUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    throw new GradusError(
      'spec',
      'webhook',
      'the webhook for alerts must be http://… or https://…, without a user name in it',
    );
  return url;
}

/**
 * Posts JSON, a few times at most. A redirect is not followed: whoever answers there was not named. Throws
 * GradusError('infra', 'webhook') with the host alone, because paths of webhooks are secrets.
 */
export async function postJson(
  url: URL,
  body: object,
  { signal, timeoutMs = 5000, attempts = 4, pauseMs = 500 }: PostOptions = {},
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const refused = await postOnce(url, body, timeoutMs, signal);
    if (refused === null) return;
    if (attempt === attempts || !refused.again || signal?.aborted === true) {
      const times = attempt === 1 ? '' : `, ${attempt} times`;
      throw new GradusError('infra', 'webhook', `${url.host} did not take it${times}: ${refused.why}`);
    }
    await delay(pauseMs * 2 ** (attempt - 1), undefined, signal ? { signal } : {}).catch(() => undefined);
  }
}

/** null where it was taken. */
async function postOnce(
  url: URL,
  body: object,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<{ why: string; again: boolean } | null> {
  const limit = timeoutSignal(timeoutMs);
  try {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      redirect: 'manual',
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    });
    await answer.body?.cancel();
    const { status } = answer;
    if (answer.ok) return null;
    if (status >= 300 && status < 400)
      return { why: 'it answers with a redirect, which is not followed', again: false };
    return { why: `HTTP status ${status}`, again: status >= 500 || status === 429 || status === 408 };
  } catch (error) {
    if (limit.aborted) return { why: `no answer in ${timeoutMs / 1000} s`, again: true };
    // The message of fetch is that it failed; what it failed at is below.
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    return { why: messageOf(cause), again: true };
  }
}

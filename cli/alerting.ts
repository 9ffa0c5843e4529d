import { Client, Connection } from '@temporalio/client';
import { messageOf } from '../core/errors.ts';
import { watchAlerts } from '../runs/overview/alerts.ts';
import type { Alert, WatchOptions } from '../runs/overview/alerts.ts';
import { postJson, webhookUrl } from '../runs/control/webhook.ts';
import type { WorkerSettings } from '../workers/settings.ts';

/** The variable that stands for `--alert-webhook`. */
const WEBHOOK = 'GRADUS_ALERT_WEBHOOK';

export interface AlertingOptions extends Omit<WatchOptions, 'signal'> {
  /** A line each. */
  say: (text: string) => void;
  /** What is shown in another way already. */
  leaveOut?: (alert: Alert) => boolean;
  /** Where alerts are posted as JSON besides; otherwise where GRADUS_ALERT_WEBHOOK says. */
  webhook?: string | undefined;
  env?: NodeJS.ProcessEnv;
}

/** Alerts that wait for a webhook which is slow; more are left out, and that is said. */
const MOST_WAITING = 100;

/**
 * Says what somebody should know who does not look at runs, until it is stopped. Throws GradusError('spec', 'webhook')
 * for an address that is none.
 */
export function startAlerting(
  { temporalAddress, namespace, store }: Pick<WorkerSettings, 'temporalAddress' | 'namespace' | 'store'>,
  { say, leaveOut = () => false, webhook, env = process.env, ...watch }: AlertingOptions,
): { stop(): Promise<void> } {
  const url = alertWebhook(webhook, env);
  const secrets = secretsOf(env, [store.accessKey, store.secretKey]);
  const connection = Connection.lazy({ address: temporalAddress });
  const stopping = new AbortController();
  const { signal } = stopping;
  let waiting = 0;
  let posted = Promise.resolve();

  const send = async (alert: Alert, to: URL): Promise<void> => {
    try {
      await postJson(to, alert, { signal });
    } catch (error) {
      if (!signal.aborted) say(`! the webhook for alerts: ${messageOf(error)}`);
    } finally {
      waiting--;
    }
  };
  const watching = (async () => {
    const temporal = new Client({ connection, namespace });
    for await (const found of watchAlerts(temporal, { ...watch, signal })) {
      const alert = { ...found, text: without(secrets, found.text) };
      if (!leaveOut(alert)) say(`! ${alert.over ? 'over: ' : ''}${alert.text}`);
      if (url === null) continue;
      if (waiting >= MOST_WAITING) {
        say(`! the webhook for alerts: ${url.host} is too slow, this one is left out`);
        continue;
      }
      waiting++;
      posted = posted.then(() => send(alert, url));
    }
  })();
  return {
    stop: async () => {
      stopping.abort();
      await watching;
      await posted;
      await connection.close();
    },
  };
}

/** null where alerts are only said. Throws GradusError('spec', 'webhook') for an address that is none. */
export function alertWebhook(given: string | undefined, env: NodeJS.ProcessEnv = process.env): URL | null {
  const address = given ?? env[WEBHOOK] ?? '';
  return address === '' ? null : webhookUrl(address);
}

const SECRET = /KEY|TOKEN|SECRET|PASSWORD/;
/** Shorter ones are words. */
const SHORTEST = 8;

/** What must not leave the machine, whatever error has it in its message. */
const secretsOf = (env: NodeJS.ProcessEnv, more: readonly string[]): string[] =>
  [...Object.entries(env).flatMap(([name, value]) => (SECRET.test(name) ? (value ?? '') : [])), ...more]
    .filter((value) => value.length >= SHORTEST)
    .toSorted((a, b) => b.length - a.length);

const without = (secrets: readonly string[], text: string): string =>
  secrets.reduce((rest, secret) => rest.replaceAll(secret, '[secret]'), text);

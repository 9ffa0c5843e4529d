import { randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { GradusError, messageOf } from '../core/errors.ts';
import { createApp } from './app.tsx';
import type { Context } from './context.ts';

export interface DashboardOptions extends Omit<Context, 'formToken'> {
  /** Default: loopback alone. */
  host?: string;
  /** Default: 0, which takes a free one. */
  port?: number;
  /** Names besides its address by which browsers may ask for it, such as that of a proxy in front. */
  allowedHosts?: readonly string[];
  /** The password of every request; needed where `host` is not loopback. */
  password?: string | null;
}

export interface Dashboard {
  /** `http://127.0.0.1:PORT/` */
  url: string;
  close(): Promise<void>;
}

const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost']);

/**
 * Serves the pages. Throws GradusError('infra', 'dashboard-open') where other machines could reach it without a password,
 * and GradusError('infra', 'port-taken').
 */
export async function serveDashboard(options: DashboardOptions): Promise<Dashboard> {
  const { host = '127.0.0.1', port = 0, allowedHosts = [], password = null, ...context } = options;
  if (!LOOPBACK.has(host) && (password === null || password.length < 16)) {
    throw new GradusError(
      'infra',
      'dashboard-open',
      `at ${host} other machines reach the dashboard, which shows all runs: give it a token of 16 characters or more in GRADUS_DASHBOARD_TOKEN (say, that of "openssl rand -hex 16"), or leave --host out`,
    );
  }
  const hosts = new Set(allowedHosts.map((name) => name.toLowerCase()));
  const app = createApp(
    { ...context, formToken: randomBytes(24).toString('base64url') },
    { hosts, password },
  );
  const server = createAdaptorServer({ fetch: app.fetch });
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(
        new GradusError(
          'infra',
          'port-taken',
          `the dashboard cannot listen at ${host}:${port} (${messageOf(error)}): choose another --port, or leave it out`,
          { cause: error },
        ),
      ),
    );
    server.listen(port, host, resolve);
  });
  const address = server.address() as AddressInfo;
  const names = LOOPBACK.has(host)
    ? ['127.0.0.1', 'localhost', '[::1]']
    : [inUrl(host), inUrl(address.address)];
  for (const name of names) hosts.add(`${name}:${address.port}`);
  return {
    url: `http://${inUrl(LOOPBACK.has(host) ? address.address : host)}:${address.port}/`,
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()));
        // Pages that are followed never end by themselves.
        if ('closeAllConnections' in server) server.closeAllConnections();
      }),
  };
}

const inUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host);

import { randomBytes } from 'node:crypto';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { GradusError, messageOf } from '../core/errors.ts';
import { createApp } from './app.tsx';
import { serverWithin } from './connections.ts';
import type { Context } from './context.ts';

export interface DashboardOptions extends Omit<Context, 'formToken'> {
  /** Default: loopback alone. */
  host?: string;
  /** This one or none. Default: the usual one, or a free one where somebody else has it. */
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

/** Next to that of Temporal's own pages. */
const USUAL_PORT = 8234;

const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost']);

/**
 * Serves the pages. Throws GradusError('infra', 'dashboard-open') where other machines could reach it without a password,
 * and GradusError('infra', 'port-taken').
 */
export async function serveDashboard(options: DashboardOptions): Promise<Dashboard> {
  const { host = '127.0.0.1', port, allowedHosts = [], password = null, ...context } = options;
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
  const server = serverWithin(getRequestListener(app.fetch));
  try {
    await listen(server, host, port ?? USUAL_PORT).catch((error: unknown) => {
      if (port !== undefined || codeOf(error) !== 'EADDRINUSE') throw error;
      return listen(server, host, 0);
    });
  } catch (cause) {
    throw new GradusError(
      'infra',
      'port-taken',
      `the dashboard cannot listen at ${host}:${port ?? USUAL_PORT} (${messageOf(cause)}): choose another --port, or leave it out`,
      { cause },
    );
  }
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
        server.closeAllConnections();
      }),
  };
}

const codeOf = (error: unknown): unknown =>
  typeof error === 'object' && error !== null && 'code' in error ? error.code : null;

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

const inUrl = (host: string): string => (host.includes(':') ? `[${host}]` : host);

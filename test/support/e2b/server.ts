import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, request as ask, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import getPort from 'get-port';

const ENVD = fileURLToPath(new URL('envd.mjs', import.meta.url));

export interface E2BServer {
  url: string;
  /** What machines were asked for. */
  asked: Record<string, unknown>[];
  /** Commands that began to run. */
  commands: number;
  /** Machines that live. */
  machines: Map<string, ChildProcess>;
  close: () => Promise<void>;
}

/**
 * A server of E2B's protocol on loopback: creates, tells of and ends machines, and hands on what is for one of them, by the
 * header that names it. A machine is a mount and a process namespace with root's rights in it, which is no sandbox: for
 * commands that a test has written. `envd` is the program that answers in it; a real one is called as E2B's is outside of
 * its machines.
 */
export async function serveE2B({
  bwrap,
  envd = process.env['GRADUS_TEST_ENVD'],
  confirmsNetwork = true,
}: {
  bwrap: string;
  envd?: string | undefined;
  confirmsNetwork?: boolean;
}): Promise<E2BServer> {
  const served = { commands: 0, asked: [] as Record<string, unknown>[] };
  const { asked } = served;
  const machines = new Map<string, ChildProcess>();
  const ports = new Map<string, number>();
  let made = 0;

  async function create(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = JSON.parse(String(Buffer.concat(await request.toArray()))) as Record<string, unknown>;
    asked.push(body);
    const id = `machine${++made}`;
    const port = await getPort({ host: '127.0.0.1' });
    const program = envd ? [envd, '-isnotfc', '-port', String(port)] : [process.execPath, ENVD, String(port)];
    const machine = spawn(
      bwrap,
      [
        ...'--ro-bind /usr /usr --ro-bind /etc /etc --dev /dev --proc /proc --dir /run --dir /root'.split(
          ' ',
        ),
        ...['bin', 'sbin', 'lib', 'lib64'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]),
        ...'--perms 1777 --dir /tmp --unshare-pid --die-with-parent --cap-add ALL'.split(' '),
        ...[process.execPath, envd || ENVD].flatMap((file) => ['--ro-bind-try', file, file]),
        ...program,
      ],
      { env: { PATH: process.env['PATH'] }, stdio: 'ignore' },
    );
    machines.set(id, machine);
    ports.set(id, port);
    machine.once('exit', () => machines.delete(id));
    await until(() => answers(port));
    json(response, 201, { sandboxID: id, templateID: 'base', clientID: 'test', envdVersion: '0.6.13' });
  }

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname } = new URL(request.url!, 'http://server');
    const [, id] = /^\/sandboxes\/(\w+)$/.exec(pathname) ?? [];
    const inside = request.headers['e2b-sandbox-id'];
    if (typeof inside === 'string') {
      return handOn(ports.get(inside)!, request, response, () => {
        if (pathname === '/process.Process/Start') served.commands++;
      });
    }
    if (pathname === '/v2/sandboxes') return create(request, response);
    if (id && request.method === 'DELETE') {
      const machine = machines.get(id);
      if (machine?.kill('SIGKILL')) await once(machine, 'exit');
      return void response.writeHead(machine ? 204 : 404).end();
    }
    if (id) {
      const times = { startedAt: new Date().toISOString(), endAt: new Date().toISOString() };
      const facts = { sandboxID: id, templateID: 'base', state: 'running', envdVersion: '0.6.13' };
      const network = confirmsNetwork ? { allowInternetAccess: asked.at(-1)!['allow_internet_access'] } : {};
      return json(response, 200, {
        ...facts,
        ...times,
        ...network,
        cpuCount: 2,
        memoryMB: 512,
        diskSizeMB: 512,
      });
    }
    response.writeHead(501).end();
  };
  const server = createServer((request, response) => void answer(request, response));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return Object.assign(served, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    machines,
    close: async () => {
      for (const machine of machines.values()) machine.kill('SIGKILL');
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** `begun` is called when the first piece of the answer is there. */
function handOn(port: number, request: IncomingMessage, response: ServerResponse, begun: () => void): void {
  const { method, headers, url } = request;
  const onward = ask({ host: '127.0.0.1', port, method, headers, path: url }, (answer) => {
    response.writeHead(answer.statusCode!, answer.headers);
    answer.once('data', begun);
    answer.pipe(response);
    answer.once('error', () => response.destroy());
  });
  onward.once('error', () => response.destroy());
  response.once('close', () => onward.destroy());
  request.pipe(onward);
}

const answers = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/health`).then(
    ({ ok }) => ok,
    () => false,
  );

async function until(there: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 120_000;
  while (!(await there())) {
    if (Date.now() > deadline) throw new Error('envd does not answer');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

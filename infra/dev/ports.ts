import { createServer } from 'node:net';
import getPort from 'get-port';
import { GradusError } from '../../core/errors.ts';

export const LOOPBACK = '127.0.0.1';

export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ port, host: LOOPBACK, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

export interface PortWish {
  /** What the port is for, as in "the object store". */
  title: string;
  /** How a person chooses another one, as in "--s3-port". */
  setting: string;
  /** Asked for by a person: this one or none. */
  explicit?: number | undefined;
  /** Taken when free, in this order; otherwise any free port. */
  preferred?: readonly (number | undefined)[];
}

/** @throws GradusError infra/port-taken when a port was asked for and is not free */
export async function checkExplicitPort(wish: PortWish): Promise<void> {
  if (wish.explicit === undefined || (await isPortFree(wish.explicit))) return;
  throw new GradusError(
    'infra',
    'port-taken',
    `Port ${wish.explicit}, asked for by ${wish.setting} for ${wish.title}, is taken by another process. ` +
      `Choose another port with ${wish.setting}, or leave it out to get a free one.`,
  );
}

/**
 * A free port on loopback. Between this and its use another process may take it: whoever starts a server on a port
 * that was not asked for explicitly tries again with another.
 * @throws GradusError infra/port-taken
 */
export async function choosePort(wish: PortWish): Promise<number> {
  await checkExplicitPort(wish);
  if (wish.explicit !== undefined) return wish.explicit;
  for (const port of wish.preferred ?? []) {
    if (port !== undefined && (await isPortFree(port))) return port;
  }
  return getPort({ host: LOOPBACK });
}

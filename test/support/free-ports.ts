import getPort from 'get-port';
import { GradusError } from '../../core/errors.ts';

const ATTEMPTS = 5;

/** Ports for servers that must not have their usual ones. Where another process takes one meanwhile, there are others. */
export async function onFreePorts<T>(
  start: (ports: { s3Port: number; temporalPort: number }) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const s3Port = await getPort({ host: '127.0.0.1' });
    const temporalPort = await getPort({ host: '127.0.0.1' });
    try {
      return await start({ s3Port, temporalPort });
    } catch (error) {
      const taken = error instanceof GradusError && error.type === 'port-taken';
      if (!taken || attempt >= ATTEMPTS) throw error;
    }
  }
}

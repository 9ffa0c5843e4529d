/** Has the module imported that its argument names, and waits. */
import { python } from '../../environments/connectors/python/python.ts';

setInterval(() => undefined, 60_000);
await python(process.argv[2]!, { startSeconds: 600 }).prepare();

import { existsSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { defineTool } from '../../environments/contract/environment.ts';
import { calculatorEnvironment } from '../../environments/families/calculator/environment.ts';
import { calculatorTool } from '../../environments/families/calculator/tool.ts';

/** Calls of episodes whose name begins like this wait until there is this file. */
const [OF, GATE] = [process.env['GRADUS_TEST_GATED']!, process.env['GRADUS_TEST_GATE']!];

/** The calculator behind long calls, some of which return when the test says so. */
export default calculatorEnvironment(
  'calculator-gated',
  defineTool({
    ...calculatorTool,
    placement: 'long',
    limits: { timeoutSeconds: 3600, heartbeatSeconds: 10 },
    run: async (call, context) => {
      while (context.idempotencyKey.startsWith(OF) && !existsSync(GATE)) {
        context.heartbeat(null);
        await wait(50, undefined, { signal: context.signal });
      }
      return calculatorTool.run(call, context);
    },
  }),
);

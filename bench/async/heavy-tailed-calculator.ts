import { setTimeout as wait } from 'node:timers/promises';
import { defineTool } from '../../environments/contract/environment.ts';
import { calculatorEnvironment } from '../../environments/families/calculator/environment.ts';
import { calculatorTool } from '../../environments/families/calculator/tool.ts';
import { normalQuantile } from '../../core/statistics/intervals.ts';
import { normal, randomKey } from '../../core/random.ts';

/** Median of a call, seconds. */
const MEDIAN = Number(process.env['GRADUS_BENCH_TOOL_SECONDS'] ?? 1);
/** One call in a hundred takes longer than so many times the median. */
const TAIL = 20;
const SIGMA = Math.log(TAIL) / normalQuantile(0.99);
const BEAT_SECONDS = 2;

/** The calculator, whose calls take a log-normal time that follows from the call alone. */
export default calculatorEnvironment(
  'calculator-heavy-tailed',
  defineTool({
    ...calculatorTool,
    placement: 'long',
    limits: { timeoutSeconds: 600, heartbeatSeconds: 10 },
    run: async (call, context) => {
      const seconds = MEDIAN * Math.exp(SIGMA * normal(randomKey('heavy-tailed', context.idempotencyKey), 0));
      for (let left = seconds; left > 0; left -= BEAT_SECONDS) {
        context.heartbeat(null);
        await wait(1000 * Math.min(left, BEAT_SECONDS), undefined, { signal: context.signal });
      }
      return calculatorTool.run(call, context);
    },
  }),
);

import { calculatorEnvironment } from '../../environments/families/calculator/environment.ts';
import { calculatorTool, calculate } from '../../environments/families/calculator/tool.ts';
import { defineTool } from '../../environments/contract/environment.ts';
import type { Environment } from '../../environments/contract/environment.ts';

// The calculator that shows its work, for workers that are started with this module in GRADUS_ENVIRONMENTS: what it
// answers is long enough to be fed in pieces of several tokens.

const verbose = defineTool({
  ...calculatorTool,
  run: ({ expression }: { expression: string }) => {
    const result = calculate(expression);
    const work = Array.from(
      { length: 6 },
      (_, i) =>
        `${i * 7919}:${expression
          .split('')
          .toReversed()
          .join(String(i % 3))}`,
    );
    return `${work.join(' ')} = ${result}`;
  },
});

const environments: Environment[] = [calculatorEnvironment('calculator-verbose', verbose)];
export default environments;

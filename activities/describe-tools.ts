import { z } from 'zod';
import type { Json } from '../core/json.ts';
import type { ToolDescription } from '../engine/dialect/contract.ts';
import type { Tool } from '../environments/contract.ts';

/** Tools as a prompt describes them: what a policy may write, before defaults are filled in. */
export function describeTools(tools: readonly Tool[]): ToolDescription[] {
  return tools.map(({ name, description, arguments: schema }) => {
    const { $schema: _, ...parameters } = z.toJSONSchema(schema, { io: 'input' });
    return {
      name,
      description,
      parameters: JSON.parse(JSON.stringify(parameters)) as { [key: string]: Json },
    };
  });
}

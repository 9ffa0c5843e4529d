import { z } from 'zod';
import { curriculumSchema } from '../core/schema/curriculum.ts';

/** The JSON Schema of a curriculum as a person writes it, for editors; `examples/curriculum.schema.json` holds it. */
export function curriculumJsonSchema(): string {
  const schema = z.toJSONSchema(curriculumSchema, { io: 'input', target: 'draft-2020-12' });
  return `${JSON.stringify(schema, null, 2)}\n`;
}

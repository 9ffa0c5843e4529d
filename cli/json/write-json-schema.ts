import { writeFileSync } from 'node:fs';
import { outputJsonSchema } from './outputs.ts';

writeFileSync(new URL('../../examples/output.schema.json', import.meta.url), outputJsonSchema());
console.log('wrote examples/output.schema.json');

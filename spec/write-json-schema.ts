import { writeFileSync } from 'node:fs';
import { curriculumJsonSchema } from './json-schema.ts';

const path = new URL('../examples/curriculum.schema.json', import.meta.url);
writeFileSync(path, curriculumJsonSchema());
console.log('wrote examples/curriculum.schema.json');

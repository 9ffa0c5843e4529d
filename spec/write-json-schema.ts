import { writeFileSync } from 'node:fs';
import { curriculumJsonSchema } from './json-schema.ts';
import { specReference } from './reference.ts';

const write = (file: string, text: string): void => {
  writeFileSync(new URL(`../${file}`, import.meta.url), text);
  console.log(`wrote ${file}`);
};

write('examples/curriculum.schema.json', curriculumJsonSchema());
write('docs/spec.md', specReference());

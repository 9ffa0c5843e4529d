#!/usr/bin/env node
// The package's command. npm packs this file whatever else there is, so that a package without what is compiled says why.
import { existsSync } from 'node:fs';
import process from 'node:process';

const compiled = new URL('../dist/cli/gradus.js', import.meta.url);
if (existsSync(compiled)) {
  await import(compiled.href);
} else {
  console.error(
    'This package of Gradus was packed without being compiled: `npm pack` alone compiles nothing where scripts are off, ' +
      'as they are in its clone. There `npm run package` makes one that works.',
  );
  process.exitCode = 1;
}

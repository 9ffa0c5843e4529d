import { createRequire } from 'node:module';
import process from 'node:process';
import { pathToFileURL } from 'node:url';

// What `npm run gradus` starts, as a bundle (infra/setup/bundle.mjs). Environments of users are TypeScript and share
// classes with what plays them, so `generate` runs from the sources.
if (process.argv.includes('generate')) {
  await import(pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href);
  await import(new URL('gradus.ts', import.meta.url).href);
} else {
  await import('./gradus.ts');
}

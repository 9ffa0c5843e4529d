import { createRequire } from 'node:module';
import process from 'node:process';
import { pathToFileURL } from 'node:url';

// What `npm run gradus` starts, as a bundle (infra/setup/bundle.mjs). Environments of users are TypeScript and share
// classes with what loads them into this process; that, and what takes more than a second anyway, runs from the sources.
const FROM_SOURCES = ['generate', 'environments', 'dev', 'train', 'setup'];

if (process.argv.some((argument) => FROM_SOURCES.includes(argument))) {
  await import(pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href);
  await import(new URL('gradus.ts', import.meta.url).href);
} else {
  await import('./gradus.ts');
}

// Preloaded by NODE_OPTIONS: writes the URL or path of each module that a Node process loads, one a line, into
// LISTED_MODULES/<pid>.
import { appendFileSync } from 'node:fs';
import { createRequire, register } from 'node:module';
import path from 'node:path';
import process from 'node:process';

const file = path.join(process.env.LISTED_MODULES, String(process.pid));
const hooks = `
  import { appendFileSync } from 'node:fs';
  export function load(url, context, next) {
    appendFileSync(${JSON.stringify(file)}, url + '\\n');
    return next(url, context);
  }`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
process.on('exit', () => appendFileSync(file, Object.keys(createRequire(import.meta.url).cache).join('\n')));

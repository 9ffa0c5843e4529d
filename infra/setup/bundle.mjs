// A command of a second must not spend it on loading TypeScript file by file: our sources that a program imports are kept
// as a few files of JavaScript. Packages stay where they are. Plain JavaScript, since bootstrap.mjs runs it.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';

const sha256 = (...parts) =>
  parts.reduce((hash, part) => hash.update(part).update('\0'), createHash('sha256')).digest('hex');

/**
 * The program as JavaScript: what is there if it was made of the very bytes that the sources have now, else made anew.
 * @param {string} root absolute folder of the checkout
 * @param {string} entry path in it of the program's TypeScript
 * @returns {Promise<string>} the file to start; it loads others beside it
 * @throws what esbuild says of the sources, and what the file system says
 */
export async function bundle(root, entry) {
  const name = entry.replace(/\.ts$/, '').replaceAll('/', '-');
  const folder = path.join(root, 'node_modules', '.cache', 'gradus', name);
  const record = path.join(folder, 'made-of.json');
  const key = surroundings(root, entry);
  const old = existsSync(record) ? JSON.parse(readFileSync(record, 'utf8')) : undefined;
  if (old?.key === key && isCurrent(root, folder, old)) return path.join(folder, old.start);

  const { files, start, sources } = await compile(root, entry);
  mkdirSync(folder, { recursive: true });
  // The names have digests of what is in the files, and the record comes last: whoever starts meanwhile, or makes the
  // same, finds something whole.
  for (const [file, code] of files) writeWhole(path.join(folder, file), code);
  writeWhole(record, JSON.stringify({ key, start, files: [...files.keys()], sources }));
  for (const file of old?.files ?? []) if (!files.has(file)) rmSync(path.join(folder, file), { force: true });
  return path.join(folder, start);
}

/** What a bundle depends on beside the sources: where it is made and of which program, the packages, and this file. */
const surroundings = (root, entry) =>
  sha256(
    root,
    entry,
    ...['package-lock.json', 'package.json', 'tsconfig.json'].map((name) =>
      readFileSync(path.join(root, name)),
    ),
    readFileSync(fileURLToPath(import.meta.url)),
  );

/** Every import names its file, so that nothing but a change of a source can lead to another one. */
const isCurrent = (root, folder, { files, sources }) =>
  files.every((file) => existsSync(path.join(folder, file))) &&
  Object.entries(sources).every(([name, digest]) => {
    const source = path.join(root, name);
    return existsSync(source) && sha256(readFileSync(source)) === digest;
  });

function writeWhole(file, text) {
  const begun = `${file}.${process.pid}`;
  writeFileSync(begun, text);
  renameSync(begun, file);
}

async function compile(root, entry) {
  // The compiler of tsx, so that both read the sources alike.
  const { build } = createRequire(import.meta.resolve('tsx'))('esbuild');
  const sources = {};
  const ours = {
    name: 'ours',
    setup: ({ onLoad }) =>
      onLoad({ filter: /^/ }, ({ path: source }) => {
        const text = readFileSync(source, 'utf8');
        sources[path.relative(root, source)] = sha256(text);
        // What lies beside a source is not beside the bundle.
        const contents = text
          .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(source).href))
          .replaceAll('import.meta.dirname', JSON.stringify(path.dirname(source)))
          .replaceAll('import.meta.filename', JSON.stringify(source));
        return { contents, loader: 'default' };
      }),
  };
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    plugins: [ours],
    bundle: true,
    // What a command imports when it needs it stays in a file of its own.
    splitting: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    keepNames: true,
    sourcemap: 'inline',
    sourcesContent: false,
    outdir: 'bundle',
    entryNames: 'start-[hash]',
    chunkNames: '[hash]',
    outExtension: { '.js': '.mjs' },
    write: false,
    logLevel: 'silent',
  });
  const files = new Map(outputFiles.map(({ path: file, text }) => [path.basename(file), text]));
  return { files, start: [...files.keys()].find((file) => file.startsWith('start-')), sources };
}

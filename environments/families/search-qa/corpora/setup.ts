/** `npm run setup:corpora`: what search-qa-foldoc and search-qa-python search, from Debian's packages. */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { GradusError, messageOf } from '../../../../core/errors.ts';
import { inTurns } from '../../../../engine/in-pieces.ts';
import { debianIn } from '../../../../infra/setup/debian-packages.ts';
import type { Debian } from '../../../../infra/setup/debian-packages.ts';
import { makeOnce } from '../../../../infra/setup/make-once.ts';
import { takesNoArguments } from '../../../../infra/setup/no-arguments.ts';
import { Bm25 } from '../bm25.ts';
import { makeChains, passageOf } from './chains.ts';
import type { Corpus } from './entry.ts';
import { CONTENT, FACTS, corpusFactsOf, folderOf } from './files.ts';
import type { CorpusContent, CorpusFacts, CorpusName } from './files.ts';
import { readFoldoc } from './foldoc.ts';
import { readPythonDocs } from './python-docs.ts';

interface Source {
  /** The package that has the corpus; it may be one that a package of all versions depends on. */
  package(debian: Debian): Promise<string>;
  /** Reads the corpus below the folder into which the package was unpacked. */
  read(unpacked: string): Promise<Corpus>;
}

const SOURCES: Readonly<Record<CorpusName, Source>> = {
  foldoc: {
    package: async () => 'dict-foldoc',
    read: async (unpacked) => {
      const packed = await readFile(path.join(unpacked, 'usr/share/dictd/foldoc.dict.dz'));
      return readFoldoc((await promisify(gunzip)(packed)).toString('utf8'));
    },
  },
  python: {
    package: async (debian) => {
      const depends = await debian.apt('apt-cache', ['depends', 'python3-doc']);
      const [found] = /python3\.\d+-doc/u.exec(depends) ?? [];
      if (found !== undefined) return found;
      throw failed(`python3-doc depends on no documentation: ${depends}`, false);
    },
    read: async (unpacked) => {
      const docs = path.join(unpacked, 'usr/share/doc');
      const version = (await readdir(docs)).find((name) => /^python3\.\d+$/u.test(name))!;
      const folder = path.join(docs, version, 'html/_sources/library');
      const files = (await readdir(folder)).filter((name) => name.endsWith('.rst.txt')).toSorted();
      return readPythonDocs(
        await Promise.all(files.map((name) => readFile(path.join(folder, name), 'utf8'))),
      );
    },
  },
};

async function ensureCorpus(corpus: CorpusName): Promise<CorpusFacts> {
  const folder = folderOf(corpus);
  await makeOnce(
    folder,
    say,
    () => corpusFactsOf(corpus) !== undefined,
    async (making) => {
      const [packages, unpacked, made] = ['packages', 'unpacked', 'made'].map((name) =>
        path.join(making, name),
      );
      await mkdir(packages!);
      await mkdir(made!);
      const debian = await debianIn(making, failed);
      const source = SOURCES[corpus];
      await debian.apt('apt-get', ['--quiet', 'download', await source.package(debian)], packages);
      const [file] = await debian.unpack(packages!, unpacked!);
      const content = await contentOf(await source.read(unpacked!));
      const facts: CorpusFacts = {
        source: file!.replace(/\.deb$/u, ''),
        sha256: createHash('sha256')
          .update(await readFile(path.join(packages!, file!)))
          .digest('hex'),
        counts: {
          train: content.questions.train.map((level) => level.length),
          heldout: content.questions.heldout.map((level) => level.length),
          test: content.questions.test.map((level) => level.length),
        },
      };
      await writeFile(path.join(made!, CONTENT), JSON.stringify(content));
      await writeFile(path.join(made!, FACTS), JSON.stringify(facts));
      return made!;
    },
  );
  return corpusFactsOf(corpus)!;
}

async function contentOf(corpus: Corpus): Promise<CorpusContent> {
  const passages = corpus.entries.map(passageOf);
  const index = await inTurns(Bm25.of(passages));
  return { passages, questions: await inTurns(makeChains(corpus, passages, index)) };
}

const failed = (message: string, retryable: boolean): GradusError =>
  new GradusError(
    'infra',
    'corpus-missing',
    `${message}\nThe corpora come from Debian's archive (packages dict-foldoc and python3-doc): is it reachable, and is this a Debian or an Ubuntu?`,
    { retryable },
  );

const say = (text: string): void => void process.stderr.write(`setup: ${text}\n`);

try {
  takesNoArguments();
  for (const corpus of ['foldoc', 'python'] as const) {
    const { source, counts } = await ensureCorpus(corpus);
    say(`search-qa-${corpus}: ${source}, ${counts.train.join(' + ')} questions for training`);
  }
} catch (error) {
  say(messageOf(error));
  process.exitCode = 1;
}

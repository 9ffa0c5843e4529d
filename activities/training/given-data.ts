import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { GradusError, messageOf } from '../../core/errors.ts';
import { LineProblem, readGivenLine } from '../../core/schema/given-line.ts';
import { invalidData, linesOf } from '../../core/json/lines.ts';
import { RandomStream } from '../../core/random.ts';
import type { BlobRef } from '../../core/refs.ts';
import type { TrainingSample } from '../../core/algorithms/training-sample.ts';
import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';
import type { SamplingSpec } from '../../core/schema/sampling.ts';
import type { ModelSource } from '../../core/schema/model.ts';
import type { StageSpec } from '../../core/schema/stages/stages.ts';
import { modelConfigOf } from '../../engine/hf-model-config.ts';
import { tokenizerConfigOf, withDialect } from '../../engine/dialect/checkpoint-dialect.ts';
import { openDialect } from '../../engine/dialect/open-dialect.ts';
import { Tokenizer } from '../../engine/tokenizer/tokenizer.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import type { HostedEnvironment } from '../../environments/host/hosted-environment.ts';
import { jsonOf, loadModelFiles, textOf } from '../../store/training/checkpoints.ts';
import type { ModelFiles } from '../../store/training/checkpoints.ts';
import { EventLoopTurns } from '../../engine/in-pieces.ts';
import { sha256OfMany } from '../../store/digest.ts';
import { dataKey } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { tooManyCalls } from './demonstrations.ts';
import { givenExample, numbered } from './given-examples.ts';
import type { Prefers } from './given-examples.ts';
import { ORDER_ALONE } from './given-sequence.ts';
import type { PlacedLine, WriterFor } from './given-sequence.ts';

// Data that a person gives, as lines of JSON. A run keeps a copy under its digest when it begins: whatever becomes of the
// file, the run trains on what was checked.

/** Of a file: it is held as a whole while a batch is made. */
const MOST_BYTES = 2 ** 30;

export function givenDialects(
  files: ModelFiles,
  { tools: own }: Pick<HostedEnvironment, 'tools'>,
): WriterFor {
  const tokenizer = Tokenizer.fromJson(textOf(files, 'tokenizer.json'));
  const config = tokenizerConfigOf(files);
  const described = own.map((tool) => tool.described);
  return (tools = described) => openDialect(tokenizer, config, [...tools]);
}

/** Tokens that a model holds. */
export const roomIn = (files: ModelFiles): number =>
  modelConfigOf(jsonOf(files, 'config.json'), jsonOf(files, 'tokenizer.json')).maxPositions;

/**
 * The stages of a run, each that has data with the copy that it is trained on. Every line is checked; of a model that is
 * there, in its dialect. Throws GradusError('spec', 'invalid-data') with file and line.
 */
export async function withGiven(
  store: ObjectStore,
  { stages, model, sampling }: Pick<CurriculumSpec, 'stages' | 'model' | 'sampling'>,
  environments: Environments,
  signal: AbortSignal,
): Promise<StageSpec[]> {
  const opened: StageSpec[] = [];
  for (const stage of stages) {
    if (stage.kind !== 'supervised' || stage.data === undefined) {
      opened.push(stage);
      continue;
    }
    const environment = environmentOf(environments, stage.arms[0]!.environment);
    const files = model.kind === 'from' ? await speakingFiles(store, model, signal) : null;
    const writerFor = files === null ? () => ORDER_ALONE : givenDialects(files, environment);
    const room = files === null ? Infinity : roomIn(files);
    const { ref } = await openGiven(
      store,
      stage.data,
      (line) => {
        assertCallsAllowed(line, sampling);
        givenExample(line, writerFor, room, stage.algorithm?.kind);
      },
      signal,
    );
    opened.push({ ...stage, given: ref });
  }
  return opened;
}

/** A turn with more calls than the spec allows would be learnt, and be malformed whenever the policy writes it. */
function assertCallsAllowed(
  { where, line }: PlacedLine,
  { maxParallelCalls = 1 }: Pick<SamplingSpec, 'maxParallelCalls'>,
): void {
  const messages = line.kind === 'demonstration' ? line.messages : [...line.chosen, ...line.rejected];
  const most = Math.max(0, ...messages.map(({ calls, trained }) => (trained && calls?.length) || 0));
  if (most > maxParallelCalls) throw invalidData(where, tooManyCalls(most, maxParallelCalls));
}

async function speakingFiles(
  store: ObjectStore,
  { checkpoint, dialect }: Extract<ModelSource, { kind: 'from' }>,
  signal: AbortSignal,
): Promise<ModelFiles> {
  const files = await loadModelFiles(store, checkpoint, { signal });
  return dialect ? new Map([...files, ...withDialect(files, dialect)]) : files;
}

/**
 * Reads and checks all of a file, or of an object named by its key in the bucket after `s3://`, and keeps it in the store.
 * `check` is told of every line. Throws GradusError('spec', 'invalid-data') with file and line.
 */
export async function openGiven(
  store: ObjectStore,
  source: string,
  check: (line: PlacedLine) => unknown,
  signal: AbortSignal,
): Promise<{ ref: BlobRef; lines: number }> {
  const bytes = await bytesOf(store, source, signal);
  let lines = 0;
  for await (const line of placed(bytes, source, signal)) {
    check(line);
    lines++;
  }
  if (lines === 0) throw invalidData(source, 'is empty: give it a line for each example');
  const sha256 = await sha256OfMany(bytes);
  const conflict = (key: string): GradusError =>
    new GradusError(
      'store',
      'corrupt-object',
      `${key} is not what its name says: delete it, and begin again`,
    );
  return { ref: await store.putSame(dataKey(sha256), bytes, { signal, sha256, conflict }), lines };
}

async function bytesOf(store: ObjectStore, source: string, signal: AbortSignal): Promise<Uint8Array> {
  const key = /^s3:\/\/(?:[^/]+\/)?(.+)$/.exec(source)?.[1];
  if (key !== undefined) {
    const ref = await store.head(key, { signal });
    if (!ref) throw invalidData(source, 'is not in the bucket: put it there, or name a file');
    assertSize(source, ref.bytes);
    return store.get(ref, { signal });
  }
  const found = await stat(source).catch((cause: unknown) => {
    throw invalidData(
      source,
      `cannot be read by the worker, which looks for it in ${process.cwd()} (${messageOf(cause)}): give an absolute path, or s3:// and a key of the bucket`,
      cause,
    );
  });
  if (!found.isFile()) throw invalidData(source, 'is no file');
  // What cannot be a line is known before it is in memory.
  assertSize(source, found.size);
  const parts: Buffer[] = [];
  for await (const part of createReadStream(source, { signal })) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

function assertSize(source: string, bytes: number): void {
  if (bytes > MOST_BYTES)
    throw invalidData(source, `has ${bytes} bytes, at most ${MOST_BYTES}: give a part of it`);
}

async function* placed(bytes: Uint8Array, source: string, signal: AbortSignal): AsyncGenerator<PlacedLine> {
  const turns = new EventLoopTurns(signal);
  for await (const { number, text } of linesOf(once(bytes), source)) {
    if (turns.due) await turns.take();
    const where = `${source}, line ${number}`;
    try {
      yield { where, line: readGivenLine(text) };
    } catch (error) {
      if (!(error instanceof LineProblem)) throw error;
      throw invalidData(where, error.message, error);
    }
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** Which lines, and how they are gone through: shuffled anew each time that all have been had. */
export interface GivenRequest {
  source: string;
  ref: BlobRef;
  count: number;
  /** From 1. */
  round: number;
  seed: number;
  stage: string;
  /** Tokens that the model holds. */
  room: number;
  /** What learns preferences of the lines; absent: they are imitated. */
  prefers?: Prefers | undefined;
}

/** The sequences of a round. Throws GradusError('spec', 'invalid-data') with file and line for what the dialect cannot write. */
export async function givenSequences(
  store: ObjectStore,
  writerFor: WriterFor,
  { source, ref, count, round, seed, stage, room, prefers }: GivenRequest,
  signal: AbortSignal,
): Promise<TrainingSample[]> {
  const lines: PlacedLine[] = [];
  for await (const line of placed(await store.get(ref, { signal }), source, signal)) lines.push(line);
  const turns = new EventLoopTurns(signal);
  const examples: TrainingSample[][] = [];
  let order: number[] = [];
  for (let i = (round - 1) * count; i < round * count; i++) {
    if (turns.due) await turns.take();
    const [pass, place] = [Math.floor(i / lines.length), i % lines.length];
    if (order.length === 0 || place === 0)
      order = new RandomStream(seed, 'given', stage, pass).shuffle([...lines.keys()]);
    examples.push(givenExample(lines[order[place]!]!, writerFor, room, prefers));
  }
  return numbered(examples, room, prefers);
}

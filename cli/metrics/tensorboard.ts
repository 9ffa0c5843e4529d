import { mkdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import protobuf from 'protobufjs/minimal.js';
import { figuresOf } from '../../core/training/figures.ts';
import type { StepFacts } from '../../core/training/step-facts.ts';
import { maskedCrc32c } from './crc32c.ts';

// TensorBoard reads files of TFRecords, each of which is an Event of tensorflow/core/util/event.proto.

/** What the first event of a file says of it. */
const FILE_VERSION = 'brain.Event:2';

/**
 * Writes the figures of each stage as scalars to `<folder>/<run>/<stage>/`, over the step of the run. A file that is
 * there is replaced, so that a run which goes on is written again as a whole. Returns the files.
 */
export async function writeTensorBoard(
  folder: string,
  run: string,
  steps: readonly StepFacts[],
): Promise<string[]> {
  const files: string[] = [];
  for (const stage of new Set(steps.map((step) => step.stage))) {
    const of = path.join(folder, run, stage);
    const file = path.join(of, 'events.out.tfevents.0000000000.gradus');
    await mkdir(of, { recursive: true });
    // Whoever reads meanwhile finds a whole one.
    await writeFile(`${file}.begun`, eventsFile(steps.filter((step) => step.stage === stage)));
    await rename(`${file}.begun`, file);
    files.push(file);
  }
  return files;
}

/** An event of every step, after the one that every file begins with. */
function eventsFile(steps: readonly StepFacts[]): Uint8Array {
  const begun = (steps[0]?.circumstances.endedAt ?? 0) / 1000;
  const first = protobuf.Writer.create();
  first.uint32(WALL_TIME).double(begun).uint32(VERSION).string(FILE_VERSION);
  return Buffer.concat([first.finish(), ...steps.map(eventOf)].map(record));
}

// Fields of Event, Summary and Summary.Value, as tags of the wire: number × 8 + kind.
const WALL_TIME = 1 * 8 + 1;
const STEP = 2 * 8 + 0;
const VERSION = 3 * 8 + 2;
const SUMMARY = 5 * 8 + 2;
const VALUE = 1 * 8 + 2;
const TAG = 1 * 8 + 2;
const SIMPLE_VALUE = 2 * 8 + 5;

function eventOf(step: StepFacts): Uint8Array {
  const event = protobuf.Writer.create();
  event.uint32(WALL_TIME).double(step.circumstances.endedAt / 1000);
  event.uint32(STEP).int64(step.step);
  event.uint32(SUMMARY).fork();
  for (const [name, value] of Object.entries(figuresOf(step))) {
    event.uint32(VALUE).fork().uint32(TAG).string(name).uint32(SIMPLE_VALUE).float(value).ldelim();
  }
  return event.ldelim().finish();
}

/** A TFRecord: length and its checksum, bytes and theirs; little-endian. */
function record(data: Uint8Array): Uint8Array {
  const framed = Buffer.alloc(12 + data.length + 4);
  framed.writeBigUInt64LE(BigInt(data.length), 0);
  framed.writeUInt32LE(maskedCrc32c(framed.subarray(0, 8)), 8);
  framed.set(data, 12);
  framed.writeUInt32LE(maskedCrc32c(data), 12 + data.length);
  return framed;
}

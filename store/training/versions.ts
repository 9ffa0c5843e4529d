import { z } from 'zod';
import type { CheckpointRef } from '../../core/refs.ts';
import type { KeepVersionRequest } from '../../core/requests/collect.ts';
import { jsonCodec } from '../codec.ts';
import { partKey, versionKey } from '../keys.ts';
import type { CallOptions, ObjectStore } from '../objects/object-store.ts';
import { checkpointRef } from './manifest.ts';

/** Weights that a stage has sampled with, or may: those after so many of its steps. */
export interface Version {
  after: number;
  checkpoint: CheckpointRef;
}

const versions = jsonCodec<Version>(
  'weights of a stage',
  z.looseObject({ after: z.int().min(0), checkpoint: checkpointRef }),
);

/** Says with which weights a stage goes on after some of its steps. First writer wins. */
export async function keepVersion(
  store: ObjectStore,
  { run, stage, after, checkpoint }: KeepVersionRequest,
  options: CallOptions = {},
): Promise<void> {
  await store.putIfAbsent(versionKey(run, stage, after), versions, { after, checkpoint }, options);
}

/** The weights of a stage after so many steps; null where it has not said so. */
export const findVersion = (
  store: ObjectStore,
  { run, stage, after }: Omit<KeepVersionRequest, 'checkpoint'>,
  options: CallOptions = {},
): Promise<Version | null> => store.find(versionKey(run, stage, after), versions, options);

/** A turn of an episode: `turn` is its number, or an agent's name of it. */
export interface TurnPlace {
  run: string;
  stage: string;
  step: number;
  group: number;
  episode: number;
  turn: number | string;
}

const choiceKey = ({ run, stage, step, group, episode, turn }: TurnPlace): string =>
  partKey(run, stage, step, group, `weights-${episode}-${turn}`);

/** Keeps which weights sample a turn, and returns what is kept: what was chosen before counts. */
export async function chooseVersion(
  store: ObjectStore,
  place: TurnPlace,
  version: Version,
  options: CallOptions = {},
): Promise<Version> {
  return (await store.putIfAbsent(choiceKey(place), versions, version, options)).value;
}

/** Which weights were chosen for a turn; null where none were. */
export const chosenVersion = (
  store: ObjectStore,
  place: TurnPlace,
  options: CallOptions = {},
): Promise<Version | null> => store.find(choiceKey(place), versions, options);

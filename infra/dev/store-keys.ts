import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { link, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { GradusError } from '../../core/errors.ts';

export interface Keys {
  accessKey: string;
  secretKey: string;
}

export const keysFile = (dataDir: string) => path.join(dataDir, 'keys.json');

/** The store's keys, drawn at random when it first starts and readable by its owner only. */
export async function ensureKeys(dataDir: string): Promise<Keys> {
  if (!existsSync(keysFile(dataDir))) {
    const keys: Keys = {
      accessKey: `gradus${randomBytes(7).toString('hex')}`,
      secretKey: randomBytes(30).toString('base64url'),
    };
    const fresh = `${keysFile(dataDir)}.${process.pid}`;
    await writeFile(fresh, JSON.stringify(keys), { mode: 0o600 });
    await link(fresh, keysFile(dataDir)); // never over keys that are in use
    await rm(fresh);
  }
  return readKeys(dataDir);
}

/** @throws GradusError infra/state-dir when they were damaged by hand */
export async function readKeys(dataDir: string): Promise<Keys> {
  const text = await readFile(keysFile(dataDir), 'utf8');
  try {
    return JSON.parse(text) as Keys;
  } catch (error) {
    throw new GradusError(
      'infra',
      'state-dir',
      `${keysFile(dataDir)} is not JSON. Delete it and restart: new keys are drawn, the objects stay.`,
      { cause: error },
    );
  }
}

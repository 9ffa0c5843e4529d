import { lstatSync } from 'node:fs';

/** Whether anything has this name, also a link that leads nowhere: what is written through it would be somewhere else. */
export const isThere = (file: string): boolean => lstatSync(file, { throwIfNoEntry: false }) !== undefined;

import { suggestion } from '../../core/did-you-mean.ts';

/** A name can have a thousand characters. */
const SHOWN = 100;

/** A name that is none of those that there are: with the nearest of them, if it is near, and all. */
export function nearest(name: string, names: readonly string[]): string {
  return `${JSON.stringify(name.slice(0, SHOWN))}${suggestion(name, names) || '.'} There are: ${names.join(', ')}`;
}

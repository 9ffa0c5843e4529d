import { GradusError } from '../../core/errors.ts';
import { commandLine } from '../../core/installation.ts';
import type { Need } from '../contract.ts';
import { findBubblewrap } from './bubblewrap/find.ts';
import type { Backend, Sandbox } from './contract.ts';

/** A backend as it is on this machine. */
export interface BackendFacts {
  name: Backend;
  /** Whether it ran a command here. */
  works: boolean;
  /** Where it does not work: why, and what to install or to allow. */
  missing?: string;
}

type Finder = () => Promise<{ sandbox: Sandbox } | { missing: string }>;

/** In the order in which they are tried. */
const FINDERS: Partial<Record<Backend, Finder>> = { bubblewrap: findBubblewrap };

const found = new Map<Backend, ReturnType<Finder>>();

/** Each backend is looked for once a process; one that was not there is looked for again. */
async function find(name: Backend): ReturnType<Finder> {
  const looking =
    found.get(name) ?? FINDERS[name]?.() ?? Promise.resolve({ missing: 'there is no such sandbox' });
  found.set(name, looking);
  const result = await looking;
  if ('missing' in result) found.delete(name);
  return result;
}

/**
 * A sandbox that works here: the one that is preferred, by `prefer` or by `GRADUS_SANDBOX`, or none; without a preference the
 * first that works.
 * Throws GradusError('infra', 'no-sandbox'), which says what to install or to allow.
 */
export async function openSandbox({ prefer }: { prefer?: Backend } = {}): Promise<Sandbox> {
  const preferred = prefer ?? process.env['GRADUS_SANDBOX'];
  const names = preferred ? [preferred as Backend] : (Object.keys(FINDERS) as Backend[]);
  const reasons: string[] = [];
  for (const name of names) {
    const result = await find(name);
    if ('sandbox' in result) return result.sandbox;
    reasons.push(`${name}: ${result.missing}`);
  }
  throw new GradusError(
    'infra',
    'no-sandbox',
    `No sandbox works on this machine, and nothing is run without one. ${reasons.join('; ')}.`,
  );
}

/** What works on this machine, and why the rest does not. */
export async function sandboxFacts(): Promise<BackendFacts[]> {
  return Promise.all(
    (Object.keys(FINDERS) as Backend[]).map(async (name) => {
      const result = await find(name);
      return 'sandbox' in result ? { name, works: true } : { name, works: false, missing: result.missing };
    }),
  );
}

/** What an environment that runs programs needs. */
export async function sandboxNeeds(): Promise<Need[]> {
  const works = (await sandboxFacts()).flatMap((fact) => (fact.works ? [fact.name] : []));
  const what = works.length === 0 ? 'a sandbox' : `a sandbox (${works.join(', ')})`;
  return [{ what, present: works.length > 0, setUp: commandLine('setup sandbox') }];
}

import { GradusError, isA } from '../../core/errors.ts';
import { commandLine } from '../../core/installation.ts';
import type { Need } from '../contract/environment.ts';
import { findBubblewrap } from './bubblewrap/find.ts';
import type { SandboxBackend, Sandbox } from './contract.ts';
import { QuickJs } from './webassembly/quickjs.ts';
import { WasiPython } from './webassembly/wasi-python.ts';

/** A backend as it is on this machine. */
export interface BackendFacts {
  name: SandboxBackend;
  /** Whether it ran a command here. */
  works: boolean;
  /** Where it does not work: why, and what to install or to allow. */
  missing?: string;
}

/** A sandbox that works here, or why there is none. */
type Found = { sandbox: Sandbox } | { missing: string };

/** What a sandbox can run. */
export type SandboxLanguage = 'programs' | 'python' | 'javascript';

/** Those that are a choice only, each a folder, are loaded where somebody has chosen them or asks what works. */
const FINDERS: Record<SandboxBackend, () => Promise<Found>> = {
  bubblewrap: findBubblewrap,
  gvisor: async () => (await import('./gvisor/find.ts')).findGVisor(),
  e2b: async () => (await import('./e2b/find.ts')).findE2B(),
  'wasi-python': () => Promise.resolve({ sandbox: new WasiPython() }),
  quickjs: () => Promise.resolve({ sandbox: new QuickJs() }),
};

/** Tried in this order where nobody prefers one. gVisor is slow to come up, E2B is somebody else's machine: a choice only. */
const CANDIDATES: Record<SandboxLanguage, readonly SandboxBackend[]> = {
  programs: ['bubblewrap'],
  python: ['bubblewrap', 'wasi-python'],
  javascript: ['bubblewrap', 'quickjs'],
};

const found = new Map<SandboxBackend, Promise<Found>>();

/** Each backend is looked for once a process; one that was not there is looked for again. */
async function find(name: SandboxBackend): Promise<Found> {
  const looking = found.get(name) ?? FINDERS[name]();
  found.set(name, looking);
  const result = await looking;
  if ('missing' in result) found.delete(name);
  return result;
}

/**
 * A sandbox that works here and runs what is asked for: any program, or programs of one language, for which there is one
 * also where there are no namespaces. `prefer` or `GRADUS_SANDBOX` names the one to take, or none.
 * Throws GradusError('infra', 'no-sandbox'), which says what to install or to allow.
 */
export async function openSandbox({
  prefer,
  runs = 'programs',
}: { prefer?: SandboxBackend; runs?: SandboxLanguage } = {}): Promise<Sandbox> {
  const preferred = prefer ?? process.env['GRADUS_SANDBOX'];
  const names = preferred ? [preferred] : CANDIDATES[runs];
  const reasons: string[] = [];
  for (const name of names) {
    const result = isBackend(name)
      ? await find(name)
      : { missing: `there is no such sandbox, but ${Object.keys(FINDERS).join(', ')}` };
    if ('sandbox' in result) return result.sandbox;
    reasons.push(`${name}: ${result.missing}`);
  }
  throw new GradusError(
    'infra',
    'no-sandbox',
    `No sandbox works on this machine, and nothing is run without one. ${reasons.join('; ')}.`,
  );
}

const isBackend = (name: string): name is SandboxBackend => Object.hasOwn(FINDERS, name);

/** What works on this machine, and why the rest does not. */
export async function sandboxFacts(): Promise<BackendFacts[]> {
  return Promise.all(
    (Object.keys(FINDERS) as SandboxBackend[]).map(async (name) => {
      // Looking for it takes machines of somebody's account.
      if (name === 'e2b' && process.env['GRADUS_SANDBOX'] !== name) {
        return { name, works: false, missing: 'a choice only: GRADUS_SANDBOX=e2b' };
      }
      const result = await find(name);
      return 'sandbox' in result ? { name, works: true } : { name, works: false, missing: result.missing };
    }),
  );
}

/** What an environment that runs programs needs: a sandbox of one language alone does not do. */
export async function sandboxNeeds(): Promise<Need[]> {
  const setUp = commandLine('setup sandbox');
  try {
    const { name } = await openSandbox();
    return [{ what: `a sandbox (${name})`, present: true, setUp }];
  } catch (error) {
    if (isA(error, GradusError) && error.type === 'no-sandbox') {
      return [{ what: 'a sandbox', present: false, setUp }];
    }
    throw error;
  }
}

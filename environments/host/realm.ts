import type { EnvironmentFacts } from './facts.ts';
import type { HostOptions } from './host-process.ts';
import { Lane } from './lane.ts';

/** A start takes a second, and a module may have to prepare itself again: what was used is kept for the next step. */
const KEEP_SHORT_MS = 5 * 60_000;
/** Some modules are only loaded to be known, and no run asks them anything: Gradus's own environments, for example. */
const KEEP_LOADED_MS = 30_000;

/**
 * The processes of one module's environments. No other module's code runs in them, so that what it does to the language,
 * to memory or to its process is its own matter. All are started when they are needed, and end when nobody needs them.
 */
export class Realm {
  readonly short: Lane;
  readonly alone: Lane;
  readonly sessions: Lane;
  readonly long: Lane;
  readonly longAlone: Lane;
  readonly once: Lane;
  readonly tier: Lane;
  readonly tierAlone: Lane;
  private readonly tierVariables: Record<string, string> = {};
  private readonly valuesOf: (names: readonly string[]) => Record<string, string>;

  /** `valuesOf` gives what the worker has of the variables that verifiers of tiers ask for. */
  constructor(base: HostOptions, valuesOf: (names: readonly string[]) => Record<string, string>) {
    this.valuesOf = valuesOf;
    // A judge's key is for judges: their processes are the only ones that have it.
    const forTiers: HostOptions = { ...base, variables: this.tierVariables };
    this.short = new Lane(base, { processes: 1, asks: Infinity }, { keepMs: KEEP_SHORT_MS });
    this.alone = new Lane(base, { processes: 2, asks: 1 });
    // One, so that an episode finds its session again.
    this.sessions = new Lane(base, { processes: 1, asks: Infinity }, { keepMs: Infinity });
    this.long = new Lane(base, { processes: 2, asks: 64 });
    this.longAlone = new Lane(base, { processes: 4, asks: 1 });
    this.once = new Lane(base, { processes: 4, asks: 64 });
    this.tier = new Lane(forTiers, { processes: 2, asks: 64 });
    this.tierAlone = new Lane(forTiers, { processes: 2, asks: 1 });
  }

  /** What its module has. Throws GradusError('environment', 'module' | 'shape' | 'duplicate') and HostDied. */
  load(keepMs = KEEP_LOADED_MS): Promise<EnvironmentFacts[]> {
    const look = ({ facts }: { facts: EnvironmentFacts[] }): Promise<EnvironmentFacts[]> => {
      const names = facts.flatMap(({ verifiers }) => verifiers.flatMap(({ variables }) => variables ?? []));
      Object.assign(this.tierVariables, this.valuesOf(names));
      return Promise.resolve(facts);
    };
    return this.short.use(new AbortController().signal, look, { keepMs });
  }

  get pids(): number[] {
    return this.lanes.flatMap(({ pids }) => pids);
  }

  async close(): Promise<void> {
    await Promise.all(this.lanes.map((lane) => lane.close()));
  }

  private get lanes(): Lane[] {
    const { short, alone, sessions, long, longAlone, once, tier, tierAlone } = this;
    return [short, alone, sessions, long, longAlone, once, tier, tierAlone];
  }
}

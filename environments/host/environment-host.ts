import { availableParallelism } from 'node:os';
import { GradusError } from '../../core/errors.ts';
import { addIncidents, incidentText } from '../../core/episode/incidents.ts';
import type { Incident } from '../../core/episode/incidents.ts';
import { DEFAULT_TIER_LIMITS } from '../contract/environment.ts';
import { BUILT_IN, byName } from './load-module.ts';
import { boundaryOf, DIED, functionsOf } from './asks.ts';
import type { HostAnswer, HostRequest, AskKind, AskKinds, ErrorOfHost, HostedVerdict } from './asks.ts';
import { BoundedOutput } from './bounded-output.ts';
import { deadlineMs, calledTool } from './deadlines.ts';
import type { EnvironmentFacts, ToolFacts } from './facts.ts';
import { HostDied } from './host-process.ts';
import type { HostOptions, HostProcess } from './host-process.ts';
import { HostedEnvironment } from './hosted-environment.ts';
import type { HostRequestOptions, Transport } from './hosted-environment.ts';
import type { Lane } from './lane.ts';
import type { HostModule } from './messages.ts';
import { Realm } from './realm.ts';
import { FAST_LIMIT_MS, PRESENT_LIMIT_MS } from './serve.ts';
import { Suspects } from './suspects.ts';

export interface EnvironmentHostOptions {
  /** Modules of environments, besides Gradus's own. */
  modules: readonly string[];
  /** Names of environment variables that users' code may read, besides the harmless ones. */
  variables?: readonly string[];
  /** Memory that one host may take, bytes. */
  memoryBytes?: number;
  /** How long a module may take to be loaded, milliseconds. */
  loadMs?: number;
  /** How long a process is kept that has told what its module has and was asked nothing since, milliseconds. */
  keepLoadedMs?: number;
  log?: (line: string) => void;
}

/** What every program may know of its surroundings; nothing in it is a secret. */
const HARMLESS = [
  'PATH HOME USER LANG LC_ALL TZ TMPDIR TEMP TMP SystemRoot NODE_ENV NODE_EXTRA_CA_CERTS SSL_CERT_FILE',
  'HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy LD_LIBRARY_PATH XDG_CACHE_HOME',
  'GRADUS_CHEMISTRY_PYTHON GRADUS_CACHE GRADUS_SANDBOX GRADUS_BWRAP GRADUS_RUNSC GRADUS_E2B_TEMPLATE GRADUS_BROWSER',
]
  .join(' ')
  .split(' ');

type Item = AskKinds[AskKind]['item'];
type CallsItem = AskKinds['calls']['item'];
type VerdictsItem = AskKinds['verdicts']['item'];

const MEMORY_BYTES = 2 * 2 ** 30;
const LOAD_MS = 60_000;
/** Items of one message: asks of several groups take turns. */
const CHUNK = 64;
/** Functions that a line of the log names. */
const MOST_NAMED = 5;
/** Attempts at what is no call of a tool, which has its own, before it counts as not to be done. */
const ATTEMPTS = 2;

/**
 * Where what users wrote runs: processes beside a worker, which knows of environments nothing but facts. Each module has
 * processes of its own, and its short work shares one. When that dies or hangs nobody is blamed: each ask that was in
 * flight is repeated alone, and over which the process dies then is to blame (ADR 0025). Long work has processes of its own.
 */
export class EnvironmentHost {
  readonly environments = new Map<string, HostedEnvironment>();
  /** By the module that they are of, as facts name it. */
  private readonly realms = new Map<string, Realm>();
  private readonly outputs: BoundedOutput[] = [];
  private readonly suspects = new Suspects();
  /** Told with the next answers: nobody may have been waiting. */
  private lateErrors: Incident[] = [];
  /** How many there have been, by environment. */
  private readonly lateCounts = new Map<string, number>();
  private readonly log: (line: string) => void;

  private constructor(log: (line: string) => void) {
    this.log = log;
  }

  /** Throws GradusError('environment', 'module' | 'shape' | 'duplicate'). */
  static async open(options: EnvironmentHostOptions): Promise<EnvironmentHost> {
    const host = new EnvironmentHost(options.log ?? ((line) => console.warn(line)));
    try {
      const modules = [null, ...new Set(options.modules)];
      for (const facts of byName(await host.load(modules, options)).values()) {
        const transport: Transport = { ask: (ask, asked) => host.ask(ask, asked) };
        host.environments.set(facts.name, new HostedEnvironment(facts, transport));
      }
      return host;
    } catch (error) {
      await host.close();
      if (!(error instanceof HostDied)) throw error;
      throw new GradusError('environment', 'module', `The host of environments ${error.message}`);
    }
  }

  /** Of all processes that there are. */
  pids(): number[] {
    return [...this.realms.values()].flatMap(({ pids }) => pids);
  }

  async close(): Promise<void> {
    await Promise.all([...this.realms.values()].map((realm) => realm.close()));
    for (const output of this.outputs) output.flush();
  }

  /** As many modules at once as there are cores. Throws what went wrong with the first one that cannot be loaded. */
  private async load(
    modules: readonly HostModule[],
    options: EnvironmentHostOptions,
  ): Promise<EnvironmentFacts[]> {
    const env = pick([...HARMLESS, ...(options.variables ?? [])]);
    const loaded: (EnvironmentFacts[] | { error: unknown })[] = [];
    const left = modules.entries();
    const loadSome = async (): Promise<void> => {
      for (const [i, module] of left) {
        const realm = this.realmOf(module, env, options);
        loaded[i] = await realm.load(options.keepLoadedMs).catch((error: unknown) => ({ error }));
      }
    };
    await Promise.all(Array.from({ length: availableParallelism() }, loadSome));
    return loaded.flatMap((facts) => {
      if ('error' in facts) throw facts.error;
      return facts;
    });
  }

  private realmOf(
    module: HostModule,
    env: Record<string, string>,
    { memoryBytes = MEMORY_BYTES, loadMs = LOAD_MS }: EnvironmentHostOptions,
  ): Realm {
    const file = module ?? BUILT_IN;
    const whose = `the code of ${file}`;
    const output = new BoundedOutput({ whose, write: (text) => void process.stderr.write(text) });
    this.outputs.push(output);
    const base: HostOptions = {
      module,
      env,
      memoryBytes,
      // What is said of users' modules is no limit for Gradus's own.
      loadMs: module === null ? LOAD_MS : loadMs,
      output,
      variables: {},
      onLateError: (environment, message) => this.noteLateError(environment, message),
      onDeath: ({ message }, doing) => {
        const some = doing.slice(0, MOST_NAMED).join(', ');
        const more = doing.length > MOST_NAMED ? ` and ${doing.length - MOST_NAMED} more` : '';
        if (doing.length > 0)
          this.log(`environments: a process of ${file} ${message}; it ran ${some}${more}`);
      },
    };
    const realm = new Realm(base, pick);
    this.realms.set(file, realm);
    return realm;
  }

  private async ask(ask: HostRequest, options: HostRequestOptions): Promise<HostAnswer[]> {
    try {
      const chunks = chunksOf(ask.items, CHUNK).map((items) => this.askChunk({ ...ask, items }, options));
      return (await Promise.all(chunks)).flat();
    } finally {
      const incidents = this.lateErrors.filter(({ environment }) =>
        ['', ask.environment].includes(environment),
      );
      this.lateErrors = this.lateErrors.filter((incident) => !incidents.includes(incident));
      for (const incident of incidents) options.incident?.(incident);
    }
  }

  private async askChunk(ask: HostRequest, options: HostRequestOptions): Promise<HostAnswer[]> {
    const { suspect, shared, alone } = this.laneOf(ask);
    const apart = ask.items.map((item) => shared === null || suspect(item));
    const together = ask.items.filter((_, i) => !apart[i]);
    let answers: HostAnswer[] | null = [];
    if (together.length > 0) {
      answers = await this.askIn(shared!, { ...ask, items: together }, options).catch((error: unknown) => {
        options.signal.throwIfAborted();
        if (!(error instanceof HostDied)) throw error;
        return null;
      });
    }
    let next = 0;
    return Promise.all(
      ask.items.map(async (item, i) => {
        const answer = apart[i] ? undefined : answers?.[next++];
        return answer ?? this.askAlone(ask, item, alone, options);
      }),
    );
  }

  /** Asks about one item in a process that has nothing else to do: what kills it is that item. */
  private async askAlone(
    ask: HostRequest,
    item: Item,
    lane: Lane,
    options: HostRequestOptions,
  ): Promise<HostAnswer> {
    const names = functionsOf(ask.kind, item);
    if (names.length > 1) return this.askEachVerifier(ask, item as VerdictsItem, lane, options);
    const [name] = names as [string];
    const { environment, kind } = ask;
    const counted = kind === 'calls' || kind === 'findings';
    for (let attempt = 1; ; attempt++) {
      const barred = this.suspects.barred(environment, name);
      if (barred !== null) return { error: this.diedOver(ask, name, barred, false) };
      try {
        const [answer] = await this.askIn(lane, { ...ask, items: [item] }, options);
        this.suspects.acquit(environment, name);
        return answer!;
      } catch (error) {
        options.signal.throwIfAborted();
        if (!(error instanceof HostDied)) throw error;
        const { kind: how, message } = error;
        this.suspects.blame(environment, name, message);
        this.tell(
          { environment, file: this.fileOf(environment), function: name, kind: how, count: 1, message },
          options,
        );
        // Who makes a call counts its attempts.
        if (counted || attempt >= ATTEMPTS) return { error: this.diedOver(ask, name, message, counted) };
      }
    }
  }

  private async askEachVerifier(
    ask: HostRequest,
    item: VerdictsItem,
    lane: Lane,
    options: HostRequestOptions,
  ): Promise<HostAnswer> {
    const all: HostedVerdict[] = [];
    for (const verifier of item.verifiers) {
      const answer = await this.askAlone(ask, { ...item, verifiers: [verifier] }, lane, options);
      if ('error' in answer) return answer;
      all.push(...(answer.ok as HostedVerdict[]));
    }
    return { ok: all };
  }

  private askIn(lane: Lane, ask: HostRequest, options: HostRequestOptions): Promise<HostAnswer[]> {
    const { signal, heartbeat } = options;
    const known = this.environments.get(ask.environment);
    const work = (host: HostProcess): Promise<HostAnswer[]> =>
      host.ask(ask, { signal, blockMs: this.blockMs(ask), deadlineMs: deadlineMs(ask, known), heartbeat });
    return lane.use(signal, work, { waiting: () => heartbeat?.() });
  }

  /** Where an ask goes first, if anywhere, and where what is to be alone goes. */
  private laneOf({ kind, environment, items }: HostRequest): {
    shared: Lane | null;
    alone: Lane;
    suspect: (item: Item) => boolean;
  } {
    const known = this.environments.get(environment);
    const lanes = this.realms.get(known?.file ?? BUILT_IN)!;
    const suspect = (item: Item): boolean =>
      functionsOf(kind, item).some((name) => this.suspects.has(environment, name));
    if (kind === 'findings') return { shared: lanes.tier, alone: lanes.tierAlone, suspect };
    const tool = kind === 'calls' ? calledTool(known, items[0] as CallsItem) : undefined;
    const ofSession = ['calls', 'endings', 'closings'].includes(kind) && known?.resume;
    // What is pinned to a process can be asked of no other one.
    if (ofSession === 'pin') return { shared: lanes.sessions, alone: lanes.sessions, suspect: () => false };
    if (tool?.placement !== 'long') {
      // The state of a fold passes with each ask: no process holds anything of it.
      const held = ofSession && ofSession !== 'fold';
      return { shared: held ? lanes.sessions : lanes.short, alone: lanes.alone, suspect };
    }
    // A call that may not be repeated has no second process to be found innocent in: it keeps to its like.
    if (tool.effect === 'once') return { shared: null, alone: lanes.once, suspect };
    return { shared: lanes.long, alone: lanes.longAlone, suspect };
  }

  /** How long an ask may keep the event loop of its process from turning, milliseconds. */
  private blockMs({ kind, environment, items }: HostRequest): number {
    const known = this.environments.get(environment);
    if (kind === 'calls') {
      return callBlocksMs(calledTool(known, items[0] as CallsItem)!);
    }
    if (kind === 'findings') {
      const { verifier } = items[0] as AskKinds['findings']['item'];
      const { limits } = known?.verifiers.find(({ name }) => name === verifier) ?? {};
      return 1000 * (limits?.heartbeatSeconds ?? DEFAULT_TIER_LIMITS.heartbeatSeconds);
    }
    return kind === 'presentations' ? PRESENT_LIMIT_MS : FAST_LIMIT_MS;
  }

  private fileOf(environment: string): string {
    return this.environments.get(environment)?.file ?? '';
  }

  private diedOver(
    { kind, environment }: HostRequest,
    name: string,
    how: string,
    retryable: boolean,
  ): ErrorOfHost {
    const message = `${name} of ${environment} (${this.fileOf(environment)}) ${how}: fix it`;
    return { boundary: boundaryOf(kind), type: DIED, message, retryable };
  }

  private tell(incident: Incident, { incident: told }: HostRequestOptions): void {
    this.log(`environments: ${incidentText(incident)}`);
    told?.(incident);
  }

  private noteLateError(environment: string | null, message: string): void {
    const incident: Incident = {
      environment: environment ?? '',
      file: environment === null ? '' : this.fileOf(environment),
      function: 'something that was not waited for',
      kind: 'late-error',
      count: 1,
      message,
    };
    const times = (this.lateCounts.get(incident.environment) ?? 0) + 1;
    this.lateCounts.set(incident.environment, times);
    // One in a timer comes again and again: the first, the second, the fourth and so on fill no disk.
    if (Math.log2(times) % 1 === 0) {
      this.log(`environments: ${incidentText(incident)}${times > 1 ? ` (${times} times by now)` : ''}`);
    }
    this.lateErrors = addIncidents(this.lateErrors, [incident]);
  }
}

/**
 * How long a call may keep an event loop from turning, milliseconds: a long one as long as it may be silent; an inline one
 * is in everybody's way, however long it may wait for something.
 */
export const callBlocksMs = ({ placement, limits }: Pick<ToolFacts, 'placement' | 'limits'>): number =>
  placement === 'long'
    ? 1000 * limits.heartbeatSeconds
    : Math.min(1000 * limits.timeoutSeconds, FAST_LIMIT_MS);

const pick = (names: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    names.flatMap((name) => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  );

const chunksOf = <T>(items: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, i) => items.slice(i * size, (i + 1) * size));

import { GradusError } from '../../core/errors.ts';
import { episodeFactsOf } from '../../core/episode/facts.ts';
import type { EpisodeFacts } from '../../core/episode/facts.ts';
import { HELD_OUT } from '../../core/names.ts';
import type { RewardSpec } from '../../core/schema/reward.ts';
import { inParallel } from '../../store/in-parallel.ts';
import { runKey } from '../../store/keys.ts';
import type { CallOptions, ObjectStore } from '../../store/objects/object-store.ts';
import { runClaims } from '../../store/run/run-claim.ts';
import { stepPlaces } from '../../store/training/step-facts.ts';
import { findTrajectories } from '../../store/rollout/trajectories.ts';
import { unlessDamaged } from '../../store/objects/unless-damaged.ts';
import { NO_REWARD } from '../episodes/episode-rows.ts';
import { FactCache } from './fact-cache.ts';
import { runIdentity } from '../overview/run-identity.ts';
import { groupsIn, inPortions, stepFolders } from '../episodes/stored-groups.ts';
import type { StepFolder, CountedGroup } from '../episodes/stored-groups.ts';

/** With another number what was cached is read anew. */
const FORMAT = 3;

/** Steps whose facts are one file. */
const STEPS_OF_BLOCK = 32;
/** So many new ones are written at once: what was begun and killed has lost no more than these. */
const STEPS_AT_RISK = 8;
/** Steps that are read at a time: the groups of one keep the connections busy, and memory small. */
const STEPS_AT_ONCE = 1;

/** Characters of what a policy answered, and of why an episode failed, that are kept here. */
const ANSWER_LENGTH = 200;
const REASON_LENGTH = 300;

/** Facts of an episode of a step. */
export interface FactsInStep extends EpisodeFacts {
  /** The number of its group. */
  group: number;
}

/** The episodes of a step of a stage, or of an evaluation after it. */
export interface IndexedStep {
  stage: string;
  step: number;
  /** The groups that these are of. */
  groups: CountedGroup[];
  /** Groups that are damaged, or of another format, and why. */
  unreadable: { key: string; message: string }[];
  /** Nothing of it will change, so that it need not be looked at again. */
  closed: boolean;
  /** By group and episode. */
  facts: readonly FactsInStep[];
}

interface Folder extends StepFolder {
  closed: boolean;
}

interface Block {
  stage: string;
  number: number;
  folders: Folder[];
}

export interface IndexProgress {
  /** Steps that were looked at, of how many. */
  done: number;
  total: number;
}

/** What was found without reading trajectories. */
export interface Scanned {
  steps: number;
  /** Steps, or evaluations, that are not read yet, or not as they are now. */
  missing: number;
  unreadable: { key: string; message: string }[];
}

/**
 * The facts of all episodes of a run, made from its trajectories once and kept on the local disk. Objects are written
 * once, so a key of this execution of the run stands for its bytes; a step that has left its facts and was followed by
 * another one is not even listed again. A file of the cache that is gone or damaged is made anew.
 */
export class EpisodeIndex {
  readonly run: string;
  readonly reward: RewardSpec;
  /** Why the run's spec cannot be read; empty where it can. */
  readonly damaged: readonly string[];
  private readonly store: ObjectStore;
  private readonly cache: FactCache;
  private readonly identity: string;
  private readonly blocks: Block[];

  private constructor(
    store: ObjectStore,
    run: string,
    of: {
      cache: FactCache;
      identity: string;
      reward: RewardSpec;
      blocks: Block[];
      damaged: readonly string[];
    },
  ) {
    this.store = store;
    this.run = run;
    this.cache = of.cache;
    this.identity = of.identity;
    this.reward = of.reward;
    this.blocks = of.blocks;
    this.damaged = of.damaged;
  }

  /** Looks at which steps there are. A run that there is not has none. */
  static async open(
    store: ObjectStore,
    run: string,
    { cache = new FactCache() }: { cache?: FactCache } = {},
  ): Promise<EpisodeIndex> {
    // What is closed is known before what is there is listed: so everything of a closed step is in its list.
    const places = await stepPlaces(store, run);
    const damaged: string[] = [];
    const [identity, claim, folders] = await Promise.all([
      runIdentity(store, run),
      unlessDamaged(damaged, () => store.find(runKey(run), runClaims)),
      stepFolders(store, run),
    ]);
    const reward = claim?.spec?.reward ?? NO_REWARD;
    const isClosed = closedAmong(places.map(({ key }) => key));
    const blocks = blocksOf(folders.map((folder) => ({ ...folder, closed: isClosed(folder) })));
    return new EpisodeIndex(store, run, {
      cache,
      // Without its spec nothing is known of what is success; that is not kept for when the spec is mended.
      identity: damaged.length === 0 ? identity : `${identity}, without its spec`,
      reward,
      blocks,
      damaged,
    });
  }

  /** Steps of stages and evaluations that there are. */
  get size(): number {
    return this.blocks.reduce((sum, { folders }) => sum + folders.length, 0);
  }

  get stages(): string[] {
    return [...new Set(this.blocks.map(({ stage }) => stage))];
  }

  /**
   * Shows `visit` what is known, in the order of stages by name and of their steps, and reads no trajectories. Where the
   * store is away nothing is asked of it.
   */
  async scan(
    visit: (step: IndexedStep) => void | Promise<void>,
    { isAway = false, ...options }: CallOptions & { isAway?: boolean } = {},
  ): Promise<Scanned> {
    const scanned: Scanned = { steps: 0, missing: 0, unreadable: [] };
    for (const block of this.blocks) {
      options.signal?.throwIfAborted();
      const known = await this.load(block);
      const current = await inParallel(block.folders, async (folder) => {
        const step = known.get(folder.step);
        if (!step || step.closed || isAway) return step !== undefined;
        return isOf(step, await groupsIn(this.store, folder.folder, options));
      });
      for (const [i, { step }] of block.folders.entries()) {
        const found = known.get(step);
        if (!current[i]) scanned.missing++;
        if (!found) continue;
        scanned.steps++;
        scanned.unreadable.push(...found.unreadable);
        await visit(found);
      }
    }
    return scanned;
  }

  /** Reads what is not known yet. It can be ended at any moment, and goes on from there the next time. */
  async build({
    progress = () => {},
    ...options
  }: CallOptions & { progress?: (at: IndexProgress) => void } = {}) {
    const total = this.size;
    let done = 0;
    for (const block of this.blocks) {
      const known = await this.load(block);
      const open = block.folders.filter(({ step }) => known.get(step)?.closed !== true);
      done += block.folders.length - open.length;
      progress({ done, total });
      let fresh = 0;
      await inParallel(
        open,
        async (folder) => {
          options.signal?.throwIfAborted();
          const before = known.get(folder.step);
          const groups = await groupsIn(this.store, folder.folder, options);
          const changed = !before || before.closed !== folder.closed || !isOf(before, groups);
          if (changed) known.set(folder.step, await this.read(folder, groups, before, options));
          progress({ done: ++done, total });
          fresh += Number(changed);
          if (fresh >= STEPS_AT_RISK) {
            fresh = 0;
            await this.keep(block, known);
          }
        },
        STEPS_AT_ONCE,
      );
      if (fresh > 0) await this.keep(block, known);
    }
  }

  /** A step as it is now; rows of groups that were read before are taken over. */
  private async read(
    { stage, step, closed }: Folder,
    groups: readonly CountedGroup[],
    before: IndexedStep | undefined,
    options: CallOptions,
  ): Promise<IndexedStep> {
    const keyBefore = new Map(before?.groups.map(({ group, key }) => [group, key]));
    const unread = groups.filter(({ group, key }) => keyBefore.get(group) !== key);
    const unreadable: IndexedStep['unreadable'] = [];
    const isNew = new Set(unread.map(({ group }) => group));
    const isThere = new Set(groups.map(({ group }) => group));
    const rows = (before?.facts ?? []).filter(({ group }) => isThere.has(group) && !isNew.has(group));
    for (const some of inPortions(unread)) {
      const read = await inParallel(some, async ({ group, key }) => {
        try {
          const found = await findTrajectories(this.store, key, options);
          return found === null
            ? []
            : episodeFactsOf(found, this.reward).map((facts) => shortened(facts, group));
        } catch (error) {
          if (error instanceof GradusError && error.retryable) throw error;
          options.signal?.throwIfAborted();
          unreadable.push({ key, message: error instanceof Error ? error.message : String(error) });
          return [];
        }
      });
      rows.push(...read.flat());
    }
    const damaged = new Set(unreadable.map(({ key }) => key));
    return {
      stage,
      step,
      groups: groups.filter(({ key }) => !damaged.has(key)),
      unreadable,
      closed: closed && damaged.size === 0,
      facts: rows.toSorted((a, b) => a.group - b.group || a.episode - b.episode),
    };
  }

  private nameOf({ stage, number }: Block): unknown[] {
    return ['episodes', FORMAT, this.identity, stage, number];
  }

  private async load(block: Block): Promise<Map<number, IndexedStep>> {
    const bytes = await this.cache.read(this.nameOf(block));
    const known = new Map<number, IndexedStep>();
    if (bytes === undefined) return known;
    const lines = new TextDecoder().decode(bytes).split('\n');
    for (let i = 0; i + 1 < lines.length; i += 2) {
      const head = JSON.parse(lines[i]!) as StepHead;
      const facts = lines[i + 1]!;
      known.set(head.step, {
        ...head,
        stage: block.stage,
        // A step at a time: those of a block together would be many objects.
        get facts() {
          return JSON.parse(facts) as FactsInStep[];
        },
      });
    }
    return known;
  }

  /** Two lines of JSON a step: what it is, and its facts. */
  private async keep(block: Block, known: ReadonlyMap<number, IndexedStep>): Promise<void> {
    const steps = [...known.values()].toSorted((a, b) => a.step - b.step);
    const lines = steps.flatMap(({ step, groups, unreadable, closed, facts }) => {
      const head: StepHead = { step, groups, unreadable, closed };
      return [JSON.stringify(head), JSON.stringify(facts)];
    });
    await this.cache.write(this.nameOf(block), new TextEncoder().encode(lines.join('\n')));
  }
}

type StepHead = Omit<IndexedStep, 'stage' | 'facts'>;

/** Whether a step has these groups, by their keys; those that could not be read are tried again with the next build. */
const isOf = ({ groups, unreadable }: IndexedStep, now: readonly CountedGroup[]): boolean => {
  const known = new Set([...groups, ...unreadable].map(({ key }) => key));
  return known.size === now.length && now.every(({ key }) => known.has(key));
};

/** Steps that have left their facts and were followed by one that has, too; and the evaluations after such steps. */
function closedAmong(factKeys: readonly string[]): (folder: StepFolder) => boolean {
  const steps = new Map<string, Set<number>>();
  const newest = new Map<string, number>();
  for (const key of factKeys) {
    const [stage, file] = key.split('/').slice(-2) as [string, string];
    const step = Number.parseInt(file, 10);
    steps.set(stage, (steps.get(stage) ?? new Set()).add(step));
    newest.set(stage, Math.max(newest.get(stage) ?? 0, step));
  }
  return ({ stage: name, step }) => {
    const stage = name.endsWith(HELD_OUT) ? name.slice(0, -HELD_OUT.length) : name;
    return steps.get(stage)?.has(step) === true && step < newest.get(stage)!;
  };
}

function blocksOf(folders: readonly Folder[]): Block[] {
  const blocks = new Map<string, Block>();
  for (const folder of folders) {
    const { stage, step } = folder;
    const number = Math.floor(step / STEPS_OF_BLOCK);
    const id = `${stage}/${number}`;
    const block = blocks.get(id) ?? { stage, number, folders: [] };
    block.folders.push(folder);
    blocks.set(id, block);
  }
  return [...blocks.values()];
}

const shortened = (facts: Omit<FactsInStep, 'group'>, group: number): FactsInStep => ({
  ...facts,
  group,
  answer: facts.answer?.slice(0, ANSWER_LENGTH) ?? null,
  reason: facts.reason?.slice(0, REASON_LENGTH) ?? null,
});

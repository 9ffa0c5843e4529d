import { meanOf } from '../statistics/standardized.ts';

/** A sample of a task, as a path through the tree of all of them. */
export interface TreePath {
  tokens: readonly number[];
  /** Where the sampled tokens of each turn begin, and one past the last. */
  turns: readonly { start: number; end: number }[];
  /** The first so many turns are another sample's, which this one branched off. */
  inherited: number;
  reward: number;
}

/** What the policy has before it when a turn begins; its place is that of the first sample that came here. */
export interface TreeState {
  /** How many samples drew an action here; those that inherited theirs are not counted. */
  draws: number;
  actions: TreeAction[];
  place: TreePlace;
}

/** The tokens of a turn; equal tokens in one state are one action. */
export interface TreeAction {
  /** Samples that went through it. */
  visits: number;
  /** Mean of their rewards. */
  value: number;
  /** The first sample that drew it; null where only those are given that inherited it. */
  drawnAt: TreePlace | null;
  /** Where it led to, by what was observed; empty where samples ended with it. */
  next: TreeState[];
}

/** A turn of a sample, by their places among samples and turns. */
export interface TreePlace {
  sample: number;
  turn: number;
}

/** null where no sample is given. Equal samples in another order give the same tree, but for places and their order. */
export function treeOf(paths: readonly TreePath[]): TreeState | null {
  if (paths.length === 0) return null;
  const root = emptyState({ sample: 0, turn: 0 });
  const actions = new Map<TreeState, Map<string, TreeAction>>();
  const states = new Map<TreeAction, Map<string, TreeState>>();
  const rewards = new Map<TreeAction, number[]>();
  paths.forEach(({ tokens, turns, inherited, reward }, sample) => {
    let state = root;
    turns.forEach(({ start, end }, turn) => {
      const known = within(actions, state);
      // A first turn may begin with tokens that nobody sampled.
      const key = keyOf(tokens, turn === 0 ? 0 : start, end);
      let action = known.get(key);
      if (!action) {
        action = { visits: 0, value: 0, drawnAt: null, next: [] };
        known.set(key, action);
        rewards.set(action, []);
        state.actions.push(action);
      }
      if (turn >= inherited) {
        state.draws++;
        action.drawnAt ??= { sample, turn };
      }
      action.visits++;
      rewards.get(action)!.push(reward);
      const following = turns[turn + 1];
      if (!following) return;
      const read = within(states, action);
      const observed = keyOf(tokens, end, following.start);
      let next = read.get(observed);
      if (!next) {
        next = emptyState({ sample, turn: turn + 1 });
        read.set(observed, next);
        action.next.push(next);
      }
      state = next;
    });
  });
  // A sum depends on its order by rounding: sorted, so that the order of the samples does not matter.
  for (const [action, of] of rewards) action.value = meanOf(of.toSorted((a, b) => a - b));
  return root;
}

/** All states, each before those that it leads to. */
export function statesOf(root: TreeState): TreeState[] {
  const states = [root];
  for (const { actions } of states) for (const { next } of actions) states.push(...next);
  return states;
}

/**
 * Where the next samples of a task branch off: from the root on to the action of the largest
 *
 *   value + exploration · √(ln N / (1 + n)), N samples having gone through the state and n through the action
 *
 * (UCB1, Auer et al. 2002, in the form of Agent Q, Putta et al. 2024, arXiv 2408.07199), until a state has fewer draws than
 * `width` or than √N (progressive widening, Couëtoux et al. 2011), or nothing that was drawn in it leads on. What has been
 * chosen counts as a visit of unknown worth for those chosen after it. Yields after each choice: among thousands of
 * samples it takes a millisecond.
 */
export function* chooseBranches(
  root: TreeState,
  count: number,
  { width, exploration }: { width: number; exploration: number },
): Generator<undefined, TreePlace[], undefined> {
  const pending = new Map<TreeState | TreeAction, number>();
  const expected = (of: TreeState | TreeAction): number => pending.get(of) ?? 0;
  const expect = (of: TreeState | TreeAction): unknown => pending.set(of, expected(of) + 1);
  const visitsOf = (action: TreeAction): number => action.visits + expected(action);

  const chosen: TreePlace[] = [];
  while (chosen.length < count) {
    let state = root;
    for (;;) {
      const visits = state.actions.reduce((sum, action) => sum + visitsOf(action), expected(state));
      const leading = state.actions.filter(({ next }) => next.length > 0);
      const draws = state.draws + expected(state);
      if (draws < width || draws < Math.floor(Math.sqrt(visits)) || leading.length === 0) break;
      const bound = (action: TreeAction): number =>
        action.value + exploration * Math.sqrt(Math.log(visits) / (1 + visitsOf(action)));
      const best = leading.reduce((a, b) => (bound(b) > bound(a) ? b : a));
      expect(best);
      state = best.next[0]!;
    }
    expect(state);
    chosen.push(state.place);
    yield;
  }
  return chosen;
}

const emptyState = (place: TreePlace): TreeState => ({ draws: 0, actions: [], place });

const keyOf = (tokens: readonly number[], from: number, to: number): string =>
  tokens.slice(from, to).join(' ');

function within<K, V>(maps: Map<K, Map<string, V>>, key: K): Map<string, V> {
  const found = maps.get(key) ?? new Map<string, V>();
  maps.set(key, found);
  return found;
}

import type { ToolCall } from '../../../core/episode/episode.ts';
import { GradusError } from '../../../core/errors.ts';
import type { Demonstration, DemonstrationTurn } from '../../contract/environment.ts';
import { inTurn } from '../../sandbox/in-turn.ts';
import { openProblem, type Problem } from './session.ts';

interface Element {
  role: string;
  name: string | undefined;
  ref: string;
}

/** What a snapshot has a line of its own for. */
const elementsOf = (snapshot: string): Element[] =>
  [...snapshot.matchAll(/- (\w+)(?: "(.*?)")?(?: \[\w+\])* \[ref=(\w+)\]/g)].map(([, role, name, ref]) => ({
    role: role!,
    name,
    ref: ref!,
  }));

const click = ({ ref }: Element): ToolCall => ({ name: 'click', arguments: { ref } });

/** The button that the page's sentence names. */
function namedButton(snapshot: string): ToolCall[] {
  const asked = /Click (?:on the "(.+?)" button|button (\w+))\./.exec(snapshot)!;
  const name = asked[1] ?? asked[2];
  return [click(elementsOf(snapshot).find((one) => one.role === 'button' && one.name === name)!)];
}

const first = (snapshot: string, role: string): Element =>
  elementsOf(snapshot).find((one) => one.role === role)!;

/** What to do on a page, by what its snapshot says. */
const WAYS: Readonly<Record<string, (snapshot: string) => ToolCall[]>> = {
  'click-test': (snapshot) => [click(first(snapshot, 'button'))],
  'click-test-2': namedButton,
  'click-test-transfer': namedButton,
  'click-button': namedButton,
  'focus-text': (snapshot) => [click(first(snapshot, 'textbox'))],
  'focus-text-2': (snapshot) => {
    const [, place] = /Focus into the (\d)\w\w input textbox/.exec(snapshot)!;
    const boxes = elementsOf(snapshot).filter(({ role }) => role === 'textbox');
    return [click(boxes[Number(place) - 1]!)];
  },
  'enter-text': (snapshot) => {
    const [, text] = /Enter "(.+?)" into the text field/.exec(snapshot)!;
    const { ref } = first(snapshot, 'textbox');
    return [{ name: 'type', arguments: { ref, text: text! } }, click(first(snapshot, 'button'))];
  },
};

/**
 * Reads the page and does what it says, in a browser. Throws what `openPage` throws, and
 * GradusError('environment', 'demonstration') where the page did not reward it.
 */
export function demonstrate(problem: Problem): Promise<Demonstration> {
  // A round asks for hundreds: pages that open at once would time out.
  return inTurn(new AbortController().signal, () => play(problem));
}

async function play(problem: Problem): Promise<Demonstration> {
  const session = await openProblem(problem);
  try {
    const turns: DemonstrationTurn[] = [];
    const act = async (call: ToolCall) => {
      const did = await session.act(call);
      turns.push({ call, observation: did.text });
      return did;
    };
    let last = await act({ name: 'look', arguments: {} });
    for (const call of WAYS[problem.page]!(last.text)) last = await act(call);
    if (last.reward !== 1) {
      throw new GradusError('environment', 'demonstration', `${problem.page} did not reward its expert`);
    }
    return { turns, weight: 1 };
  } finally {
    await session.close();
  }
}

import type { Json } from '../../../core/json/json.ts';
import { defineEnvironment, type Environment } from '../../contract/environment.ts';
import { fold } from '../../contract/session.ts';
import { formatVerifier } from '../../verifiers/format.ts';
import { toolShaping } from '../../verifiers/tool-shaping.ts';
import { demonstrate } from './demonstrate.ts';
import { actAtDesk, openDesk, type Desk } from './desk.ts';
import { goalOf, infoOf, type Goal } from './goal.ts';
import { hint } from './hint.ts';
import { LEVELS } from './levels.ts';
import { goalAt } from './tasks.ts';
import { POLICY, retailTools } from './tools.ts';
import { retailVerifier } from './verifier.ts';

/** A shop's customer service: a customer to talk to, a database to read, and changes that need a yes. */
export function retailEnvironment(): Environment {
  return defineEnvironment({
    name: 'retail',
    version: 'tasks 3',
    levels: LEVELS.map(({ level }) => level),
    tools: retailTools,
    verifiers: [retailVerifier(), formatVerifier(), toolShaping()],
    sessions: fold<Json>({
      open: (task) => asJson(openDesk(goalOf(task))),
      act: async (desk, call, context) => {
        const { state, did } = actAtDesk(desk as unknown as Desk, goalOf(await context.task()), call);
        return { state: asJson(state), did };
      },
    }),
    task: (ref) => {
      const goal = goalAt(ref);
      return {
        ref,
        prompt: promptOf(goal),
        calls: goal.wishes.flatMap(({ write }) => write ?? []),
        info: infoOf(goal),
      };
    },
    demonstrate,
    hint,
    taskCount: () => Infinity,
  });
}

const asJson = (desk: Desk): Json => desk as unknown as Json;

const promptOf = ({ signedIn, wishes }: Goal): string =>
  signedIn ? wishes[0]!.said : `${POLICY}\n\nCustomer: ${wishes[0]!.said}`;

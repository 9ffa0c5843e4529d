import { defineDialect, z } from '../extend.ts';

/**
 * A dialect of one's own: `call NAME {"argument": …}` on a line of its own is a call, and any other turn is the answer.
 * What a tool or a user says stands behind `RESULT` and `USER`.
 */
export default defineDialect({
  name: 'plain-calls',
  options: z.strictObject({
    turnEnd: z.string().default('<|im_end|>').describe('The token that ends a turn.'),
  }),
  turnEnds: ({ options }) => [options.turnEnd],
  prompt: (messages, { tools }) => [
    'Call a tool by a line such as: call NAME {"ARGUMENT": "VALUE"}\n',
    ...tools.flatMap(({ name, description }) => [{ text: `${name}: ${description}\n` }]),
    ...messages.flatMap(({ content }) => ['USER ', { text: content }, '\n']),
    'POLICY ',
  ],
  between: (messages) => [
    ...messages.flatMap(({ role, content }) => [
      role === 'tool' ? '\nRESULT ' : '\nUSER ',
      { text: content },
    ]),
    '\nPOLICY ',
  ],
  parse(turn) {
    const [, name, given] = /^call (\S+) (\{.*\})$/su.exec(turn) ?? [];
    if (name !== undefined) {
      try {
        return { kind: 'call', call: { name, arguments: JSON.parse(given!) } };
      } catch {
        return { kind: 'malformed', reason: 'the arguments are no JSON' };
      }
    }
    if (turn.startsWith('call '))
      return { kind: 'malformed', reason: 'write: call NAME {"ARGUMENT": "VALUE"}' };
    return turn === '' || turn !== turn.trim()
      ? { kind: 'malformed', reason: 'no call and no answer' }
      : { kind: 'answer', answer: turn };
  },
  write: ({ call, answer }) =>
    call ? [`call `, { text: `${call.name} ${JSON.stringify(call.arguments)}` }] : [{ text: answer! }],
});

import { defineAgentLoop, z } from '../extend.ts';
import type { LoopMessage } from '../extend.ts';

/**
 * An agent loop of one's own: the policy answers, is asked to think again, and its last answer counts. All of its answers
 * are trained by the reward of the last one.
 */
export default defineAgentLoop({
  name: 'second-thought',
  options: z.strictObject({
    times: z.int().min(0).max(8).default(1).describe('How often it is asked again.'),
    words: z.string().default('Check your answer, and give it again.'),
  }),
  async episode({ task, options, turn }) {
    const messages: LoopMessage[] = [{ role: 'user', content: task }];
    for (let asked = 0; ; asked++) {
      const answer = await turn(messages);
      if (asked === options.times) return answer.content;
      messages.push(answer, { role: 'user', content: options.words });
    }
  },
});

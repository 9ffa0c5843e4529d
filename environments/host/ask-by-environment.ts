import { groupBy } from '../../core/group-by.ts';
import type { HostedEnvironment } from './hosted-environment.ts';

/** In the order of the questions, with those of one environment asked together, and all environments at once. */
export async function askByEnvironment<Question, Answer>(
  questions: readonly Question[],
  environmentOf: (question: Question) => HostedEnvironment,
  ask: (environment: HostedEnvironment, some: Question[]) => Promise<readonly Answer[]>,
): Promise<Answer[]> {
  const all: Answer[] = [];
  const places = groupBy([...questions.keys()], (place) => environmentOf(questions[place]!));
  await Promise.all(
    [...places].map(async ([environment, own]) => {
      const answers = await ask(
        environment,
        own.map((place) => questions[place]!),
      );
      answers.forEach((answer, n) => (all[own[n]!] = answer));
    }),
  );
  return all;
}

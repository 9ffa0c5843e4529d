import type { FC } from 'hono/jsx';
import type { OpenQuestion } from '../../../core/question.ts';
import { runAt } from '../../address.ts';
import type { Context } from '../../context.ts';
import { ActionButton } from '../../parts/action.tsx';
import { Text } from '../../parts/text.tsx';

export const QuestionOf: FC<{ run: string; question: OpenQuestion; context: Context }> = ({
  run,
  question,
  context,
}) => (
  <section class="question" aria-labelledby="asked">
    <h2 id="asked">This run waits for an answer</h2>
    <p>
      <Text value={question.reason} />
    </p>
    {question.answers.map(({ answer, effect }) =>
      context.actions ? (
        <div class="answer">
          {answer === 'stop' ? (
            // It asks back, as whenever a run is stopped.
            <a href={`${runAt(run)}/stop`}>stop …</a>
          ) : (
            <ActionButton to={`${runAt(run)}/decide`} token={context.formToken} label={answer}>
              <input type="hidden" name="question" value={question.id} />
              <input type="hidden" name="answer" value={answer} />
            </ActionButton>
          )}
          <span>
            <Text value={effect} />
          </span>
        </div>
      ) : (
        <p>
          <code>{answer}</code>: <Text value={effect} />
        </p>
      ),
    )}
  </section>
);

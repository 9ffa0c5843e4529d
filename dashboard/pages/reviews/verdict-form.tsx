import type { FC } from 'hono/jsx';
import type { Opinion } from '../../../core/ladder/opinions.ts';
import type { ReviewState } from '../../../workflows/ladder/review-state.ts';
import { reviewAt } from '../../address.ts';
import { ActionButton } from '../../parts/action.tsx';
import { Text } from '../../parts/text.tsx';
import { LONGEST_COMMENT, LONGEST_NAME } from './form.ts';
import { Who } from './closing.tsx';

export const Forms: FC<{ id: string; state: ReviewState; token: string; typed: Opinion | null }> = ({
  id,
  state,
  token,
  typed,
}) => (
  <>
    <h2>Your verdict</h2>
    <form method="post" action={`${reviewAt(id)}/submit`} class="verdict">
      <input type="hidden" name="token" value={token} />
      <Who label="Your name" name="reviewer" value={typed?.reviewer ?? ''} />
      <label>
        Score, from 0, a clear no, to 1, a clear yes
        <input
          name="score"
          type="number"
          min="0"
          max="1"
          step="any"
          required
          value={typed === null || Number.isNaN(typed.score) ? '' : String(typed.score)}
        />
      </label>
      <label>
        Comment (optional)
        <textarea name="comment" rows={4} maxlength={LONGEST_COMMENT}>
          {typed?.comment ?? ''}
        </textarea>
      </label>
      <button type="submit">Submit verdict</button>
    </form>
    {state.opinions.length > 0 && (
      <>
        <h2>Withdraw a verdict</h2>
        <ActionButton to={`${reviewAt(id)}/withdraw`} token={token} label="Withdraw it">
          <label>
            Whose
            <select name="reviewer">
              {state.opinions.map(({ reviewer }) => (
                <option value={reviewer}>
                  <Text value={reviewer} max={LONGEST_NAME} />
                </option>
              ))}
            </select>
          </label>
          <label>
            Why
            <input name="reason" maxlength={LONGEST_COMMENT} />
          </label>
        </ActionButton>
      </>
    )}
    <p>
      <a href={`${reviewAt(id)}/close`}>Close the review without a verdict …</a>
    </p>
  </>
);

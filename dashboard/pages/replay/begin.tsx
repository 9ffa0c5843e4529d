import type { FC } from 'hono/jsx';
import type { Place } from '../../../runs/episodes/place.ts';
import type { Context } from '../../context.ts';
import { ActionButton } from '../../parts/action.tsx';
import type { ReplayView } from './address.ts';
import { replayAt } from './address.ts';

export const MOST_ALTERNATIVES = 20;

export const BeginReplay: FC<{ place: Place; looked: ReplayView; context: Context }> = ({
  place,
  looked,
  context,
}) => (
  <>
    <h2>Sample again</h2>
    <ActionButton to={replayAt(place)} token={context.formToken} label="Replay">
      <label>
        alternatives at each token{' '}
        <input type="number" name="alternatives" value="5" min="0" max={MOST_ALTERNATIVES} required />
      </label>
    </ActionButton>
    <h2 id="fork">Fork</h2>
    <p>
      From a token that the policy sampled: with another one in its place and otherwise the same draws, or
      with other draws. Tools are really called, the run's fast verifiers judge it, and nothing of it is kept
      in the run.
    </p>
    <ActionButton to={`${replayAt(place)}/fork`} token={context.formToken} label="Fork">
      <label>
        position <input type="number" name="at" value={looked.at} min="0" required />
      </label>
      <label>
        id of the token <input type="number" name="with" value={looked.token} min="0" />
      </label>
      <label>
        seed of other draws <input type="number" name="seed" min="0" />
      </label>
    </ActionButton>
  </>
);

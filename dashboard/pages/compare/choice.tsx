import type { FC } from 'hono/jsx';
import { ALONG, MOST_RUNS } from '../../../runs/comparison/compare.ts';
import type { ComparisonRequest } from '../../../runs/comparison/compare.ts';
import { NAMES, placeText } from './asking.ts';
import type { Asking } from './asking.ts';

/** Places to choose from: of a run of thousands of steps the newest. */
const MOST_PLACES = 300;

export const Choice: FC<{
  asking: Asking;
  known: readonly string[];
  places: readonly ComparisonRequest[];
}> = ({ asking: { runs, by, figures, at, tasks, parting }, known, places }) => (
  <form method="get" action="/compare" class="filters">
    {Array.from({ length: MOST_RUNS }, (_, i) => (
      <label>
        run {i + 1}
        {i > 1 && ', if any'}
        <input name="run" value={known.includes(runs[i] ?? '') ? runs[i] : ''} list="runs" size={18} />
      </label>
    ))}
    <datalist id="runs">
      {known.map((run) => (
        <option value={run} />
      ))}
    </datalist>
    <label>
      charts by
      <select name="by">
        {ALONG.map((along) => (
          <option value={along} selected={along === by}>
            {NAMES[along]}
          </option>
        ))}
      </select>
    </label>
    <label>
      figures
      <select name="figures">
        <option value="curated" selected={figures === 'curated'}>
          the most telling
        </option>
        <option value="all" selected={figures === 'all'}>
          all
        </option>
      </select>
    </label>
    <label>
      they part
      <select name="parting">
        <option value="facts" selected={parting === 'facts'}>
          by the facts of steps
        </option>
        <option value="episodes" selected={parting === 'episodes'}>
          by every stored episode (reads all of them)
        </option>
      </select>
    </label>
    {places.length > 0 && (
      <>
        <label>
          tasks of
          <select name="at">
            {places.slice(0, MOST_PLACES).map((place) => (
              <option value={placeText(place)} selected={at !== null && placeText(at) === placeText(place)}>
                {placeText(place)}
              </option>
            ))}
          </select>
        </label>
        <label>
          of these
          <select name="tasks">
            <option value="differing" selected={tasks === 'differing'}>
              those solved by some alone
            </option>
            <option value="all" selected={tasks === 'all'}>
              all
            </option>
          </select>
        </label>
      </>
    )}
    <button type="submit">Compare</button>
  </form>
);

import type { FC } from 'hono/jsx';
import { OBSERVED_ERRORS } from '../../../core/episode/facts.ts';
import { printable } from '../../../core/printable.ts';
import type { Findings } from '../../../runs/find/find.ts';
import { ANY_ERROR, HINT, ORDERS, OUTCOMES, SORTS, SPLITS, SUCCESS } from '../../../runs/find/find-query.ts';
import type { Query, QueryName } from '../../../runs/find/find-query.ts';
import { WORDS } from '../../../runs/find/find-words.ts';
import { Text } from '../../parts/text.tsx';
import type { FindRequest } from './asked.ts';

/** Of a list that becomes boxes to tick; a longer one is asked for by its name. */
const MOST_BOXES = 24;

export const Form: FC<{ asked: FindRequest; findings: Findings; stages: string[] }> = ({
  asked: { run, query },
  findings: { there },
  stages,
}) => (
  <form method="get" action="/find" class="filters">
    <input type="hidden" name="run" value={run} />
    <Boxes legend="stage" name="stage" query={query} of={stages} />
    <Boxes legend="environment" name="environment" query={query} of={there.environments} />
    <Boxes legend="level" name="level" query={query} of={there.levels.map(String)} />
    <Boxes legend="split" name="split" query={query} of={SPLITS} />
    <Boxes legend="outcome" name="outcome" query={query} of={OUTCOMES} />
    <Boxes legend="solved" name="success" query={query} of={SUCCESS} />
    <Boxes legend="with a hint" name="hint" query={query} of={there.hinted > 0 ? HINT : []} />
    <Between legend="step" names={['from-step', 'to-step']} query={query} />
    <Between legend="reward" names={['min-reward', 'max-reward']} query={query} />
    <Between legend="sampled tokens" names={['min-tokens', 'max-tokens']} query={query} />
    <Between legend="turns" names={['min-turns', 'max-turns']} query={query} />
    <Choice label="called the tool" name="tool" query={query} of={there.tools} />
    <Choice label="got an error" name="error" query={query} of={[ANY_ERROR, ...OBSERVED_ERRORS]} />
    <label>
      text in it (every trajectory is read)
      <input name="text" value={query.text ?? ''} maxlength={200} />
    </label>
    <Choice label="sorted by" name="sort" query={query} of={SORTS} needed />
    <Choice label="order" name="order" query={query} of={ORDERS} needed />
    <button type="submit">Find</button>
  </form>
);

/** A policy can write a name that no form can say. */
const isSayable = (value: string): boolean => value.length <= 200 && printable(value) === value;

const valuesOf = (query: Query, name: QueryName): string[] => {
  const value = query[name];
  return value === undefined ? [] : (Array.isArray(value) ? value : [value]).map(String);
};

const Boxes: FC<{ legend: string; name: QueryName; query: Query; of: readonly string[] }> = ({
  legend,
  name,
  query,
  of,
}) => {
  const chosen = valuesOf(query, name);
  // What was asked for stays asked for, though there be none of it.
  const all = [...new Set([...of, ...chosen])].filter(isSayable);
  if (all.length > MOST_BOXES) return <Choice label={legend} name={name} query={query} of={all} />;
  if (all.length === 0) return null;
  return (
    <fieldset>
      <legend title={WORDS[name]}>{legend}</legend>
      {all.map((value) => (
        <label class="box">
          <input type="checkbox" name={name} value={value} checked={chosen.includes(value)} />
          <Text value={value} max={80} />
        </label>
      ))}
    </fieldset>
  );
};

const Between: FC<{ legend: string; names: readonly [QueryName, QueryName]; query: Query }> = ({
  legend,
  names,
  query,
}) => (
  <fieldset>
    <legend>{legend}</legend>
    {names.map((name, i) => (
      <label>
        {i === 0 ? 'from' : 'to'}
        <input name={name} inputmode="decimal" size={6} value={valuesOf(query, name)[0] ?? ''} />
      </label>
    ))}
  </fieldset>
);

const Choice: FC<{
  label: string;
  name: QueryName;
  query: Query;
  of: readonly string[];
  needed?: boolean;
}> = ({ label, name, query, of, needed = false }) => {
  const [chosen = ''] = valuesOf(query, name);
  const all = [...new Set([...of, ...(chosen === '' ? [] : [chosen])])].filter(isSayable);
  return (
    <label>
      {label}
      <select name={name}>
        {!needed && <option value="">any</option>}
        {all.map((value) => (
          <option value={value} selected={value === chosen}>
            <Text value={value} max={80} />
          </option>
        ))}
      </select>
    </label>
  );
};

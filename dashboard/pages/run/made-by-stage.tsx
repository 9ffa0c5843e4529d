import { Text } from '../../parts/text.tsx';
import { Table, numeric } from '../../parts/table.tsx';

/** What stages have made before their first step: how much, and what the rest was left out by. Nothing where none made any. */
export function MadeByStage<Facts extends object>({
  heading,
  caption,
  columns,
  stages,
}: {
  heading: string;
  caption: string;
  columns: readonly (readonly [keyof Facts & string, string])[];
  stages: ReadonlyMap<string, Facts>;
}) {
  if (stages.size === 0) return null;
  return (
    <>
      <h2>{heading}</h2>
      <Table caption={caption} columns={['stage', ...columns.map(([, label]) => numeric(label))]}>
        {[...stages].map(([stage, facts]) => (
          <tr>
            <th scope="row">
              <Text value={stage} max={100} />
            </th>
            {columns.map(([key]) => (
              <td class="number">{facts[key] === null ? 'no filter' : String(facts[key])}</td>
            ))}
          </tr>
        ))}
      </Table>
    </>
  );
}

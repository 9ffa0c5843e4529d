import type { FC } from 'hono/jsx';
import { printable } from '../../core/printable.ts';
import type { Json } from '../../core/json/json.ts';
import type { SubjectBlock } from '../../environments/contract/environment.ts';
import type { Presentation } from '../../runs/ladder/presenter.ts';
import { drawingAt } from '../address.ts';
import { Scroll } from './scroll.tsx';
import { TextBlock, Text } from './text.tsx';

/** What a verifier is asked about: as its environment shows it, and as it is. */
export const Subject: FC<{ subject: Json; presentation: Presentation | null }> = ({
  subject,
  presentation,
}) => {
  const blocks = presentation?.blocks ?? [];
  const json = JSON.stringify(subject, null, 2);
  return (
    <div class="subject">
      {presentation?.problem != null && (
        <p class="warning">
          Its environment does not show it, so this is its JSON:{' '}
          <Text value={presentation.problem} max={1000} />
        </p>
      )}
      {blocks.map((block, i) => (
        <Shown block={block} at={drawingAt(presentation!.key, i)} />
      ))}
      {blocks.length === 0 ? (
        <TextBlock value={json} label="The subject as JSON" />
      ) : (
        <details>
          <summary>As JSON</summary>
          <TextBlock value={json} label="The subject as JSON" />
        </details>
      )}
    </div>
  );
};

const Shown: FC<{ block: SubjectBlock; at: string }> = ({ block, at }) => {
  switch (block.kind) {
    case 'text':
      return (
        <p class="prose">
          <Text value={block.text} max={20_000} />
        </p>
      );
    case 'svg':
      return <img class="drawing" src={at} alt={printable(block.alt)} />;
    default: {
      // One of numbers and of words is read from the left.
      const isNumbers = block.columns.map((_, i) => block.rows.every((row) => typeof row[i] === 'number'));
      return (
        <Scroll label="what is known of the subject">
          <table>
            {block.columns.some((column) => column !== '') && (
              <thead>
                <tr>
                  {block.columns.map((column) =>
                    column === '' ? (
                      <td />
                    ) : (
                      <th scope="col">
                        <Text value={column} />
                      </th>
                    ),
                  )}
                </tr>
              </thead>
            )}
            <tbody>
              {block.rows.map((row) => (
                <tr>
                  {row.map((cell, i) => (
                    <td class={isNumbers[i] === true ? 'number' : ''}>
                      <Text value={String(cell)} />
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      );
    }
  }
};

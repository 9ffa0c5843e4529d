import type { Child, FC } from 'hono/jsx';
import { candidateAt } from '../../address.ts';
import { Scroll } from '../../parts/scroll.tsx';
import { Text } from '../../parts/text.tsx';

/** A link to what became of a subject, by the start of its digest. */
export const SubjectLink: FC<{ run: string; verifier: string; digest: string }> = ({
  run,
  verifier,
  digest,
}) => (
  <a href={candidateAt(run, verifier, digest)}>
    <code>
      <Text value={digest.slice(0, 12)} />
    </code>
  </a>
);

export const Listing: FC<{ caption: string; columns: readonly string[]; children?: Child }> = ({
  caption,
  columns,
  children,
}) => (
  <Scroll label={caption}>
    <table>
      <caption>{caption}</caption>
      <thead>
        <tr>
          {columns.map((column) => (
            <th scope="col">{column}</th>
          ))}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  </Scroll>
);

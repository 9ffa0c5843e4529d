import type { FC } from 'hono/jsx';
import { candidateAt } from '../../address.ts';
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

import type { LedgerEntry } from './ledger.ts';
import type { Arrived } from './requests.ts';

/** A verdict that came, as the ledger of the one who waited for it has it, with what was lost on the way. */
export function entriesOf(
  { verifier, version, digest, result, type, spent, lost, by }: Arrived,
  where: { stage: string; late: boolean; afterRun?: boolean },
): LedgerEntry[] {
  const about = { stage: where.stage, verifier, version, digest };
  const came: LedgerEntry = {
    kind: 'verdict',
    ...about,
    result,
    ...(type !== undefined && { type }),
    spent,
    late: where.late,
    ...(where.afterRun && { afterRun: true }),
    ...(by && { by }),
  };
  return lost ? [{ kind: 'lost', ...about, ...lost }, came] : [came];
}

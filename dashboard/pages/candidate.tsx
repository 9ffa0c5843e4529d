import type { Child, FC } from 'hono/jsx';
import type { LedgerEntry } from '../../core/ladder/ledger.ts';
import type { TierAnswer } from '../../core/tier-contract.ts';
import { GradusError } from '../../core/errors.ts';
import { candidateLife, proposalOf } from '../../runs/ladder/candidate.ts';
import type { CandidateLife, Proposal, SubjectView } from '../../runs/ladder/candidate.ts';
import type { LadderObserver } from '../../runs/ladder/ladder.ts';
import type { PlacedEntry } from '../../runs/ladder/ledger-book.ts';
import type { Presentation } from '../../runs/ladder/presenter.ts';
import { rolloutKey } from '../../store/keys.ts';
import { loadTrajectories } from '../../store/rollout/trajectories.ts';
import { candidateAt, episodeAt, ladderAt, reviewAt, stepAt } from '../address.ts';
import type { App, Context } from '../context.ts';
import { Layout } from '../layout.tsx';
import { crumbsOfRun } from '../parts/crumbs.ts';
import { amountText, dollars, duration, priceText } from '../parts/numbers.tsx';
import { Table } from '../parts/table.tsx';
import { Subject } from '../parts/subject.tsx';
import { TextBlock, Text } from '../parts/text.tsx';
import { ids } from '../../core/names.ts';

/** `/runs/RUN/candidates/VERIFIER/DIGEST`: the way of one candidate up the ladder, with the price of each verdict. */
export function candidatePage(
  app: App,
  { sources: { store }, presenter, ladder }: Context & { ladder: LadderObserver },
): void {
  app.get('/runs/:run/candidates/:verifier/:digest', async (c) => {
    const { run, verifier, digest } = c.req.param();
    const book = await ladder.ledgers.of(run);
    const life = await candidateLife(store, book, run, { verifier, digest });
    const asked = life.subjects.find(({ ask }) => ask !== null)?.ask ?? null;
    const presentation = asked && (await presenter.present(asked.environment, asked.request.subject));
    return c.html(
      <Layout
        title={`Candidate ${digest.slice(0, 12)}`}
        crumbs={[...crumbsOfRun(run), { href: ladderAt(run), label: 'Verification ladder' }]}
      >
        <Life life={life} presentation={presentation} at={candidateAt(run, verifier, digest)} />
      </Layout>,
    );
  });

  /** Which of the group's episodes it is, its file says: that is opened for who wants to see it. */
  app.get('/runs/:run/candidates/:verifier/:digest/episodes/:id', async (c) => {
    const { run, id } = c.req.param();
    const proposal = proposalOf(id);
    const found =
      proposal?.group == null ? null : await episodeOf(run, { ...proposal, group: proposal.group });
    if (found === null) {
      throw new GradusError('store', 'no-episode', `no episode ${id.slice(0, 200)} of ${run} is kept`);
    }
    return c.redirect(found);
  });

  async function episodeOf(run: string, proposal: Proposal & { group: number }): Promise<string | null> {
    const { stage, step, group, name, task, sample } = proposal;
    const ref = await store.head(rolloutKey(run, stage, step, name));
    if (!ref) return null;
    const { episodes } = await loadTrajectories(store, ref);
    const episode = episodes.findIndex((one) => one.task === task && one.sample === sample);
    return episode < 0 ? null : episodeAt({ run, stage, step, group, episode });
  }
}

const Life: FC<{ life: CandidateLife; presentation: Presentation | null; at: string }> = ({
  life,
  presentation,
  at,
}) => {
  const asked = life.subjects.find(({ ask }) => ask !== null)?.ask;
  const paid = life.subjects.flatMap(({ spent }) => spent ?? []);
  // What people were asked takes as long as their review is open.
  const secondsOf = (people: boolean): number =>
    life.subjects
      .filter(({ ask }) => (ask?.served.by === 'people') === people)
      .reduce((sum, { spent }) => sum + (spent?.seconds ?? 0), 0);
  const [computing, open] = [secondsOf(false), secondsOf(true)];
  return (
    <>
      {asked ? (
        <Subject subject={asked.request.subject} presentation={presentation} />
      ) : (
        <p class="note">
          This run did not ask about it itself: the verdict was known already, and the request is not stored
          with the run.
        </p>
      )}
      <h2>Verdicts and their price</h2>
      <p>
        This run paid {duration(computing)} and {dollars(paid.reduce((sum, one) => sum + one.usd, 0))} for it
        {open > 0 && `; reviews were open for ${duration(open)}, which is not working time`}.
      </p>
      <Table label="verdicts" columns={['by', 'verdict', 'paid by this run', 'evidence']}>
        {life.subjects.map((one) => (
          <VerdictRow run={life.run} of={one} />
        ))}
      </Table>
      <h2>What happened</h2>
      {life.left > 0 && (
        <p class="warning">{life.left} older pages of the ledger have more of it and are not shown.</p>
      )}
      <ol class="events">
        {life.events.map((one) => (
          <li>
            <Event run={life.run} of={one} />
          </li>
        ))}
      </ol>
      <h2>Episodes that proposed it</h2>
      <ul class="events">
        {life.proposals.map(({ id, stage, step, group, task, sample }) => (
          <li data-item>
            {group === null ? (
              <a href={stepAt({ run: life.run, stage, step })}>
                <Text value={`${stage} ${step}`} max={200} />
              </a>
            ) : (
              <a href={`${at}/episodes/${encodeURIComponent(id)}`}>
                <Text value={`${stage} ${step}, group ${group}, task ${task}, sample ${sample}`} max={200} />
              </a>
            )}
          </li>
        ))}
      </ul>
      {life.moreProposals > 0 && <p class="note">and {life.moreProposals} earlier ones</p>}
    </>
  );
};

const VerdictRow: FC<{ run: string; of: SubjectView }> = ({ run, of }) => {
  const { verifier, version, digest, ask, answer, spent, late, afterRun } = of;
  const byPeople = ask?.served.by === 'people' && version !== null;
  return (
    <tr>
      <th scope="row">
        <a href={candidateAt(run, verifier, digest)}>
          <Text value={verifier} max={100} />
        </a>{' '}
        {version !== null && (
          <small>
            version <Text value={version} max={50} />
          </small>
        )}
        {byPeople && (
          <>
            {' '}
            <a href={reviewAt(ids.verdict({ verifier, version, digest }))}>the review</a>
          </>
        )}
      </th>
      <td>
        {answer === null ? 'nothing yet' : <AnswerOfTier of={answer} />}
        {late && (afterRun ? ', after the end of the run' : ', late')}
      </td>
      <td>{spent === null ? priceOfOthers(answer) : priceText(spent, byPeople)}</td>
      <td>
        {answer?.evidence !== undefined && <TextBlock value={answer.evidence} max={4000} label="evidence" />}
      </td>
    </tr>
  );
};

/** What somebody paid before, where this run did not. */
function priceOfOthers(answer: TierAnswer | null): string {
  if (answer === null) return 'nothing';
  const { seconds, usd } = answer.spent;
  return `nothing: it was shared, and took ${duration(seconds)}, ${dollars(usd)} when it was computed`;
}

export const AnswerOfTier: FC<{ of: TierAnswer }> = ({ of }) => {
  if (of.kind === 'scored') {
    const { score, uncertainty } = of;
    return <>{`${score.toFixed(3)}${uncertainty === undefined ? '' : ` ± ${uncertainty.toFixed(3)}`}`}</>;
  }
  if (of.kind === 'abstained') {
    return (
      <>
        abstained (<Text value={of.type} max={100} />
        ): <Text value={of.reason} max={1000} />
      </>
    );
  }
  return (
    <ul class="plain">
      {Object.entries(of.values).map(([name, value]) => (
        <li>
          <Text value={name} max={100} /> {value.toPrecision(4)}
          {of.uncertainties?.[name] !== undefined && ` ± ${of.uncertainties[name].toPrecision(2)}`}
        </li>
      ))}
    </ul>
  );
};

const WORDS: Record<Extract<LedgerEntry, { kind: 'decision' }>['decision'], string> = {
  escalate: 'escalated to',
  defer: 'deferred, for',
  accept: 'accepted by',
  reject: 'rejected by',
};

const Event: FC<{ run: string; of: PlacedEntry }> = ({ run, of: { writer, entry } }) => {
  const by: Child = writer !== 'run' && <small> (received by {writer.replace(/-[0-9a-f-]{8,}$/, '')})</small>;
  switch (entry.kind) {
    case 'decision':
      return (
        <>
          <strong>{WORDS[entry.decision]}</strong> <Text value={entry.verifier} max={100} />
          {': '}
          <Text value={entry.reason} max={500} /> <small>{figuresOf(entry)}</small> <small>in </small>
          <a href={stepAt({ run, stage: entry.stage, step: entry.step })}>
            <Text value={`${entry.stage} ${entry.step}`} max={100} />
          </a>{' '}
          <small>
            as <Text value={entry.candidate} max={200} />
          </small>
        </>
      );
    case 'verdict':
      return (
        <>
          <strong>a verdict of</strong> <Text value={entry.verifier} max={100} /> came
          {entry.late && (
            <strong class="warn">{entry.afterRun ? ' after the end of the run' : ' late'}</strong>
          )}
          : {entry.result}
          {entry.type !== undefined && (
            <>
              {' ('}
              <Text value={entry.type} max={100} />)
            </>
          )}
          , {entry.spent === null ? 'paid by others' : `for ${priceText(entry.spent, entry.by === 'people')}`}
          {by}
        </>
      );
    case 'lost':
      return (
        <>
          <strong class="bad">
            {entry.attempts === 1 ? 'an attempt was lost' : `${entry.attempts} attempts were lost`}
          </strong>{' '}
          by <Text value={entry.verifier} max={100} />, which took {duration(entry.seconds)} at most; the
          last: <Text value={entry.reason} max={500} />
          {by}
        </>
      );
    case 'withdrawn':
      return (
        <>
          <strong>taken back</strong> from <Text value={entry.verifier} max={100} /> before it began: others
          had taken more than they had declared
        </>
      );
    default:
      return (
        <>
          <strong>trained on again</strong>: step {entry.step} of <Text value={entry.stage} max={100} /> had{' '}
          {amountText(entry.episodes, 'episode')} of step {entry.fromStep} once more, with the verdicts that
          came late
        </>
      );
  }
};

/** What the tier was expected to say, or what the last one said. */
const figuresOf = ({ decision, value, uncertainty }: Extract<LedgerEntry, { kind: 'decision' }>): string =>
  decision === 'escalate' || decision === 'defer'
    ? `(expected ${value.toFixed(3)} ± ${uncertainty.toFixed(3)})`
    : `(${value.toFixed(3)})`;

import type { FC } from 'hono/jsx';
import { callByCall } from '../../core/episode/call-by-call.ts';
import type { AgentCall, Episode, Observation, ToolCall, Turn } from '../../core/episode/episode.ts';
import { isHinted } from '../../core/episode/facts.ts';
import { GradusError } from '../../core/errors.ts';
import { commandLine } from '../../core/installation.ts';
import { tokenAdvantages } from '../../runs/episodes/token-advantages.ts';
import type { TokenAdvantages } from '../../runs/episodes/token-advantages.ts';
import { placeNumber, placeOf } from '../../runs/episodes/place.ts';
import type { Place } from '../../runs/episodes/place.ts';
import { readGroupAt as storedGroup } from '../../runs/episodes/group-at.ts';
import type { TokenizersOfRuns, TokenTexts } from '../../runs/episodes/token-texts.ts';
import { loadImage } from '../../store/rollout/images.ts';
import { episodeAt, runAt, taskAt } from '../address.ts';
import type { App, Context } from '../context.ts';
import { Layout } from '../layout.tsx';
import { crumbsOfStep } from '../parts/crumbs.ts';
import { duration } from '../parts/numbers.tsx';
import { Components, OutcomeLine } from '../parts/outcome.tsx';
import { TextBlock, Text } from '../parts/text.tsx';
import { pageIn, Pages, rowsOfPage } from '../parts/pages.tsx';
import { TokenLegend, Tokens } from '../parts/tokens.tsx';
import type { Colouring, ShownToken } from '../parts/tokens.tsx';

/** What browsers show as pictures and nothing else. */
const PICTURES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);

/** Turns of a page, and tokens that it shows one by one. */
const TURNS = 100;
const MOST_TOKENS = 6000;

/** `/runs/RUN/episodes/STAGE/STEP/GROUP/EPISODE`: an episode turn by turn, token by token, and why it was rewarded. */
export function episodePage(
  app: App,
  { sources, tokenizers }: Context & { tokenizers: TokenizersOfRuns },
): void {
  const { store } = sources;

  app.get('/runs/:run/episodes/:stage/:step/:group/:episode', async (c) => {
    const place = placeIn(c.req.param());
    const found = await storedGroup(store, place);
    const episode = found?.group.episodes[place.episode];
    if (!found || !episode) {
      throw new GradusError('store', 'no-episode', `no episode ${placeOf(place)} is kept`);
    }
    const task = found.group.tasks[episode.task]!;
    const [texts, learnt] = await Promise.all([
      tokenizers.of(place.run),
      tokenAdvantages(store, place, found.group, place.episode),
    ]);
    const by: Colouring = c.req.query('by') === 'advantage' ? 'advantage' : 'logprob';
    const beside = (i: number): string | null =>
      found.group.episodes[i] ? episodeAt({ ...place, episode: i }) : null;
    const page = pageIn(c.req.query('page'));
    const to = (colouring: Colouring, number: number): string => {
      const words = new URLSearchParams({
        ...(colouring === 'advantage' && { by: colouring }),
        ...(number > 1 && { page: String(number) }),
      }).toString();
      return `${episodeAt(place)}${words && `?${words}`}`;
    };
    const replay = commandLine(`replay ${placeOf(place)}`);
    return c.html(
      <Layout
        title={`Episode ${place.episode}`}
        crumbs={[...crumbsOfStep(place), { href: taskAt(place), label: `group ${place.group}` }]}
        prev={beside(place.episode - 1)}
        next={beside(place.episode + 1)}
      >
        <p>
          <Text value={task.ref.environment} max={100} /> level {task.ref.level}, {task.ref.split}{' '}
          {task.ref.index}; sample {episode.sample}
          {isHinted(task) && ', with a hint'}; sampled by <code>{found.group.weights.slice(0, 12)}</code> at
          temperature {found.group.temperature}
        </p>
        <p>
          <strong>
            <OutcomeLine outcome={episode.outcome} />
          </strong>
          {'. '}
          <Ending status={episode.status} />
        </p>
        <Components outcome={episode.outcome} />
        <ul>
          <li>
            <a href={`${episodeAt(place)}/timeline`}>Durable timeline</a>: its activities, their attempts, and
            what was lost
          </li>
          <li>
            <a href={`${episodeAt(place)}/replay`}>Replay it token by token</a>, or from a terminal:{' '}
            <code class="command">{replay}</code>
          </li>
        </ul>
        <h2>Prompt</h2>
        <TextBlock value={task.prompt} label="prompt" />
        <h2>Turns</h2>
        {texts !== null && (
          <>
            <p>
              {by === 'logprob' ? (
                <a href={to('advantage', page)}>Mark tokens by advantage</a>
              ) : (
                <a href={to('logprob', page)}>Mark tokens by probability</a>
              )}
            </p>
            <TokenLegend by={by} />
          </>
        )}
        {learnt === null && <p class="note">Its step did not train on it: there is no advantage.</p>}
        {learnt?.advantages === null && <p class="note">Its method gives tokens no advantage.</p>}
        {texts === null && (
          <p class="note">No checkpoint of the run is left with its tokenizer: turns are shown as text.</p>
        )}
        <Turns place={place} episode={episode} page={page} texts={texts} learnt={learnt} by={by} />
        <Pages
          label="turns"
          page={page}
          last={Math.ceil(episode.turns.length / TURNS)}
          to={(number) => to(by, number)}
        />
        {episode.calls && <AgentCalls calls={episode.calls} />}
      </Layout>,
    );
  });

  /** A picture that a tool showed. It is somebody else's file: nothing in it may do anything. */
  app.get('/runs/:run/images/:stage/:step/:group/:episode/:sha', async (c) => {
    const place = placeIn(c.req.param());
    const found = await storedGroup(store, place);
    const { turns = [], calls = [] } = found?.group.episodes[place.episode] ?? {};
    const brought = [...turns.flatMap(observed), ...calls.map(({ observation }) => observation)];
    const images = brought.flatMap((one) => one.images ?? []);
    const image = images.find(({ sha256 }) => sha256 === c.req.param('sha'));
    if (!image || !PICTURES.has(image.mediaType)) {
      throw new GradusError('store', 'no-image', 'no such picture was shown in this episode');
    }
    c.header('Content-Type', image.mediaType);
    c.header('Content-Security-Policy', "default-src 'none'; sandbox");
    return c.body(new Uint8Array(await loadImage(store, place.run, image)));
  });
}

const placeIn = (of: Record<'run' | 'stage' | 'step' | 'group' | 'episode', string>): Place => ({
  run: of.run,
  stage: of.stage,
  step: placeNumber('step', of.step),
  group: placeNumber('group', of.group),
  episode: placeNumber('episode', of.episode),
});

const Ending: FC<{ status: Episode['status'] }> = ({ status }) => {
  if (status.kind === 'truncated') return <>It had no more {status.limit}.</>;
  if (status.kind === 'ended') return <>Its environment ended it.</>;
  if (status.kind === 'running') return <>It goes on.</>;
  const [words, value] =
    status.kind === 'answered'
      ? ['It answered', status.answer]
      : status.kind === 'calling'
        ? ['It waits for', status.call.name]
        : [`It failed at ${status.boundary}`, status.reason];
  return (
    <>
      {words}: <Text value={value} max={500} />
    </>
  );
};

const Turns: FC<{
  place: Place;
  episode: Episode;
  page: number;
  texts: TokenTexts | null;
  learnt: TokenAdvantages | null;
  by: Colouring;
}> = ({ place, episode, page, texts, learnt, by }) => {
  const { tokens, mask, samplerLogprobs, turns } = episode;
  const first = (page - 1) * TURNS;
  const some = rowsOfPage(turns, page, TURNS);
  /** The tokens of these turns, as far as they are shown one by one. */
  const from = some[0]?.start ?? 0;
  const end = turns[first + TURNS]?.start ?? tokens.length;
  const until = Math.min(end, from + MOST_TOKENS);
  const shown: ShownToken[] | null =
    texts &&
    texts.textsOf(tokens.slice(from, until)).map((text, i) => ({
      text,
      logprob: mask[from + i] === 1 ? samplerLogprobs[from + i]! : null,
      advantage: learnt?.advantages?.[from + i] ?? null,
      masked: mask[from + i] === 0 || learnt?.mask[from + i] === 0,
    }));
  return (
    <ol class="turns" start={first + 1}>
      {some.map((turn, i) => (
        <li>
          <TurnOf place={place} turn={turn} />
          {shown === null || turn.start >= until ? (
            <TextBlock value={turn.text} label={`turn ${first + i + 1}`} />
          ) : (
            <pre class="text" tabindex={0} role="region" aria-label={`turn ${first + i + 1}, token by token`}>
              <Tokens tokens={shown.slice(turn.start - from, (some[i + 1]?.start ?? end) - from)} by={by} />
            </pre>
          )}
          {observed(turn).map(({ text, error, seconds, reward }, n) => (
            <details open={shown === null}>
              <summary>
                what came back{n > 0 && ` of call ${n + 1}`}
                {error && <span class="bad">: {error}</span>}
                {seconds !== undefined && `, after ${duration(seconds)}`}
                {reward !== undefined && `, reward ${reward}`}
              </summary>
              <TextBlock
                value={text}
                label={`observation of turn ${first + i + 1}${n > 0 ? `, call ${n + 1}` : ''}`}
              />
            </details>
          ))}
          {observed(turn)
            .flatMap(({ images = [] }) => images)
            .map(({ sha256, mediaType, bytes }) =>
              PICTURES.has(mediaType) ? (
                <img
                  src={`${runAt(place.run)}/images/${episodeAt(place).split('/episodes/')[1]}/${sha256}`}
                  alt={`What the tool showed: ${mediaType}, ${bytes} bytes`}
                  loading="lazy"
                />
              ) : (
                <p class="note">
                  An image of type <Text value={mediaType} max={60} />, {bytes} bytes, which is not shown
                  here.
                </p>
              ),
            )}
        </li>
      ))}
      {shown !== null && until < end && (
        <li class="note">
          Of the {end - from} tokens of these turns the first {until - from} are shown one by one.
        </li>
      )}
    </ol>
  );
};

/** Calls that are shown on a page of an episode. */
const MOST_CALLS = 100;

/** The calls that an agent made itself, whatever the policy's turns asked for. */
const AgentCalls: FC<{ calls: readonly AgentCall[] }> = ({ calls }) => (
  <>
    <h2>Calls of the environment's tools by the agent</h2>
    <ol class="turns">
      {calls.slice(0, MOST_CALLS).map(({ call, observation: { text, error, seconds } }, i) => (
        <li>
          <CallOf call={call} />
          <details>
            <summary>
              what came back{error && <span class="bad">: {error}</span>}
              {seconds !== undefined && `, after ${duration(seconds)}`}
            </summary>
            <TextBlock value={text} label={`what call ${i + 1} of the agent brought`} />
          </details>
        </li>
      ))}
      {calls.length > MOST_CALLS && (
        <li class="note">
          Of its {calls.length} calls the first {MOST_CALLS} are shown.
        </li>
      )}
    </ol>
  </>
);

/** What came back to a turn, call by call. */
const observed = (turn: Turn): Observation[] =>
  callByCall(turn).flatMap(({ observation }) => observation ?? []);

const CallOf: FC<{ call: ToolCall }> = ({ call }) => (
  <>
    calls <code>{<Text value={call.name} max={100} />}</code>{' '}
    <code>
      <Text value={JSON.stringify(call.arguments)} max={1000} />
    </code>
  </>
);

const TurnOf: FC<{ place: Place; turn: Turn }> = ({ turn: { action } }) => (
  <p>
    {action.kind === 'call' ? (
      <CallOf call={action.call} />
    ) : action.kind === 'calls' ? (
      action.calls.map((call, i) => (
        <>
          {i > 0 && <br />}
          <CallOf call={call} />
        </>
      ))
    ) : action.kind === 'answer' ? (
      <>
        answers <Text value={action.answer} max={500} />
      </>
    ) : (
      <span class="bad">
        neither a call nor an answer: <Text value={action.reason} max={500} />
      </span>
    )}
  </p>
);

import type { Json } from '../../core/json/json.ts';
import { episodeFactsOf } from '../../core/episode/facts.ts';
import type { RewardSpec } from '../../core/schema/reward.ts';
import { taskRefOf } from '../../core/training/tasks-again.ts';
import type { FoundEpisode } from '../find/found-episodes.ts';
import { placeOf } from '../episodes/place.ts';
import { agentCallsOf, callsOf, turnTextOf } from './messages.ts';

/** Of the Agent Trajectory Interchange Format (Harbor's RFC 0001) this is the oldest version that has all that is told here. */
const VERSION = 'ATIF-v1.7';

/**
 * An episode as a trajectory of ATIF. The tokens of the policy and their log-probs stand with their turns, as sampled;
 * those of the prompt with the first turn, and those of what came back beside it, so that the whole can be put together.
 */
export function atifOf(
  { place, group, task, episode }: FoundEpisode,
  reward: Pick<RewardSpec, 'components'>,
): object {
  const [facts] = episodeFactsOf({ ...group, episodes: [episode] }, reward);
  const { ref, tools, promptTokens } = task;
  const { tokens, samplerLogprobs, turns, inherited } = episode;
  const agentCalls = agentCallsOf(episode);
  const id = placeOf(place);
  const steps = turns.map((turn, i) => {
    const { start, end, action, observation } = turn;
    const { thought, content } = turnTextOf(turn);
    const calls = callsOf(turn, i);
    const made = calls.flatMap(({ id, observation: one }) => (one ? [{ id, observation: one }] : []));
    const results = made.length > 0 || !observation ? made : [{ id: undefined, observation }];
    const read = tokens.slice(end, turns[i + 1]?.start ?? tokens.length);
    const copied = i < (inherited?.turns ?? 0);
    return {
      step_id: i + 2,
      source: 'agent',
      message: content,
      ...(thought !== null && { reasoning_content: thought }),
      ...(calls.length > 0 && {
        tool_calls: calls.map(({ id, call }) => ({
          tool_call_id: id,
          function_name: call.name,
          arguments: argumentsOf(call.arguments),
        })),
      }),
      ...(results.length > 0 && {
        observation: {
          results: results.map(({ id, observation: one }, n) => ({
            ...(id !== undefined && { source_call_id: id }),
            content: one.text,
            extra: {
              error: one.error ?? null,
              seconds: one.seconds ?? null,
              reward: one.reward ?? null,
              // Several results are read as one piece.
              ...(n === 0 && { token_ids: read }),
            },
          })),
        },
      }),
      metrics: {
        prompt_tokens: promptTokens.length + start,
        completion_tokens: end - start,
        ...(i === 0 && { prompt_token_ids: promptTokens }),
        completion_token_ids: tokens.slice(start, end),
        logprobs: samplerLogprobs.slice(start, end),
      },
      llm_call_count: 1,
      ...(copied && { is_copied_context: true }),
      extra: { text: turn.text, ...(action.kind === 'malformed' && { malformed: action.reason }) },
    };
  });
  return {
    schema_version: VERSION,
    session_id: id,
    trajectory_id: id,
    agent: {
      // What acted is a policy of the run, of which every step makes another one.
      name: place.run,
      version: group.weights.slice(0, 12),
      extra: { trainer: 'gradus' },
      ...(tools && {
        tool_definitions: tools.map(({ described }) => ({ type: 'function', function: described })),
      }),
    },
    steps: [{ step_id: 1, source: 'user', message: task.prompt }, ...steps],
    final_metrics: {
      total_prompt_tokens: turns.reduce((sum, { start }) => sum + promptTokens.length + start, 0),
      total_completion_tokens: facts!.sampledTokens,
      total_steps: turns.length + 1,
    },
    extra: {
      task: { ...taskRefOf(ref) },
      sample: episode.sample,
      hinted: facts!.hinted,
      weights: group.weights,
      temperature: group.temperature,
      outcome: facts!.outcome,
      reason: facts!.reason,
      success: facts!.success,
      reward: facts!.reward,
      scores: facts!.scores,
      contributions: facts!.contributions,
      answer: facts!.answer,
      // Which step they belong to nobody knows: the agent made them, and no completion says so.
      ...(agentCalls && { calls: agentCalls }),
    },
  };
}

/** Arguments are an object there; a policy may write anything. */
const argumentsOf = (written: Json): object =>
  typeof written === 'object' && written !== null && !Array.isArray(written) ? written : { value: written };

/** The name of an episode's file: unlike others of its run, and sorted as they are. */
export const atifFile = ({ stage, step, group, episode }: FoundEpisode['place']): string =>
  [stage, padded(step, 6), padded(group, 4), `${padded(episode, 4)}.json`].join('-');

const padded = (number: number, digits: number): string => String(number).padStart(digits, '0');

import { Command } from 'commander';
import { counted } from '../../core/counted.ts';
import { commandLine } from '../../core/installation.ts';
import { GradusError } from '../../core/errors.ts';
import { callByCall } from '../../core/episode/call-by-call.ts';
import { episodeFactsOf, isHinted } from '../../core/episode/facts.ts';
import { isRewarded } from '../../core/episode/outcome.ts';
import { specOfRun } from '../../store/run/find-run.ts';
import { NO_REWARD } from '../../runs/episodes/episode-rows.ts';
import { readGroupAt } from '../../runs/episodes/group-at.ts';
import { parsePlace, placeOf } from '../../runs/episodes/place.ts';
import { messagesLine } from '../../runs/exports/messages.ts';
import { withConnectionFlags, withStoreOf } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { noteDamage, print } from '../printable.ts';
import { rounded } from '../numbers.ts';

/** `gradus episode PLACE`: what one episode said, called, saw and was rewarded for. */
export function episodeCommand(): Command {
  return withConnectionFlags(new Command('episode'))
    .argument('<place>', 'RUN/STAGE/STEP/GROUP/EPISODE', parsePlace)
    .option('--json', "as a conversation in the form of OpenAI's API, one line of JSON")
    .action(
      (place: ReturnType<typeof parsePlace>, { json, ...options }: ConnectionOptions & { json?: boolean }) =>
        withStoreOf(options, async (store) => {
          const damaged: string[] = [];
          const reward = (await specOfRun(store, place.run, { damaged }))?.reward ?? NO_REWARD;
          noteDamage(damaged);
          const found = await readGroupAt(store, place);
          const sampled = found?.group.episodes[place.episode];
          if (!found || !sampled) {
            const there = found
              ? `its group has ${counted(found.group.episodes.length, 'episode')}`
              : 'there is no such group';
            const list = commandLine(`find ${place.run} --stage ${place.stage}`);
            throw new GradusError(
              'store',
              'no-episode',
              `${placeOf(place)} is not in this store: ${there}. "${list}" shows the places of episodes`,
            );
          }
          const { group } = found;
          const task = group.tasks[sampled.task]!;
          if (json === true) {
            print(messagesLine({ place, group, task, episode: sampled }, reward));
            return;
          }
          const { ref, prompt } = task;
          const hinted = isHinted(task) ? ', with a hint behind the prompt' : '';
          print(
            `${ref.environment}, level ${ref.level}, ${ref.split} ${ref.index}${hinted}; weights ${group.weights.slice(0, 12)}`,
          );
          print(`— prompt\n${prompt}`);
          for (const [i, turn] of sampled.turns.entries()) {
            const by = turn.weights === undefined ? '' : `, weights ${turn.weights.slice(0, 12)}`;
            print(`— turn ${i + 1}, ${turn.end - turn.start} tokens${by}\n${turn.text}`);
            for (const { observation } of callByCall(turn)) {
              if (!observation) continue;
              const seconds =
                observation.seconds === undefined ? '' : `, ${observation.seconds.toFixed(3)} s`;
              print(`— ${observation.error ?? 'observation'}${seconds}\n${observation.text}`);
            }
          }
          const [facts] = episodeFactsOf({ ...group, episodes: [sampled] }, reward);
          const { outcome, reason, success, reward: earned, sampledTokens } = facts!;
          const solved = success === null ? '' : success ? ', solved' : ', not solved';
          print(
            `— ${reason === null ? outcome : `${outcome}: ${reason}`}${solved}; reward ${earned === null ? '–' : rounded(earned)}, ${sampledTokens} sampled tokens`,
          );
          const { outcome: judged } = sampled;
          for (const said of judged && isRewarded(judged) ? judged.components : []) {
            const evidence = said.evidence === undefined ? '' : `: ${said.evidence}`;
            print(
              `  ${said.verifier}@${said.version} ${said.score === null ? 'abstained' : rounded(said.score)} → ${rounded(said.contribution)}${evidence}`,
            );
          }
        }),
    );
}

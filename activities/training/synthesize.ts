import { GradusError } from '../../core/errors.ts';
import { LineProblem, readGivenLine } from '../../core/schema/given-line.ts';
import type { SynthesizeRequest, SynthesizeResult } from '../../core/requests/demonstrations.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import { loadModelFiles } from '../../store/training/checkpoints.ts';
import type { ModelFiles } from '../../store/training/checkpoints.ts';
import { findSynthesis, putSynthesis, putSynthesized } from '../../store/training/synthesis.ts';
import { IncidentList } from '../incident-list.ts';
import { synthesizeActions } from './action-synthesis.ts';
import type { CurriculumDependencies } from './dependencies.ts';
import { dialectsOf } from './dialects.ts';
import { givenDialects, roomIn } from './given-data.ts';
import { givenSequence } from './given-sequence.ts';

/**
 * Makes the data of a supervised stage, before its first round. What is kept under the stage counts, whoever was first:
 * another attempt has the same. Throws GradusError('spec', 'nothing-made').
 */
export async function synthesize(
  { store, environments }: CurriculumDependencies,
  request: SynthesizeRequest,
  signal: AbortSignal,
): Promise<SynthesizeResult> {
  const start = Date.now();
  const incidents = new IncidentList();
  const { data, facts } = (await findSynthesis(store, request, { signal })) ?? (await make());
  return { data, facts, spans: [{ part: 'data', start, end: Date.now() }], incidents: incidents.all };

  async function make() {
    const files = await loadModelFiles(store, request.checkpoint, { signal });
    const {
      lines,
      facts: counts,
      tasks,
    } = await synthesizeActions(
      environments,
      dialectsOf(files),
      writable(files),
      request,
      incidents.asker(signal),
    );
    if (lines.length === 0) {
      const why = tasks.find(({ became }) => became.kind === 'unsolved')?.became;
      throw new GradusError(
        'spec',
        'nothing-made',
        `the stage ${request.stage} has made nothing of ${tasks.length} tasks: ${JSON.stringify(counts)}${why?.kind === 'unsolved' ? `, ${why.reason}` : ''}. Give it more tasks, or leave out synthesis`,
      );
    }
    const made = await putSynthesized(store, request, lines, { signal });
    const whole = { data: made, facts: { ...counts, source: made.sha256 }, tasks };
    return putSynthesis(store, request, whole, { signal });
  }

  /** Whether a line can be trained on, as data that is given can. */
  function writable(files: ModelFiles): (line: string) => boolean {
    const writerFor = givenDialects(files, environmentOf(environments, request.arms[0]!.environment));
    const room = roomIn(files);
    return (text) => {
      try {
        const line = readGivenLine(text);
        if (line.kind === 'demonstration') givenSequence({ where: 'it', ...line }, writerFor, room);
        return true;
      } catch (error) {
        if (error instanceof LineProblem) return false;
        if (error instanceof GradusError && error.type === 'invalid-data') return false;
        throw error;
      }
    };
  }
}

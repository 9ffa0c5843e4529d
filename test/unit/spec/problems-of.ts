import { expect } from 'vitest';
import { GradusError } from '../../../core/errors.ts';
import type { Environment } from '../../../environments/contract/environment.ts';
import type { SpecEnvironments } from '../../../core/schema/check.ts';
import { builtInEnvironments } from '../../../environments/families/index.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';

export const environments = new Map<string, Environment>(
  builtInEnvironments.map((environment) => [environment.name, environment]),
);

/** The lines of a spec's refusal, one problem each; none where it is taken. */
export function problemsOf(written: unknown, among: SpecEnvironments = environments): string[] {
  try {
    parseSpec(written, 'run', among);
  } catch (error) {
    if (!(error instanceof GradusError)) throw error;
    expect(error).toMatchObject({ boundary: 'spec', type: 'invalid', retryable: false });
    const [head, ...lines] = error.message.split('\n');
    expect(head).toContain('before anything was spent');
    return lines.map((line) => line.trim());
  }
  return [];
}

import { canonicalJson } from '../../core/json/canonical-json.ts';
import type { HeldAnswer } from '../../core/requests/rollout.ts';
import type { HeldModel, ServedPolicySpec } from '../../core/schema/policy.ts';
import { refusalOfSpec } from '../../core/schema/strict.ts';
import { EVALUATION_INPUT } from '../../spec/parse-evaluate.ts';
import { sha256Hex } from '../../store/digest.ts';
import { policyVersion, WEIGHTS_ELSEWHERE } from '../../store/training/manifest.ts';
import type { CheckpointManifest } from '../../store/training/manifest.ts';

/** What servers are given in an evaluation; `asks` where they must say first what they hold. */
export interface EvaluatedPolicy {
  policy?: ServedPolicySpec;
  asks: boolean;
}

/**
 * A checkpoint is handed over as in training. One without weights stands for a model that servers hold, whose version
 * follows from what they say of it and from the small files. Throws GradusError('spec', 'invalid') where the two do not fit.
 */
export function evaluatedPolicy(
  policy: ServedPolicySpec | undefined,
  manifest: CheckpointManifest,
  answer: HeldAnswer | undefined,
): EvaluatedPolicy {
  const refuse = (path: string[], message: string): never => {
    throw refusalOfSpec(EVALUATION_INPUT, [{ path, message }]);
  };
  if (!manifest.files[WEIGHTS_ELSEWHERE]) {
    if (policy?.folder === '' && policy.server !== 'tinker')
      refuse(
        ['policy', 'folder'],
        'is missing: servers read the checkpoint from a folder that workers write. Give that folder. For a model that servers hold, name its tokenizer as the checkpoint (gradus evaluate URL --tokenizer FOLDER)',
      );
    return { ...(policy && { policy: { ...policy, adapters: manifest.base !== undefined } }), asks: false };
  }
  if (policy === undefined)
    return refuse(
      ['policy'],
      `is missing: the weights of ${manifest.run} are on a server; say which, by {"kind": "http", "server": "vllm", "urls": […]}`,
    );
  if (policy.folder !== '')
    refuse(
      ['policy', 'folder'],
      'is for a checkpoint that is handed over, and the servers hold this model: leave it out',
    );
  if (answer === undefined) return { policy, asks: true };
  return { policy: { ...policy, held: heldModel(manifest, answer) }, asks: false };
}

function heldModel(manifest: CheckpointManifest, { model, says }: HeldAnswer): HeldModel {
  const named = canonicalJson({ tokenizer: policyVersion(manifest), model, says });
  return { model, says, version: sha256Hex(new TextEncoder().encode(named)) };
}

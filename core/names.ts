import type { Tier } from './episode/outcome.ts';
import type { Arm } from './schema/tasks.ts';

/** Task queues, one per kind of worker. `gradus` is the one that runs are started on. */
export const QUEUES = {
  orchestrator: 'gradus',
  rollout: 'gradus-rollout',
  tool: 'gradus-tool',
  verifier: 'gradus-verifier',
  learner: 'gradus-learner',
  // Verifiers of the higher tiers that are functions in TypeScript.
  simulation: 'gradus-verifier-simulation',
  'high-fidelity': 'gradus-verifier-high-fidelity',
} as const;
export type Role = keyof typeof QUEUES;

/** The queue of a verification tier; `pool` tells workers apart that serve other verifiers of the same tier, e.g. in another language. */
export const tierQueue = (tier: Tier, pool?: string): string =>
  ['gradus-verifier', tier, ...(pool === undefined ? [] : [pool])].join('-');
export const ROLES = Object.keys(QUEUES) as Role[];

/** Search attributes with their Temporal types; registered when a stack starts. */
export const SEARCH_ATTRIBUTES = {
  GradusRun: 'Keyword',
  GradusStatus: 'Keyword',
  GradusStage: 'Keyword',
  GradusStep: 'Int',
  GradusEnvironment: 'Keyword',
  GradusPolicyVersion: 'Keyword',
  GradusMeanReward: 'Double',
  GradusVerifier: 'Keyword',
} as const;

/** Workflow ids say what they are, so that a double start is one execution. */
export const ids = {
  stage: (run: string, stage: string) => `${run}/${stage}`,
  group: (run: string, stage: string, step: number, group: number) => `${run}/${stage}/${step}/${group}`,
  /** Episodes of a group that wait for long calls. */
  page: (run: string, stage: string, step: number, group: number, page: number) =>
    `${ids.group(run, stage, step, group)}/${page}`,
  evaluation: (run: string, name: string) => `${run}/evaluation/${name}`,
  /** Verdicts that a workflow waits for. */
  verdictPage: (asker: string, page: number) => `${asker}/verdicts/${page}`,
  ladder: (run: string) => `${run}/ladder`,
  verdict: ({ verifier, version, digest }: { verifier: string; version: string; digest: string }) =>
    `verdict/${verifier}/${version}/${digest}`,
  reverify: (of: { run: string; verifier: string; version: string; stage?: string }) =>
    [of.run, 'reverify', of.verifier, of.version, ...(of.stage === undefined ? [] : [of.stage])].join('/'),
};

/** The phase that makes the policy which a run begins with. No stage has its name. */
export const INITIALIZE = 'initialize';

/** What the evaluations of a stage are called, after the stage's name. */
export const HELD_OUT = '.held-out';

/** What the episodes of an evaluation without a run are kept under, in the place of a stage. */
export const EVALUATE = 'evaluate';

/** What a group of a step is called where it is kept. */
export const groupId = (group: number): string => `group-${String(group).padStart(4, '0')}`;

export const armName = (arm: Arm): string => `${arm.environment}:${arm.level}`;

/** How a policy calls tools and answers: the gradus format, or that of a family of models. */
export const DIALECTS = [
  'gradus',
  'hermes',
  'llama3',
  'pythonic',
  'mistral',
  'deepseek',
  'search-r1',
  'retool',
] as const;
/** `own`: one that a module of the project brings. */
export type DialectName = (typeof DIALECTS)[number] | 'own';

/** The linear layers that LoRA (Hu et al. 2021) may be added to, by the ends of their names. */
export const LORA_MODULES = [
  'q_proj',
  'k_proj',
  'v_proj',
  'o_proj',
  'gate_proj',
  'up_proj',
  'down_proj',
] as const;

/** The most token ids of a top-k set that are stored with a token: larger sets would outweigh the episode many times over. */
export const MOST_TOP_K = 64;

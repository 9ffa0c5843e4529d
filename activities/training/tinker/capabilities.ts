import { z } from 'zod';
import { GradusError } from '../../../core/errors.ts';
import { LORA_MODULES } from '../../../core/names.ts';
import type { TrainRequest } from '../../../core/requests/learner.ts';
import type { TinkerClient } from './client.ts';

/** What servers differ in. */
export interface TinkerServer {
  losses: readonly string[];
  /** Adam's parameters have `grad_clip_norm`; a server that lacks it lets it pass without a word. */
  clipsGradients: boolean;
  /** `forward_backward` and `optim_step` are known again by `(model_id, seq_id)`. */
  knowsSequence: boolean;
  /** What `forward_backward` takes; servers that take both are asked in JSON. */
  wire: 'json' | 'protobuf';
  /** How a server that serves several models calls the one that is trained. */
  baseModel: string;
}

/** The API has it, and the server multiplies the product by alpha / rank with this alpha. */
export const TINKER_ALPHA = 32;

/** Losses of a server that does not list them: those that Gradus has of the API's own (`LossFnType` of tinker 0.38.0). */
const OWN_LOSSES = ['cross_entropy', 'importance_sampling', 'ppo', 'cispo'];
/** A server that does not publish its schema: passes as the API's SDK has asked for them since 0.25, and no clip on trust. */
const UNPUBLISHED = {
  losses: OWN_LOSSES,
  clipsGradients: false,
  knowsSequence: false,
  wire: 'protobuf' as const,
};

const models = z.object({ supported_models: z.array(z.object({ model_name: z.string() })).nonempty() });
/** What is written otherwise is not known; the rest is. */
const known = <T extends z.ZodType>(schema: T) => schema.optional().catch(undefined);
const properties = known(z.object({ properties: z.record(z.string(), z.unknown()) }));
const published = z.object({
  paths: z.object({
    '/api/v1/forward_backward': known(
      z.object({
        post: z.object({ requestBody: z.object({ content: z.record(z.string(), z.unknown()) }) }),
      }),
    ),
  }),
  components: z.object({
    schemas: z.object({
      AdamParams: properties,
      OptimStepRequest: properties,
      ForwardBackwardRequest: properties,
      ForwardBackwardInput: known(
        z.object({ properties: z.object({ loss_fn: known(z.object({ enum: z.array(z.string()) })) }) }),
      ),
    }),
  }),
});

/** Asks the server, whose schema says what its answers do not. Throws as `TinkerClient.ask`. */
export async function lookAt(
  client: TinkerClient,
  signal: AbortSignal,
  named?: string,
): Promise<TinkerServer> {
  const { supported_models } = await client.ask('/api/v1/get_server_capabilities', null, models, signal);
  const names = supported_models.map(({ model_name }) => model_name);
  const baseModel = named ?? names[0]!;
  if (!names.includes(baseModel))
    throw lacks(`the server has no model ${baseModel}, only ${names.join(', ')}`, 'name one of them');
  try {
    const { components, paths } = await client.ask('/openapi.json', null, published, signal);
    const { schemas } = components;
    const content = paths['/api/v1/forward_backward']?.post.requestBody.content;
    const json = content
      ? Object.keys(content).some((type) => type.startsWith('application/json'))
      : schemas.ForwardBackwardInput !== undefined;
    const has = (of: z.output<typeof properties>, name: string) => of !== undefined && name in of.properties;
    return {
      baseModel,
      losses: schemas.ForwardBackwardInput?.properties.loss_fn?.enum ?? OWN_LOSSES,
      clipsGradients: has(schemas.AdamParams, 'grad_clip_norm'),
      knowsSequence: has(schemas.ForwardBackwardRequest, 'seq_id') && has(schemas.OptimStepRequest, 'seq_id'),
      wire: json ? 'json' : 'protobuf',
    };
  } catch (error) {
    const unpublished =
      error instanceof GradusError &&
      ['server-forgot', 'server-refused', 'server-answer'].includes(error.type);
    if (!unpublished) throw error;
    return { baseModel, ...UNPUBLISHED };
  }
}

const LOSSES = {
  supervised: 'cross_entropy',
  clipped: 'ppo',
  cispo: 'cispo',
  reinforce: 'importance_sampling',
} as const;
/** Objectives that the API computes. */
export type TinkerObjective = Extract<NonNullable<TrainRequest['objective']>, { kind: keyof typeof LOSSES }>;

/** What a step says besides its batch. */
export interface TinkerStep extends Pick<TrainRequest, 'objective' | 'lora' | 'optimizer' | 'compute'> {
  critic?: unknown;
  /** Which one does not matter: the API has none. */
  reference: unknown;
  teachers?: readonly unknown[] | undefined;
}

/**
 * What a step asks for and the API, or this server, does not have. Throws GradusError('learner', 'settings'), which names it,
 * before the server is given anything to compute.
 */
export function assertTinkerCan(
  { objective, critic, reference, teachers, lora, optimizer, compute }: TinkerStep,
  server: TinkerServer,
): void {
  if (critic || objective === null) throw lacks('a critic', 'choose a method without one');
  if (teachers && teachers.length > 0) throw lacks('distributions of teachers', 'choose another method');
  if (!(objective.kind in LOSSES))
    throw lacks(
      `the loss ${objective.kind}`,
      `choose a method whose loss is ${Object.keys(LOSSES).join(', ')}`,
    );
  const loss = LOSSES[objective.kind as keyof typeof LOSSES];
  if (!server.losses.includes(loss))
    throw lacks(`the loss ${loss} on this server`, `it has ${server.losses.join(', ')}`);
  if (objective.kind !== 'supervised') {
    const {
      temperature,
      topK,
      entropyBonus = 0,
    } = objective as Exclude<TinkerObjective, { kind: 'supervised' }>;
    if (temperature !== 1) throw lacks(`log-probs at temperature ${temperature}`, 'sample at 1');
    if (topK > 0) throw lacks('log-probs among the likeliest tokens', 'set sampling.topK to 0');
    if (entropyBonus !== 0) throw lacks('an entropy bonus', 'leave out entropyBonus');
  }
  if ('beta' in objective && objective.beta > 0) throw lacks('a KL to a reference', 'set beta to 0');
  if (reference !== null) throw lacks('a reference', 'choose a method that reads none, or set beta to 0');
  if ('importanceRule' in objective && objective.importanceRule === 'difference')
    throw lacks('the rule "difference"', 'choose truncate or mask');
  if (optimizer.maxGradientNorm > 0 && !server.clipsGradients)
    throw lacks('a clip of the gradient norm on this server', 'set optimizer.maxGradientNorm to 0');
  if (compute !== undefined && compute.precision !== 'float32')
    throw lacks('a precision that the client chooses', 'set learner.precision to float32');
  if (lora === undefined) throw lacks('training of all weights', 'give model.lora');
  if (lora.alpha !== TINKER_ALPHA || lora.rsLora)
    throw lacks(
      `an adapter that is scaled otherwise than by ${TINKER_ALPHA} / rank`,
      `set model.lora.alpha to ${TINKER_ALPHA}`,
    );
  if (lora.targetModules.length !== LORA_MODULES.length)
    throw lacks('an adapter of some modules', 'leave out model.lora.targetModules');
}

/** Throws GradusError('learner', 'settings'): what the API has not. */
export const lacks = (what: string, instead: string): GradusError =>
  new GradusError(
    'learner',
    'settings',
    `Tinker's API has not: ${what}. ${instead[0]!.toUpperCase()}${instead.slice(1)}`,
  );

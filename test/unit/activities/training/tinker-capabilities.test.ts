import { expect, test } from 'vitest';
import { lookAt } from '../../../../activities/training/tinker/capabilities.ts';
import { TinkerClient } from '../../../../activities/training/tinker/client.ts';
import type { Json } from '../../../../core/json/json.ts';

// What a server publishes of itself is read piece by piece: what is written otherwise than expected is not known, and the
// rest is.

const route = '/api/v1/forward_backward';
const takes = (...types: string[]) => ({
  [route]: { post: { requestBody: { content: Object.fromEntries(types.map((type) => [type, {}])) } } },
});
const fields = (...names: string[]) => ({ properties: Object.fromEntries(names.map((name) => [name, {}])) });
const input = { properties: { loss_fn: { enum: ['cross_entropy', 'ppo'] } } };
const schemas = { AdamParams: fields('learning_rate', 'grad_clip_norm'), ForwardBackwardInput: input };

/** A server that answers with this for its schema. */
function look(openapi: Json) {
  const answers: Record<string, Json> = {
    '/api/v1/get_server_capabilities': { supported_models: [{ model_name: 'tiny' }] },
    '/openapi.json': openapi,
  };
  const connection = {
    url: 'http://server',
    ask: async (path: string) => answers[path],
    close: async () => undefined,
  };
  return lookAt(new TinkerClient(connection, 1), new AbortController().signal);
}

const JSON_WIRE = { wire: 'json', clipsGradients: true, losses: ['cross_entropy', 'ppo'] };
const OWN = ['cross_entropy', 'importance_sampling', 'ppo', 'cispo'];

test.each<[string, Json, object]>([
  ['JSON', { paths: takes('application/json'), components: { schemas } }, JSON_WIRE],
  [
    'JSON in a stated character set',
    { paths: takes('application/json; charset=utf-8'), components: { schemas } },
    JSON_WIRE,
  ],
  [
    'JSON beside protobuf',
    { paths: takes('application/x-protobuf', 'application/json'), components: { schemas } },
    JSON_WIRE,
  ],
  [
    'protobuf, as TuFT 0.2.2',
    { paths: takes('application/x-protobuf'), components: { schemas: { AdamParams: schemas.AdamParams } } },
    { wire: 'protobuf', clipsGradients: true, losses: OWN },
  ],
  [
    'its routes under another prefix',
    { paths: { '/v2/forward_backward': {} }, components: { schemas } },
    JSON_WIRE,
  ],
  [
    'a body by reference',
    { paths: { [route]: { post: { requestBody: { $ref: '#/x' } } } }, components: { schemas } },
    JSON_WIRE,
  ],
  [
    'losses by reference',
    {
      paths: takes('application/json'),
      components: {
        schemas: { ...schemas, ForwardBackwardInput: { properties: { loss_fn: { $ref: '#/x' } } } },
      },
    },
    { ...JSON_WIRE, losses: OWN },
  ],
  [
    'Adam’s parameters in a way that is not read: no clip on trust',
    {
      paths: takes('application/json'),
      components: { schemas: { ...schemas, AdamParams: { allOf: [] } } },
    },
    { ...JSON_WIRE, clipsGradients: false },
  ],
  ['a page in place of it', '<html>', { wire: 'protobuf', clipsGradients: false, losses: OWN }],
])('a server that publishes %s', async (_, openapi, expected) => {
  expect(await look(openapi)).toMatchObject({ ...expected, baseModel: 'tiny' });
});

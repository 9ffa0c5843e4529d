import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { json } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test, vi } from 'vitest';
import type { OwnAgentLoop } from '../../../core/extensions/agent-loop.ts';
import { randomKey } from '../../../core/random.ts';
import type { SamplingSpec } from '../../../core/schema/sampling.ts';
import secondThought from '../../../examples/own-agent-loop.ts';
import { askAgent } from '../../../gateway/ask-agent.ts';
import { runAgent } from '../../../gateway/run-agent.ts';
import { runLoop } from '../../../gateway/run-loop.ts';
import type { AgentRun } from '../../../gateway/agent-run.ts';
import type { AgentEpisodeOptions } from '../../../gateway/agent-episode.ts';
import type { AgentCommand } from '../../../gateway/run-agent.ts';
import { serveGateway } from '../../../gateway/server.ts';
import { sha256Hex } from '../../../store/digest.ts';
import type { Policy } from '../../../engine/policy.ts';
import { tokenizer } from '../../support/fixture-tokenizer.ts';
import { ASKS, episodeOptions, randomPolicy } from '../../support/gateway.ts';
import { openTestStore } from '../../support/test-store.ts';

const { server, store } = await openTestStore();
const scratch = await mkdtemp(path.join(tmpdir(), 'gradus-test-'));
const policy = await randomPolicy();
const gateway = await serveGateway();
afterAll(async () => {
  await gateway.close();
  await policy.close();
  await rm(scratch, { recursive: true, force: true });
});

interface Result {
  run: AgentRun;
  sampled: number;
}

/** An agent's episode in a process that may be killed, which the signal that ended it says. */
async function runIn(folder: string, killAfter: number): Promise<{ by: string | null; result?: Result }> {
  const file = path.join(scratch, `${folder}-${killAfter}.json`);
  const script = fileURLToPath(new URL('run.ts', import.meta.url));
  const child = spawn(
    process.execPath,
    ['--import', 'tsx', script, file, folder, String(killAfter), JSON.stringify(server.options())],
    { stdio: ['ignore', 'inherit', 'inherit'] },
  );
  const [code, by] = (await once(child, 'exit')) as [number | null, string | null];
  return code === 0 ? { by, result: JSON.parse(await readFile(file, 'utf8')) as Result } : { by };
}

const digestOf = (value: unknown): string => sha256Hex(new TextEncoder().encode(JSON.stringify(value)));

test('an agent that starts over after a kill gets the same tokens, and what was sampled is not sampled again', async () => {
  const whole = (await runIn('whole', 0)).result!;
  expect(whole.run.status.kind).toBe('answered');
  expect(whole.sampled).toBeGreaterThan(2);
  expect((await runIn('killed', 2)).by).toBe('SIGKILL');
  expect((await store.listFolder('killed/turns/')).keys).toHaveLength(2);
  const again = (await runIn('killed', 0)).result!;
  expect(again.sampled).toBe(whole.sampled - 2);
  expect(again.run.row!.mask).toContain(1);
  expect(digestOf(again.run)).toBe(digestOf(whole.run));
});

let opened = 0;
async function ran(
  script: string,
  more: Partial<AgentCommand> = {},
  options: Parameters<typeof episodeOptions>[3] = {},
): Promise<AgentRun> {
  const episode = await gateway.open(episodeOptions(policy, store, `run-${opened++}`, options));
  return runAgent(gateway, episode, {
    argv: [process.execPath, '-e', script],
    task: 'a task',
    timeoutSeconds: 60,
    signal: new AbortController().signal,
    ...more,
  });
}

test('an agent that fails, is silent or branches has failed, and says why; it is never a zero', async () => {
  const reason = (text: string) => ({
    row: null,
    status: { kind: 'failed', boundary: 'environment', reason: expect.stringContaining(text) as string },
  });
  expect(await ran('console.error("no luck"); process.exit(3)')).toEqual(reason('it ended with 3: no luck'));
  expect(await ran('setInterval(() => {}, 1000)', { timeoutSeconds: 1 })).toEqual(reason('after 1 s'));
  expect(await ran('')).toEqual(reason('asked the policy for nothing'));
  expect(await ran('', { argv: ['/no/such/program'] })).toEqual(reason('could not be started'));
  const killed = await ran('process.kill(process.pid, "SIGKILL")');
  expect(killed).toEqual({ ...reason('it ended with SIGKILL'), killed: true });
  const branches = `${ASKS} Promise.all([ask('a'), ask('b')])`;
  expect(await ran(branches)).toEqual(reason('2 branches'));
});

test('an agent that fails because a limit of the spec was reached was cut by it, and has a row', async () => {
  const sampling = { ...episodeOptions(policy, store, 'x').sampling, maxTurns: 1 };
  const again = `${ASKS} (async () => {
    const { choices: [{ message }] } = await (await ask('a')).json();
    const messages = [{ role: 'user', content: 'a' }, message, { role: 'user', content: 'b' }];
    const { status } = await fetch(process.env.OPENAI_BASE_URL + '/chat/completions', {
      method: 'POST', body: JSON.stringify({ model: process.env.OPENAI_MODEL, messages }) });
    process.exit(status === 409 ? 1 : 0);
  })()`;
  const { status, row } = await ran(again, {}, { sampling });
  expect(status).toMatchObject({ kind: 'truncated' });
  expect(row!.mask).toContain(1);
});

test.each([
  ['turns', { maxTurns: 2 }, 'more'],
  ['tokens', { maxTurns: 20, maxCompletionTokens: 60 }, 'more '.repeat(60)],
])(
  'an agent that ends where %s are refused has been told before what it asked for at the same time',
  async (limit, most, more) => {
    let askedAgain = (): void => undefined;
    const third = new Promise<void>((resolve) => (askedAgain = resolve));
    // Longer than an agent takes to end that is refused a turn.
    const held = async (signal?: AbortSignal): Promise<void> => {
      await Promise.race([third, once(signal!, 'abort')]);
      await delay(1000, undefined, { signal });
    };
    const slow = tokenizer.encode('slow');
    const holding: Policy = {
      sample: async (request, signal) => {
        if (slow.every((token) => request.prefix.includes(token))) await held(signal);
        // A turn that is over at once, so that what is asked next goes on from it.
        return { tokens: [request.stopTokens[0]!], samplerLogprobs: [-1], finish: 'stop' };
      },
      release: () => undefined,
      close: () => Promise.resolve(),
    };
    const plain = episodeOptions(holding, store, `limit-${limit}`);
    const episode = await gateway.open({
      ...plain,
      branches: 'train',
      sampling: { ...plain.sampling, ...most },
    });
    const take = episode.take.bind(episode);
    let requests = 0;
    episode.take = (...request) => {
      requests++;
      if (requests === 3) askedAgain();
      return take(...request);
    };
    const agent = `${ASKS} ask('slow'); (async () => {
      const { choices: [{ message }] } = await (await ask('fast')).json();
      const messages = [{ role: 'user', content: 'fast' }, message, { role: 'user', content: '${more}' }];
      const { status } = await fetch(process.env.OPENAI_BASE_URL + '/chat/completions', {
        method: 'POST', body: JSON.stringify({ model: process.env.OPENAI_MODEL, messages }) });
      process.exit(status === 200 ? 0 : 1);
    })()`;
    const { status } = await runAgent(gateway, episode, {
      argv: [process.execPath, '-e', agent],
      task: 'a task',
      timeoutSeconds: 60,
      signal: new AbortController().signal,
    });
    expect(requests).toBe(3);
    expect(status).toEqual({ kind: 'truncated', limit });
    expect(episode.rows()).toHaveLength(2);
  },
);

test('an agent without an answer has ended, and a signal calls it off', async () => {
  const { status, row } = await ran(`${ASKS} ask(process.env.GRADUS_TASK)`);
  expect(status).toEqual({ kind: 'ended' });
  expect(row!.tokens.length).toBe(row!.mask.length);
  const off = new AbortController();
  const running = ran('setInterval(() => {}, 1000)', { signal: off.signal });
  off.abort(new Error('called off'));
  await expect(running).rejects.toThrow('called off');
});

test('a server that is an agent is posted its task, and one that is not there can be asked again', async () => {
  let poured = false;
  const agent = createServer((request, response) => {
    void (async () => {
      const { task, variables } = (await json(request)) as {
        task: string;
        variables: Record<string, string>;
      };
      if (task === 'pour') {
        response.once('close', () => (poured = true));
        const pour = (): void => {
          while (response.write(Buffer.alloc(2 ** 20, 'a')));
        };
        response.on('drain', pour);
        return pour();
      }
      if (task === 'fail') return response.writeHead(500).end('no luck');
      const body = { model: variables['OPENAI_MODEL'], messages: [{ role: 'user', content: task }] };
      await fetch(`${variables['OPENAI_BASE_URL']}/chat/completions`, {
        method: 'POST',
        body: JSON.stringify(body),
      });
      return response.end(JSON.stringify({ answer: `did ${task}` }));
    })();
  });
  await once(agent.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(agent.address() as AddressInfo).port}`;
  const asked = async (task: string) => {
    const episode = await gateway.open(episodeOptions(policy, store, `run-${opened++}`));
    return askAgent(gateway, episode, {
      url,
      task,
      timeoutSeconds: 60,
      signal: new AbortController().signal,
    });
  };
  const { status, row } = await asked('it');
  expect(status).toEqual({ kind: 'answered', answer: 'did it' });
  expect(row!.mask).toContain(1);
  expect((await asked('fail')).status).toMatchObject({
    kind: 'failed',
    reason: expect.stringContaining('500: no luck') as string,
  });
  expect((await asked('pour')).status).toMatchObject({
    kind: 'failed',
    reason: expect.stringContaining('its server answered more than 1048576 bytes') as string,
  });
  await vi.waitFor(() => expect(poured).toBe(true), { timeout: 120_000 });
  agent.closeAllConnections();
  await new Promise((resolve) => agent.close(resolve));
  expect(await asked('it')).toMatchObject({ status: { kind: 'failed' }, killed: true });
});

describe('a loop of the project', () => {
  const runLoopOf = async (
    id: string,
    given: Partial<OwnAgentLoop>,
    { timeoutSeconds = 60, ...more }: { timeoutSeconds?: number; sampling?: SamplingSpec } = {},
  ) => {
    let sampled = 0;
    const counting: AgentEpisodeOptions['policy'] = {
      release: (session) => policy.release(session),
      close: () => policy.close(),
      sample: (...args: Parameters<typeof policy.sample>) => {
        sampled++;
        return policy.sample(...args);
      },
    };
    const options = episodeOptions(counting, store, randomUUID(), {
      folder: `loops/${id}`,
      key: randomKey('loops', id),
      startsOver: true,
      ...more,
    });
    const loop = { ...secondThought, ...given } as OwnAgentLoop;
    const { signal } = new AbortController();
    const asked = { loop, options: {}, task: 'What is 3 + 4?', timeoutSeconds, signal };
    return { run: await runLoop(gateway, await gateway.open(options), asked), sampled: () => sampled };
  };

  test('makes an episode out of turns, and one that starts over gets the same turns without sampling them', async () => {
    const first = await runLoopOf('twice', {});
    expect(first.run.status.kind).toBe('answered');
    expect(first.sampled()).toBe(2);
    const again = await runLoopOf('twice', {});
    expect(again.sampled()).toBe(0);
    expect(digestOf(again.run)).toBe(digestOf(first.run));
  });

  test.each<[string, Partial<OwnAgentLoop>, RegExp]>([
    [
      'that throws',
      {
        episode: async ({ turn }) => {
          await turn([{ role: 'user', content: 'a' }]);
          throw new Error('oh');
        },
      },
      /"second-thought" threw: oh/,
    ],
    [
      'that gives a number',
      { episode: async () => 7 as never },
      /gave number, and an answer is a text or null/,
    ],
    ['that never ends', { episode: () => new Promise<null>(() => undefined) }, /had not ended after 0.05 s/],
    ['that asks for nothing', { episode: async () => '7' }, /it has asked the policy for nothing/],
    [
      'whose messages are none',
      { episode: async ({ turn }) => (await turn([{ role: 'poet' } as never])).content },
      /threw: .*role/,
    ],
  ])('%s has a failed episode, which says why', async (what, given, why) => {
    const { run } = await runLoopOf(what.replaceAll(' ', '-'), given, {
      timeoutSeconds: what.includes('never') ? 0.05 : 60,
    });
    expect(run).toMatchObject({ status: { kind: 'failed', reason: expect.stringMatching(why) as string } });
  });

  test('that is over a limit of the spec is cut by it', async () => {
    const sampling = { ...episodeOptions(policy, store, 'limits').sampling, maxTurns: 1 };
    const { run } = await runLoopOf('limited', {}, { sampling });
    expect(run.status).toEqual({ kind: 'truncated', limit: 'turns' });
  });
});

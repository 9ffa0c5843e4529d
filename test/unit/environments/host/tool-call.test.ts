import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { GradusError } from '../../../../core/errors.ts';
import {
  DEFAULT_TOOL_LIMITS,
  toolLimitsOf,
  ToolRefusal,
} from '../../../../environments/contract/environment.ts';
import type { Tool } from '../../../../environments/contract/environment.ts';
import { toolAttempts } from '../../../../environments/host/facts.ts';
import { attemptCall, refuseCall } from '../../../../environments/host/tool-call.ts';
import { callContext, toolThat } from '../../activities/test-environment.ts';

const call = { name: 'search', arguments: { query: 'moon' } };
const { signal } = new AbortController();
const never = () => new Promise<string>(() => undefined);

describe('an attempt of a tool call', () => {
  test('gives the text, and how long it took', async () => {
    const observation = await attemptCall(
      toolThat(async (query) => `${query} is far`),
      call,
      callContext(),
    );
    expect(observation).toEqual({ text: 'moon is far', seconds: expect.any(Number) as number });
    expect(observation.seconds).toBeGreaterThanOrEqual(0);
  });

  test('tells the tool who calls, so that it can make sure of once', async () => {
    let heard: unknown;
    const tool = toolThat((_, context) => {
      context.heartbeat({ page: 1 });
      heard = [context.idempotencyKey, context.attempt];
      return 'ok';
    });
    const beats: unknown[] = [];
    await attemptCall(tool, call, callContext({ attempt: 3, heartbeat: (details) => beats.push(details) }));
    expect(heard).toEqual(['run/rl/1/0/0/1', 3]);
    expect(beats).toEqual([{ page: 1 }]);
  });

  test.each([
    [
      'at once',
      () => {
        throw new TypeError('index out of range');
      },
    ],
    [
      'later',
      async () => {
        throw new TypeError('index out of range');
      },
    ],
  ])('of a tool that throws %s can be tried again', async (_, run) => {
    const attempt = attemptCall(toolThat(run), call, callContext());
    await expect(attempt).rejects.toMatchObject({
      boundary: 'tool',
      type: 'failed',
      retryable: true,
      message: 'the tool search failed: index out of range',
    });
  });

  test('keeps what the tool itself says of its error', async () => {
    const final = new GradusError('tool', 'no-license', 'buy one', { retryable: false });
    const tool = toolThat(() => {
      throw final;
    });
    await expect(attemptCall(tool, call, callContext())).rejects.toMatchObject({
      type: final.type,
      message: final.message,
      retryable: false,
      cause: final,
    });
  });

  test('of a tool that hangs and ignores its signal ends at the time limit', async () => {
    const tool = toolThat(never, { limits: { timeoutSeconds: 0.05 } });
    await expect(attemptCall(tool, call, callContext())).rejects.toMatchObject({
      boundary: 'tool',
      type: 'timeout',
      retryable: true,
      message: expect.stringContaining('limits.timeoutSeconds') as string,
    });
  });

  test('aborts the signal of a tool that is out of time, and what it throws then is a time-out', async () => {
    const tool = toolThat((_, { signal }) => delay(60_000, 'late', { signal }), {
      limits: { timeoutSeconds: 0.05 },
    });
    await expect(attemptCall(tool, call, callContext())).rejects.toMatchObject({ type: 'timeout' });
  });

  test('that is cancelled passes the cancellation on, whether the tool listens or not', async () => {
    for (const run of [
      never,
      (_: string, { signal }: { signal: AbortSignal }) => delay(60_000, 'late', { signal }),
    ]) {
      const controller = new AbortController();
      const reason = new Error('the run was cancelled');
      const attempt = attemptCall(toolThat(run), call, callContext({ signal: controller.signal }));
      controller.abort(reason);
      await expect(attempt).rejects.toBe(reason);
    }
  });

  test('that fails long after it was given up disturbs nobody', async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => unhandled.push(reason);
    process.on('unhandledRejection', note);
    let fail: (error: Error) => void = () => undefined;
    const tool = toolThat(
      () =>
        new Promise((_, reject) => {
          fail = reject;
        }),
      { limits: { timeoutSeconds: 0.01 } },
    );
    await expect(attemptCall(tool, call, callContext())).rejects.toMatchObject({ type: 'timeout' });
    fail(new Error('too late'));
    await new Promise(setImmediate);
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });

  test('that prints 10 MB is cut to the limit, and says so', async () => {
    const { text, error } = await attemptCall(
      toolThat(() => 'x'.repeat(10 * 2 ** 20)),
      call,
      callContext(),
    );
    expect(error).toBeUndefined();
    expect(text.length).toBeLessThan(DEFAULT_TOOL_LIMITS.maxOutputCharacters + 60);
    expect(text).toMatch(/^x{4096} \[cut: 10485760 characters in all\]$/u);
  });

  test('leaves output of exactly the limit alone', async () => {
    const tool = toolThat((query) => query, { limits: { maxOutputCharacters: 4 } });
    expect((await attemptCall(tool, call, callContext())).text).toBe('moon');
  });

  test.each([
    [undefined, 'undefined'],
    [null, 'null'],
    [42, 'number'],
    [{ answer: 42 }, 'object'],
    [new Uint8Array(3), 'object'],
  ])('of a tool that returns %j, which is no text, is not tried again', async (value, type) => {
    await expect(
      attemptCall(
        toolThat(() => value),
        call,
        callContext(),
      ),
    ).rejects.toMatchObject({
      boundary: 'tool',
      type: 'not-text',
      retryable: false,
      message: expect.stringContaining(`returned ${type}`) as string,
    });
  });

  test('that the tool refuses is something the policy reads, cut like any output', async () => {
    const refusing = (message: string) =>
      toolThat(async () => {
        throw new ToolRefusal(message);
      });
    expect(await attemptCall(refusing('no such book'), call, callContext())).toMatchObject({
      text: 'error: no such book',
      error: 'tool-error',
    });
    const long = await attemptCall(refusing('x'.repeat(2 ** 20)), call, callContext());
    expect(long.text.length).toBeLessThan(5000);
  });
});

describe('a call that cannot be tried', () => {
  const tools = [toolThat(() => ''), { ...toolThat(() => ''), name: 'lookup' }];

  test('names the tools that there are', async () => {
    expect(await refuseCall({ name: 'serach', arguments: {} }, tools, signal)).toEqual({
      text: 'error: no tool serach; tools: search, lookup',
      error: 'unknown-tool',
    });
    const long = await refuseCall({ name: 'x'.repeat(10_000), arguments: {} }, tools, signal);
    expect(long!.text.length).toBeLessThan(100);
  });

  test.each([[{}], [{ query: 7 }], [{ query: 'moon', page: 2 }]])(
    'says what is wrong with %j',
    async (args) => {
      const refusal = await refuseCall({ name: 'search', arguments: args }, tools, signal);
      expect(refusal?.error).toBe('invalid-arguments');
      expect(refusal?.text).toMatch(/^error: arguments.*(query|page)/u);
    },
  );

  test('is let through when the tool can take it', async () => {
    expect(await refuseCall(call, tools, signal)).toBeNull();
  });

  test('waits for a check that takes its time, and blames the tool for one that throws', async () => {
    const checking = (check: (query: string) => boolean | Promise<boolean>) =>
      toolThat(() => '', { arguments: z.strictObject({ query: z.string().refine(check) }) });
    expect(await refuseCall(call, [checking(async (query) => query === 'moon')], signal)).toBeNull();
    const broken = checking(() => {
      throw new TypeError('no dictionary');
    });
    await expect(refuseCall(call, [broken], signal)).rejects.toMatchObject({
      boundary: 'tool',
      type: 'arguments',
      message: expect.stringContaining('no dictionary') as string,
    });
  });
});

test('a tool that must run once gets one attempt, whatever its limits say', () => {
  const attempts = (over: Partial<Tool>): number => {
    const tool = toolThat(() => '', over);
    return toolAttempts({ effect: tool.effect, limits: toolLimitsOf(tool) });
  };
  const limits = { maxAttempts: 7 };
  expect(attempts({ placement: 'long', effect: 'once', limits })).toBe(1);
  expect(attempts({ effect: 'idempotent', limits })).toBe(7);
  expect(attempts({})).toBe(DEFAULT_TOOL_LIMITS.maxAttempts);
});

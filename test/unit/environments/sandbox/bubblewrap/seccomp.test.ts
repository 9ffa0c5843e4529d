import { describe, expect, test } from 'vitest';
import { compileFilter, filterFor } from '../../../../../environments/sandbox/bubblewrap/seccomp.ts';
import type { Architecture } from '../../../../../environments/sandbox/bubblewrap/seccomp.ts';
import { FORBIDDEN, numbersOf } from '../../../../../environments/sandbox/bubblewrap/system-calls.ts';

const AUDIT_ARCH = { x64: 0xc000003e, arm64: 0xc00000b7 };
const CLONE = { x64: 56, arm64: 220 };
const READ = { x64: 0, arm64: 63 };
const ALLOW = 0x7fff0000;
const EPERM = 0x00050001;
const KILL = 0x80000000;

/** What the kernel's interpreter does with a filter, for the instructions that there are. */
function answerOf(
  architecture: Architecture,
  call: number,
  argument = 0,
  audit = AUDIT_ARCH[architecture],
): number {
  const data = new Map([
    [0, call],
    [4, audit],
    [16, argument],
    [24, argument],
  ]);
  const instructions = filterFor(architecture);
  let accumulator = 0;
  for (let at = 0; ; at++) {
    const [code, ifTrue, ifFalse, k] = instructions[at]!;
    if (code === 0x06) return k;
    if (code === 0x20) accumulator = data.get(k)!;
    else {
      const holds =
        code === 0x15 ? accumulator === k : code === 0x35 ? accumulator >= k : (accumulator & k) !== 0;
      at += holds ? ifTrue : ifFalse;
    }
  }
}

describe.each(['x64', 'arm64'] as const)('the filter of system calls on %s', (architecture) => {
  test('refuses what is forbidden, allows the rest, and kills a call of another architecture', () => {
    for (const call of numbersOf(FORBIDDEN, architecture)) expect(answerOf(architecture, call)).toBe(EPERM);
    expect(answerOf(architecture, READ[architecture])).toBe(ALLOW);
    expect(answerOf(architecture, READ[architecture], 0, 0x40000003)).toBe(KILL);
    if (architecture === 'x64') expect(answerOf('x64', 0x40000000)).toBe(KILL);
  });

  test('refuses what System V and POSIX queues keep in the kernel', () => {
    // shmget, semget, msgget, mq_open
    const calls = architecture === 'x64' ? [29, 64, 68, 240] : [194, 190, 186, 180];
    for (const call of calls) expect(answerOf(architecture, call)).toBe(EPERM);
  });

  test('looks at the flags of clone: threads and children are allowed, namespaces are not', () => {
    const [thread, child, user, mount] = [0x003d0f00, 17, 0x10000011, 0x00020011];
    expect(answerOf(architecture, CLONE[architecture], thread)).toBe(ALLOW);
    expect(answerOf(architecture, CLONE[architecture], child)).toBe(ALLOW);
    expect(answerOf(architecture, CLONE[architecture], user)).toBe(EPERM);
    expect(answerOf(architecture, CLONE[architecture], mount)).toBe(EPERM);
  });

  test('is eight bytes an instruction, with jumps that fit', () => {
    const instructions = filterFor(architecture);
    expect(compileFilter(architecture)).toHaveLength(8 * instructions.length);
    for (const [, ifTrue, ifFalse] of instructions) expect(Math.max(ifTrue, ifFalse)).toBeLessThan(256);
  });
});

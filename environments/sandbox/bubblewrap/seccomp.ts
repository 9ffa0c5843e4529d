import { ABSENT, CLONE, FORBIDDEN, IOCTL, numbersOf, PERSONALITY, SOCKET } from './system-calls.ts';

// A deny-list as classic BPF (linux/filter.h, linux/seccomp.h): what bubblewrap's namespaces already stop is stopped a
// second time, and what they leave open (kernel interfaces with a history of holes) is closed.

export type Architecture = 'x64' | 'arm64';

/** linux/audit.h */
const AUDIT_ARCH: Record<Architecture, number> = { x64: 0xc000003e, arm64: 0xc00000b7 };
/** Calls of the x32 ABI have this bit. */
const X32 = 0x40000000;

const LOAD = 0x20; // BPF_LD | BPF_W | BPF_ABS
const IF_EQUAL = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
const IF_AT_LEAST = 0x35; // BPF_JMP | BPF_JGE | BPF_K
const IF_ANY_BIT = 0x45; // BPF_JMP | BPF_JSET | BPF_K
const RETURN = 0x06; // BPF_RET | BPF_K

const ALLOW = 0x7fff0000;
const KILL_PROCESS = 0x80000000;
const errno = (number: number): number => 0x00050000 | number;
const EPERM = errno(1);
const ENOSYS = errno(38);
const EAFNOSUPPORT = errno(97);

/** Offsets in struct seccomp_data, little-endian. */
const NUMBER = 0;
const ARCHITECTURE = 4;
const argument = (index: number): number => 16 + 8 * index;

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET, NEWTIME (0x80 is part of clone's exit signal, not here). */
const NEW_NAMESPACES =
  0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000;
/** Puts characters into a terminal's input as if they had been typed; pastes and reads the screen. */
const TIOCSTI = 0x5412;
const TIOCLINUX = 0x541c;
/** Address families with a use inside: AF_UNIX, AF_INET, AF_INET6 (loopback of its own), AF_NETLINK (to list interfaces). */
const FAMILIES = [1, 2, 10, 16];
/** Execution domains: Linux as it is, and the question which one it is. */
const PERSONALITIES = [0, 0xffffffff];

type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, k: number];

/** `if (number == call) return action` */
const refuse = (call: number, action: number): Instruction[] => [
  [IF_EQUAL, 0, 1, call],
  [RETURN, 0, 0, action],
];

/** `if (number == call) { … }`, where the body ends in a return on every way. */
const inCase = (call: number, body: Instruction[]): Instruction[] => [
  [IF_EQUAL, 0, body.length, call],
  ...body,
];

/** Returns ALLOW where the argument is among `values`, `action` otherwise. */
const onlyWith = (index: number, values: readonly number[], action: number): Instruction[] => [
  [LOAD, 0, 0, argument(index)],
  ...values.map((value, i): Instruction => [IF_EQUAL, values.length - i, 0, value]),
  [RETURN, 0, 0, action],
  [RETURN, 0, 0, ALLOW],
];

/** Returns `action` where the argument is among `values`, ALLOW otherwise. */
const neverWith = (index: number, values: readonly number[], action: number): Instruction[] => [
  [LOAD, 0, 0, argument(index)],
  ...values.map((value, i): Instruction => [IF_EQUAL, values.length - i, 0, value]),
  [RETURN, 0, 0, ALLOW],
  [RETURN, 0, 0, action],
];

/** The filter as instructions. */
export function filterFor(architecture: Architecture): Instruction[] {
  return [
    [LOAD, 0, 0, ARCHITECTURE],
    [IF_EQUAL, 1, 0, AUDIT_ARCH[architecture]],
    [RETURN, 0, 0, KILL_PROCESS],
    [LOAD, 0, 0, NUMBER],
    ...(architecture === 'x64'
      ? ([
          [IF_AT_LEAST, 0, 1, X32],
          [RETURN, 0, 0, KILL_PROCESS],
        ] as const)
      : []),
    ...numbersOf(FORBIDDEN, architecture).flatMap((call) => refuse(call, EPERM)),
    ...numbersOf(ABSENT, architecture).flatMap((call) => refuse(call, ENOSYS)),
    ...inCase(CLONE[architecture], [
      [LOAD, 0, 0, argument(0)],
      [IF_ANY_BIT, 0, 1, NEW_NAMESPACES],
      [RETURN, 0, 0, EPERM],
      [RETURN, 0, 0, ALLOW],
    ]),
    ...inCase(IOCTL[architecture], neverWith(1, [TIOCSTI, TIOCLINUX], EPERM)),
    ...inCase(PERSONALITY[architecture], onlyWith(0, PERSONALITIES, EPERM)),
    ...inCase(SOCKET[architecture], onlyWith(0, FAMILIES, EAFNOSUPPORT)),
    [RETURN, 0, 0, ALLOW],
  ];
}

/** The filter as an array of struct sock_filter, which bubblewrap's `--seccomp` reads. */
export function compileFilter(architecture: Architecture): Buffer {
  const instructions = filterFor(architecture);
  const bytes = Buffer.alloc(instructions.length * 8);
  for (const [i, [code, ifTrue, ifFalse, k]] of instructions.entries()) {
    bytes.writeUInt16LE(code, i * 8);
    bytes.writeUInt8(ifTrue, i * 8 + 2);
    bytes.writeUInt8(ifFalse, i * 8 + 3);
    bytes.writeUInt32LE(k >>> 0, i * 8 + 4);
  }
  return bytes;
}

import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, open as openFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { ABSENT, FORBIDDEN } from '../../../environments/sandbox/bubblewrap/system-calls.ts';
import type { SystemCalls } from '../../../environments/sandbox/bubblewrap/system-calls.ts';
import type { Command, Limits } from '../../../environments/sandbox/contract.ts';
import { bubblewrap, LEFT_OUT } from './available.ts';

const MIB = 2 ** 20;
/** Node's arguments for a process that runs one command in a sandbox. */
const runOnce = ['--import', 'tsx', path.join(import.meta.dirname, 'run-once.ts')];
const EPERM = 1;
const ENOSYS = 38;

describe.skipIf(!bubblewrap)(`a sandboxed program${LEFT_OUT}`, { timeout: 300_000 }, () => {
  const sandbox = bubblewrap!;
  /** No program here is to end by this time, which a busy machine may need; less than those take that sleep. */
  const within = (limits: Partial<Limits>) => ({ limits: { wallSeconds: 50, ...limits } });
  const python = (script: string, rest: Partial<Command> = {}) =>
    sandbox.run({ argv: ['python3', '-c', script], ...within({}), ...rest });
  /** What a script prints, which is to be JSON. */
  const findings = async (script: string, rest: Partial<Command> = {}): Promise<unknown> => {
    const { stdout, stderr, exit, ended } = await python(script, rest);
    expect({ exit, ended, stderr }).toEqual({ exit: 0, ended: 'exit', stderr: '' });
    return JSON.parse(stdout);
  };

  let folder: string;
  let secret: string;
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'gradus-escapes-'));
    secret = path.join(folder, 'secret');
    await writeFile(secret, 'hunter2', { mode: 0o644 });
  });
  afterAll(() => rm(folder, { recursive: true }));

  describe('does not read', () => {
    test('a file of the host, by no way that /proc offers', async () => {
      const read = await findings(`
import glob, json
wanted = ['/etc/shadow', ${JSON.stringify(secret)}, ${JSON.stringify(import.meta.filename)}]
ways = wanted + [root + file for file in wanted for root in glob.glob('/proc/*/root') + glob.glob('/proc/*/cwd')]
ways += [way + '/../../../../..' + file for file in wanted for way in glob.glob('/proc/*/cwd') + glob.glob('/proc/*/fd/*')]
def readable(way):
    try: open(way).close()
    except OSError: return False
    return True
print(json.dumps([way for way in ways if readable(way)]))`);
      expect(read).toEqual([]);
    });

    test('our environment, or the arguments of our processes', async () => {
      vi.stubEnv('GRADUS_TEST_SECRET', 'hunter2');
      const { stdout } = await python(`
import glob
for file in glob.glob('/proc/*/environ') + glob.glob('/proc/*/cmdline'):
    try: print(file, open(file).read().replace(chr(0), ' '))
    except OSError: pass`);
      vi.unstubAllEnvs();
      expect(stdout).not.toMatch(/hunter2|GRADUS|vitest|PWD=\/(?!work)/);
      expect(stdout).toMatch(/environ .*PATH=\/usr\/local\/bin:\/usr\/bin:\/bin/);
    });

    test('other processes than its own', async () => {
      const ids = (await findings(
        `import json, os; print(json.dumps([int(name) for name in os.listdir('/proc') if name.isdigit()]))`,
      )) as number[];
      expect(ids.length).toBeLessThanOrEqual(3);
      expect(Math.max(...ids)).toBeLessThan(10);
    });

    test('what whoever started us left open', async () => {
      const file = await openFile(secret);
      const script = 'cat <&20; for fd in /proc/self/fd/*; do readlink $fd; done';
      const stdio = ['ignore', 'pipe', 'inherit', ...Array<'ignore'>(17).fill('ignore'), file.fd] as const;
      const child = spawn(process.execPath, [...runOnce, 'bash', '-c', script], { stdio: [...stdio] });
      let text = '';
      for await (const chunk of child.stdout!) text += String(chunk);
      await file.close();
      const open = text
        .split('\n')
        .filter((name) => name !== '' && !/^(socket:|\/proc\/\d+\/fd$)/.test(name));
      expect(new Set(open)).toEqual(new Set(['/dev/null']));
    });
  });

  describe('does not write', () => {
    test('outside of /work, /tmp and /dev/shm', async () => {
      const written = await findings(`
import json, os
written = []
for folder, folders, _ in os.walk('/'):
    if folder.count('/') > 3: folders.clear()
    if folder.startswith('/proc/') and folder.split('/')[2].isdigit() and folder.split('/')[2] != '1': folders.clear()
    try:
        open(folder + '/written', 'w').close()
        written.append(folder)
    except OSError: pass
print(json.dumps(sorted(written)))`);
      expect(written).toEqual(['/dev/shm', '/tmp', '/work']);
    });

    test('any setting of the host, in /proc or /sys', async () => {
      const opened = await findings(`
import json, os
opened = ['/sys'] if os.path.exists('/sys') else []
for folder, _, files in os.walk('/proc'):
    if folder.count('/') > 1 and folder.split('/')[2].isdigit() and folder.split('/')[2] != str(os.getpid()): continue
    for name in files:
        try:
            os.close(os.open(folder + '/' + name, os.O_WRONLY | os.O_NONBLOCK))
            opened.append(folder + '/' + name)
        except OSError: pass
print(json.dumps([file for file in opened if '/fd/' not in file and '/map_files/' not in file]))`);
      expect(opened).toEqual([]);
    });

    test('device nodes, and finds only harmless ones', async () => {
      const found = (await findings(`
import errno, json, os, stat
def errno_of(kind, device):
    try: os.mknod('/work/node', kind | 0o600, device)
    except OSError as error: return errno.errorcode[error.errno]
devices = [folder + '/' + name for folder, _, files in os.walk('/dev') for name in files]
devices = [name for name in devices if stat.S_ISCHR(os.lstat(name).st_mode) or stat.S_ISBLK(os.lstat(name).st_mode)]
print(json.dumps([errno_of(stat.S_IFBLK, os.makedev(8, 0)), errno_of(stat.S_IFCHR, os.makedev(1, 1)), sorted(devices)]))`)) as unknown[];
      expect(found.slice(0, 2)).toEqual(['EPERM', 'EPERM']);
      const harmless = ['full', 'null', 'ptmx', 'pts/ptmx', 'random', 'tty', 'urandom', 'zero'].map(
        (name) => `/dev/${name}`,
      );
      expect(harmless).toEqual(expect.arrayContaining(found[2] as string[]));
    });

    test('into what we started it with: a terminal', async () => {
      const errors = await findings(`
import ctypes, json
libc = ctypes.CDLL(None, use_errno=True)
def errno_of(*arguments):
    return ctypes.get_errno() if libc.ioctl(*arguments) < 0 else 0
print(json.dumps([errno_of(0, 0x5412, b'x'), errno_of(0, 0x541c, b'x')]))`);
      expect(errors).toEqual([EPERM, EPERM]);
      expect(await sandbox.run({ argv: ['sh', '-c', 'echo x > /dev/tty'] })).toMatchObject({ exit: 2 });
    });
  });

  describe('does not become more than it is', () => {
    test('has no rights, and gets none by a program that gives some', async () => {
      const status = (await findings(`
import json, os
def refused(call, *arguments):
    try: call(*arguments)
    except OSError: return True
    return False
fields = dict(line.split(':', 1) for line in open('/proc/self/status').read().splitlines())
facts = {name: fields[name].split()[0] for name in ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs', 'Seccomp']}
print(json.dumps([facts, os.getuid() != 0, os.getgroups(), refused(os.setuid, 0), refused(os.setgid, 0)]))`)) as unknown[];
      const none = '0'.repeat(16);
      expect(status).toEqual([
        {
          CapInh: none,
          CapPrm: none,
          CapEff: none,
          CapBnd: none,
          CapAmb: none,
          NoNewPrivs: '1',
          Seccomp: '2',
        },
        true,
        [],
        true,
        true,
      ]);
      const setuid = await sandbox.run({
        argv: ['sh', '-c', 'cp /usr/bin/id . && chmod u+s id && ./id -u; su -c id'],
      });
      expect(setuid.stdout).toBe('64001\n');
    });

    test.each([
      ['forbidden', FORBIDDEN, EPERM],
      ['absent', ABSENT, ENOSYS],
    ])('makes no system call that is %s', async (_, calls, answer) => {
      const asked = callsHere(calls);
      const errors = await findings(`
import ctypes, json
libc = ctypes.CDLL(None, use_errno=True)
def errno_of(number):
    ctypes.set_errno(0)
    return ctypes.get_errno() if libc.syscall(number, 0, 0, 0, 0, 0, 0) < 0 else 0
print(json.dumps({name: errno_of(number) for name, number in json.loads('${JSON.stringify(asked)}').items()}))`);
      expect(errors).toEqual(Object.fromEntries(Object.keys(asked).map((name) => [name, answer])));
    });

    test.runIf(process.arch === 'x64')('dies of a call of another kind of processor', async () => {
      const x32 = await python(`import ctypes; ctypes.CDLL(None).syscall(0x40000000 + 39)`);
      expect(x32.signal).toBe('SIGSYS');
      const i386 = await python(`
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3])) # mov eax, getpid; int 0x80; ret
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()`);
      expect(i386.signal).toBe('SIGSYS');
    });

    test('makes no namespaces of its own', async () => {
      const errors = await findings(`
import ctypes, json, platform
libc = ctypes.CDLL(None, use_errno=True)
clone = 56 if platform.machine() == 'x86_64' else 220
flags = [0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000]
def errno_of(*arguments):
    return ctypes.get_errno() if libc.syscall(*arguments) < 0 else 0
print(json.dumps([errno_of(clone, flag | 17, 0, 0, 0, 0) for flag in flags]))`);
      expect(errors).toEqual(Array(7).fill(EPERM));
      const unshared = await sandbox.run({ argv: ['unshare', '--user', 'true'] });
      expect(unshared).toMatchObject({ exit: 1, stderr: expect.stringContaining('Operation not permitted') });
    });

    test('reaches nobody: not our loopback, not an abstract socket, not the world', async () => {
      const server = createServer((socket) => socket.end('hunter2')).listen(0, '127.0.0.1');
      const abstract = createServer((socket) => socket.end('hunter2')).listen(`\0gradus-test-${process.pid}`);
      await vi.waitUntil(() => server.listening && abstract.listening, { timeout: 120_000 });
      const { port } = server.address() as AddressInfo;
      const found = await findings(`
import errno, json, socket
def errno_of(family, address):
    try: socket.socket(family, socket.SOCK_STREAM).connect(address)
    except OSError as error: return errno.errorcode[error.errno]
def families():
    for family in range(46):
        try: socket.socket(family, socket.SOCK_RAW if family in (16,) else socket.SOCK_STREAM).close()
        except OSError: continue
        yield family
print(json.dumps([
    errno_of(socket.AF_INET, ('127.0.0.1', ${port})),
    errno_of(socket.AF_UNIX, '\\0gradus-test-${process.pid}'),
    errno_of(socket.AF_INET, ('192.0.2.1', 80)),
    [name for _, name in socket.if_nameindex()],
    [family for family in families() if family not in (1, 2, 10, 16)]]))`);
      server.close();
      abstract.close();
      expect(found).toEqual(['ECONNREFUSED', 'ECONNREFUSED', 'ENETUNREACH', ['lo'], []]);
    });

    test('sends no signal to a process of the host', async () => {
      const errors = await findings(`
import errno, json, os
def errno_of(pid):
    try: os.kill(pid, 0)
    except OSError as error: return errno.errorcode[error.errno]
print(json.dumps([errno_of(pid) for pid in [${process.pid}, ${process.ppid}]]))`);
      expect(errors).toEqual(['ESRCH', 'ESRCH']);
      // To everybody that it may: only its own die of it.
      await sandbox.run({ argv: ['sh', '-c', 'kill -KILL -1; kill -KILL 0'] });
    });
  });

  describe('does not get more than its limits', () => {
    test('of processes', async () => {
      const forked = (await findings(
        `
import json, os, time
forked = 0
try:
    while True:
        if os.fork() == 0: time.sleep(60)
        forked += 1
except OSError: print(json.dumps(forked), flush=True)
os._exit(0)`,
        within({ processes: 20 }),
      )) as number;
      expect(forked).toBeGreaterThan(10);
      expect(forked).toBeLessThanOrEqual(22);
    });

    test('of time, with processes that make processes', async () => {
      // None of them ends where there is no room for another, as a shell does.
      const ran = await python(
        `
import os
while True:
    try: os.fork()
    except OSError: pass`,
        within({ wallSeconds: 1, cpuSeconds: 60 }),
      );
      expect(ran.ended).toBe('wall-time');
      // By its second; without it the bomb goes on until its processor time is used up.
      expect(ran.seconds).toBeLessThan(30);
    });

    test('of processor time, in one process or in many', async () => {
      const one = await python('while True: pass', within({ cpuSeconds: 1 }));
      expect(one).toMatchObject({ ended: 'cpu-time', exit: null });
      // Each of these takes too little to be noticed by itself.
      const many = await sandbox.run({
        argv: ['sh', '-c', `while :; do python3 -c 'sum(range(10**6))'; done`],
        // On a busy machine a second of a processor takes long to be had.
        ...within({ cpuSeconds: 1, wallSeconds: 120 }),
      });
      expect(many).toMatchObject({ ended: 'cpu-time', exit: null });
    });

    test('of time, by stopping, by ignoring signals, or by closing its output', async () => {
      const ways = ['kill -STOP $PPID $$', `trap '' TERM INT HUP; sleep 60`, 'exec sleep 60 <&- >&- 2>&-'];
      const runs = await Promise.all(
        ways.map((way) =>
          sandbox.run({ argv: ['sh', '-c', way], collect: ['x'], ...within({ wallSeconds: 0.5 }) }),
        ),
      );
      expect(runs.map(({ ended }) => ended)).toEqual(ways.map(() => 'wall-time'));
      // Left alone they take sixty seconds, or for ever.
      for (const { seconds } of runs) expect(seconds).toBeLessThan(30);
    });

    test.each([
      ['in one piece', `bytearray(400 << 20)`, 'exit'],
      [
        'in children that share nothing',
        `
import os, time
for _ in range(8):
    if os.fork() == 0:
        held = bytearray(60 << 20)
        time.sleep(60)
time.sleep(60)`,
        'memory',
      ],
      [
        'shared among all',
        `
import mmap
held = mmap.mmap(-1, 1 << 30)
while True: held.write(bytes(1 << 20))`,
        'memory',
      ],
      [
        'in tables of pages',
        `
import mmap
held = mmap.mmap(-1, 1 << 44, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ)
for at in range(0, 1 << 44, 1 << 21): held[at]`,
        'memory',
      ],
      [
        'in sockets',
        `
import resource, socket, time, os
def hold():
    held = []
    try:
        while True:
            pair = socket.socketpair()
            pair[0].setblocking(False)
            held.append(pair)
            try:
                while True: pair[0].send(bytes(65536))
            except BlockingIOError: pass
    except OSError: time.sleep(60)
for _ in range(20):
    if os.fork() == 0: hold()
time.sleep(60)`,
        'memory',
      ],
      [
        'in empty files',
        `
at = 0
while True:
    open('/work/%d' % at, 'w').close()
    at += 1`,
        'memory',
      ],
    ])('of memory, %s', async (_, script, ended) => {
      const ran = await python(script, within({ memoryBytes: 128 * MIB, writableBytes: 32 * MIB }));
      expect(ran.ended).toBe(ended);
      if (ended === 'exit') expect(ran.stderr).toContain('MemoryError');
    });

    test('of room for files', async () => {
      const written = (await findings(
        `
import json, resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def fill(folder):
    total = 0
    for at in range(100):
        try:
            with open('%s/%d' % (folder, at), 'wb', buffering=0) as file:
                while True: total += file.write(bytes(1 << 20))
        except OSError as error: last = error.errno
    return total
print(json.dumps([fill('/work'), fill('/tmp'), fill('/dev/shm')]))`,
        within({ writableBytes: 32 * MIB, fileBytes: 4 * MIB }),
      )) as number[];
      expect(written.reduce((sum, bytes) => sum + bytes, 0)).toBeLessThanOrEqual(32 * MIB);
      expect(written[0]).toBeGreaterThan(12 * MIB);
      const large = await sandbox.run({
        argv: ['sh', '-c', 'head -c 5000000 /dev/zero > large'],
        ...within({ fileBytes: 4 * MIB }),
        collect: ['large'],
      });
      expect(large.files.get('large')).toHaveLength(4 * MIB);
    });

    test('of output, neither printed nor collected', async () => {
      const before = process.memoryUsage().rss;
      const flood = await sandbox.run({ argv: ['yes'], ...within({ outputBytes: 1000 }) });
      expect(flood).toMatchObject({ ended: 'output', cut: true, stdout: 'y\n'.repeat(500) });
      const much = await sandbox.run({ argv: ['seq', '2000'], ...within({ outputBytes: 1000 }) });
      expect(much).toMatchObject({ ended: 'exit', exit: 0, cut: true });
      expect(much.stdout).toHaveLength(1000);
      const files = await sandbox.run({
        argv: ['sh', '-c', 'mkdir many; cd many; seq 60000 | xargs touch'],
        collect: ['many'],
        ...within({ writableBytes: 64 * MIB, memoryBytes: 128 * MIB, outputBytes: 1000 }),
      });
      expect(files.files.size === 60_000 || files.ended !== 'exit').toBe(true);
      expect(process.memoryUsage().rss - before).toBeLessThan(300 * MIB);
    });
  });

  describe('leaves nothing behind', () => {
    /** Processes of the host whose command line has the mark. */
    const alive = (mark: string): number[] =>
      readdirSync('/proc')
        .map(Number)
        .filter((pid) => pid > 0 && pid !== process.pid && commandLine(pid).includes(mark));

    test('of a daemon that has left its session and closed its output', async () => {
      const mark = `600.${process.pid}1`;
      const ran = await sandbox.run({
        argv: [
          'sh',
          '-c',
          `setsid setsid sleep ${mark} >/dev/null 2>&1 </dev/null & setsid sleep ${mark} & echo left`,
        ],
      });
      expect(ran).toMatchObject({ exit: 0, stdout: 'left\n' });
      await vi.waitUntil(() => alive(mark).length === 0, { timeout: 120_000 });
    });

    test('when the process that runs it is killed', async () => {
      const mark = `600.${process.pid}2`;
      const child = spawn(
        process.execPath,
        [...runOnce, 'sh', '-c', `setsid sleep ${mark} & sleep ${mark}`],
        { stdio: 'ignore' },
      );
      await vi.waitUntil(() => alive(mark).length > 3, { timeout: 120_000 });
      child.kill('SIGKILL');
      await vi.waitUntil(() => alive(mark).length === 0, { timeout: 120_000 });
    });

    test('of a link out of its work folder: what lies behind it is not collected', async () => {
      const ran = await sandbox.run({
        argv: [
          'sh',
          '-c',
          'ln -s /etc/passwd file; ln -s /usr/share folder; ln -s /proc/1 process; echo mine > mine; ln mine hard',
        ],
        collect: ['file', 'folder', 'folder/doc', 'process/environ', 'mine', 'hard'],
      });
      expect([...ran.files.keys()].toSorted()).toEqual(['hard', 'mine']);
    });

    test('of an archive that it forges', async () => {
      // The launcher's descriptors are its own, too: what it writes there is refused or taken for what it is, its data.
      const ran = await sandbox.run({
        argv: [
          'sh',
          '-c',
          'for way in /proc/$PPID/fd/*; do seq 9999 > $way; done 2>/dev/null; kill -KILL $PPID; sleep 60',
        ],
        collect: ['x'],
        ...within({ wallSeconds: 2 }),
      });
      expect([...ran.files.keys()]).toEqual([]);
    });
  });
});

function callsHere(calls: SystemCalls): Record<string, number> {
  const index = process.arch === 'arm64' ? 1 : 0;
  return Object.fromEntries(
    Object.entries(calls).flatMap(([name, numbers]) =>
      numbers[index] === null ? [] : [[name, numbers[index]]],
    ),
  );
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return ''; // it has ended
  }
}

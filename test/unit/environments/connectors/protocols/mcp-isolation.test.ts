import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import path from 'node:path';
import { spawnSync } from 'node:child_process';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ToolCall } from '../../../../../core/episode/episode.ts';
import type { Environment, Task } from '../../../../../environments/contract/environment.ts';
import { mcpSessions } from '../../../../../environments/connectors/protocols/mcp.ts';
import type { McpPlace, StatefulMcpChoices } from '../../../../../environments/connectors/protocols/mcp.ts';
import { playCalls } from '../../../../support/play-calls.ts';

// With @modelcontextprotocol/server-memory from npm, which keeps what it is told in a file.

const root = path.resolve(import.meta.dirname, '../../../../..');
const MEMORY = path.join(root, 'node_modules/@modelcontextprotocol/server-memory/dist/index.js');
const memoryIn = (folder: string) => ({
  command: process.execPath,
  args: [MEMORY],
  env: { MEMORY_FILE_PATH: path.join(folder, 'memory.jsonl') },
});

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'gradus-memory-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

async function remembering(
  server: StatefulMcpChoices['server'],
  resume: 'replay' | 'pin' = 'replay',
): Promise<Environment> {
  const { tools, sessions } = await mcpSessions({ server, resume, only: ['create_entities', 'read_graph'] });
  return {
    name: 'memory',
    levels: [1],
    tools,
    sessions,
    verifiers: [],
    taskCount: () => 1,
    task: (ref) => ({ ref, prompt: `Remember person ${ref.index}.` }),
  };
}

const remember = (name: string): ToolCall => ({
  name: 'create_entities',
  arguments: { entities: [{ name, entityType: 'person', observations: [] }] },
});
const read: ToolCall = { name: 'read_graph', arguments: {} };
const namesRead = (text: string): string[] =>
  (JSON.parse(text) as { entities: { name: string }[] }).entities.map(({ name }) => name);

test.each(['replay', 'pin'] as const)(
  'a server that is made for each session shows none what another one has stored (%s)',
  async (resume) => {
    const places: McpPlace[] = [];
    const tasks: (Task | null)[] = [];
    const environment = await remembering((task, place) => {
      places.push(place);
      tasks.push(task);
      return memoryIn(place.folder);
    }, resume);
    const played = await Promise.all(
      ['Ada', 'Blaise'].map((name, index) =>
        playCalls(environment, [remember(name), read], { task: { index } }),
      ),
    );
    const later = await playCalls(environment, [read], { task: { index: 2 } });
    expect(played.map(({ observations }) => namesRead(observations[1]!.text))).toEqual([['Ada'], ['Blaise']]);
    expect(namesRead(later.observations[0]!.text)).toEqual([]);
    // The tools are listed without a task; each session then has its own place. Which of two at once is first is open.
    const prompts = tasks.map((task) => task?.prompt ?? null);
    expect([prompts[0], prompts[3]]).toEqual([null, 'Remember person 2.']);
    expect(new Set(prompts.slice(1, 3))).toEqual(new Set(['Remember person 0.', 'Remember person 1.']));
    expect(prompts).toHaveLength(4);
    expect(places[0]!.id).toBe('tools');
    expect(new Set(places.map((place) => place.folder)).size).toBe(4);
    for (const place of places) expect(() => readFileSync(place.folder)).toThrow('ENOENT');
  },
);

test('a session that comes back begins in an empty folder, and its calls bring it to where it was', async () => {
  const environment = await remembering((_, place) => memoryIn(place.folder));
  const calls = [remember('Ada'), remember('Blaise'), read];
  const { observations } = await playCalls(environment, calls, { moves: [1, 2] });
  expect(namesRead(observations[2]!.text)).toEqual(['Ada', 'Blaise']);
});

test('a server that is the same for all sessions shares its file, as the page says', async () => {
  const environment = await remembering(memoryIn(folder));
  await playCalls(environment, [remember('Ada')]);
  const { observations } = await playCalls(environment, [read]);
  expect(namesRead(observations[0]!.text)).toEqual(['Ada']);
});

test('what a process that was killed has left is removed, and what belongs to a living one is not', async () => {
  const gone = spawnSync(process.execPath, ['-e', '']).pid;
  const left = path.join(tmpdir(), `gradus-sessions-${hostname()}-${gone}-abcdef`);
  const kept = path.join(tmpdir(), `gradus-sessions-${hostname()}-${process.ppid}-abcdef`);
  const others = path.join(tmpdir(), `gradus-sessions-another-host-${gone}-abcdef`);
  for (const one of [left, kept, others]) mkdirSync(one);
  try {
    const script = `const { makeSessionFolder } = await import(${JSON.stringify(path.join(root, 'environments/connectors/protocols/session-folder.ts'))}); console.log(await makeSessionFolder());`;
    const { stdout } = spawnSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
      cwd: root,
      encoding: 'utf8',
    });
    expect(stdout.trim()).not.toBe('');
    const isThere = (one: string): boolean => spawnSync('test', ['-d', one]).status === 0;
    expect([left, kept, others, stdout.trim()].map(isThere)).toEqual([false, true, true, false]);
  } finally {
    for (const one of [left, kept, others]) rmSync(one, { recursive: true, force: true });
  }
});

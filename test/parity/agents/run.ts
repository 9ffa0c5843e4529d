// Agents' libraries as they come, each through a task of several turns and two calls in one, against the gateway with recorded
// turns and a real store. Nothing is installed in the checkout. Run: npm run parity:agents
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFile, mkdir } from 'node:fs/promises';
import path from 'node:path';
import { runAgent } from '../../../gateway/run-agent.ts';
import { serveGateway } from '../../../gateway/server.ts';
import { cacheEntry, cacheRoot } from '../../../infra/cache-dir.ts';
import { ensurePythonEnvironment } from '../../../infra/setup/python-environment.ts';
import { episodeOptions, qwen, speaksQwen } from '../../support/gateway.ts';
import { ScriptedPolicy } from '../../support/scripted-policy.ts';
import { TestServer } from '../../support/store/server.ts';

const here = import.meta.dirname;
const requirements = path.join(here, 'requirements.txt');
const { python } = await ensurePythonEnvironment('parity-agents', requirements, console.log);
const modules = cacheEntry(cacheRoot(), { name: 'parity-agents-npm', version: 'ai-7.0.173' });
await mkdir(modules, { recursive: true });
for (const file of ['package.json', 'ai_sdk.mjs'])
  await copyFile(path.join(here, file), path.join(modules, file));
execFileSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund'], {
  cwd: modules,
  stdio: ['ignore', 'ignore', 'inherit'],
});

const inPython = (file: string): [string, string] => [python, path.join(here, file)];
const AGENTS: [name: string, argv: [string, string], apis: string[]][] = [
  ["OpenAI's SDK", inPython('openai_sdk.py'), ['chat', 'responses']],
  ["Anthropic's SDK", inPython('anthropic_sdk.py'), ['messages']],
  ["OpenAI's Agents SDK", inPython('agents_sdk.py'), ['chat', 'responses']],
  ['LangGraph', inPython('langgraph_graph.py'), ['chat', 'responses']],
  ["Vercel's AI SDK", [process.execPath, path.join(modules, 'ai_sdk.mjs')], ['chat', 'responses']],
];
const call = (a: number, b: number): string =>
  `<tool_call>\n${JSON.stringify({ name: 'add', arguments: { a, b } })}\n</tool_call>`;
const TURNS = [`Both.\n${call(1, 2)}\n${call(3, 4)}`, call(3, 7), 'The sum is 10.'];
const RESULTS = ['3', '7', '10'];

const server = await TestServer.start();
const store = await server.connect();
const gateway = await serveGateway();
const failed: string[] = [];
try {
  for (const [name, argv, apis] of AGENTS)
    for (const api of apis)
      for (const stream of [false, true]) {
        const what = `${name}, ${api}${stream ? ', streamed' : ''}`;
        try {
          await goesThrough(argv, api, stream);
          console.log(`ok      ${what}`);
        } catch (error) {
          failed.push(what);
          console.log(`FAILED  ${what}: ${String(error)}`);
        }
      }
} finally {
  await gateway.close();
  store.close();
  await server.remove();
}
process.exitCode = failed.length === 0 ? 0 : 1;

/** Throws where the agent did not come to the answer by one path of three turns, all of whose tokens are the policy's. */
async function goesThrough(argv: [string, string], api: string, stream: boolean): Promise<void> {
  const policy = new ScriptedPolicy(
    TURNS.map((text) => ({ tokens: [...qwen.encodePlain(text), qwen.idOf('<|im_end|>')] })),
  );
  const id = `${path.basename(argv[1]).replaceAll('.', '-')}-${api}-${stream ? 'streamed' : 'whole'}`;
  const episode = await gateway.open(episodeOptions(policy, store, id, speaksQwen));
  const { status } = await runAgent(gateway, episode, {
    argv,
    task: 'What is 1 + 2, and 3 + 4? Add both.',
    timeoutSeconds: 120,
    variables: { API: api, STREAM: stream ? '1' : '0' },
    signal: new AbortController().signal,
  });
  assert.deepEqual(status, { kind: 'answered', answer: TURNS.at(-1) });
  const [turns, ...others] = episode.branches();
  assert.equal(others.length, 0, `${others.length} more branches`);
  assert.deepEqual(
    turns!.map(({ tokens }) => qwen.decode(tokens.slice(0, -1))),
    TURNS,
  );
  const told = turns!.flatMap(({ messages }) => messages.filter(({ role }) => role === 'tool'));
  assert.deepEqual(
    told.map(({ content }) => content),
    RESULTS,
  );
}

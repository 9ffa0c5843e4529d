import { stringify } from 'smol-toml';
import type { Bug } from '../bug.ts';
import { apartPrograms } from '../apart.ts';
import { requestsOf } from '../judge.ts';
import { pinnedPackages } from '../packages/prepared.ts';
import { patched } from '../patch.ts';
import { pythonProgram } from '../sandboxed-python.ts';
import type { Tree } from '../tree.ts';

/** The version of Harbor's task format that is written. */
const SCHEMA = '1.4';
const WORKDIR = '/app';
const BASE_IMAGE = 'python:3.11-slim';
const PROGRAMS = ['harbor_judge', 'run_tests', 'run_group', 'canaries'];

/** What a task of Harbor's is called. */
export interface HarborName {
  /** Letters, digits, `._-`. */
  org: string;
  name: string;
  version: string;
  description: string;
}

/**
 * A bug as a task folder of Harbor's: the text of each file by its path. The container has the tree with the bug and pytest;
 * its tests are our judge with all its layers, and what they have to say is exactly what is asked here. They run where
 * the policy worked, as everything in Harbor's shared mode: who was root there can have exchanged the interpreter itself.
 * Where the verifier is root, the code is another user, who can read neither the tests nor the reward.
 */
export function harborTask(bug: Bug, prompt: string, { org, ...task }: HarborName): Tree {
  const mended = [...patched(bug.tree, bug.mend)].filter(([file, text]) => bug.tree.get(file) !== text);
  const wall = 3 * requestsOf(bug).within.wall_seconds;
  const config = {
    schema_version: SCHEMA,
    task: { ...task, name: `${org}/${task.name}`, keywords: ['python', 'bug'] },
    metadata: { category: 'debugging' },
    verifier: { timeout_sec: wall + 60 },
    agent: { timeout_sec: 1800 },
    environment: { build_timeout_sec: 600, cpus: 1, memory_mb: 2048, workdir: WORKDIR },
  };
  return new Map([
    ['task.toml', `${stringify(config)}\n`],
    ['instruction.md', `${prompt}\n\nThe source is in ${WORKDIR}.\n`],
    ['environment/Dockerfile', dockerfile()],
    ...under('environment/app', bug.tree),
    ['tests/test.sh', TEST_SCRIPT],
    ...PROGRAMS.map((name): [string, string] => [`tests/${name}.py`, pythonProgram(name)]),
    ...Object.entries(apartPrograms()).map(([name, text]): [string, string] => [`tests/${name}.py`, text]),
    ['tests/task.json', JSON.stringify(forJudge(bug))],
    ['solution/solve.sh', `#!/bin/sh\nset -e\ncp -R /solution/mended/. ${WORKDIR}/\n`],
    ...under('solution/mended', new Map(mended)),
  ]);
}

const under = (folder: string, tree: Tree): [string, string][] =>
  [...tree].map(([file, text]) => [`${folder}/${file}`, text]);

const forJudge = (bug: Bug) => ({
  tree: Object.fromEntries(bug.tree),
  sources: bug.sources,
  tests: bug.tests,
  requests: requestsOf(bug),
});

const TEST_SCRIPT = `#!/bin/sh
# The original tests, in a tree of their own. Only what the judge says to its end is a success.
mkdir -p /logs/verifier
echo 0 > /logs/verifier/reward.txt
cd ${WORKDIR}
if python3 -I -B /tests/harbor_judge.py; then echo 1 > /logs/verifier/reward.txt; fi
`;

function dockerfile(): string {
  const pins = [...pinnedPackages()].map((pin) => pin.join('=='));
  return [
    `FROM ${BASE_IMAGE}`,
    `RUN pip install --no-cache-dir --no-deps ${pins.join(' ')}`,
    `WORKDIR ${WORKDIR}`,
    `COPY app/ ${WORKDIR}/`,
    '',
  ].join('\n');
}

import { expect, test } from 'vitest';
import { readDockerfile } from '../../../../../environments/families/swe/harbor/dockerfile.ts';

const held = new Map([['pytest', '9.2.0']]);

test('a base, a working folder, files and packages that are here are taken', () => {
  const text = `# syntax=docker/dockerfile:1
FROM python:3.13-slim
ENV A=1 B="two"
RUN pip install --no-cache-dir \\
    pytest==9.2.0 && python3 -m pip install -q pytest
WORKDIR /app
COPY src/ /app/src
COPY a.py .
COPY b.py other/
CMD ["bash"]
`;
  expect(readDockerfile(text, held)).toEqual({
    workdir: '/app',
    env: { A: '1', B: 'two' },
    copies: [
      { from: 'src/', to: '/app/src', into: false },
      { from: 'a.py', to: '/app', into: true },
      { from: 'b.py', to: '/app/other', into: true },
    ],
  });
});

test.each([
  ['FROM nvidia/cuda:12', /is not one base image/],
  ['FROM python:3.12 AS build', /is not one base image/],
  ['WORKDIR /app', /comes before FROM/],
  ['FROM ubuntu\nRUN apt-get update', /has a command that is no pip install: apt-get update/],
  ['FROM ubuntu\nRUN pip install numpy', /installs numpy, which is not held here: there are pytest==9\.2\.0/],
  ['FROM ubuntu\nRUN pip install pytest==8.0.0', /installs pytest==8\.0\.0/],
  ['FROM ubuntu\nRUN pip install pytest; curl x', /installs pytest;/],
  ['FROM ubuntu\nCOPY --from=build /a /b', /more than files beside the Dockerfile/],
  ['FROM ubuntu\nCOPY ../../etc /app', /more than files beside the Dockerfile/],
  ['FROM ubuntu\nENV A=$B', /is not NAME=VALUE/],
  ['FROM ubuntu\nENTRYPOINT ["x"]', /takes Docker/],
  ['', /has no FROM/],
])('%j is refused, and says why', (text, why) => {
  expect(() => readDockerfile(text, held)).toThrow(why);
});

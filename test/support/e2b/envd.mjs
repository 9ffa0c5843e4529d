// What E2B runs in its machines, as far as files and commands go: written for tests from the protocol's own description
// (Connect with JSON for commands, HTTP for files). `node envd.mjs PORT`.
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';

/** A message of Connect's streams: flags, length, JSON. */
const framed = (flags, message) => {
  const body = Buffer.from(JSON.stringify(message));
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(body.length, 1);
  return Buffer.concat([head, body]);
};

const bodyOf = async (request) => {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces);
};

async function start(request, response) {
  const { process: asked, stdin } = JSON.parse((await bodyOf(request)).subarray(5));
  response.writeHead(200, { 'content-type': 'application/connect+json' });
  const say = (event) => response.write(framed(0, { event }));
  const child = spawn(asked.cmd, asked.args, {
    cwd: asked.cwd ?? '/',
    env: { PATH: process.env.PATH, E2B_SANDBOX: 'false', ...asked.envs },
    stdio: [stdin ? 'pipe' : 'ignore', 'pipe', 'pipe'],
  });
  say({ start: { pid: child.pid } });
  child.stdout.on('data', (data) => say({ data: { stdout: data.toString('base64') } }));
  child.stderr.on('data', (data) => say({ data: { stderr: data.toString('base64') } }));
  child.on('close', (code, signal) => {
    say({ end: { exitCode: code ?? -1, exited: code !== null, status: signal ?? `exit status ${code}` } });
    response.end(framed(2, {}));
  });
}

async function upload(request, response) {
  const headers = { 'content-type': request.headers['content-type'] };
  const form = await new Response(await bodyOf(request), { headers }).formData();
  const written = [];
  for (const file of form.getAll('file')) {
    mkdirSync(path.dirname(file.name), { recursive: true });
    writeFileSync(file.name, Buffer.from(await file.arrayBuffer()));
    written.push({ name: path.basename(file.name), path: file.name, type: 'file' });
  }
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(written));
}

async function answer(request, response) {
  const { pathname, searchParams } = new URL(request.url, 'http://envd');
  if (pathname === '/health') response.writeHead(204).end();
  else if (pathname === '/process.Process/Start') await start(request, response);
  else if (pathname === '/files' && request.method === 'POST') await upload(request, response);
  else if (pathname === '/files') {
    response.writeHead(200, { 'content-type': 'application/octet-stream' });
    response.end(readFileSync(searchParams.get('path')));
  } else response.writeHead(501).end();
}

createServer((request, response) => void answer(request, response)).listen(
  Number(process.argv[2]),
  '127.0.0.1',
);

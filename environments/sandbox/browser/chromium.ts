import type { Browser, ConnectOverCDPTransport } from 'playwright-core';
import { GradusError } from '../../../core/errors.ts';
import type { Running } from '../contract.ts';
import { openSandbox } from '../open-sandbox.ts';
import { findChromium } from './find-chromium.ts';

const MIB = 2 ** 20;

// The sandbox is around the whole browser, so it goes without its own, which would need namespaces in ours.
const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--remote-debugging-pipe',
  '--no-startup-window',
  '--user-data-dir=/tmp/profile',
  '--disable-dev-shm-usage',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-default-apps',
  '--disable-extensions',
  '--disable-sync',
  '--no-first-run',
  '--no-default-browser-check',
  '--no-service-autorun',
  '--password-store=basic',
  '--use-mock-keychain',
  '--mute-audio',
  '--hide-scrollbars',
  '--force-color-profile=srgb',
  '--lang=en-US',
  '--disable-background-timer-throttling',
  '--disable-renderer-backgrounding',
  '--disable-backgrounding-occluded-windows',
  '--disable-features=Translate,BackForwardCache,MediaRouter,OptimizationHints',
];

/** Of the browser with all of its pages. */
const BROWSER_LIMITS = {
  memoryBytes: 4096 * MIB,
  processes: 4096,
  // Some 40 of each page.
  descriptors: 8192,
  fileBytes: 256 * MIB,
  writableBytes: 1024 * MIB,
};

/** How long it may take to start, on a busy machine, milliseconds. */
const START_MS = 30_000;

export interface RunningChromium {
  browser: Browser;
  /** Ends it as `kill -9` would. */
  kill(): void;
}

let running: Promise<RunningChromium> | undefined;

/**
 * The browser of this process, started where none is alive. It runs in the sandbox, with no network at all: it is talked
 * to over two pipes, and pages come by `BrowserContext.route`.
 * Throws GradusError('environment', 'no-browser') with what to do, and what `openSandbox` throws.
 */
export async function chromium(): Promise<RunningChromium> {
  const current = running ?? start();
  running = current;
  try {
    const started = await current;
    if (started.browser.isConnected()) return started;
  } catch (error) {
    if (running === current) running = undefined;
    throw error;
  }
  // It has died since; whoever comes first starts the next one.
  if (running === current) running = undefined;
  return chromium();
}

async function start(): Promise<RunningChromium> {
  const found = findChromium();
  if ('missing' in found) throw new GradusError('environment', 'no-browser', found.missing);
  const sandbox = await openSandbox();
  const process = await sandbox.start({
    argv: [found.executable, ...FLAGS],
    env: { ...found.env },
    mounts: found.mounts,
    limits: BROWSER_LIMITS,
    pipes: 2,
  });
  let words = '';
  process.stdout.resume();
  process.stderr.setEncoding('utf8').on('data', (text: string) => (words = (words + text).slice(-2000)));
  // Loaded where a browser is wanted: it takes 200 ms.
  const { chromium: playwright } = await import('playwright-core');
  try {
    const browser = await playwright.connectOverCDP(overPipes(process), { timeout: START_MS });
    browser.once('disconnected', () => process.kill());
    return { browser, kill: () => process.kill() };
  } catch (cause) {
    process.kill();
    await process.over;
    throw new GradusError('environment', 'no-browser', `Chromium did not come up: ${words.trim()}`, {
      cause,
      retryable: true,
    });
  }
}

/** Chrome DevTools Protocol over descriptors 3 (to the browser) and 4: JSON, each ended by a zero byte. */
function overPipes(process: Running): ConnectOverCDPTransport {
  const [to, from] = process.pipes as [Running['pipes'][number], Running['pipes'][number]];
  const transport: ConnectOverCDPTransport = {
    send: (message) => void to.write(`${JSON.stringify(message)}\0`),
    close: () => process.kill(),
  };
  let pieces: Buffer[] = [];
  from.on('data', (piece: Buffer) => {
    let begin = 0;
    for (let end = piece.indexOf(0); end >= 0; end = piece.indexOf(0, begin)) {
      pieces.push(piece.subarray(begin, end));
      const message = JSON.parse(Buffer.concat(pieces).toString()) as object;
      pieces = [];
      begin = end + 1;
      transport.onmessage?.(message);
    }
    if (begin < piece.length) pieces.push(piece.subarray(begin));
  });
  void process.over.then(() => transport.onclose?.('Chromium has ended'));
  return transport;
}

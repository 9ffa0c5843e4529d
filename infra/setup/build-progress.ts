import { stat } from 'node:fs/promises';
import path from 'node:path';
import { GradusError } from '../../core/errors.ts';
import { howLong } from '../../core/time/how-long.ts';
import { runCommand, tailOf } from './command.ts';
import type { CommandOptions } from './command.ts';

/** Bytes of source by import path of each package that Go has still to compile. */
export type Sources = ReadonlyMap<string, number>;

/**
 * Asks Go, which downloads the modules for it. What an earlier build has compiled is left out.
 * @throws GradusError infra/build-failed
 */
export async function sourcesToCompile(
  go: string,
  packages: readonly string[],
  options: CommandOptions,
): Promise<Sources> {
  const format = '{{if .Stale}}{{.ImportPath}}\t{{.Dir}}\t{{join .GoFiles "\\t"}}{{end}}';
  const listed = await runCommand(go, ['list', '-deps', '-f', format, ...packages], options);
  if (listed.code !== 0) {
    throw new GradusError(
      'infra',
      'build-failed',
      `Go could not load the sources of ${packages.join(' ')}:\n${tailOf(listed.stderr)}\n` +
        `Is the Go module proxy reachable, and the disk not full? Then run the command again.`,
      { retryable: true },
    );
  }
  const sources = new Map<string, number>();
  for (const line of listed.stdout.split('\n')) {
    const [name, folder, ...files] = line.split('\t');
    if (!name || !folder) continue;
    const sizes = await Promise.all(files.map((file) => stat(path.join(folder, file))));
    sources.set(
      name,
      sizes.reduce((sum, { size }) => sum + size, 0),
    );
  }
  return sources;
}

/** Packages that Go compiles at a time. */
const AT_ONCE = 2;
const WIDTH = 20;

/** What `go install -v` prints, a package a line when it begins to compile it, as a bar for a person who waits. */
export class BuildProgress {
  private readonly begun: string[] = [];
  private readonly total: number;
  private done = 0;
  private told = 0;
  private start: number | undefined;
  private readonly sources: Sources;

  constructor(sources: Sources) {
    this.sources = sources;
    this.total = [...sources.values()].reduce((sum, bytes) => sum + bytes, 0);
  }

  /** Takes a line at a time in ms; the bar where another tenth is done, null otherwise. */
  compiling(line: string, now: number): string | null {
    const bytes = this.sources.get(line.trim());
    if (bytes === undefined) return null;
    this.start ??= now;
    this.begun.push(line.trim());
    if (this.begun.length > AT_ONCE) this.done += this.sources.get(this.begun.shift()!)!;
    const share = this.done / this.total;
    const tenths = Math.floor(share * 10);
    if (tenths <= this.told) return null;
    this.told = tenths;
    const full = Math.round(share * WIDTH);
    const left = (now - this.start) * (1 / share - 1);
    return `${'█'.repeat(full)}${'░'.repeat(WIDTH - full)} ${tenths * 10} %, about ${howLong(left)} left`;
  }
}

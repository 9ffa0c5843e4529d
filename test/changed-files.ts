import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';

/** With NUL between paths: otherwise git writes umlauts and quotes as escapes. */
const paths = (root: string, args: string[]): string[] =>
  execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
    .split('\0')
    .filter((file) => file !== '');

/** The commit that is meant; null where there is none of that name. */
function commitOf(root: string, args: string[]): string | null {
  try {
    const answer = execFileSync('git', args, {
      cwd: root,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    return answer.trim() || null;
  } catch {
    return null;
  }
}

/** What was named, or where this branch left main; without a main, the last commit. */
function baseOf(root: string, named: string | undefined): string {
  if (named !== undefined) {
    const commit = commitOf(root, [
      'rev-parse',
      '--verify',
      '--quiet',
      '--end-of-options',
      `${named}^{commit}`,
    ]);
    if (commit === null) throw new Error(`there is no commit "${named}" here: name one, or none for main`);
    return commit;
  }
  const merged = ['main', 'origin/main'].map((main) => commitOf(root, ['merge-base', 'HEAD', main]));
  return merged.find((commit) => commit !== null) ?? 'HEAD';
}

/**
 * Paths from the root of what has changed since a commit, committed or not, those that are gone left out.
 * Throws for a commit that there is not.
 */
export function changedFiles(root: string, named?: string): string[] {
  const changed = [
    ...paths(root, ['diff', '--name-only', '-z', baseOf(root, named)]),
    ...paths(root, ['ls-files', '-z', '--others', '--exclude-standard']),
  ];
  return [...new Set(changed)].filter((file) => existsSync(path.join(root, file)));
}

/**
 * One press of Ctrl-C may come twice: from the terminal, and from the program that started this one. Milliseconds within
 * which signals count as one.
 */
const SAME_PRESS_MS = 500;

/** Resolves on the first Ctrl-C or SIGTERM; the second ends the process at once. */
export function untilInterrupted(): Promise<void> {
  return new Promise((resolve) => {
    let first: number | null = null;
    const heard = (code: number) => (): void => {
      const now = performance.now();
      if (first === null) {
        first = now;
        resolve();
      } else if (now - first > SAME_PRESS_MS) process.exit(code);
    };
    process.on('SIGINT', heard(130));
    process.on('SIGTERM', heard(143));
  });
}

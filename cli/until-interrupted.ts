/** Resolves on the first Ctrl-C or SIGTERM; the second ends the process at once. */
export function untilInterrupted(): Promise<void> {
  return new Promise((resolve) => {
    const first = (): void => {
      process.once('SIGINT', () => process.exit(130));
      process.once('SIGTERM', () => process.exit(143));
      resolve();
    };
    process.once('SIGINT', first);
    process.once('SIGTERM', first);
  });
}

import { Command } from 'commander';
import { fail } from '../../cli/fail.ts';
import { messageOf } from '../../core/errors.ts';
import { wantsGpu } from '../../infra/setup/tensorflow-native.ts';
import { timeoutSignal } from '../../core/timeout-signal.ts';

// Everything that can only be known on a machine with a GPU: `npm run check:gpu`. Rows as a benchmark prints them; their
// place is docs/log.md.

/** After the set-up, which downloads: what is not done by then is not done. */
const LIMIT_MS = 600_000;

async function check({ rehearse, quick = false }: { rehearse?: true; quick?: boolean }): Promise<number> {
  const say = (text: string): void => void process.stderr.write(`${text}\n`);
  if (!rehearse && !(await wantsGpu())) {
    say(
      'No NVIDIA GPU answers here (nvidia-smi --list-gpus), so there is nothing to check. ' +
        'On a machine with one, run this command again; --rehearse runs the same on the processor.',
    );
    return 0;
  }
  const { ensureOnnxCuda } = await import('../../infra/setup/onnxruntime-cuda.ts');
  const { untilInterrupted } = await import('../../cli/until-interrupted.ts');
  // They bring the whole engine along.
  const { GPU_BENCHES } = await import('./benches.ts');
  const libraries = rehearse ? null : await ensureOnnxCuda(say);
  const stopping = new AbortController();
  void untilInterrupted().then(() => stopping.abort(new Error('stopped by a person')));
  const signal = AbortSignal.any([stopping.signal, timeoutSignal(LIMIT_MS)]);
  let failed = 0;
  for (const [name, bench] of Object.entries(GPU_BENCHES)) {
    say(`— gpu:${name}`);
    try {
      for await (const row of bench(libraries)({ quick, say, signal })) console.log(JSON.stringify(row));
    } catch (error) {
      // The other parts are worth an hour on a machine with a GPU all the same.
      failed++;
      say(`gpu:${name} did not end well: ${messageOf(error)}`);
    }
  }
  return failed === 0 ? 0 : 1;
}

new Command('check:gpu')
  .description('Checks on a machine with a GPU what can be known only there, within ten minutes.')
  .option('--rehearse', 'do the same on the processor, to see that the checks themselves work')
  .option('--quick', 'sizes of seconds: to see that it works, not to quote')
  .action((options: { rehearse?: true; quick?: true }) =>
    check(options).then((code) => process.exit(code), fail),
  )
  .parse();

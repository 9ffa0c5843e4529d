import { GradusError } from '../../../core/errors.ts';
import { ensureChemistry } from '../chemistry/python.ts';

/** Makes the Python of xTB and DFT where it is missing. False where that cannot be: then the fast tier is all there is. */
export async function makeChemistry(say: (text: string) => void): Promise<boolean> {
  try {
    await ensureChemistry((text) => say(`setup: ${text}`));
    return true;
  } catch (error) {
    if (!(error instanceof GradusError) || error.type !== 'python-missing') throw error;
    say(
      `setup: ${error.message}. Without it xTB and DFT have no worker, so this run goes on with the fast tier alone: ` +
        'it trains for valid molecules, and their properties are not judged',
    );
    return false;
  }
}
